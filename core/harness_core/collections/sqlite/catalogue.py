"""Namespaces, collections, secrets and keys."""

import json
import secrets
import sqlite3
from collections.abc import Mapping
from typing import Any

from harness_core.collections.faults import AlreadyExistsError, NotFoundError
from harness_core.collections.filters.values import stored
from harness_core.collections.ids import new_id
from harness_core.collections.rows import as_collection, as_key, as_namespace
from harness_core.collections.sqlite.database import Database
from harness_core.collections.sqlite.schema import drop_index, make_index
from harness_core.collections.store import Access, CollectionInfo, NamespaceInfo
from harness_core.collections.times import now_us


class Catalogue:
    """What there is, apart from files. An id or a name finds a thing; else it is not found."""

    database: Database

    def create_namespace(self, name: str) -> NamespaceInfo:
        """A new namespace."""
        with self.database.write() as connection:
            _insert(
                connection,
                "INSERT INTO namespace(id, name, created_us) VALUES (?, ?, ?)",
                (new_id("ns"), name, now_us()),
            )
            return _namespace(connection, name)

    def namespaces(self, after: str = "", limit: int | None = None) -> list[NamespaceInfo]:
        """Namespaces by name, from after the name ``after`` on."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM namespace WHERE name > ? ORDER BY name LIMIT ?",
                (after, _most(limit)),
            )
            return [as_namespace(row) for row in rows]

    def namespace(self, ref: str) -> NamespaceInfo:
        """The namespace of that id or name."""
        with self.database.read() as connection:
            return _namespace(connection, ref)

    def delete_namespace(self, namespace_id: str) -> None:
        """Delete a namespace with all its collections."""
        with self.database.write() as connection:
            held = connection.execute(
                "SELECT number FROM collection WHERE namespace = ?", (namespace_id,)
            ).fetchall()
            for row in held:
                drop_index(connection, row["number"])
            connection.execute("DELETE FROM namespace WHERE id = ?", (namespace_id,))
            _drop_unused_blobs(connection)

    def create_collection(
        self, namespace_id: str, name: str, access: Access, fields: Mapping[str, str]
    ) -> CollectionInfo:
        """A new collection with an index of its own."""
        with self.database.write() as connection:
            number = _insert(
                connection,
                "INSERT INTO collection(id, namespace, name, access, fields, created_us) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (new_id("col"), namespace_id, name, access, json.dumps(dict(fields)), now_us()),
            )
            make_index(connection, number, enforced=access == "enforced")
            return collection_info(connection, namespace_id, name)

    def collections(
        self, namespace_id: str, after: str = "", limit: int | None = None
    ) -> list[CollectionInfo]:
        """The collections of a namespace by name, from after the name ``after`` on."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM collection WHERE namespace = ? AND name > ? ORDER BY name LIMIT ?",
                (namespace_id, after, _most(limit)),
            )
            return [as_collection(row) for row in rows]

    def collection(self, namespace_id: str, ref: str) -> CollectionInfo:
        """The collection of that id or name in the namespace."""
        with self.database.read() as connection:
            return collection_info(connection, namespace_id, ref)

    def delete_collection(self, collection_id: str) -> None:
        """Delete a collection with its files, texts and index."""
        with self.database.write() as connection:
            number = number_of(connection, collection_id)
            drop_index(connection, number)
            connection.execute("DELETE FROM collection WHERE number = ?", (number,))
            _drop_unused_blobs(connection)

    def set_fields(self, collection_id: str, fields: Mapping[str, str]) -> dict[str, int]:
        """Replace the listed fields; by key, how many files hold what its type cannot read."""
        with self.database.write() as connection:
            number = number_of(connection, collection_id)
            connection.execute(
                "UPDATE collection SET fields = ?, generation = generation + 1 WHERE number = ?",
                (json.dumps(dict(fields)), number),
            )
            unreadable = dict.fromkeys(fields, 0)
            for row in connection.execute(
                "SELECT id, metadata FROM file WHERE collection = ?", (number,)
            ):
                for key in write_typed(connection, row["id"], json.loads(row["metadata"]), fields):
                    unreadable[key] += 1
            return unreadable

    def secret(self, name: str) -> bytes:
        """A random secret of this store, made at its first use."""
        wanted = "SELECT value FROM secret WHERE name = ?"
        with self.database.read() as connection:
            row = connection.execute(wanted, (name,)).fetchone()
        if row is None:
            with self.database.write() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO secret VALUES (?, ?)", (name, secrets.token_bytes(32))
                )
                row = connection.execute(wanted, (name,)).fetchone()
        return bytes(row["value"])

    def add_key(self, row: Mapping[str, Any], *, first: bool = False) -> bool:
        """Keep a key; with ``first`` only where there is none at all. Whether it was kept."""
        with self.database.write() as connection:
            kept = connection.execute(
                "INSERT INTO api_key SELECT :id, :kind, :mac, :grants, :created_us, :expires_us, "
                "NULL WHERE NOT (:first AND EXISTS (SELECT 1 FROM api_key))",
                {**row, "grants": json.dumps(row["grants"]), "first": first},
            )
            return kept.rowcount > 0

    def key(self, key_id: str) -> Mapping[str, Any] | None:
        """The row of a key, revoked ones included."""
        with self.database.read() as connection:
            row = connection.execute("SELECT * FROM api_key WHERE id = ?", (key_id,)).fetchone()
            return None if row is None else as_key(row)

    def keys(self, after: str = "", limit: int | None = None) -> list[Mapping[str, Any]]:
        """Keys, oldest first, from after the key of the id ``after`` on."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM api_key WHERE ?1 = '' OR (created_us, id) > "
                "(SELECT created_us, id FROM api_key WHERE id = ?1) "
                "ORDER BY created_us, id LIMIT ?2",
                (after, _most(limit)),
            )
            return [as_key(row) for row in rows]

    def revoke_key(self, key_id: str) -> bool:
        """Revoke a key; False for an unknown one."""
        with self.database.write() as connection:
            done = connection.execute(
                "UPDATE api_key SET revoked_us = COALESCE(revoked_us, ?) WHERE id = ?",
                (now_us(), key_id),
            )
            return done.rowcount > 0


def collection_info(connection: sqlite3.Connection, namespace_id: str, ref: str) -> CollectionInfo:
    """The collection of that id or name in a namespace."""
    row = connection.execute(
        "SELECT * FROM collection WHERE namespace = ?1 AND (id = ?2 OR name = ?2)",
        (namespace_id, ref),
    ).fetchone()
    if row is None:
        raise NotFoundError("there is no such collection")
    return as_collection(row)


def collection_row(connection: sqlite3.Connection, collection_id: str) -> sqlite3.Row:
    """The row of a collection."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM collection WHERE id = ?", (collection_id,)
    ).fetchone()
    if row is None:
        raise NotFoundError("there is no such collection")
    return row


def number_of(connection: sqlite3.Connection, collection_id: str) -> int:
    """The number under which a collection's rows are kept."""
    return int(collection_row(connection, collection_id)["number"])


def info_of(connection: sqlite3.Connection, number: int) -> CollectionInfo:
    """The collection of that number."""
    row = connection.execute("SELECT * FROM collection WHERE number = ?", (number,)).fetchone()
    return as_collection(row)


def write_typed(
    connection: sqlite3.Connection,
    file: int,
    metadata: Mapping[str, Any],
    fields: Mapping[str, str],
) -> list[str]:
    """Write the listed values of a file as they are compared; the keys that cannot be read."""
    connection.execute("DELETE FROM meta WHERE file = ?", (file,))
    found = {key: stored(kind, metadata.get(key)) for key, kind in fields.items()}
    connection.executemany(
        "INSERT INTO meta VALUES (?, ?, ?)",
        [(file, key, value) for key, value in found.items() if value is not None],
    )
    return [key for key, value in found.items() if value is None and metadata.get(key) is not None]


def _drop_unused_blobs(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM blob WHERE sha256 NOT IN (SELECT sha256 FROM file)")


def _insert(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> int:
    try:
        return int(connection.execute(statement, values).lastrowid or 0)
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
            raise NotFoundError("there is no such namespace") from None
        raise AlreadyExistsError("the name is taken") from None


def _most(limit: int | None) -> int:
    return -1 if limit is None else limit


def _namespace(connection: sqlite3.Connection, ref: str) -> NamespaceInfo:
    row = connection.execute(
        "SELECT * FROM namespace WHERE id = ?1 OR name = ?1", (ref,)
    ).fetchone()
    if row is None:
        raise NotFoundError("there is no such namespace")
    return as_namespace(row)
