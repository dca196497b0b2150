"""Files: added, processed under a lease, made ready with their index in one step, deleted."""

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness_core.collections.faults import AlreadyExistsError, NotFoundError
from harness_core.collections.ids import new_id
from harness_core.collections.rows import ATTEMPTS, GIVEN_UP, about, as_event, forgotten, noted
from harness_core.collections.sqlite.catalogue import info_of, number_of, write_typed
from harness_core.collections.sqlite.database import Database
from harness_core.collections.sqlite.indexing import put_in, take_out
from harness_core.collections.sqlite.snapshot import file_info
from harness_core.collections.sqlite.vectors import put_vectors
from harness_core.collections.store import Claim, Event, FileInfo, TextForm, Vectors
from harness_core.collections.times import now_us
from harness_core.collections.words import words_of


class Files:
    """The files of the collections, and what happens to them."""

    database: Database

    def add_file(
        self,
        collection_id: str,
        *,
        path: str,
        content_type: str,
        data: bytes,
        metadata: Mapping[str, Any],
        principals: Sequence[str],
    ) -> FileInfo:
        """A pending file, its bytes kept. One of the same path lives until this one is ready."""
        digest, now = hashlib.sha256(data).hexdigest(), now_us()
        with self.database.write() as connection:
            number = number_of(connection, collection_id)
            connection.execute("INSERT OR IGNORE INTO blob VALUES (?, ?)", (digest, data))
            file = connection.execute(
                "INSERT INTO file(fid, collection, path, content_type, bytes, sha256, status, "
                "metadata, created_us, updated_us) VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?)",
                (new_id("fil"), number, path, content_type, len(data), digest,
                 json.dumps(metadata), now, now),
            ).lastrowid  # fmt: skip
            write_typed(connection, int(file or 0), metadata, _fields(connection, number))
            _grant(connection, int(file or 0), principals)
            return _info(connection, int(file or 0))

    def change_file(
        self,
        collection_id: str,
        file_id: str,
        *,
        path: str | None,
        metadata: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None,
        principals: Sequence[str] | None,
    ) -> FileInfo:
        """Change what is given; in force from the next request on."""
        with self.database.write() as connection:
            number = number_of(connection, collection_id)
            row = _file(connection, number, file_id)
            file = row["id"]
            if path is not None and path != row["path"]:
                _check_free(connection, number, path)
                connection.execute("UPDATE file SET path = ? WHERE id = ?", (path, file))
            if metadata is not None:
                made = metadata(json.loads(row["metadata"]))
                connection.execute(
                    "UPDATE file SET metadata = ? WHERE id = ?", (json.dumps(made), file)
                )
                write_typed(connection, file, made, _fields(connection, number))
            if principals is not None:
                connection.execute("DELETE FROM allowed WHERE file = ?", (file,))
                _grant(connection, file, principals)
            connection.execute("UPDATE file SET updated_us = ? WHERE id = ?", (now_us(), file))
            _changed(connection, number)
            return _info(connection, file)

    def delete_file(self, collection_id: str, file_id: str) -> None:
        """Delete a file; the next request does not see it."""
        with self.database.write() as connection:
            number = number_of(connection, collection_id)
            _delete(connection, number, _file(connection, number, file_id))
            _changed(connection, number)

    def claim(self, lease_seconds: float, file_id: str | None = None) -> Claim | None:
        """The oldest file to process: pending, or with a lease that ran out."""
        now, token = now_us(), secrets.token_hex(8)
        with self.database.write() as connection:
            row = connection.execute(
                "SELECT * FROM file INDEXED BY file_waiting "
                "WHERE status IN ('pending', 'processing') "
                "AND COALESCE(lease_us, 0) < ?1 AND (?2 IS NULL OR fid = ?2) ORDER BY id LIMIT 1",
                (now, file_id),
            ).fetchone()
            if row is None:
                return None
            lease = now + int(lease_seconds * 1_000_000)
            connection.execute(
                "UPDATE file SET status = 'processing', claim = ?, lease_us = ?, "
                "attempts = attempts + 1 WHERE id = ?",
                (token, lease, row["id"]),
            )
            claim = Claim(
                file_id=row["fid"], token=token, path=row["path"],
                content_type=row["content_type"], data=_blob(connection, row["sha256"]),
            )  # fmt: skip
        if row["attempts"] >= ATTEMPTS:
            self.fail(claim, GIVEN_UP)
            return self.claim(lease_seconds, file_id)
        return claim

    def finish(self, claim: Claim, form: TextForm) -> bool:
        """The file's text, pieces and index in one step; older files of its path stop living."""
        words = words_of(form)
        with self.database.write() as connection:
            row = _claimed(connection, claim)
            if row is None:
                return False
            file, number = row["id"], row["collection"]
            was_ready = _any_ready(connection, number)
            put_in(connection, number, file, form, words)
            connection.execute(
                "UPDATE file SET status = 'ready', error = NULL, claim = NULL, lease_us = NULL, "
                "pieces = ?, words = ?, characters = ? WHERE id = ?",
                (len(words), sum(map(len, words)), len(form.text), file),
            )
            _tell(connection, number, "file.ready", row, **noted(form))
            if not was_ready:
                _tell(connection, number, "collection.ready")
            _supersede(connection, number, row["path"])
            _changed(connection, number)
            return True

    def fail(self, claim: Claim, error: Mapping[str, Any]) -> bool:
        """The file has failed, for a reason; the collection goes on."""
        with self.database.write() as connection:
            row = _claimed(connection, claim)
            if row is None:
                return False
            connection.execute(
                "UPDATE file SET status = 'failed', error = ?, claim = NULL, lease_us = NULL "
                "WHERE id = ?",
                (json.dumps(error), row["id"]),
            )
            number = row["collection"]
            _tell(connection, number, "file.failed", row, error=error)
            left = connection.execute(
                "SELECT count(*) FROM file WHERE collection = ? AND status != 'failed'", (number,)
            ).fetchone()[0]
            if not left:
                _tell(connection, number, "collection.failed")
            _changed(connection, number)
            return True

    def add_vectors(self, collection_id: str, file_id: str, vectors: Vectors) -> bool:
        """Give the pieces of a ready file vectors, one each; False when it lives no more."""
        with self.database.write() as connection:
            number = number_of(connection, collection_id)
            row = connection.execute(
                "SELECT id, pieces FROM file WHERE collection = ? AND fid = ? AND status = 'ready'",
                (number, file_id),
            ).fetchone()
            if row is None:
                return False
            put_vectors(connection, row["id"], vectors, row["pieces"])
            _changed(connection, number)
            return True

    def events(self, collection_id: str, after: int, limit: int) -> list[Event]:
        """What happened after the event ``after`` (0: from the beginning), oldest first."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM outbox WHERE collection = ? AND seq > ? ORDER BY seq LIMIT ?",
                (number_of(connection, collection_id), after, limit),
            )
            return [as_event(row) for row in rows]

    def last_event(self, collection_id: str) -> int:
        """The number of the newest event; 0 before the first."""
        with self.database.read() as connection:
            row = connection.execute(
                "SELECT COALESCE(max(seq), 0) AS seq FROM outbox WHERE collection = ?",
                (number_of(connection, collection_id),),
            ).fetchone()
            return int(row["seq"])


def _info(connection: sqlite3.Connection, file: int) -> FileInfo:
    row = connection.execute("SELECT * FROM file WHERE id = ?", (file,)).fetchone()
    return file_info(connection, row)


def _file(connection: sqlite3.Connection, number: int, file_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM file WHERE collection = ? AND fid = ?", (number, file_id)
    ).fetchone()
    if row is None:
        raise NotFoundError("there is no such file")
    return row


def _check_free(connection: sqlite3.Connection, number: int, path: str) -> None:
    if connection.execute(
        "SELECT 1 FROM file WHERE collection = ? AND path = ? LIMIT 1", (number, path)
    ).fetchone():
        raise AlreadyExistsError("another file has this path")


def _fields(connection: sqlite3.Connection, number: int) -> Mapping[str, str]:
    return info_of(connection, number).metadata_fields


def _grant(connection: sqlite3.Connection, file: int, principals: Sequence[str]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO allowed VALUES (?, ?)", [(one, file) for one in principals]
    )


def _blob(connection: sqlite3.Connection, digest: str) -> bytes:
    row = connection.execute("SELECT data FROM blob WHERE sha256 = ?", (digest,)).fetchone()
    return bytes(row["data"])


def _claimed(connection: sqlite3.Connection, claim: Claim) -> sqlite3.Row | None:
    found: sqlite3.Row | None = connection.execute(
        "SELECT * FROM file WHERE fid = ? AND claim = ?", (claim.file_id, claim.token)
    ).fetchone()
    return found


def _any_ready(connection: sqlite3.Connection, number: int) -> bool:
    found = connection.execute(
        "SELECT 1 FROM file WHERE collection = ? AND status = 'ready' LIMIT 1", (number,)
    )
    return found.fetchone() is not None


def _supersede(connection: sqlite3.Connection, number: int, path: str) -> None:
    """Of one path only the newest ready version lives; what is still waiting is let be."""
    older = connection.execute(
        "SELECT * FROM file WHERE collection = ?1 AND path = ?2 "
        "AND status IN ('ready', 'failed') AND id < (SELECT max(id) FROM file "
        "WHERE collection = ?1 AND path = ?2 AND status = 'ready') ORDER BY id",
        (number, path),
    ).fetchall()
    for version in older:
        _delete(connection, number, version)


def _delete(connection: sqlite3.Connection, number: int, row: sqlite3.Row) -> None:
    take_out(connection, number, row["id"])
    connection.execute("DELETE FROM file WHERE id = ?", (row["id"],))
    connection.execute(
        "DELETE FROM blob WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM file WHERE sha256 = ?1)",
        (row["sha256"],),
    )
    _tell(connection, number, "file.deleted", row)


def _tell(
    connection: sqlite3.Connection,
    number: int,
    what: str,
    row: sqlite3.Row | None = None,
    **more: Any,
) -> None:
    told = connection.execute(
        "INSERT INTO outbox(collection, type, payload, at_us) VALUES (?, ?, ?, ?)",
        (number, what, json.dumps({**about(row), **more}), now_us()),
    )
    connection.execute(
        "DELETE FROM outbox WHERE collection = ? AND seq <= ?",
        (number, forgotten(told.lastrowid or 0)),
    )


def _changed(connection: sqlite3.Connection, number: int) -> None:
    connection.execute(
        "UPDATE collection SET generation = generation + 1 WHERE number = ?", (number,)
    )
