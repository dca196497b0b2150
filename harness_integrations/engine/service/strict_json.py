"""JSON as the contract takes it: what parsers pass over in silence is refused."""

import json
import math
from collections.abc import Iterable
from typing import Any, Final, Never

from harness_core.collections.faults import InvalidRequestError

DEPTH: Final = 64


def parse_body(body: bytes) -> Any:
    """The value of a JSON body.

    Raises:
        InvalidRequestError: not UTF-8 or with a byte order mark, not JSON, a member given twice,
            NaN or an infinity, a lone surrogate, or deeper than 64 levels.
    """
    try:
        text = body.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite
        )
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):  # UnicodeError and JSONDecodeError are ValueErrors
        raise InvalidRequestError("the body is not JSON as this service reads it", "") from None
    if text.count("[") + text.count("{") > DEPTH and _deeper(value, DEPTH):
        raise InvalidRequestError(f"the body is nested deeper than {DEPTH} levels", "")
    return value


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


def _deeper(value: Any, most: int) -> bool:
    level: list[Any] = [value]
    for _ in range(most):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True
