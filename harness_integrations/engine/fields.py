"""Names of fields in the frameworks' filters: bare ones are metadata, ``file.`` names built-ins."""

from collections.abc import Sequence
from typing import Any, Final

from harness_core.errors import BadSettingError

BUILT_IN: Final = ("path", "content_type", "bytes", "created_at", "updated_at", "status")
_FILE: Final = "file."


def field_of(key: str) -> str:
    """The field that a key names.

    Raises:
        BadSettingError: ``file.`` with something that files do not have.
    """
    if not key.startswith(_FILE):
        return f"metadata.{key}"
    name = key.removeprefix(_FILE)
    if name not in BUILT_IN:
        raise BadSettingError(f"a file has no {name!r}; it has {', '.join(BUILT_IN)}")
    return name


def compared(key: str, op: str, value: Any) -> dict[str, Any]:
    """A comparison of the grammar; ``nin`` is the negation of ``in``."""
    if op == "nin":
        return {"not": compared(key, "in", value)}
    listed = list(value) if op == "in" and isinstance(value, (tuple, set, frozenset)) else value
    return {"field": field_of(key), "op": op, "value": listed}


def joined(op: str, clauses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Clauses under ``and``, ``or`` or ``not`` (of all of them together).

    Raises:
        BadSettingError: there are none.
    """
    if not clauses:
        raise BadSettingError(f"{op!r} joins at least one filter")
    if op == "not":
        return {"not": joined("and", clauses)}
    return clauses[0] if len(clauses) == 1 else {op: list(clauses)}
