"""The filter grammar: the vectors, and agreement of evaluation, SQL and an independent reading."""

import json
import re
import sqlite3
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.collections.filters import FilterError, as_sql, compile_filter
from harness_core.collections.filters.values import instant
from harness_core.collections.sqlite.catalogue import write_typed
from harness_core.collections.sqlite.schema import migrate

FIELDS = {
    "team": "text", "severity": "number", "occurred_at": "time", "reviewed": "bool",
    "note": "text", "v.1": "text",
}  # fmt: skip
A = {
    "path": "/reports/incident.txt", "content_type": "text/plain", "bytes": 1024,
    "created_at": "2026-01-10T08:00:00Z", "updated_at": "2026-02-01T00:00:00Z", "status": "ready",
    "metadata": {"team": "db", "severity": 2, "occurred_at": "2026-01-09T23:30:00+01:00",
                 "reviewed": True, "note": None, "v.1": "x"},
}  # fmt: skip
B = {
    "path": "/reports-old/Plan.pdf", "content_type": "application/pdf", "bytes": 0,
    "created_at": "2026-03-01T00:00:00.500Z", "updated_at": "2026-03-01T00:00:00.500Z",
    "status": "ready", "metadata": {"team": "Web", "severity": 10.5, "reviewed": False},
}  # fmt: skip
C = {
    "path": "/mail/0001.eml", "content_type": "message/rfc822", "bytes": 5_000_000,
    "created_at": "2025-12-31T23:59:59Z", "updated_at": "2026-01-10T08:00:00Z",
    "status": "failed", "metadata": {"team": None, "severity": "7", "occurred_at": None,
                                     "reviewed": "true", "note": ""},
}  # fmt: skip
RECORDS: list[dict[str, Any]] = [A, B, C]


def on(field: str, op: str, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


def nested(times: int) -> Any:
    clause: Any = on("bytes", "gte", 0)
    for _ in range(times):
        clause = {"not": clause}
    return clause


MATCHES = {
    "V01": (on("path", "eq", "/reports/incident.txt"), "A"),
    "V02": (on("path", "prefix", "/reports"), "AB"),
    "V04": (on("path", "prefix", "/Reports/"), ""),
    "V06": (on("content_type", "in", ["text/plain", "message/rfc822"]), "AC"),
    "V07": (on("content_type", "prefix", "text/"), "A"),
    "V08": (on("bytes", "gte", 1024), "AC"),
    "V15": (on("created_at", "eq", "2026-03-01T00:00:00.500Z"), "B"),
    "V19": (on("status", "in", ["failed", "processing"]), "C"),
    "V22": (on("metadata.team", "eq", "db"), "A"),
    "V23": (on("metadata.team", "neq", "db"), "BC"),
    "V24": (on("metadata.team", "gt", "Z"), "A"),
    "V26": (on("metadata.team", "eq", None), "C"),
    "V27": (on("metadata.team", "neq", None), "AB"),
    "V31": (on("metadata.severity", "eq", "2"), "A"),
    "V32": (on("metadata.severity", "gt", "2"), "BC"),
    "V33": (on("metadata.severity", "lte", 7), "AC"),
    "V38": (on("metadata.occurred_at", "lt", "2026-01-09T22:30:01Z"), "A"),
    "V39": (on("metadata.occurred_at", "eq", None), "BC"),
    "V42": (on("metadata.reviewed", "eq", "true"), "AC"),
    "V45": (on("metadata.reviewed", "in", [False, None]), "B"),
    "V48": (on("metadata.v.1", "eq", "x"), "A"),
    "V52": ({"or": [on("bytes", "eq", 0), on("metadata.note", "eq", "")]}, "BC"),
    "V53": ({"not": on("metadata.team", "eq", "db")}, "BC"),
    "V60": ({"or": [on("bytes", "eq", n) for n in range(99)]}, "B"),
    "V62": (on("bytes", "in", list(range(100))), "B"),
    "V69": (on("created_at", "gt", "0001-01-01T00:00:00+23:59"), "ABC"),
    "V71": (on("metadata.note", "eq", None), "AB"),
    "V72": (on("metadata.note", "prefix", ""), "C"),
}
NO_OP, BAD, UNLISTED = "op_not_allowed", "invalid_value", "not_listed"
REFUSED = {
    "V05": (on("path", "gt", "/m"), "path", NO_OP),
    "V10": (on("bytes", "eq", "1024"), "bytes", BAD),
    "V11": (on("bytes", "lt", -1), "bytes", BAD),
    "V12": (on("bytes", "eq", True), "bytes", BAD),
    "V13": (on("bytes", "prefix", 1), "bytes", NO_OP),
    "V16": (on("created_at", "lt", "2026-01-01"), "created_at", BAD),
    "V18": (on("updated_at", "in", ["2026-02-01T00:00:00Z"]), "updated_at", NO_OP),
    "V20": (on("status", "eq", "done"), "status", BAD),
    "V29": (on("metadata.team", "gt", None), "metadata.team", BAD),
    "V30": (on("metadata.team", "eq", 5), "metadata.team", BAD),
    "V34": (on("metadata.severity", "eq", " 2"), "metadata.severity", BAD),
    "V35": (on("metadata.severity", "eq", True), "metadata.severity", BAD),
    "V37": (on("metadata.severity", "prefix", "1"), "metadata.severity", NO_OP),
    "V40": (on("metadata.occurred_at", "in", ["2026-01-09T22:30:00Z"]), "metadata.occurred_at",
            NO_OP),
    "V41": (on("metadata.occurred_at", "lt", "20260109T223001Z"), "metadata.occurred_at", BAD),
    "V44": (on("metadata.reviewed", "eq", "True"), "metadata.reviewed", BAD),
    "V47": (on("metadata.owner", "eq", "x"), "metadata.owner", UNLISTED),
    "V49": (on("metadata.", "eq", "x"), "metadata.", UNLISTED),
    "V50": (on("file_id", "eq", "fil_1"), "file_id", None),
    "V54": ({"and": []}, None, None),
    "V56": ({"field": "bytes", "op": "eq"}, "bytes", None),
    "V57": ({**on("bytes", "eq", 0), "boost": 2}, "bytes", None),
    "V59": (nested(8), None, None),
    "V61": ({"or": [on("bytes", "eq", n) for n in range(100)]}, None, None),
    "V64": (on("bytes", "in", []), "bytes", BAD),
    "V65": (on("path", "in", [["/a"]]), "path", BAD),
    "V67": (on("path", "eq", None), "path", BAD),
    "V68": (on("metadata.team", "contains", "d"), "metadata.team", NO_OP),
    "AC53 list": ([], None, None),
    "AC53 text": ("x", None, None),
    "AC53 empty": ({}, None, None),
    "AC53 and": ({"and": {}}, None, None),
}  # fmt: skip


@pytest.mark.parametrize("vector", MATCHES)
def test_a_vector_matches_its_records(vector: str) -> None:
    clause, expected = MATCHES[vector]
    node = compile_filter(clause, FIELDS)
    names = "".join(n for n, record in zip("ABC", RECORDS, strict=True) if node.matches(record))
    assert names == expected
    assert "".join("ABC"[n] for n in selected(RECORDS, clause)) == expected


@pytest.mark.parametrize("vector", REFUSED)
def test_a_vector_is_refused_with_its_field_and_reason(vector: str) -> None:
    clause, field, reason = REFUSED[vector]
    with pytest.raises(FilterError) as caught:
        compile_filter(clause, FIELDS)
    assert (caught.value.field, caught.value.reason) == (field, reason)
    assert caught.value.code == "invalid_filter"
    assert caught.value.status == 400


def test_no_filter_matches_everything() -> None:
    assert all(compile_filter(None, {}).matches(record) for record in RECORDS)


def test_depth_eight_is_the_most() -> None:
    assert compile_filter(nested(7), FIELDS).matches(A) is False


def test_the_shape_of_the_whole_tree_is_checked_before_any_value() -> None:
    clause = {"and": [on("path", "gt", 1), {"or": []}]}
    with pytest.raises(FilterError) as caught:
        compile_filter(clause, FIELDS)
    assert caught.value.details == {"pointer": "/filter/and/1/or"}


def test_the_first_faulty_comparison_in_document_order_is_told() -> None:
    clause = {"and": [{"not": on("bytes", "eq", "1")}, on("path", "gt", "x")]}
    with pytest.raises(FilterError) as caught:
        compile_filter(clause, FIELDS)
    assert caught.value.details == {
        "pointer": "/filter/and/0/not/value", "field": "bytes", "reason": BAD,
    }  # fmt: skip


def test_a_deep_or_wide_bomb_is_refused_at_once() -> None:  # SEC70
    deep: Any = on("bytes", "eq", 0)
    for _ in range(100_000):
        deep = {"not": deep}
    for bomb in (deep, {"or": [on("bytes", "eq", 0)] * 1_000_000}):
        with pytest.raises(FilterError):
            compile_filter(bomb, FIELDS)
    while isinstance(deep, dict) and "not" in deep:  # taken apart by hand: freeing it recurses
        deep = deep["not"]


@pytest.mark.parametrize("value", ["1_000", "0x10", "NaN", "Infinity", "1e999", "", "+1", "01"])
def test_only_json_numbers_are_numbers(value: str) -> None:
    with pytest.raises(FilterError):
        compile_filter(on("metadata.severity", "eq", value), FIELDS)


@pytest.mark.parametrize(
    "value",
    ["2026-01-01T24:00:00Z", "2026-01-01T23:59:60Z", "2026-02-30T00:00:00Z", "2026-W01-1T00:00Z",
     "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+24:00"],
)  # fmt: skip
def test_only_timestamps_with_a_zone_are_times(value: str) -> None:
    with pytest.raises(FilterError):
        compile_filter(on("created_at", "eq", value), FIELDS)


def test_the_whole_of_a_number_counts() -> None:
    record = {**A, "metadata": {"severity": 9_007_199_254_740_993}}
    clause = on("metadata.severity", "eq", 9_007_199_254_740_992.0)
    assert not compile_filter(clause, FIELDS).matches(record)
    assert selected([record], clause) == []


def test_a_fault_shows_no_lone_surrogate() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(on("metadata.\ud800", "eq", "\ud800"), FIELDS)
    json.dumps(caught.value.envelope("req_x"), ensure_ascii=False).encode()


# --- random trees ---------------------------------------------------------------------------------

TEXTS = st.sampled_from(["", "a", "ab", "B", "ß", "\U0001f600", "\uffff", "a%", "_", "db"])
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**70, 0.5, -0.0, 1e300, "2", "0.5", "1e0"]
    ),
)
TIMES = st.sampled_from([
    "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01t00:00:00.1234567z",
    "2025-12-31T23:59:59.999999-00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
])  # fmt: skip
BOOLS = st.sampled_from([True, False, "true", "false"])
SIZES = st.sampled_from([0, 1, 1024, 1024.0, 2**63 - 1])
STATUSES = st.sampled_from(["pending", "processing", "ready", "failed"])
OF_TYPE = {"text": TEXTS, "number": NUMBERS, "time": TIMES, "bool": BOOLS}
OPERATORS = {
    "text": ["eq", "neq", "gt", "gte", "lt", "lte", "prefix", "in"],
    "number": ["eq", "neq", "gt", "gte", "lt", "lte", "in"],
    "time": ["eq", "neq", "gt", "gte", "lt", "lte"],
    "bool": ["eq", "neq", "in"],
}
BUILT_IN = {
    "path": (TEXTS, ["eq", "neq", "prefix", "in"]),
    "content_type": (TEXTS, ["eq", "neq", "prefix", "in"]),
    "bytes": (SIZES, OPERATORS["number"]),
    "created_at": (TIMES, OPERATORS["time"]),
    "status": (STATUSES, ["eq", "neq", "in"]),
}


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from([*BUILT_IN, *FIELDS]))
    if name in BUILT_IN:
        values, operators = BUILT_IN[name]
        op, nullable = draw(st.sampled_from(operators)), False
    else:
        values, op = OF_TYPE[FIELDS[name]], draw(st.sampled_from(OPERATORS[FIELDS[name]]))
        nullable = op in ("eq", "neq", "in")
        name = f"metadata.{name}"
    one: st.SearchStrategy[Any] = st.one_of(values, st.none()) if nullable else values
    return on(name, op, draw(st.lists(one, min_size=1, max_size=4) if op == "in" else one))


TREES = st.recursive(
    comparisons(),
    lambda below: st.one_of(
        st.fixed_dictionaries({"not": below}),
        st.fixed_dictionaries({"and": st.lists(below, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"or": st.lists(below, min_size=1, max_size=3)}),
    ),
    max_leaves=8,
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        key: st.one_of(st.none(), OF_TYPE[kind], st.sampled_from(["abc", 5, True, []]))
        for key, kind in FIELDS.items()
    },
)
FILES = st.fixed_dictionaries({
    "path": TEXTS, "content_type": TEXTS, "bytes": SIZES.map(int), "created_at": TIMES,
    "updated_at": TIMES, "status": STATUSES, "metadata": METADATA,
})  # fmt: skip


@given(st.lists(FILES, min_size=1, max_size=6), TREES)
def test_evaluation_sql_and_an_independent_reading_agree(
    records: list[dict[str, Any]], tree: Any
) -> None:
    try:
        node = compile_filter(tree, FIELDS)
    except FilterError:  # deeper than eight
        return
    expected = [n for n, record in enumerate(records) if independent(tree, record)]
    assert [n for n, record in enumerate(records) if node.matches(record)] == expected
    assert selected(records, tree) == expected


@given(FILES, comparisons(), comparisons())
def test_the_laws_of_logic_hold(record: dict[str, Any], one: Any, two: Any) -> None:
    def holds(clause: Any) -> bool:
        return compile_filter(clause, FIELDS).matches(record)

    assert holds({"not": {"not": one}}) == holds(one)
    assert holds({"not": {"and": [one, two]}}) == holds({"or": [{"not": one}, {"not": two}]})
    if one["op"] == "neq":
        assert holds(one) == holds({"not": {**one, "op": "eq"}})
    if one["op"] == "in":
        each = [{**one, "op": "eq", "value": value} for value in one["value"]]
        assert holds(one) == holds({"or": each})


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(
            st.sampled_from(["and", "or", "not", "field", "op", "value", "x"]), below, max_size=3
        ),
    ),
    max_leaves=10,
)


@given(JSON)
@settings(max_examples=150)
def test_any_json_is_a_filter_or_a_filter_error(tree: Any) -> None:
    try:
        compile_filter(tree, FIELDS)
    except FilterError as error:
        json.dumps(error.envelope("req_x")).encode()


def selected(records: list[dict[str, Any]], clause: Any) -> list[int]:
    """The places of the records that SQLite selects."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection)
    for place, record in enumerate(records):
        moments = [instant(record[name]) for name in ("created_at", "updated_at")]
        connection.execute(
            "INSERT INTO file(id, fid, collection, path, content_type, bytes, sha256, status, "
            "metadata, created_us, updated_us) VALUES (?, ?, 1, ?, ?, ?, '', ?, '{}', ?, ?)",
            (place, str(place), record["path"], record["content_type"], record["bytes"],
             record["status"], *moments),
        )  # fmt: skip
        write_typed(connection, place, record["metadata"], FIELDS)
    condition, values = as_sql(compile_filter(clause, FIELDS))
    rows = connection.execute(f"SELECT id FROM file f WHERE {condition} ORDER BY id", values)  # noqa: S608 - a test's own condition
    return [row["id"] for row in rows]


def independent(tree: Any, record: dict[str, Any]) -> bool:  # noqa: PLR0911 - a case per line
    """The same question answered from the JSON alone, by other means: fractions and datetimes."""
    if "not" in tree:
        return not independent(tree["not"], record)
    if "and" in tree:
        return all(independent(part, record) for part in tree["and"])
    if "or" in tree:
        return any(independent(part, record) for part in tree["or"])
    name, op = tree["field"], tree["op"]
    key = name.removeprefix("metadata.")
    kind = (
        FIELDS[key] if name != key else {"bytes": "number", "created_at": "time"}.get(key, "text")
    )
    mine = plain(kind, record["metadata"].get(key) if name != key else record[key])
    if op == "in":
        return any(plain(kind, value) == mine for value in tree["value"])
    asked = plain(kind, tree["value"])
    if op in ("eq", "neq"):
        return (mine == asked) is (op == "eq")
    if mine is None:
        return False
    if op == "prefix":
        return bool(mine[: len(asked)] == asked)
    signs = {"gt": mine > asked, "gte": mine >= asked, "lt": mine < asked, "lte": mine <= asked}
    return bool(signs[op])


def days(year: int, month: int, day: int) -> int:
    """Days since 1 March of year 0, by the lengths of months counted from March."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1


def plain(kind: str, value: Any) -> Any:  # noqa: PLR0911 - a case per line
    """A value as a thing that compares by itself; None for what the type cannot read."""
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind == "bool":
        return {"true": True, "false": False, True: True, False: False}.get(value) if isinstance(
            value, (str, bool)) else None  # fmt: skip
    if kind == "time":
        found = isinstance(value, str) and re.fullmatch(r"(.{10})[Tt](.{8})(\.\d+)?(.+)", value)
        if not found:
            return None
        zone = "+00:00" if found[4] in "Zz" else found[4]
        year, month, day = (int(part) for part in found[1].split("-"))
        hours, minutes, seconds = (int(part) for part in found[2].split(":"))
        east = int(zone[:3] + "0") * 6 + int(zone[0] + zone[4:])
        micros = Fraction((found[3] or "0")[:7])
        return (days(year, month, day) * 1440 + hours * 60 + minutes - east) * 60 + seconds + micros
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = Fraction(value)
    except ValueError:
        return None
    return number if abs(number) < 2**63 else Fraction(float(number))
