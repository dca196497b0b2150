"""A compiled filter as an SQLite condition that agrees with its evaluation.

Every leaf gives 0 or 1, never NULL, so that ``NOT`` means what it means in the evaluator.
"""

from collections.abc import Mapping
from typing import Final

from harness_core.collections.filters.fields import Field
from harness_core.collections.filters.nodes import Comparison, Every, Node, Not, OneOf, Some
from harness_core.collections.filters.values import Value

_COLUMNS: Final[Mapping[str, str]] = {
    "path": "f.path", "content_type": "f.content_type", "bytes": "f.bytes", "status": "f.status",
    "created_at": "f.created_us", "updated_at": "f.updated_us",
}  # fmt: skip
_SIGNS: Final[Mapping[str, str]] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

Condition = tuple[str, list[object]]


def as_sql(node: Node) -> Condition:
    """The condition on a row ``f`` of the table ``file``, and its parameters."""
    match node:
        case Comparison():
            return _comparison(node)
        case OneOf():
            return _one_of(node)
        case Not():
            condition, values = as_sql(node.part)
            return f"NOT ({condition})", values
        case Every():
            return _joined(node.parts, " AND ", "1")
        case Some():
            return _joined(node.parts, " OR ", "0")
    raise TypeError(f"no filter: {type(node).__name__}")


def _joined(parts: tuple[Node, ...], word: str, none: str) -> Condition:
    said = [as_sql(part) for part in parts]
    text = word.join(f"({condition})" for condition, _ in said)
    return text or none, [value for _, values in said for value in values]


def _column(field: Field) -> Condition:
    if field.key is None:
        return _COLUMNS[field.name], []
    return "(SELECT m.value FROM meta m WHERE m.file = f.id AND m.key = ?)", [field.key]


def _comparison(node: Comparison) -> Condition:
    column, key = _column(node.field)
    if node.op == "eq":
        return f"{column} IS ?", [*key, node.value]
    if node.op == "neq":
        return f"{column} IS NOT ?", [*key, node.value]
    if node.op == "prefix":
        return _prefix(column, key, str(node.value))
    return f"COALESCE({column} {_SIGNS[node.op]} ?, 0)", [*key, node.value]


def _prefix(column: str, key: list[object], value: str) -> Condition:
    start = value.encode()
    if not start:  # substr of an empty blob is NULL
        return f"{column} IS NOT NULL", key
    return f"COALESCE(substr(CAST({column} AS BLOB), 1, ?) = ?, 0)", [*key, len(start), start]


def _one_of(node: OneOf) -> Condition:
    column, key = _column(node.field)
    given: list[Value] = [value for value in node.values if value is not None]
    text = f"COALESCE({column} IN ({', '.join('?' * len(given))}), 0)" if given else "0"
    values: list[object] = [*key, *given] if given else []
    if len(given) < len(node.values):
        return f"({text} OR {column} IS NULL)", [*values, *key]
    return text, values
