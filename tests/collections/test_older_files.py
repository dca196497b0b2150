"""A file that an earlier version wrote, opened by this one."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from harness_core.collections.sqlite import schema
from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import Access, CollectionInfo
from harness_core.collections.times import now_us
from harness_core.collections.words import words_of
from tests.collections.conformance import EVERYTHING, added, form

KINDS: tuple[Access, ...] = ("off", "enforced")
RELEASED = ("feb82f65b0063f176c5d82936c0ff4663ff4c752a09dad36351f7c6afb7f9ea1",)
TEXTS = {"/a": "one pump\n\ntwo pumps and a pump", "/b": "a valve, 漢字 and a pumpHouse"}
INDEXES = (
    ("CREATE VIRTUAL TABLE fts_1 USING fts5(words, tokenize='ascii')",
     "CREATE VIRTUAL TABLE row_1 USING fts5vocab('fts_1', 'row')"),
    ("CREATE TABLE post_2(word TEXT NOT NULL, file INTEGER NOT NULL, chunk INTEGER NOT NULL, "
     "n INTEGER NOT NULL, length INTEGER NOT NULL, PRIMARY KEY(word, file, chunk)) WITHOUT ROWID",),
)  # fmt: skip


def test_a_step_that_was_released_is_what_it_was() -> None:
    steps = [step for step in schema.STEPS[: len(RELEASED)] if isinstance(step, str)]
    assert [sha256(step.encode()).hexdigest() for step in steps] == list(RELEASED)


@pytest.mark.parametrize("access", KINDS)
def test_a_file_of_the_first_step_answers_as_one_written_now(
    tmp_path: Path, access: Access
) -> None:
    _write_as_first(tmp_path / "old.db")
    old, new = SqliteStore(tmp_path / "old.db"), SqliteStore(tmp_path / "new.db")
    space = new.create_namespace("space")
    for number, kind in enumerate(KINDS, 1):
        docs = new.create_collection(space.id, f"docs{number}", kind, {})
        for path, text in TEXTS.items():
            added(new, docs, path, text, principals=["p"])
    found = [_found(store, access) for store in (old, new)]
    assert found[0] == found[1]
    assert len(found[0]) == 3
    for store in (old, new):
        docs = _docs(store, access)
        with store.snapshot(docs.id) as snapshot:
            first, *_ = snapshot.files(EVERYTHING, None, 9)
        store.delete_file(docs.id, first.id)
        added(store, docs, "/c", "a third pump", principals=["p"])
        assert store.begin_once("k", "key", "digest", 60) is None
    assert _found(old, access) == _found(new, access) != found[0]
    old.close()
    new.close()
    SqliteStore(tmp_path / "old.db").close()


def _docs(store: SqliteStore, access: Access) -> CollectionInfo:
    every = store.collections(store.namespace("space").id)
    return next(one for one in every if one.access_control == access)


def _found(store: SqliteStore, access: Access) -> list[tuple[str, str, float]]:
    with store.snapshot(_docs(store, access).id) as snapshot:
        files = snapshot.visible(EVERYTHING, ["p"] if access == "enforced" else None)
        ranked = store.ranker.rank(snapshot, files, "pump valve 漢字", 9)
        passages = snapshot.passages([one.chunk for one in ranked])
        return [(p.path, p.text, r.score) for p, r in zip(passages, ranked, strict=True)]


def _write_as_first(path: Path) -> None:
    """A store as the first version wrote it: a collection of either kind, with the same files."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(str(schema.STEPS[0]))
        connection.execute("PRAGMA user_version = 1")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
        connection.execute("INSERT INTO namespace VALUES ('ns_1', 'space', ?)", (now_us(),))
        for number, access in enumerate(KINDS, 1):
            connection.execute(
                "INSERT INTO collection VALUES (?, ?, 'ns_1', ?, ?, '{}', ?, 2)",
                (number, f"col_{number}", f"docs{number}", access, now_us()),
            )
            for statement in INDEXES[number - 1]:
                connection.execute(statement)
            for file_path, text in TEXTS.items():
                _add_as_first(connection, number, file_path, text)


def _add_as_first(connection: sqlite3.Connection, number: int, path: str, text: str) -> None:
    made = form(text)
    words = words_of(made)
    digest = sha256(text.encode()).hexdigest()
    connection.execute("INSERT OR IGNORE INTO blob VALUES (?, ?)", (digest, text.encode()))
    file = connection.execute(
        "INSERT INTO file(fid, collection, path, content_type, bytes, sha256, status, metadata, "
        "created_us, updated_us, pieces, words, characters) "
        "VALUES (?, ?, ?, 'text/plain', ?, ?, 'ready', ?, ?, ?, ?, ?, ?)",
        (f"fil_{number}{path}", number, path, len(text.encode()), digest, json.dumps({}),
         now_us(), now_us(),          len(words), sum(map(len, words)), len(text)),
    ).lastrowid  # fmt: skip
    connection.execute("INSERT INTO allowed VALUES ('p', ?)", (file,))
    connection.execute("INSERT INTO body VALUES (?, ?)", (file, text))
    for piece, tokens in zip(made.pieces, words, strict=True):
        chunk = connection.execute(
            "INSERT INTO chunk(file, start, stop, words) VALUES (?, ?, ?, ?)",
            (file, piece.start, piece.stop, len(tokens)),
        ).lastrowid
        if number == 1:
            connection.execute(
                "INSERT INTO fts_1(rowid, words) VALUES (?, ?)", (chunk, " ".join(tokens))
            )
            continue
        connection.executemany(
            "INSERT INTO post_2 VALUES (?, ?, ?, ?, ?)",
            [(word, file, chunk, n, len(tokens)) for word, n in Counter(tokens).items()],
        )
