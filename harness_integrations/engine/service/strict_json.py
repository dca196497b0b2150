"""JSON as the contract takes it: what parsers pass over in silence is refused."""

import json
import math
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final, Never

from harness_core.collections.faults import InvalidRequestError

DEPTH: Final = 64
CONTAINERS: Final = 4_096
"""Objects and arrays of one body: a filter, its lists, a history and a page of spans have fewer."""
VALUES: Final = 65_536
"""Members and entries of one body."""

_OTHERS: Final = bytes(set(range(256)) - set(b'"[]{},'))


def parse_body(body: bytes) -> Any:
    """The value of a JSON body.

    Raises:
        InvalidRequestError: not UTF-8 or with a byte order mark, not JSON, a member given twice,
            NaN or an infinity, a lone surrogate, deeper than 64 levels, or of over 65,536 values
            or 4,096 objects and arrays.
    """
    _check_size(body)
    try:
        text = body.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite
        )
        if "\\" in text and ("\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):  # UnicodeError and JSONDecodeError are ValueErrors
        raise InvalidRequestError("the body is not JSON as this service reads it", "") from None
    return value


def _check_size(body: bytes) -> None:
    """Raise where the value would be too deep or too large, before any of it is built."""
    if b"\\" in body:  # left are the quotes around strings
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = body.translate(None, _OTHERS)
    pieces = marks.split(b'"', 2 * VALUES)  # inside and outside of strings, in turn
    outside = b"".join(pieces[::2])
    most = VALUES + 2 * CONTAINERS
    if len(pieces) > 2 * VALUES or len(outside) > most or outside.count(b",") > VALUES:
        raise _too_much(f"{VALUES:,} values")
    brackets = outside.replace(b",", b"")
    if len(brackets) > 2 * CONTAINERS:
        raise _too_much(f"{CONTAINERS:,} objects and arrays")
    if max(accumulate(1 if one in b"[{" else -1 for one in brackets), default=0) > DEPTH:
        raise InvalidRequestError(f"the body is nested deeper than {DEPTH} levels", "")


def _too_much(limit: str) -> InvalidRequestError:
    return InvalidRequestError(f"the body holds over {limit}", "")


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    listed = list(pairs)
    members = dict(listed)
    if len(members) != len(listed):
        raise ValueError("a member is given twice")
    return members


def _refuse(_: str) -> Never:
    raise ValueError("not a number")


def _finite(written: str) -> float:
    number = float(written)
    if math.isinf(number):
        raise ValueError("too large a number")
    return number
