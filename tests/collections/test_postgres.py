"""The store on PostgreSQL: what every store does, how it is opened, and what it does in a fall."""

import logging
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from harness_core import BadSettingError, CacheError, MissingDepError
from harness_core.collections.faults import (
    TemporarilyUnavailableError,
)
from harness_core.collections.postgres import database
from harness_core.collections.postgres.catalogue import locked
from harness_core.collections.postgres.store import PostgresStore
from harness_core.collections.store import Ranker
from tests.collections.conformance import (
    EVERYTHING,
    StoreConformance,
    VectorConformance,
    added,
    embedded,
    made,
)
from tests.support.postgres import Open, Server, opening
from tests.support.threads import at_once

pytestmark = pytest.mark.service


class TestPostgres(StoreConformance):
    """The store against the suite, with and without pgvector."""

    @pytest.fixture
    def store(self, open_store: Open) -> PostgresStore:
        return open_store()

    @pytest.fixture
    def ranker(self, store: PostgresStore) -> Ranker:
        return store.ranker


class TestVectors(VectorConformance):
    """The vectors of the store, where the database has pgvector."""

    @pytest.fixture
    def store(self, postgres: Server) -> Iterator[PostgresStore]:
        with opening(postgres.new_database()) as one:
            yield one()


# --- making and opening ---------------------------------------------------------------------------


def test_several_may_make_one_store_at_once(open_store: Open) -> None:
    stores: list[PostgresStore] = []
    assert at_once([lambda: stores.append(open_store(connections=2))] * 6) == []
    docs = made(stores[0])
    assert all(store.collections(docs.namespace_id) == [docs] for store in stores)


def test_a_newer_schema_is_not_opened(open_store: Open) -> None:
    store = open_store()
    with store.database.write() as connection:
        connection.execute("UPDATE store_version SET number = 99")
    with pytest.raises(CacheError, match="newer"):
        open_store()


def test_a_schema_of_another_program_is_left_alone(
    each_postgres: Server, database_url: str
) -> None:
    each_postgres.execute("CREATE SCHEMA theirs", database_url)
    each_postgres.execute("CREATE TABLE theirs.mine(x int)", database_url)
    with pytest.raises(CacheError, match="no store"):
        PostgresStore(database_url, schema="theirs")


def test_a_role_that_may_make_nothing_is_told_what_it_needs(
    each_postgres: Server, database_url: str
) -> None:
    each_postgres.execute("DROP ROLE IF EXISTS guest")
    each_postgres.execute("CREATE ROLE guest LOGIN")
    guest = database_url.replace("harness:", "guest:")
    with pytest.raises(CacheError, match="grant it CREATE on the database"):
        PostgresStore(guest, schema="guests")


def test_a_database_in_another_encoding_is_refused(each_postgres: Server) -> None:
    each_postgres.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C' "
        "TEMPLATE template0"
    )
    with pytest.raises(CacheError, match="UTF-8"):
        PostgresStore(each_postgres.url("latin"))


def test_words_need_no_pgvector_and_vectors_say_that_they_do(plain_postgres: Server) -> None:
    with opening(plain_postgres.new_database()) as one:
        store = one()
        docs = made(store)
        file = added(store, docs, "/a", "a pump")
        with store.snapshot(docs.id) as snapshot:
            files = snapshot.visible(EVERYTHING, None)
            assert len(store.ranker.rank(snapshot, files, "pump", 9)) == 1
        with pytest.raises(MissingDepError, match="CREATE EXTENSION vector"):
            store.add_vectors(docs.id, file.id, embedded([1, 0]))
        with store.snapshot(docs.id) as snapshot, pytest.raises(MissingDepError, match="pgvector"):
            snapshot.nearest(snapshot.visible(EVERYTHING, None), embedded([1, 0]), 9)


def test_vectors_are_there_once_the_extension_is(postgres: Server) -> None:
    url = postgres.new_database()
    postgres.execute("DROP ROLE IF EXISTS owner_of_one_schema")
    postgres.execute("CREATE ROLE owner_of_one_schema LOGIN")
    postgres.execute("CREATE SCHEMA harness AUTHORIZATION owner_of_one_schema", url)
    postgres.execute("CREATE SCHEMA extensions", url)
    postgres.execute("GRANT USAGE ON SCHEMA extensions TO owner_of_one_schema", url)
    mine = url.replace("harness:", "owner_of_one_schema:")
    store = PostgresStore(mine)
    docs = made(store)
    file = added(store, docs, "/a", "a pump")
    with pytest.raises(MissingDepError):
        store.add_vectors(docs.id, file.id, embedded([1, 0]))
    store.close()
    postgres.execute("CREATE EXTENSION vector SCHEMA extensions", url)
    again = PostgresStore(mine)
    assert again.add_vectors(docs.id, file.id, embedded([1, 0]))
    again.close()


# --- faults ---------------------------------------------------------------------------------------


def test_nothing_that_answers_is_unavailable_for_now(tmp_path: Path) -> None:
    with pytest.raises(TemporarilyUnavailableError) as caught:
        PostgresStore(f"postgresql://harness:heliotrope@/x?host={tmp_path}")
    assert caught.value.retryable
    assert caught.value.details["reason"] == "store"
    assert "heliotrope" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_a_lost_connection_is_made_anew_for_the_next_request(
    each_postgres: Server, open_store: Open
) -> None:
    store = open_store()
    docs = made(store)
    added(store, docs, "/a", "a pump")

    def cut_off() -> None:
        with store.snapshot(docs.id) as snapshot:
            each_postgres.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'harness'"
            )
            snapshot.counts()

    with pytest.raises(TemporarilyUnavailableError) as caught:
        cut_off()
    assert caught.value.retryable
    with store.snapshot(docs.id) as snapshot:
        assert snapshot.counts() == {"ready": 1}
    store.check()


def test_what_takes_too_long_to_read_is_given_up(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_READ", database._READ.replace("30s", "10ms"))
    store = open_store()

    def read() -> None:
        with store.database.read() as connection:
            connection.execute("SELECT pg_sleep(20)")

    with pytest.raises(TemporarilyUnavailableError) as caught:
        read()
    assert caught.value.retryable
    store.check()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_that_comes_back_is_used_again(
    each_postgres: Server, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    store = open_store()
    docs = made(store)
    each_postgres.stop()
    try:
        with pytest.raises(TemporarilyUnavailableError):
            store.check()
    finally:
        each_postgres.start()
    deadline = count()
    while True:  # the pool tries again after a pause of its own
        try:
            assert store.collections(docs.namespace_id) == [docs]
            break
        except TemporarilyUnavailableError:
            assert next(deadline) < 30


def test_a_collection_that_is_being_changed_is_waited_for_a_while(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    store = open_store()
    docs, other = made(store), made(store)
    with store.database.write() as connection:
        locked(connection, docs.id)
        with pytest.raises(TemporarilyUnavailableError):
            store.set_fields(docs.id, {"x": "text"})
        assert store.set_fields(other.id, {"x": "text"}) == {"x": 0}


def test_a_database_that_is_read_only_can_be_read(database_url: str, open_store: Open) -> None:
    docs = made(open_store())
    store = open_store(database_url + "&options=-cdefault_transaction_read_only%3Don")
    assert store.collection(docs.namespace_id, "docs") == docs
    with pytest.raises(TemporarilyUnavailableError):
        store.create_namespace("x")
    with pytest.raises(TemporarilyUnavailableError):
        store.check()


def test_a_bug_is_no_fault_of_the_server(open_store: Open) -> None:
    store = open_store()
    with pytest.raises(psycopg.errors.SyntaxError), store.database.read() as connection:
        connection.execute("SELEC")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:helio@trope@localhost/x", "postgresql://u:helio/trope@localhost/x",
        "postgresql://u:helio:trope@local:host/x", "postgresql://u:1/heliotrope@localhost/x",
        "postgresql://u:heliotrope@localhost/x?password=helio&nosuch=trope", "password='helio",
    ],
)  # fmt: skip
def test_a_misread_address_is_refused_without_showing_it(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(BadSettingError) as caught:
        PostgresStore(address)
    shown = f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"
    assert "helio" not in shown
    assert "trope" not in shown


def test_the_password_is_nowhere_to_be_seen(
    each_postgres: Server, open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        store = open_store()
        assert "heliotrope" not in f"{store!r} {store.database!r} {store.database._pool!r}"
    assert "heliotrope" not in caplog.text


@pytest.mark.parametrize("name", ["", "Upper", "a b", "1a", 'a"b', "a" * 64])
def test_a_schema_has_a_plain_name(name: str) -> None:
    with pytest.raises(BadSettingError):
        PostgresStore("postgresql://localhost/x", schema=name)
