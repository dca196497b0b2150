"""One moment of one collection, read on one connection."""

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from harness_core.collections.access import with_everyone
from harness_core.collections.filters import Node, as_sql
from harness_core.collections.rows import as_collection, as_file, as_passage, as_piece
from harness_core.collections.sqlite.catalogue import collection_row
from harness_core.collections.sqlite.vectors import nearest, vectors_of
from harness_core.collections.store import (
    CollectionInfo,
    FileInfo,
    FileSet,
    Passage,
    Piece,
    Ranked,
    Vectors,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_GRANTED: Final = (
    "EXISTS (SELECT 1 FROM allowed a WHERE a.file = f.id "
    "AND +a.principal IN (SELECT value FROM json_each(?)))"  # +: not a look-up for each of them
)


class SqliteSnapshot:
    """What a request reads. Everything is as it was when the transaction began."""

    def __init__(self, connection: sqlite3.Connection, collection_id: str) -> None:
        row = collection_row(connection, collection_id)
        self.connection = connection
        self.number = int(row["number"])
        self.info: CollectionInfo = as_collection(row)
        self.generation = int(row["generation"])

    def counts(self) -> dict[str, int]:
        """Living files by status."""
        rows = self.connection.execute(
            "SELECT status, count(*) AS n FROM file WHERE collection = ? GROUP BY status",
            (self.number,),
        )
        return {row["status"]: row["n"] for row in rows}

    def visible(self, node: Node, principals: Sequence[str] | None) -> FileSet:
        """The ready files that match and are granted; no principals, no files."""
        condition, values = as_sql(node)
        granted, who = "1", []
        if principals is not None:
            granted, who = _GRANTED, [json.dumps(with_everyone(principals))]
        ids, pieces, characters = self.connection.execute(
            "SELECT json_group_array(f.id), total(f.pieces), total(f.characters) FROM file f "  # noqa: S608 - conditions of our own making
            f"WHERE f.collection = ? AND f.status = 'ready' AND {granted} AND ({condition})",
            (self.number, *who, *values),
        ).fetchone()
        return FileSet(frozenset(json.loads(ids)), int(pieces), int(characters))

    def file(self, file_id: str) -> FileInfo | None:
        """A living file with its grants."""
        row = self.connection.execute(
            "SELECT * FROM file WHERE collection = ? AND fid = ?", (self.number, file_id)
        ).fetchone()
        return None if row is None else file_info(self.connection, row)

    def files(self, node: Node, after: str | None, limit: int) -> list[FileInfo]:
        """Living files of any status, by id."""
        condition, values = as_sql(node)
        rows = self.connection.execute(
            "SELECT f.* FROM file f WHERE f.collection = ? AND f.fid > ? "  # noqa: S608 - conditions of our own making
            f"AND ({condition}) ORDER BY f.fid LIMIT ?",
            (self.number, after or "", *values, limit),
        ).fetchall()
        return [file_info(self.connection, row) for row in rows]

    def pieces(self, files: FileSet) -> list[int]:
        """Every piece of the files, by path and place."""
        rows = self.connection.execute(
            "SELECT c.id FROM chunk c JOIN file f ON f.id = c.file "
            "WHERE c.file IN (SELECT value FROM json_each(?)) ORDER BY f.path, f.fid, c.start",
            (listed(files),),
        )
        return [row["id"] for row in rows]

    def passages(self, chunks: Sequence[int]) -> list[Passage]:
        """Pieces with their text, in the order asked for."""
        rows = self.connection.execute(
            "SELECT c.*, f.fid, f.path, f.content_type, "
            "substr(b.text, c.start + 1, c.stop - c.start) AS text "
            "FROM json_each(?) j JOIN chunk c ON c.id = j.value "
            "JOIN file f ON f.id = c.file JOIN body b ON b.file = c.file "
            "WHERE f.collection = ? ORDER BY j.key",
            (json.dumps(list(chunks)), self.number),
        )
        return [as_passage(row) for row in rows]

    def text(self, file_id: str) -> str | None:
        """The whole text form of a ready file."""
        row = self.connection.execute(
            "SELECT b.text FROM file f JOIN body b ON b.file = f.id "
            "WHERE f.collection = ? AND f.fid = ? AND f.status = 'ready'",
            (self.number, file_id),
        ).fetchone()
        return None if row is None else str(row["text"])

    def places(self, file_id: str) -> list[Piece]:
        """The pieces of a file, in order."""
        rows = self.connection.execute(
            "SELECT c.* FROM chunk c JOIN file f ON f.id = c.file "
            "WHERE f.collection = ? AND f.fid = ? ORDER BY c.start",
            (self.number, file_id),
        )
        return [as_piece(row) for row in rows]

    def nearest(self, files: FileSet, query: Vectors, limit: int) -> list[Ranked]:
        """The pieces of the files nearest to the one row of ``query``, by cosine, best first."""
        return nearest(self.connection, files, query, limit)

    def vectors(self, chunks: Sequence[int], model: str) -> "dict[int, NDArray[np.float32]]":
        """The vectors of pieces, of those that have one of that model."""
        return vectors_of(self.connection, chunks, model)

    def unembedded(self, model: str, after: str, limit: int) -> list[str]:
        """Ready files without vectors of that model, by id."""
        rows = self.connection.execute(
            "SELECT fid FROM file WHERE collection = ? AND status = 'ready' AND pieces > 0 "
            "AND fid > ? AND id NOT IN (SELECT file FROM vector WHERE model = ?) "
            "ORDER BY fid LIMIT ?",
            (self.number, after, model, limit),
        )
        return [row["fid"] for row in rows]


def listed(files: FileSet) -> str:
    """The files as one parameter: SQLite bounds how many parameters a statement has."""
    return json.dumps(sorted(files.ids))


def file_info(connection: sqlite3.Connection, row: sqlite3.Row) -> FileInfo:
    """A row of ``file`` as the file it is."""
    grants = connection.execute(
        "SELECT principal FROM allowed WHERE file = ? ORDER BY principal", (row["id"],)
    )
    return as_file(row, (grant["principal"] for grant in grants))
