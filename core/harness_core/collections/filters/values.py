"""How values are read: the same for what a filter asks and what a file holds.

Each reader gives a value that Python and SQLite compare alike (text, an integer of at most 64 bits,
a finite double), or raises ``ValueError``.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final, TypeAlias

Value: TypeAlias = str | int | float | None
Reader: TypeAlias = Callable[[Any], str | int | float]

STATUSES: Final = ("pending", "processing", "ready", "failed")
_LARGEST: Final = 2**63 - 1
_DAY: Final = 86_400_000_000  # microseconds
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def text(given: Any) -> str:
    """A string without U+0000 and lone surrogates."""
    if not isinstance(given, str) or "\0" in given:
        raise ValueError("no text")
    given.encode("utf-8")  # a UnicodeEncodeError is a ValueError
    return given


def number(given: Any) -> int | float:
    """A finite number, or a string that spells one as JSON does, of at most 64 characters."""
    if isinstance(given, str):
        if len(given) > 64 or not _NUMBER.fullmatch(given):
            raise ValueError("no number")
        given = float(given) if re.search(r"[.eE]", given) else int(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ValueError("no number")
    if isinstance(given, int) and -_LARGEST <= given <= _LARGEST:
        return given
    try:
        wide = float(given)
    except OverflowError:
        raise ValueError("no number") from None
    if not math.isfinite(wide):
        raise ValueError("no number")
    return wide


def size(given: Any) -> int:
    """A number of bytes: whole, from 0 to 2^63 - 1. A string is none."""
    if isinstance(given, (str, bool)) or not isinstance(given, (int, float)):
        raise ValueError("no size")
    fraction = isinstance(given, float) and not given.is_integer()  # infinities have one
    if fraction or not 0 <= given <= _LARGEST:
        raise ValueError("no size")
    return int(given)


def instant(given: Any) -> int:
    """A timestamp with a time zone as microseconds since year 1 (UTC); further digits are cut."""
    found = _TIME.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise ValueError("no timestamp")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction = int((found[7] or "")[:6].ljust(6, "0"))
    east = (int(found[9]) * 60 + int(found[10])) * (-1 if found[8] == "-" else 1) if found[8] else 0
    if hour > 23 or minute > 59 or second > 59 or (found[8] and not _offset(found)):
        raise ValueError("no timestamp")
    days = date(year, month, day).toordinal()
    return days * _DAY + ((hour * 60 + minute - east) * 60 + second) * 1_000_000 + fraction


def _offset(found: re.Match[str]) -> bool:
    return int(found[9]) <= 23 and int(found[10]) <= 59


def boolean(given: Any) -> int:
    """True or false, also as those two words; as 1 or 0."""
    if given is True or given == "true":
        return 1
    if given is False or given == "false":
        return 0
    raise ValueError("no boolean")


def status(given: Any) -> str:
    """A file's status."""
    if isinstance(given, str) and given in STATUSES:
        return given
    raise ValueError("no status")


READERS: Final[Mapping[str, Reader]] = {
    "text": text, "number": number, "time": instant, "bool": boolean, "size": size,
    "status": status,
}  # fmt: skip


def stored(kind: str, given: Any) -> Value:
    """What a file holds, as values are compared; None for what its type cannot read."""
    if given is None:
        return None
    try:
        return READERS[kind](given)
    except ValueError:
        return None
