"""The tables, and how an older file becomes a newer one. A step, once released, never changes."""

import sqlite3
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from harness_core.collections.postings import place
from harness_core.errors import CacheError, MissingDepError

APPLICATION: Final = 0x48435331  # "HCS1" in the file's header
PART_BITS: Final = 4
"""Files whose numbers differ only in so many last bits are one part of the postings."""


def make_index(connection: sqlite3.Connection, number: int, *, enforced: bool) -> None:
    """The index of one collection: no other one's words are counted in it.

    Under access control it is a list of postings by word and file, so that only visible files are
    read; otherwise an FTS5 table, with its vocabulary. Postings are kept in parts of a few files:
    the words of a new file would else be written all over the table, each to another page.
    """
    if enforced:
        connection.execute(
            f"CREATE TABLE post_{number}(part INTEGER NOT NULL, word TEXT NOT NULL, "
            "file INTEGER NOT NULL, places BLOB NOT NULL, PRIMARY KEY(part, word, file)) "
            "WITHOUT ROWID"
        )
        return
    connection.execute(f"CREATE VIRTUAL TABLE fts_{number} USING fts5(words, tokenize='ascii')")
    connection.execute(f"CREATE VIRTUAL TABLE row_{number} USING fts5vocab('fts_{number}', 'row')")


def _into_parts(connection: sqlite3.Connection) -> None:
    """Postings in rows of a piece each, as they were once, become rows of a file each, in parts."""
    enforced = connection.execute("SELECT number FROM collection WHERE access = 'enforced'")
    for (number,) in enforced.fetchall():
        held = {row["name"] for row in connection.execute(f"PRAGMA table_info(post_{number})")}
        if "part" in held:
            continue
        connection.execute(f"ALTER TABLE post_{number} RENAME TO post_old")
        make_index(connection, number, enforced=True)
        rows = connection.execute("SELECT * FROM post_old ORDER BY word, file, chunk")
        for (word, file), ones in groupby(rows, key=itemgetter("word", "file")):
            places = b"".join(place(one["chunk"], one["n"], one["length"]) for one in ones)
            connection.execute(
                f"INSERT INTO post_{number} VALUES (?, ?, ?, ?)",  # noqa: S608 - a number
                (file >> PART_BITS, word, file, places),
            )
        connection.execute("DROP TABLE post_old")


STEPS: Final[Sequence[str | Callable[[sqlite3.Connection], None]]] = (
    """
    CREATE TABLE namespace(
      id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_us INTEGER NOT NULL);
    CREATE TABLE collection(
      number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
      namespace TEXT NOT NULL REFERENCES namespace(id) ON DELETE CASCADE, name TEXT NOT NULL,
      access TEXT NOT NULL, fields TEXT NOT NULL, created_us INTEGER NOT NULL,
      generation INTEGER NOT NULL DEFAULT 0, UNIQUE(namespace, name));
    CREATE TABLE blob(sha256 TEXT PRIMARY KEY, data BLOB NOT NULL);
    CREATE TABLE file(
      id INTEGER PRIMARY KEY AUTOINCREMENT, fid TEXT NOT NULL UNIQUE,
      collection INTEGER NOT NULL REFERENCES collection(number) ON DELETE CASCADE,
      path TEXT NOT NULL, content_type TEXT NOT NULL, bytes INTEGER NOT NULL,
      sha256 TEXT NOT NULL, status TEXT NOT NULL, error TEXT, metadata TEXT NOT NULL,
      created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL,
      claim TEXT, lease_us INTEGER, attempts INTEGER NOT NULL DEFAULT 0,
      pieces INTEGER NOT NULL DEFAULT 0, words INTEGER NOT NULL DEFAULT 0,
      characters INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX file_path ON file(collection, path);
    CREATE INDEX file_blob ON file(sha256);
    CREATE INDEX file_waiting ON file(status, lease_us) WHERE status IN ('pending', 'processing');
    CREATE TABLE meta(
      file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE, key TEXT NOT NULL, value,
      PRIMARY KEY(file, key)) WITHOUT ROWID;
    CREATE TABLE allowed(
      principal TEXT NOT NULL, file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
      PRIMARY KEY(principal, file)) WITHOUT ROWID;
    CREATE INDEX allowed_file ON allowed(file);
    CREATE TABLE body(file INTEGER PRIMARY KEY REFERENCES file(id) ON DELETE CASCADE, text TEXT);
    CREATE TABLE chunk(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
      start INTEGER NOT NULL, stop INTEGER NOT NULL, first_page INTEGER, last_page INTEGER,
      section TEXT, words INTEGER NOT NULL);
    CREATE INDEX chunk_file ON chunk(file, start);
    CREATE TABLE outbox(
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      collection INTEGER NOT NULL REFERENCES collection(number) ON DELETE CASCADE,
      type TEXT NOT NULL, payload TEXT NOT NULL, at_us INTEGER NOT NULL);
    CREATE INDEX outbox_collection ON outbox(collection, seq);
    CREATE TABLE secret(name TEXT PRIMARY KEY, value BLOB NOT NULL);
    CREATE TABLE api_key(
      id TEXT PRIMARY KEY, kind TEXT NOT NULL, mac BLOB NOT NULL, grants TEXT NOT NULL,
      created_us INTEGER NOT NULL, expires_us INTEGER, revoked_us INTEGER);
    """,
    """
    CREATE TABLE vector(
      file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE, model TEXT NOT NULL,
      dimensions INTEGER NOT NULL, rows BLOB NOT NULL, PRIMARY KEY(file, model));
    """,
    """
    CREATE TABLE once(
      owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, reply TEXT,
      until_us INTEGER NOT NULL, PRIMARY KEY(owner, key)) WITHOUT ROWID;
    CREATE INDEX once_until ON once(until_us);
    """,
    """
    CREATE INDEX IF NOT EXISTS file_status ON file(collection, status);
    DROP INDEX file_waiting;
    CREATE INDEX file_waiting ON file(id) WHERE status IN ('pending', 'processing');
    """,
    _into_parts,
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the newest form, or leave it as it is.

    Raises:
        CacheError: the file is another program's, or newer than this one.
        MissingDepError: this SQLite has no FTS5.
    """
    _require_fts5(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        for number, step in enumerate(STEPS[version:], version + 1):
            _take(connection, step)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _take(connection: sqlite3.Connection, step: str | Callable[[sqlite3.Connection], None]) -> None:
    if callable(step):
        step(connection)
        return
    for statement in filter(str.strip, step.split(";")):
        connection.execute(statement)


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    used = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if used and owner != APPLICATION:
        raise CacheError("the file is no store of collections")
    if version > len(STEPS):
        raise CacheError("the store was written by a newer version of this package")
    return version


def _require_fts5(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.fts5_is_there USING fts5(word)")
        connection.execute("DROP TABLE temp.fts5_is_there")
    except sqlite3.OperationalError:
        raise MissingDepError(
            "collections need an SQLite with FTS5, which this one lacks"
        ) from None


def drop_index(connection: sqlite3.Connection, number: int) -> None:
    """Remove the index of one collection."""
    for name in ("row", "fts", "post"):
        connection.execute(f"DROP TABLE IF EXISTS {name}_{number}")
