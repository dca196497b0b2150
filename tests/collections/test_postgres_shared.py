"""Several at work on one PostgreSQL, and the library and the command line over it."""

import contextlib
import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness_core import BadSettingError, ExtractiveClient, MissingDepError
from harness_core.collections import Collections, in_this_process
from harness_core.collections.faults import (
    NotFoundError,
    UnauthenticatedError,
)
from harness_core.collections.keys import Keys, NewKey
from harness_core.collections.postgres.store import PostgresStore
from harness_integrations.cli.app import app
from tests.collections.conformance import (
    EVERYTHING,
    added,
    form,
    made,
)
from tests.collections.meanings import embedder
from tests.support.engine import DOCS
from tests.support.postgres import Open, Server, opening
from tests.support.threads import at_once

pytestmark = pytest.mark.service


# --- several at work ------------------------------------------------------------------------------


def test_workers_never_take_the_same_file(open_store: Open) -> None:
    stores = [open_store(connections=2) for _ in range(4)]
    docs = made(stores[0])
    files = [added(stores[0], docs, f"/{n}", "x", ready=False).id for n in range(20)]
    taken: list[str] = []

    def work(store: PostgresStore) -> None:
        while claim := store.claim(60):
            taken.append(claim.file_id)
            assert store.finish(claim, form("x"))

    assert at_once([lambda store=store: work(store) for store in stores]) == []  # type: ignore[misc]  # mypy infers no default of a lambda
    assert sorted(taken) == sorted(files)


def test_a_file_that_is_just_being_changed_is_passed_over(open_store: Open) -> None:
    store = open_store()
    docs = made(store)
    files = [added(store, docs, f"/{n}", "x", ready=False).id for n in range(2)]
    with store.database.write() as connection:
        connection.execute("UPDATE file SET path = '/new' WHERE fid = %s", (files[0],))
        claim = store.claim(60)
    assert claim is not None
    assert claim.file_id == files[1]


def test_changes_at_once_neither_fail_nor_lose_anything(open_store: Open) -> None:
    stores = [open_store(connections=2) for _ in range(4)]
    docs = made(stores[0], fields={"n": "number"})
    kept = added(stores[0], docs, "/kept", "x", metadata={"n": 0})

    def work(number: int) -> None:
        store, chance = stores[number], random.Random(number)  # noqa: S311 - a plan, the same each time
        for step in range(8):
            file = added(store, docs, f"/{chance.randrange(3)}", "a pump", ready=False)
            store.change_file(
                docs.id, kept.id, path=None, principals=None,
                metadata=lambda held: {**held, "n": held["n"] + 1},
            )  # fmt: skip
            claim = store.claim(60)
            if claim is not None:
                store.finish(claim, form("a pump\n\nthe pump"))
            if step % 3 == 0:
                with contextlib.suppress(NotFoundError):  # a newer version took its place
                    store.delete_file(docs.id, file.id)

    assert at_once([lambda n=n: work(n) for n in range(4)]) == []  # type: ignore[misc]  # mypy infers no default of a lambda
    while claim := stores[0].claim(60):
        stores[0].finish(claim, form("a pump"))
    with stores[0].snapshot(docs.id) as snapshot:
        found = snapshot.file(kept.id)
        assert found is not None
        assert found.metadata == {"n": 32}
        paths = [file.path for file in snapshot.files(EVERYTHING, None, 99)]
        assert len(paths) == len(set(paths))


def test_deleting_frees_bytes_texts_and_index(open_store: Open) -> None:
    store = open_store()
    docs = made(store, fields={"n": "number"})
    file = added(store, docs, "/a", "one pump\n\ntwo pumps", metadata={"n": 1}, principals=["p"])
    tables = ("file", "source", "body", "chunk", "posting", "meta", "allowed")
    assert all(counts(store, tables).values())
    store.delete_file(docs.id, file.id)
    assert not any(counts(store, tables).values())
    added(store, docs, "/a", "one pump")
    store.delete_namespace(docs.namespace_id)
    assert not any(counts(store, (*tables, "collection", "namespace", "outbox")).values())


def counts(store: PostgresStore, tables: Sequence[str]) -> dict[str, int]:
    found = {}
    with store.database.read() as connection:
        for table in tables:
            row = connection.execute(f"SELECT count(*) AS n FROM {table}").fetchone()  # noqa: S608 - our own tables
            found[table] = row["n"] if row else 0
    return found


# --- the library and the command line -------------------------------------------------------------


def test_without_psycopg_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith("harness_core.collections.post")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingDepError, match=r"harness-integrations\[postgres\]"):
        Collections("postgresql://localhost/x")


def test_collections_at_an_address_answer_as_those_in_a_file(
    postgres: Server, tmp_path: Path
) -> None:
    told = []
    for place in (tmp_path / "store.db", postgres.new_database()):
        engine = Collections(
            place, client=ExtractiveClient(), embedder=embedder(), ingestion=in_this_process
        )
        docs = engine.namespace(engine.create_namespace("a").id).create_collection("docs")
        for path, text in DOCS.items():
            docs.add(path, text)
        assert engine.ready() == {"store": True, "model": True}
        told.append([
            [(source.path, source.score, source.cited, source.span.start) for source in found]
            for question in ("What caused the timeout?", "harbour", "A question about nothing")
            for found in (docs.answer({"query": question}).sources,)
        ])  # fmt: skip
        engine.close()
    assert told[0] == told[1]
    assert all(told[0])


def test_an_embedder_asks_for_pgvector_at_once(plain_postgres: Server) -> None:
    with opening(plain_postgres.new_database()) as one:
        store = one()
        with pytest.raises(MissingDepError, match="pgvector"):
            Collections(store, embedder=embedder())


def test_of_several_processes_one_makes_the_first_key(open_store: Open) -> None:
    stores = [open_store(connections=1) for _ in range(4)]
    made: list[NewKey | None] = []
    for store in stores:
        store.check()

    def make(store: PostgresStore) -> None:
        made.append(Keys(store, b"a pepper of some bytes").create_first())

    assert at_once([partial(make, store) for store in stores]) == []
    assert len([one for one in made if one is not None]) == 1


def test_the_keys_of_a_database_ask_for_a_pepper(postgres: Server) -> None:
    url = postgres.new_database()
    engine = Collections(url)
    with pytest.raises(BadSettingError, match="pepper"):
        _ = engine.keys
    engine.close()
    one, two = (Collections(url, pepper=pepper) for pepper in (b"one pepper", b"another pepper"))
    secret = one.keys.create("cluster").secret
    assert one.keys.check(secret).kind == "cluster"
    with pytest.raises(UnauthenticatedError):
        two.keys.check(secret)
    one.close()
    two.close()


def test_the_command_line_takes_an_address(postgres: Server, tmp_path: Path) -> None:
    url, pepper = postgres.new_database(), tmp_path / "pepper"
    (tmp_path / "tide.txt").write_text("The tide was high.")

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--path", url])

    assert run("collection", "create", "notes").exit_code == 0
    assert run("collection", "add", "notes", str(tmp_path / "tide.txt")).exit_code == 0
    assert "tide was high" in run("collection", "ask", "notes", "What was high?").stdout
    refused = run("collection", "keys", "--new")
    assert (refused.exit_code, "--pepper-file" in refused.stderr) == (2, True)
    made = run("collection", "keys", "--new", "--pepper-file", str(pepper))
    assert pepper.stat().st_mode & 0o777 == 0o600
    engine = Collections(url, pepper=pepper.read_bytes())
    assert engine.keys.check(made.stdout.strip()).kind == "cluster"
    engine.close()


def test_the_command_line_says_what_keeps_a_store_closed(tmp_path: Path) -> None:
    url = f"postgresql://harness:heliotrope@/x?host={tmp_path}"
    said = CliRunner().invoke(app, ["collection", "create", "notes", "--path", url])
    assert said.exit_code == 2
    assert "the store cannot be opened" in said.stderr
    assert "heliotrope" not in said.stderr
