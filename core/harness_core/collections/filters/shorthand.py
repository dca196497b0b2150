"""Filters as the frameworks write them, as clauses of the grammar.

A bare name is a metadata key; ``file.path`` and its like are the built-in fields.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.errors import BadSettingError

BUILT_IN: Final = ("path", "content_type", "bytes", "created_at", "updated_at", "status")
_FILE: Final = "file."
_COMPARISON: Final = frozenset({"field", "op", "value"})
_OPS: Final[Mapping[str, str]] = {
    "$eq": "eq", "$ne": "neq", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte",
    "$in": "in", "$nin": "nin", "$prefix": "prefix",
}  # fmt: skip


def wire_filter(given: Any) -> Any:
    """A dict in shorthand as a clause; a clause, and what is no dict, as it is.

    ``{"team": "db", "severity": {"$gte": 3}}`` asks for both. ``$and`` and ``$or`` take a list,
    ``$not`` a dict; a field takes ``$eq``, ``$ne``, ``$gt``, ``$gte``, ``$lt``, ``$lte``, ``$in``,
    ``$nin`` and ``$prefix``.

    Raises:
        BadSettingError: the grammar cannot say it.
    """
    if not isinstance(given, Mapping) or _is_clause(given):
        return given
    return joined("and", [_said(name, value) for name, value in given.items()])


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


def _is_clause(given: Mapping[Any, Any]) -> bool:
    if set(given) == {"not"}:
        return isinstance(given["not"], Mapping)
    if set(given) in ({"and"}, {"or"}):
        return all(isinstance(inner, list) for inner in given.values())
    return set(given) == _COMPARISON


def _said(name: Any, value: Any) -> dict[str, Any]:
    """One member of a dict in shorthand."""
    if name in ("$and", "$or"):
        parts = value if isinstance(value, Sequence) and not isinstance(value, str) else [None]
        return joined(name[1:], [_inner(name, part) for part in parts])
    if name == "$not":
        return {"not": _inner(name, value)}
    if not isinstance(name, str) or name.startswith("$"):
        raise BadSettingError(f"a filter joins by $and, $or and $not, not by {name!r}")
    if isinstance(value, Mapping):
        return joined("and", [_compared(name, op, inner) for op, inner in value.items()])
    if isinstance(value, (list, tuple, set, frozenset)):
        raise BadSettingError(f"{name!r} is one of several values by {{'$in': [...]}}")
    return compared(name, "eq", value)


def _inner(name: str, part: Any) -> dict[str, Any]:
    if not isinstance(part, Mapping):
        raise BadSettingError(f"{name} takes filters, not {type(part).__name__}")
    clause: dict[str, Any] = wire_filter(part)
    return clause


def _compared(name: str, op: Any, value: Any) -> dict[str, Any]:
    if op not in _OPS:
        raise BadSettingError(f"a collection compares by {', '.join(_OPS)}, not by {op!r}")
    return compared(name, _OPS[op], value)
