"""The embedded store: what every store does, and its file."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_core import CacheError
from harness_core.collections.faults import TemporarilyUnavailableError
from harness_core.collections.sqlite import database
from harness_core.collections.sqlite.ranking import SqliteRanker
from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import Access, Store
from tests.collections.conformance import (
    EVERYTHING,
    StoreConformance,
    VectorConformance,
    added,
    made,
)
from tests.support.threads import at_once


class TestSqlite(StoreConformance, VectorConformance):
    """The embedded store against the suite."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        opened = SqliteStore(tmp_path / "store.db")
        opened.database._writer.execute("PRAGMA synchronous = OFF")
        yield opened
        opened.close()

    @pytest.fixture
    def ranker(self) -> SqliteRanker:
        return SqliteRanker()

    def nothing_is_left(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        with store.database.read() as connection:
            indexes = "SELECT name FROM sqlite_master WHERE name GLOB 'post_*' OR name GLOB 'fts_*'"
            assert connection.execute(indexes).fetchall() == []
            assert connection.execute("SELECT 1 FROM blob").fetchall() == []


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine(x)")
    connection.close()
    with pytest.raises(CacheError, match="no store"):
        SqliteStore(path)


def test_a_newer_file_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    SqliteStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(CacheError, match="newer"):
        SqliteStore(path)


def test_several_may_make_one_file_at_once(tmp_path: Path) -> None:
    opened: list[SqliteStore] = []
    threads = [
        threading.Thread(target=lambda: opened.append(SqliteStore(tmp_path / "store.db")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one = made(opened[0])
    assert all(store.collections(one.namespace_id) == [one] for store in opened)
    for store in opened:
        store.close()


def test_a_locked_file_is_unavailable_for_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    store = SqliteStore(tmp_path / "store.db")
    other = SqliteStore(tmp_path / "store.db")
    with store.database.write(), pytest.raises(TemporarilyUnavailableError) as caught:
        other.create_namespace("x")
    assert caught.value.retryable
    assert caught.value.details["reason"] == "store"
    store.close()
    other.close()


def test_threads_wait_for_the_writer_no_longer_than_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    store = SqliteStore(tmp_path / "store.db")
    with store.database.write():
        (error,) = at_once([lambda: store.create_namespace("x")])
    assert isinstance(error, TemporarilyUnavailableError)
    assert store.create_namespace("x").name == "x"
    store.close()


def test_a_change_that_cannot_be_kept_stands_in_the_way_of_no_other(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")

    def fail_at_the_commit() -> None:
        with store.database.write() as connection:
            connection.execute("PRAGMA defer_foreign_keys = ON")
            connection.execute("INSERT INTO body VALUES (7, '')")

    with pytest.raises(sqlite3.IntegrityError):
        fail_at_the_commit()
    assert store.create_namespace("x").name == "x"
    store.close()


def test_what_is_read_while_the_store_is_closed_is_read_to_its_end(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    docs = made(store)
    with store.snapshot(docs.id) as snapshot:
        store.close()
        assert snapshot.counts() == {}
    with pytest.raises(sqlite3.ProgrammingError):
        snapshot.counts()


@pytest.mark.parametrize(("access", "index"), [("off", "fts_1"), ("enforced", "post_1")])
def test_deleting_frees_bytes_texts_and_index(tmp_path: Path, access: Access, index: str) -> None:
    store = SqliteStore(tmp_path / "store.db")
    docs = made(store, access)
    file = added(store, docs, "/a", "one pump\n\ntwo pumps")
    before = counts(store, index)
    other = added(store, docs, "/b", "one pump\n\ntwo 漢字 pumpHouse")
    store.delete_file(docs.id, other.id)
    assert counts(store, index) == before
    assert before["blob"] == 1
    store.delete_file(docs.id, file.id)
    assert set(counts(store, index).values()) == {0}
    store.close()


def counts(store: SqliteStore, index: str) -> dict[str, int]:
    with store.database.read() as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own tables
            for table in ("file", "blob", "body", "chunk", index)
        }


@pytest.mark.parametrize("access", ["off", "enforced"])
def test_common_words_do_not_slow_a_large_collection(tmp_path: Path, access: Access) -> None:
    store = SqliteStore(tmp_path / "store.db")
    docs = made(store, access)
    text = "\n\n".join(f"common words here number{n}" for n in range(1_200))
    added(store, docs, "/a", text, principals=["p"])
    with store.snapshot(docs.id) as snapshot:
        files = snapshot.visible(EVERYTHING, ["p"] if access == "enforced" else None)
        ranked = SqliteRanker().rank(snapshot, files, "common words number7", 5)
        best = snapshot.passages([ranked[0].chunk])[0].text
        assert best == "common words here number7"
        assert len(SqliteRanker().rank(snapshot, files, "common", 5)) == 5
    store.close()
