"""The store on PostgreSQL selects, orders and scores as the evaluator and the embedded store do."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.collections.filters import FilterError, as_sql, compile_filter
from harness_core.collections.filters.sql import POSTGRES
from harness_core.collections.filters.values import instant
from harness_core.collections.postgres.catalogue import write_typed
from harness_core.collections.postgres.store import PostgresStore
from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import Access, CollectionInfo, Store
from tests.collections.conformance import (
    EVERYTHING,
    added,
    embedded,
    made,
)
from tests.collections.test_filters import FIELDS, FILES, MATCHES, RECORDS, TREES
from tests.support.postgres import Open, opening

pytestmark = pytest.mark.service


# --- filters --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filtered(database_url: str) -> Iterator[PostgresStore]:
    """A store whose rows are written by the test, and taken back."""
    with opening(database_url) as one:
        yield one()


@pytest.mark.parametrize("vector", MATCHES)
def test_a_vector_selects_its_records(filtered: PostgresStore, vector: str) -> None:
    clause, expected = MATCHES[vector]
    assert "".join("ABC"[n] for n in selected(filtered, RECORDS, clause)) == expected


@given(records=st.lists(FILES, min_size=1, max_size=6), tree=TREES)
def test_the_database_selects_what_the_evaluator_matches(
    filtered: PostgresStore, records: list[dict[str, Any]], tree: Any
) -> None:
    try:
        node = compile_filter(tree, FIELDS)
    except FilterError:  # deeper than eight
        return
    expected = [n for n, record in enumerate(records) if node.matches(record)]
    assert selected(filtered, records, tree) == expected


@pytest.mark.parametrize(
    ("held", "asked", "equal"),
    [
        (2**53 + 1, float(2**53), False), (0.1, 0.1, True), (0.1 + 0.2, 0.3, False),
        (5e-324, 5e-324, True), (2**70, float(2**70), True), (2**63 - 1, 2.0**63, False),
    ],
)  # fmt: skip
def test_the_whole_of_a_number_counts(
    filtered: PostgresStore, held: float, asked: float, equal: bool
) -> None:
    record = {**RECORDS[0], "metadata": {"severity": held}}
    clause = {"field": "metadata.severity", "op": "eq", "value": asked}
    assert compile_filter(clause, FIELDS).matches(record) is equal
    assert bool(selected(filtered, [record], clause)) is equal


def selected(store: PostgresStore, records: Sequence[dict[str, Any]], clause: Any) -> list[int]:
    """The places of the records that the database selects."""
    condition, values = as_sql(compile_filter(clause, FIELDS), POSTGRES)
    with store.database.write() as connection, connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO namespace VALUES ('n', 'n', 0)")
        connection.execute(
            "INSERT INTO collection OVERRIDING SYSTEM VALUE "
            "VALUES (1, 'c', 'n', 'c', 'off', '{}', 0)"
        )
        for place, record in enumerate(records):
            moments = [instant(record[name]) for name in ("created_at", "updated_at")]
            connection.execute(
                "INSERT INTO file(id, fid, collection, path, content_type, bytes, status, "
                "metadata, created_us, updated_us) OVERRIDING SYSTEM VALUE "
                "VALUES (%s, %s, 1, %s, %s, %s, %s, '{}', %s, %s)",
                (place, str(place), record["path"], record["content_type"], record["bytes"],
                 record["status"], *moments),
            )  # fmt: skip
            write_typed(connection, place, record["metadata"], FIELDS)
        rows = connection.execute(
            f"SELECT id FROM file f WHERE {condition} ORDER BY id",  # noqa: S608 - a test's own condition
            values,
        )
        return [row["id"] for row in rows]


# --- ranking --------------------------------------------------------------------------------------

WORDS = ["pump", "valve", "Pumpe", "連接池", "errorCode404", "naïve", "the", "of", "5"]
PIECES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
TEXTS = st.lists(PIECES, min_size=1, max_size=4).map("\n\n".join)
Told: TypeAlias = list[tuple[str, int, float]]


def told(store: Store, docs: CollectionInfo, clause: Any, who: list[str] | None, q: str) -> Told:
    """What a ranking says, by what is the same in every store."""
    with store.snapshot(docs.id) as snapshot:
        files = snapshot.visible(compile_filter(clause, {}), who)
        ranked = store.ranker.rank(snapshot, files, q, 5)
        found = snapshot.passages([one.chunk for one in ranked])
    scores = [round(one.score, 9) for one in ranked]
    return [(p.path, p.piece.start, s) for p, s in zip(found, scores, strict=True)]


@pytest.fixture(scope="module")
def both(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, Store]]:
    """An embedded store and one on the server."""
    embedded = SqliteStore(tmp_path_factory.mktemp("both") / "store.db")
    embedded.database._writer.execute("PRAGMA synchronous = OFF")
    with opening(database_url) as one:
        yield embedded, one()
    embedded.close()


@pytest.mark.parametrize("access", ["off", "enforced"])
@settings(max_examples=15)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5), query=PIECES, hidden=st.integers(0, 4))
def test_ranking_says_what_the_embedded_store_says(
    both: tuple[Store, Store], access: Access, texts: list[str], query: str, hidden: int
) -> None:
    answers = []
    for store in both:
        docs = made(store, access)
        for place, text in enumerate(texts):
            granted = ["p"] if place != hidden else ["q"]
            added(store, docs, f"/{place}", text, principals=granted)
        who = ["p"] if access == "enforced" else None
        clause = {"field": "path", "op": "neq", "value": "/2"}
        answers.append([told(store, docs, None, who, query), told(store, docs, clause, who, query)])
    assert answers[0] == answers[1]


def test_text_goes_by_code_point_whatever_the_language_of_the_database(open_store: Open) -> None:
    store = open_store()
    docs = made(store)
    paths = ["/b", "/B", "/é", "/Z", "/a b", "/a-b", "/ab"]
    vectors = [[1.0, 0.0]] if store.database._vectors else None
    for path in paths:
        added(store, docs, path, "a pump", vectors=vectors)
    with store.snapshot(docs.id) as snapshot:
        files = snapshot.visible(EVERYTHING, None)
        ranked = [
            store.ranker.rank(snapshot, files, "pump", 9),
            snapshot.nearest(files, embedded([1, 0]), 9) if vectors else [],
        ]
        orders = [
            [one.path for one in snapshot.passages(chunks)]
            for chunks in (snapshot.pieces(files), *([r.chunk for r in one] for one in ranked))
            if chunks
        ]
    assert all(order == sorted(paths) for order in orders)
    names = ["a-b", "ab", "a_b", "a"]
    for name in names:
        store.create_collection(docs.namespace_id, name, "off", {})
    assert [one.name for one in store.collections(docs.namespace_id)] == sorted([*names, "docs"])


@pytest.mark.parametrize("access", ["off", "enforced"])
def test_common_words_are_passed_over_as_in_the_embedded_store(
    both: tuple[Store, Store], access: Access
) -> None:
    text = "\n\n".join(f"common words here number{n}" for n in range(1_200))
    answers = []
    for store in both:
        docs = made(store, access)
        added(store, docs, "/a", text, principals=["p"])
        who = ["p"] if access == "enforced" else None
        answers.append([told(store, docs, None, who, "common words number7"),
                        told(store, docs, None, who, "common")])  # fmt: skip
    assert answers[0] == answers[1]
    assert [len(one) for one in answers[0]] == [1, 5]
