"""One moment of one collection, read on one connection."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from harness_core.collections.contract import EVERYONE
from harness_core.collections.filters import Node, as_sql
from harness_core.collections.sqlite.catalogue import info_of
from harness_core.collections.store import CollectionInfo, FileInfo, FileSet, Passage, Piece
from harness_core.collections.times import shown

_GRANTED: Final = (
    "EXISTS (SELECT 1 FROM allowed a WHERE a.file = f.id "
    "AND a.principal IN (SELECT value FROM json_each(?)))"
)


class SqliteSnapshot:
    """What a request reads. Everything is as it was when the transaction began."""

    def __init__(self, connection: sqlite3.Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self.info: CollectionInfo
        self.generation: int
        self.info, self.generation = info_of(connection, number)

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
            granted, who = _GRANTED, [json.dumps(_with_everyone(principals))]
        rows = self.connection.execute(
            "SELECT f.id, f.pieces, f.characters FROM file f WHERE f.collection = ? "  # noqa: S608 - conditions of our own making
            f"AND f.status = 'ready' AND {granted} AND ({condition})",
            (self.number, *who, *values),
        ).fetchall()
        return FileSet(
            frozenset(row["id"] for row in rows),
            sum(row["pieces"] for row in rows),
            sum(row["characters"] for row in rows),
        )

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
        return [_passage(row) for row in rows]

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
        return [_piece(row) for row in rows]


def listed(files: FileSet) -> str:
    """The files as one parameter: SQLite bounds how many parameters a statement has."""
    return json.dumps(sorted(files.ids))


def file_info(connection: sqlite3.Connection, row: sqlite3.Row) -> FileInfo:
    """A row of ``file`` as the file it is."""
    grants = connection.execute(
        "SELECT principal FROM allowed WHERE file = ? ORDER BY principal", (row["id"],)
    )
    return FileInfo(
        id=row["fid"],
        path=row["path"],
        content_type=row["content_type"],
        bytes=row["bytes"],
        status=row["status"],
        created_at=shown(row["created_us"]),
        updated_at=shown(row["updated_us"]),
        error=json.loads(row["error"]) if row["error"] else None,
        metadata=json.loads(row["metadata"]),
        principals=tuple(grant["principal"] for grant in grants),
    )


def _with_everyone(principals: Sequence[str]) -> list[str]:
    return [*principals, EVERYONE] if principals else []


def _passage(row: sqlite3.Row) -> Passage:
    return Passage(
        chunk=row["id"],
        file_id=row["fid"],
        path=row["path"],
        content_type=row["content_type"],
        text=row["text"],
        piece=_piece(row),
    )


def _piece(row: sqlite3.Row) -> Piece:
    return Piece(
        start=row["start"],
        stop=row["stop"],
        first_page=row["first_page"],
        last_page=row["last_page"],
        section=row["section"],
    )
