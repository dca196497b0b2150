"""A compiled filter as an SQL condition that agrees with its evaluation.

Every leaf is true or false, never NULL, so that ``NOT`` means what it means in the evaluator. What
databases say differently is their ``Dialect``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a database says it: a parameter, equality that knows null, where metadata is kept.

    ``prefix`` makes the condition that a column begins with a text; ``value`` makes the parameter
    that compares as the evaluator compares the value.
    """

    mark: str
    same: str
    other: str
    kept: Callable[[str], str]
    prefix: Callable[[str, str], Condition]
    value: Callable[[Value], object] = lambda value: value


def _sqlite_prefix(column: str, start: str) -> Condition:
    """In bytes, for LIKE folds case, and text functions end at U+0000."""
    wanted = start.encode()
    if not wanted:  # substr of an empty blob is NULL
        return f"{column} IS NOT NULL", []
    return f"COALESCE(substr(CAST({column} AS BLOB), 1, ?) = ?, FALSE)", [len(wanted), wanted]


SQLITE: Final = Dialect(
    mark="?",
    same="IS",
    other="IS NOT",
    kept=lambda kind: "value",
    prefix=_sqlite_prefix,
)
POSTGRES: Final = Dialect(
    mark="%s",
    same="IS NOT DISTINCT FROM",
    other="IS DISTINCT FROM",
    kept=lambda kind: "said" if kind == "text" else "number",
    prefix=lambda column, start: (f"COALESCE(starts_with({column}, %s), FALSE)", [start]),
    # a double is made a numeric of 15 digits by the server, and of all its digits here
    value=lambda value: Decimal(value) if isinstance(value, float) else value,
)


def as_sql(node: Node, dialect: Dialect = SQLITE) -> Condition:
    """The condition on a row ``f`` of the table ``file``, and its parameters."""
    match node:
        case Comparison():
            return _comparison(node, dialect)
        case OneOf():
            return _one_of(node, dialect)
        case Not():
            condition, values = as_sql(node.part, dialect)
            return f"NOT ({condition})", values
        case Every():
            return _joined(node.parts, dialect, " AND ", "TRUE")
        case Some():
            return _joined(node.parts, dialect, " OR ", "FALSE")
    raise TypeError(f"no filter: {type(node).__name__}")


def _joined(parts: tuple[Node, ...], dialect: Dialect, word: str, none: str) -> Condition:
    said = [as_sql(part, dialect) for part in parts]
    text = word.join(f"({condition})" for condition, _ in said)
    return text or none, [value for _, values in said for value in values]


def _column(field: Field, dialect: Dialect) -> Condition:
    if field.key is None:
        return _COLUMNS[field.name], []
    where = f"m.file = f.id AND m.key = {dialect.mark}"
    return f"(SELECT m.{dialect.kept(field.kind)} FROM meta m WHERE {where})", [field.key]  # noqa: S608 - our own names


def _comparison(node: Comparison, dialect: Dialect) -> Condition:
    column, key = _column(node.field, dialect)
    if node.op == "prefix":
        condition, values = dialect.prefix(column, str(node.value))
        return condition, [*key, *values]
    values = [*key, dialect.value(node.value)]
    if node.op in ("eq", "neq"):
        same = dialect.same if node.op == "eq" else dialect.other
        return f"{column} {same} {dialect.mark}", values
    return f"COALESCE({column} {_SIGNS[node.op]} {dialect.mark}, FALSE)", values


def _one_of(node: OneOf, dialect: Dialect) -> Condition:
    column, key = _column(node.field, dialect)
    given = [dialect.value(value) for value in node.values if value is not None]
    marks = ", ".join([dialect.mark] * len(given))
    text = f"COALESCE({column} IN ({marks}), FALSE)" if given else "FALSE"
    values = [*key, *given] if given else []
    if len(given) < len(node.values):
        return f"({text} OR {column} IS NULL)", [*values, *key]
    return text, values
