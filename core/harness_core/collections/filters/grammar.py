"""JSON to a compiled filter: the shape of the whole tree first, then each comparison in order."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from harness_core.collections.faults import FilterError
from harness_core.collections.filters.fields import METADATA, Field, field_named
from harness_core.collections.filters.nodes import Comparison, Every, Node, Not, OneOf, Some
from harness_core.collections.filters.values import Value

DEPTH: Final = 8
CLAUSES: Final = 100
LISTED: Final = 100
_LOGIC: Final = ("and", "or", "not")
_COMPARISON: Final = frozenset({"field", "op", "value"})


class _Place(NamedTuple):
    clause: Any
    depth: int
    pointer: str


def compile_filter(filter: Any, fields: Mapping[str, str]) -> Node:  # noqa: A002 - its name
    """The filter that ``filter`` (parsed JSON; None matches all) says.

    ``fields`` maps each listed metadata key to text, number, time or bool.

    Raises:
        FilterError: with ``field`` and ``reason`` where the grammar names them.
    """
    if filter is None:
        return Every()
    for place in _clauses(filter):
        _check_shape(place)
    return _compiled(filter, fields, "/filter")


def _clauses(filter: Any) -> Iterator[_Place]:  # noqa: A002
    """Every clause in document order; without recursion, for a tree may be hostile."""
    waiting = [_Place(filter, 1, "/filter")]
    seen = 0
    while waiting:
        place = waiting.pop()
        seen += 1
        if place.depth > DEPTH:
            raise FilterError(f"a filter is nested at most {DEPTH} deep")
        if seen + len(waiting) > CLAUSES:
            raise FilterError(f"a filter has at most {CLAUSES} clauses")
        yield place
        waiting += reversed(_children(place))


def _children(place: _Place) -> list[_Place]:
    clause, depth, pointer = place
    if "not" in clause:
        return [_Place(clause["not"], depth + 1, f"{pointer}/not")]
    for name in ("and", "or"):
        if name in clause:
            below = clause[name][: CLAUSES + 1]
            return [_Place(c, depth + 1, f"{pointer}/{name}/{n}") for n, c in enumerate(below)]
    return []


def _check_shape(place: _Place) -> None:
    clause, _, pointer = place
    if not isinstance(clause, Mapping):
        raise FilterError("a clause is an object", pointer=pointer)
    if set(clause) == _COMPARISON and all(isinstance(clause[n], str) for n in ("field", "op")):
        return
    name = next((name for name in _LOGIC if set(clause) == {name}), None)
    if name is None:
        named = clause.get("field")
        raise FilterError(
            "a clause holds exactly field, op and value, or one of and, or, not",
            field=_shown(named) if isinstance(named, str) else None, pointer=pointer,
        )  # fmt: skip
    if name != "not" and not (isinstance(clause[name], list) and clause[name]):
        raise FilterError(f"{name} holds at least one clause", pointer=f"{pointer}/{name}")


def _compiled(clause: Mapping[str, Any], fields: Mapping[str, str], pointer: str) -> Node:
    if "not" in clause:
        return Not(_compiled(clause["not"], fields, f"{pointer}/not"))
    for name, kind in (("and", Every), ("or", Some)):
        if name in clause:
            parts = enumerate(clause[name])
            return kind(tuple(_compiled(c, fields, f"{pointer}/{name}/{n}") for n, c in parts))
    return _comparison(clause, fields, pointer)


def _comparison(clause: Mapping[str, Any], fields: Mapping[str, str], pointer: str) -> Node:
    name, op, value = clause["field"], clause["op"], clause["value"]
    field = field_named(name, fields)
    if field is None:
        listable = name.startswith(METADATA)
        _refuse(name, "not_listed" if listable else None, f"{pointer}/field")
    if op not in field.operators:
        _refuse(name, "op_not_allowed", f"{pointer}/op")
    if op != "in":
        return Comparison(field, op, _value(field, op, value, f"{pointer}/value"))
    if not isinstance(value, list) or not 1 <= len(value) <= LISTED:
        _refuse(name, "invalid_value", f"{pointer}/value")
    return OneOf(field, tuple(_value(field, op, one, f"{pointer}/value") for one in value))


def _value(field: Field, op: str, given: Any, pointer: str) -> Value:
    try:
        return field.asked(given, op)
    except ValueError:
        _refuse(field.name, "invalid_value", pointer)


_SAID: Final = {
    "not_listed": "the collection does not list this metadata key",
    "op_not_allowed": "this field does not have that operator",
    "invalid_value": "this field cannot be compared with that value",
    None: "there is no such field",
}


def _refuse(name: str, reason: str | None, pointer: str) -> NoReturn:
    raise FilterError(_SAID[reason], field=_shown(name), reason=reason, pointer=pointer)


def _shown(name: str) -> str:
    return name[:200].encode("utf-8", "replace").decode()
