"""Files: added, processed under a lease, made ready with their index in one step, deleted."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness_core.collections.faults import AlreadyExistsError, NotFoundError
from harness_core.collections.ids import new_id
from harness_core.collections.postgres.catalogue import collection_row, locked, write_typed
from harness_core.collections.postgres.database import Connected, Database
from harness_core.collections.postgres.indexing import put_in, take_out
from harness_core.collections.postgres.snapshot import FILE
from harness_core.collections.postgres.vectors import put_vectors
from harness_core.collections.rows import (
    ATTEMPTS,
    GIVEN_UP,
    Row,
    about,
    as_event,
    as_file,
    forgotten,
    noted,
)
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
        now = now_us()
        with self.database.write() as connection:
            collection = locked(connection, collection_id)
            file: int = _one(
                connection,
                "INSERT INTO file(fid, collection, path, content_type, bytes, status, metadata, "
                "created_us, updated_us) VALUES (%s, %s, %s, %s, %s, 'pending', %s, %s, %s) "
                "RETURNING id",
                (new_id("fil"), collection["number"], path, content_type, len(data),
                 json.dumps(metadata), now, now),
            )["id"]  # fmt: skip
            connection.execute("INSERT INTO source VALUES (%s, %s)", (file, data))
            write_typed(connection, file, metadata, json.loads(collection["fields"]))
            _grant(connection, file, principals)
            return _info(connection, file)

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
            collection = locked(connection, collection_id)
            row = _file(connection, collection, file_id)
            file = row["id"]
            if path is not None and path != row["path"]:
                _check_free(connection, collection, path)
                connection.execute("UPDATE file SET path = %s WHERE id = %s", (path, file))
            if metadata is not None:
                made = metadata(json.loads(row["metadata"]))
                connection.execute(
                    "UPDATE file SET metadata = %s WHERE id = %s", (json.dumps(made), file)
                )
                write_typed(connection, file, made, json.loads(collection["fields"]))
            if principals is not None:
                connection.execute("DELETE FROM allowed WHERE file = %s", (file,))
                _grant(connection, file, principals)
            connection.execute("UPDATE file SET updated_us = %s WHERE id = %s", (now_us(), file))
            _changed(connection, collection)
            return _info(connection, file)

    def delete_file(self, collection_id: str, file_id: str) -> None:
        """Delete a file; the next request does not see it."""
        with self.database.write() as connection:
            collection = locked(connection, collection_id)
            _delete(connection, collection, _file(connection, collection, file_id))
            _changed(connection, collection)

    def claim(self, lease_seconds: float, file_id: str | None = None) -> Claim | None:
        """The oldest file to process: pending, or with a lease that ran out.

        Workers that look at once pass over what another one is just taking.
        """
        now, token = now_us(), secrets.token_hex(8)
        with self.database.write() as connection:
            row = connection.execute(
                "UPDATE file SET status = 'processing', claim = %s, lease_us = %s, "
                "attempts = attempts + 1 WHERE id = (SELECT id FROM file "
                "WHERE status IN ('pending', 'processing') AND COALESCE(lease_us, 0) < %s "
                "AND (%s::text IS NULL OR fid = %s) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) "
                "RETURNING *, (SELECT data FROM source WHERE file = id) AS data",
                (token, now + int(lease_seconds * 1_000_000), now, file_id, file_id),
                binary=True,
            ).fetchone()
        if row is None:
            return None
        claim = Claim(
            file_id=row["fid"], token=token, path=row["path"], content_type=row["content_type"],
            data=bytes(row["data"]),
        )  # fmt: skip
        if row["attempts"] > ATTEMPTS:
            self.fail(claim, GIVEN_UP)
            return self.claim(lease_seconds, file_id)
        return claim

    def finish(self, claim: Claim, form: TextForm) -> bool:
        """The file's text, pieces and index in one step; older files of its path stop living."""
        words = words_of(form)
        with self.database.write() as connection:
            held = _held(connection, claim)
            if held is None:
                return False
            collection, row = held
            was_ready = _any_ready(connection, collection)
            chunks = put_in(connection, collection["number"], row["id"], form, words)
            if form.vectors is not None:
                self.database.require_vectors()
                put_vectors(connection, row["id"], chunks, form.vectors)
            connection.execute(
                "UPDATE file SET status = 'ready', error = NULL, claim = NULL, lease_us = NULL, "
                "pieces = %s, words = %s, characters = %s WHERE id = %s",
                (len(words), sum(map(len, words)), len(form.text), row["id"]),
            )
            _tell(connection, collection, "file.ready", row, **noted(form))
            if not was_ready:
                _tell(connection, collection, "collection.ready")
            _supersede(connection, collection, row["path"])
            _changed(connection, collection)
            return True

    def fail(self, claim: Claim, error: Mapping[str, Any]) -> bool:
        """The file has failed, for a reason; the collection goes on."""
        with self.database.write() as connection:
            held = _held(connection, claim)
            if held is None:
                return False
            collection, row = held
            connection.execute(
                "UPDATE file SET status = 'failed', error = %s, claim = NULL, lease_us = NULL "
                "WHERE id = %s",
                (json.dumps(error), row["id"]),
            )
            _tell(connection, collection, "file.failed", row, error=error)
            left = _one(
                connection,
                "SELECT count(*) AS n FROM file WHERE collection = %s AND status != 'failed'",
                (collection["number"],),
            )
            if not left["n"]:
                _tell(connection, collection, "collection.failed")
            _changed(connection, collection)
            return True

    def add_vectors(self, collection_id: str, file_id: str, vectors: Vectors) -> bool:
        """Give the pieces of a ready file vectors, one each; False when it lives no more."""
        self.database.require_vectors()
        with self.database.write() as connection:
            collection = locked(connection, collection_id)
            row = connection.execute(
                "SELECT id FROM file WHERE collection = %s AND fid = %s AND status = 'ready'",
                (collection["number"], file_id),
            ).fetchone()
            if row is None:
                return False
            chunks = connection.execute(
                "SELECT id FROM chunk WHERE file = %s ORDER BY start", (row["id"],)
            )
            put_vectors(connection, row["id"], [chunk["id"] for chunk in chunks], vectors)
            _changed(connection, collection)
            return True

    def events(self, collection_id: str, after: int, limit: int) -> list[Event]:
        """What happened after the event ``after`` (0: from the beginning), oldest first."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM outbox WHERE collection = %s AND seq > %s ORDER BY seq LIMIT %s",
                (collection_row(connection, collection_id)["number"], after, limit),
            )
            return [as_event(row) for row in rows]

    def last_event(self, collection_id: str) -> int:
        """The number of the newest event; 0 before the first."""
        with self.database.read() as connection:
            newest: int = _one(
                connection,
                "SELECT COALESCE(max(seq), 0) AS seq FROM outbox WHERE collection = %s",
                (collection_row(connection, collection_id)["number"],),
            )["seq"]
        return newest


def _one(connection: Connected, statement: str, values: tuple[object, ...]) -> Row:
    row = connection.execute(statement, values).fetchone()
    if row is None:
        raise NotFoundError("there is no such file")
    return row


def _info(connection: Connected, file: int) -> FileInfo:
    row = _one(connection, f"{FILE} WHERE f.id = %s", (file,))
    return as_file(row, row["principals"])


def _file(connection: Connected, collection: Row, file_id: str) -> Row:
    return _one(
        connection,
        "SELECT * FROM file WHERE collection = %s AND fid = %s",
        (collection["number"], file_id),
    )


def _check_free(connection: Connected, collection: Row, path: str) -> None:
    if connection.execute(
        "SELECT 1 FROM file WHERE collection = %s AND path = %s LIMIT 1",
        (collection["number"], path),
    ).fetchone():
        raise AlreadyExistsError("another file has this path")


def _held(connection: Connected, claim: Claim) -> tuple[Row, Row] | None:
    """The collection, locked, and the file of a claim that still holds."""
    collection = connection.execute(
        "SELECT * FROM collection WHERE number = (SELECT collection FROM file WHERE fid = %s) "
        "FOR NO KEY UPDATE",
        (claim.file_id,),
    ).fetchone()
    row = connection.execute(
        "SELECT * FROM file WHERE fid = %s AND claim = %s FOR UPDATE",
        (claim.file_id, claim.token),
    ).fetchone()
    return None if collection is None or row is None else (collection, row)


def _grant(connection: Connected, file: int, principals: Sequence[str]) -> None:
    connection.execute(
        "INSERT INTO allowed SELECT %s, unnest(%s::text[]) ON CONFLICT DO NOTHING",
        (file, list(principals)),
    )


def _any_ready(connection: Connected, collection: Row) -> bool:
    found = connection.execute(
        "SELECT 1 FROM file WHERE collection = %s AND status = 'ready' LIMIT 1",
        (collection["number"],),
    )
    return found.fetchone() is not None


def _supersede(connection: Connected, collection: Row, path: str) -> None:
    """Of one path only the newest ready version lives; what is still waiting is let be."""
    older = connection.execute(
        "SELECT * FROM file WHERE collection = %(number)s AND path = %(path)s "
        "AND status IN ('ready', 'failed') AND id < (SELECT max(id) FROM file "
        "WHERE collection = %(number)s AND path = %(path)s AND status = 'ready') ORDER BY id",
        {"number": collection["number"], "path": path},
    ).fetchall()
    for version in older:
        _delete(connection, collection, version)


def _delete(connection: Connected, collection: Row, row: Row) -> None:
    take_out(connection, row["id"])
    connection.execute("DELETE FROM file WHERE id = %s", (row["id"],))
    _tell(connection, collection, "file.deleted", row)


def _tell(
    connection: Connected, collection: Row, what: str, row: Row | None = None, **more: Any
) -> None:
    number = collection["number"]
    told = _one(
        connection,
        "INSERT INTO outbox(collection, type, payload, at_us) VALUES (%s, %s, %s, %s) "
        "RETURNING seq",
        (number, what, json.dumps({**about(row), **more}), now_us()),
    )
    connection.execute(
        "DELETE FROM outbox WHERE collection = %s AND seq <= %s",
        (number, forgotten(told["seq"])),
    )


def _changed(connection: Connected, collection: Row) -> None:
    connection.execute(
        "UPDATE collection SET generation = generation + 1 WHERE number = %s",
        (collection["number"],),
    )
