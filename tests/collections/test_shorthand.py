"""Filters in shorthand, against a reading of them that knows nothing of the grammar."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core import BadSettingError
from harness_core.collections.filters import FilterError, compile_filter, wire_filter

FIELDS = {"team": "text", "severity": "number", "file": "text", "and": "text"}
ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le,
}  # fmt: skip


def test_shorthand_becomes_clauses_of_the_grammar() -> None:
    team = {"field": "metadata.team", "op": "eq", "value": "db"}
    severe = {"field": "metadata.severity", "op": "gte", "value": 3}
    assert wire_filter({"team": "db"}) == team
    assert wire_filter({"team": "db", "severity": {"$gte": 3}}) == {"and": [team, severe]}
    assert wire_filter({"$or": [{"team": "db"}, {"severity": {"$gte": 3}}]}) == {
        "or": [team, severe]
    }
    assert wire_filter({"$not": {"team": "db"}}) == {"not": team}
    assert wire_filter({"file.path": {"$prefix": "/a/"}}) == {
        "field": "path", "op": "prefix", "value": "/a/"
    }  # fmt: skip
    assert wire_filter({"team": {"$nin": ("a", "b")}}) == {
        "not": {"field": "metadata.team", "op": "in", "value": ["a", "b"]}
    }
    assert wire_filter({"team": None}) == {**team, "value": None}
    assert wire_filter({"path": "x"})["field"] == "metadata.path"


@pytest.mark.parametrize(
    "clause",
    [
        None,
        {"field": "bytes", "op": "gt", "value": 0},
        {"and": [{"field": "bytes", "op": "gt", "value": 0}]},
        {"or": []},
        {"not": {"team": "db"}},
        "text",
        [1],
    ],
)
def test_a_clause_and_what_is_no_dict_are_left_as_they_are(clause: Any) -> None:
    assert wire_filter(clause) is clause


def test_clauses_may_stand_inside_shorthand() -> None:
    clause = {"field": "bytes", "op": "gt", "value": 0}
    assert wire_filter({"$and": [clause, {"team": "db"}]})["and"][0] == clause


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"team": {}},
        {"team": {"$regex": "^a"}},
        {"team": {"$exists": True}},
        {"team": {"sub": 1}},
        {"team": ["a", "b"]},
        {"$nor": [{"team": "a"}]},
        {"$and": []},
        {"$and": {"team": "a"}},
        {"$and": "ab"},
        {"$or": [1]},
        {"$not": "a"},
        {"$text": {"$search": "a"}},
        {"file.size": 1},
        {1: 2},
    ],
)
def test_what_cannot_be_said_raises(given: Any) -> None:
    with pytest.raises(BadSettingError):
        wire_filter(given)


TEAMS = st.sampled_from(["db", "web", "d", ""])
NUMBERS = st.integers(-2, 3)
ONE = st.one_of(
    st.builds(lambda value: {"team": value}, TEAMS | st.none()),
    st.builds(lambda value: {"severity": value}, NUMBERS | st.none()),
    st.builds(lambda op, value: {"severity": {op: value}}, st.sampled_from([*ORDERED]), NUMBERS),
    st.builds(lambda op, value: {"team": {op: value}}, st.sampled_from(["$eq", "$ne"]), TEAMS),
    st.builds(lambda value: {"team": {"$prefix": value}}, TEAMS),
    st.builds(
        lambda op, values: {"team": {op: values}},
        st.sampled_from(["$in", "$nin"]), st.lists(TEAMS, min_size=1, max_size=3),
    ),
    st.builds(lambda low, high: {"severity": {"$gte": low, "$lt": high}}, NUMBERS, NUMBERS),
    st.builds(lambda a, b: {"team": a, "severity": {"$gt": b}}, TEAMS, NUMBERS),
)  # fmt: skip
SHORTHAND = st.recursive(
    ONE,
    lambda inner: st.one_of(
        st.builds(
            lambda op, parts: {op: parts},
            st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=5,
)  # fmt: skip
METADATA = st.fixed_dictionaries({}, optional={"team": TEAMS | st.none(), "severity": NUMBERS})


def read(asked: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata fits, straight from the shorthand."""
    return all(_one(name, value, metadata) for name, value in asked.items())


def _one(name: str, value: Any, metadata: Mapping[str, Any]) -> bool:
    if name == "$not":
        return not read(value, metadata)
    if name in ("$and", "$or"):
        return (all if name == "$and" else any)(read(part, metadata) for part in value)
    stored = metadata.get(name)
    if not isinstance(value, dict):
        return bool(stored == value)
    return all(_fits(stored, op, asked) for op, asked in value.items())


def _fits(stored: Any, op: str, asked: Any) -> bool:
    if op in ORDERED:
        return stored is not None and ORDERED[op](stored, asked)
    if op == "$prefix":
        return stored is not None and stored.startswith(asked)
    known = {
        "$eq": stored == asked, "$ne": stored != asked,
        "$in": op == "$in" and stored in asked, "$nin": op == "$nin" and stored not in asked,
    }  # fmt: skip
    return bool(known[op])


@given(SHORTHAND, METADATA)
def test_shorthand_selects_what_it_says(asked: Any, metadata: dict[str, Any]) -> None:
    record = {
        "path": "/a", "content_type": "text/plain", "bytes": 1, "status": "ready",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "metadata": metadata,
    }  # fmt: skip
    try:
        node = compile_filter(wire_filter(asked), FIELDS)
    except FilterError:  # deeper than eight
        return
    assert node.matches(record) is read(asked, metadata)
