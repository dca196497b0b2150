"""What the specs share: numbers moved into range, near misses, and nothing changed silently."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError

from harness_core.config import read_number
from harness_core.errors import (
    BadSettingWarning,
    ClampedWarning,
    NearMissWarning,
    warn,
)


class Range(NamedTuple):
    """Where a numeric setting may lie."""

    low: float
    high: float
    whole: bool = True


def number_in(name: str, value: Any, bounds: Range, default: Any) -> Any:
    """A number inside its range; what is no usable number becomes the default. Both are said."""
    number = read_number(value)
    if number is None:
        return unusable(name, value, "one number", default)
    inside = min(max(number, bounds.low), bounds.high)
    if inside != number:
        warn(ClampedWarning(
            f"{name} lies in [{bounds.low:g}, {bounds.high:g}], not {number:g}; {inside:g} is used"
        ))  # fmt: skip
    return math.floor(inside) if bounds.whole else inside


def unusable(name: str, value: object, wanted: str, default: Any) -> Any:
    """The default for a value that cannot be used, with a warning."""
    warn(BadSettingWarning(f"{name} is {wanted}, not {value!r}; {default!r} is used"))
    return default


def sentence(error: ValidationError) -> str:
    """What is wrong with the settings of a spec, in one line."""
    return "; ".join(
        f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
    )


def warn_near_miss(name: str, known: Iterable[str]) -> None:
    """Say that an extra name is one edit away from a setting, or differs in case and dots alone."""
    for field in known:
        if _plain(name) == _plain(field) or edits_within_one(name, field):
            warn(NearMissWarning(f"{name!r} is no setting; did you mean {field!r}? It is kept"))
            return


def edits_within_one(a: str, b: str) -> bool:
    """Whether one insertion, deletion or substitution makes ``a`` into ``b``."""
    if abs(len(a) - len(b)) > 1:
        return False
    short, long = sorted((a, b), key=len)
    at = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    rest = at + 1 if len(short) == len(long) else at
    return short[rest:] == long[at + 1 :]


def _plain(name: str) -> str:
    return name.lower().replace(".", "").replace("_", "")
