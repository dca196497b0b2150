"""Namespaces, collections, secrets and keys."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from psycopg import errors

from harness_core.collections.faults import AlreadyExistsError, NotFoundError
from harness_core.collections.filters.sql import POSTGRES
from harness_core.collections.filters.values import stored
from harness_core.collections.ids import new_id
from harness_core.collections.postgres.database import Connected, Database
from harness_core.collections.rows import Row, as_collection, as_key, as_namespace
from harness_core.collections.store import Access, CollectionInfo, NamespaceInfo
from harness_core.collections.times import now_us


class Catalogue:
    """What there is, apart from files. An id or a name finds a thing; else it is not found."""

    database: Database

    def create_namespace(self, name: str) -> NamespaceInfo:
        """A new namespace."""
        with self.database.write() as connection:
            row = connection.execute(
                "INSERT INTO namespace VALUES (%s, %s, %s) ON CONFLICT (name) DO NOTHING "
                "RETURNING *",
                (new_id("ns"), name, now_us()),
            ).fetchone()
        return as_namespace(_untaken(row))

    def namespaces(self, after: str = "", limit: int | None = None) -> list[NamespaceInfo]:
        """Namespaces by name, from after the name ``after`` on."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM namespace WHERE name > %s ORDER BY name LIMIT %s", (after, limit)
            )
            return [as_namespace(row) for row in rows]

    def namespace(self, ref: str) -> NamespaceInfo:
        """The namespace of that id or name."""
        with self.database.read() as connection:
            row = connection.execute(
                "SELECT * FROM namespace WHERE id = %s OR name = %s", (ref, ref)
            ).fetchone()
        if row is None:
            raise NotFoundError("there is no such namespace")
        return as_namespace(row)

    def delete_namespace(self, namespace_id: str) -> None:
        """Delete a namespace with all its collections."""
        with self.database.write() as connection:
            connection.execute(  # from here on nobody adds a collection to it
                "SELECT 1 FROM namespace WHERE id = %s FOR UPDATE", (namespace_id,)
            )
            held = connection.execute(
                "SELECT number FROM collection WHERE namespace = %s ORDER BY number FOR UPDATE",
                (namespace_id,),
            ).fetchall()
            connection.execute(
                "DELETE FROM posting WHERE collection = ANY(%s)", ([row["number"] for row in held],)
            )
            connection.execute("DELETE FROM namespace WHERE id = %s", (namespace_id,))

    def create_collection(
        self, namespace_id: str, name: str, access: Access, fields: Mapping[str, str]
    ) -> CollectionInfo:
        """A new collection."""
        row = (new_id("col"), namespace_id, name, access, json.dumps(dict(fields)), now_us())
        try:
            with self.database.write() as connection:
                made = connection.execute(
                    "INSERT INTO collection(id, namespace, name, access, fields, created_us) "
                    "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (namespace, name) DO NOTHING "
                    "RETURNING *",
                    row,
                ).fetchone()
        except errors.ForeignKeyViolation:
            raise NotFoundError("there is no such namespace") from None
        return as_collection(_untaken(made))

    def collections(
        self, namespace_id: str, after: str = "", limit: int | None = None
    ) -> list[CollectionInfo]:
        """The collections of a namespace by name, from after the name ``after`` on."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM collection WHERE namespace = %s AND name > %s ORDER BY name "
                "LIMIT %s",
                (namespace_id, after, limit),
            )
            return [as_collection(row) for row in rows]

    def collection(self, namespace_id: str, ref: str) -> CollectionInfo:
        """The collection of that id or name in the namespace."""
        with self.database.read() as connection:
            row = connection.execute(
                "SELECT * FROM collection WHERE namespace = %s AND (id = %s OR name = %s)",
                (namespace_id, ref, ref),
            ).fetchone()
        return as_collection(_there(row))

    def delete_collection(self, collection_id: str) -> None:
        """Delete a collection with its files, texts and index."""
        with self.database.write() as connection:
            number = locked(connection, collection_id)["number"]
            connection.execute("DELETE FROM posting WHERE collection = %s", (number,))
            connection.execute("DELETE FROM collection WHERE number = %s", (number,))

    def set_fields(self, collection_id: str, fields: Mapping[str, str]) -> dict[str, int]:
        """Replace the listed fields; by key, how many files hold what its type cannot read."""
        with self.database.write() as connection:
            number = locked(connection, collection_id)["number"]
            connection.execute(
                "UPDATE collection SET fields = %s, generation = generation + 1 WHERE number = %s",
                (json.dumps(dict(fields)), number),
            )
            unreadable = dict.fromkeys(fields, 0)
            with connection.cursor("files") as rows:  # as they are read: they may be many
                rows.execute("SELECT id, metadata FROM file WHERE collection = %s", (number,))
                for row in rows:
                    given = json.loads(row["metadata"])
                    for key in write_typed(connection, row["id"], given, fields):
                        unreadable[key] += 1
            return unreadable

    def secret(self, name: str) -> bytes:
        """A random secret of this store, made at its first use."""
        wanted = "SELECT value FROM secret WHERE name = %s"
        with self.database.read() as connection:
            row = connection.execute(wanted, (name,)).fetchone()
        if row is None:
            with self.database.write() as connection:
                connection.execute(
                    "INSERT INTO secret VALUES (%s, %s) ON CONFLICT DO NOTHING",
                    (name, secrets.token_bytes(32)),
                )
                row = connection.execute(wanted, (name,)).fetchone()
        return bytes(_there(row)["value"])

    def add_key(self, row: Mapping[str, Any], *, first: bool = False) -> bool:
        """Keep a key; with ``first`` only where there is none at all. Whether it was kept."""
        with self.database.write() as connection:
            if first:
                connection.execute("LOCK TABLE api_key IN SHARE ROW EXCLUSIVE MODE")
            kept = connection.execute(
                "INSERT INTO api_key SELECT %(id)s, %(kind)s, %(mac)s, %(grants)s, "
                "%(created_us)s, %(expires_us)s, NULL "
                "WHERE NOT (%(first)s AND EXISTS (SELECT 1 FROM api_key))",
                {**row, "grants": json.dumps(row["grants"]), "first": first},
            )
            return kept.rowcount > 0

    def key(self, key_id: str) -> Mapping[str, Any] | None:
        """The row of a key, revoked ones included."""
        with self.database.read() as connection:
            row = connection.execute("SELECT * FROM api_key WHERE id = %s", (key_id,)).fetchone()
        return None if row is None else as_key(row)

    def keys(self, after: str = "", limit: int | None = None) -> list[Mapping[str, Any]]:
        """Keys, oldest first, from after the key of the id ``after`` on."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM api_key WHERE %(after)s = '' OR (created_us, id) > "
                "(SELECT created_us, id FROM api_key WHERE id = %(after)s) "
                "ORDER BY created_us, id LIMIT %(limit)s",
                {"after": after, "limit": limit},
            )
            return [as_key(row) for row in rows]

    def revoke_key(self, key_id: str) -> bool:
        """Revoke a key; False for an unknown one."""
        with self.database.write() as connection:
            done = connection.execute(
                "UPDATE api_key SET revoked_us = COALESCE(revoked_us, %s) WHERE id = %s",
                (now_us(), key_id),
            )
            return done.rowcount > 0


def locked(connection: Connected, collection_id: str) -> Row:
    """The row of a collection, for whoever changes it: one change at a time.

    So the events of a collection are numbered in the order in which they come to be seen, and its
    changes are locked in one order, in which they cannot wait for each other.
    """
    return _there(
        connection.execute(
            "SELECT * FROM collection WHERE id = %s FOR NO KEY UPDATE", (collection_id,)
        ).fetchone()
    )


def collection_row(connection: Connected, collection_id: str) -> Row:
    """The row of a collection, to read."""
    return _there(
        connection.execute("SELECT * FROM collection WHERE id = %s", (collection_id,)).fetchone()
    )


def write_typed(
    connection: Connected, file: int, metadata: Mapping[str, Any], fields: Mapping[str, str]
) -> list[str]:
    """Write the listed values of a file as they are compared; the keys that cannot be read."""
    connection.execute("DELETE FROM meta WHERE file = %s", (file,))
    found = {key: stored(kind, metadata.get(key)) for key, kind in fields.items()}
    rows = [
        (file, key, *((value, None) if isinstance(value, str) else (None, POSTGRES.value(value))))
        for key, value in found.items()
        if value is not None
    ]
    connection.cursor().executemany("INSERT INTO meta VALUES (%s, %s, %s, %s)", rows)
    return [key for key, value in found.items() if value is None and metadata.get(key) is not None]


def _there(row: Row | None) -> Row:
    if row is None:
        raise NotFoundError("there is no such collection")
    return row


def _untaken(row: Row | None) -> Row:
    if row is None:
        raise AlreadyExistsError("the name is taken")
    return row
