"""Fields of a structured reply, read by their exact names and tolerantly by their form."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness_core.config import read_number

_PLACEHOLDERS = frozenset({
    "-", "--", "n.a", "n/a", "na", "nil", "none", "not applicable", "not available", "nr", "null",
    "unknown",
})  # fmt: skip


def is_placeholder(text: str) -> bool:
    """Whether a text only says that there is no value, such as "None" or "N/A"."""
    return text.strip().strip("\"'.()[]*_").strip().lower() in _PLACEHOLDERS | {""}


def text_field(record: Mapping[str, Any], name: str) -> str:
    """A text, trimmed; lists and nested values are joined in written order. Missing is ``""``."""
    return "\n".join(_texts(record.get(name))).strip()


def number_field(record: Mapping[str, Any], name: str) -> float | None:
    """One finite number, or a text that is one; None for anything else."""
    value = scalar(record.get(name))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = read_number(value)
    return number if number is not None and math.isfinite(number) else None


def int_field(record: Mapping[str, Any], name: str) -> int | None:
    """One whole number, or a text that is one; None for anything else."""
    number = number_field(record, name)
    return int(number) if number is not None and number.is_integer() else None


def bool_is_true(record: Mapping[str, Any], name: str) -> bool:
    """Whether a field is exactly true; a text or a number never is."""
    return scalar(record.get(name)) is True


def records_field(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a list; one object alone is a list of one."""
    value = record.get(name)
    listed = [value] if isinstance(value, Mapping) else value
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def scalar(value: Any) -> Any:
    """One value; a list of one is that one, several or a mapping are None."""
    if isinstance(value, list):
        return scalar(value[0]) if len(value) == 1 else None
    return None if isinstance(value, Mapping) else value


def strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema that asks for every property and allows no other."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        for one in value:
            yield from _texts(one)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)
