"""One moment of one collection, read on one connection."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from harness_core.collections.access import with_everyone
from harness_core.collections.filters import Node, as_sql
from harness_core.collections.filters.sql import POSTGRES
from harness_core.collections.postgres.catalogue import collection_row
from harness_core.collections.postgres.database import Connected, Database
from harness_core.collections.postgres.vectors import nearest, vectors_of
from harness_core.collections.rows import (
    as_collection,
    as_file,
    as_passage,
    as_piece,
)
from harness_core.collections.store import FileInfo, FileSet, Passage, Piece, Ranked, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILE: Final = (
    "SELECT f.*, ARRAY(SELECT a.principal FROM allowed a WHERE a.file = f.id ORDER BY a.principal) "
    "AS principals FROM file f"
)
_GRANTED: Final = (
    "EXISTS (SELECT 1 FROM allowed a WHERE a.file = f.id AND a.principal = ANY(%s::text[]))"
)


class PostgresSnapshot:
    """What a request reads. Everything is as it was when the transaction began."""

    def __init__(self, database: Database, connection: Connected, collection_id: str) -> None:
        row = collection_row(connection, collection_id)
        self._database = database
        self.connection = connection
        self.number: int = row["number"]
        self.generation: int = row["generation"]
        self.info = as_collection(row)

    def counts(self) -> dict[str, int]:
        """Living files by status."""
        rows = self.connection.execute(
            "SELECT status, count(*) AS n FROM file WHERE collection = %s GROUP BY status",
            (self.number,),
        )
        return {row["status"]: row["n"] for row in rows}

    def visible(self, node: Node, principals: Sequence[str] | None) -> FileSet:
        """The ready files that match and are granted; no principals, no files."""
        condition, values = as_sql(node, POSTGRES)
        granted = "TRUE" if principals is None else _GRANTED
        who = [] if principals is None else [with_everyone(principals)]
        rows = self.connection.execute(
            "SELECT f.id, f.pieces, f.characters FROM file f WHERE f.collection = %s "  # noqa: S608 - conditions of our own making
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
            f"{FILE} WHERE f.collection = %s AND f.fid = %s", (self.number, file_id)
        ).fetchone()
        return None if row is None else as_file(row, row["principals"])

    def files(self, node: Node, after: str | None, limit: int) -> list[FileInfo]:
        """Living files of any status, by id."""
        condition, values = as_sql(node, POSTGRES)
        rows = self.connection.execute(
            f"{FILE} WHERE f.collection = %s AND f.fid > %s AND ({condition}) "
            "ORDER BY f.fid LIMIT %s",
            (self.number, after or "", *values, limit),
        )
        return [as_file(row, row["principals"]) for row in rows]

    def pieces(self, files: FileSet) -> list[int]:
        """Every piece of the files, by path and place."""
        rows = self.connection.execute(
            "SELECT c.id FROM chunk c JOIN file f ON f.id = c.file WHERE c.file = ANY(%s) "
            "ORDER BY f.path, f.fid, c.start",
            (sorted(files.ids),),
        )
        return [row["id"] for row in rows]

    def passages(self, chunks: Sequence[int]) -> list[Passage]:
        """Pieces with their text, in the order asked for."""
        rows = self.connection.execute(
            "SELECT c.*, f.fid, f.path, f.content_type, "
            "substr(b.text, c.start + 1, c.stop - c.start) AS text "
            "FROM unnest(%s::bigint[]) WITH ORDINALITY j(id, place) JOIN chunk c ON c.id = j.id "
            "JOIN file f ON f.id = c.file JOIN body b ON b.file = c.file "
            "WHERE f.collection = %s ORDER BY j.place",
            (list(chunks), self.number),
        )
        return [as_passage(row) for row in rows]

    def text(self, file_id: str) -> str | None:
        """The whole text form of a ready file."""
        row = self.connection.execute(
            "SELECT b.text FROM file f JOIN body b ON b.file = f.id "
            "WHERE f.collection = %s AND f.fid = %s AND f.status = 'ready'",
            (self.number, file_id),
        ).fetchone()
        return None if row is None else str(row["text"])

    def places(self, file_id: str) -> list[Piece]:
        """The pieces of a file, in order."""
        rows = self.connection.execute(
            "SELECT c.* FROM chunk c JOIN file f ON f.id = c.file "
            "WHERE f.collection = %s AND f.fid = %s ORDER BY c.start",
            (self.number, file_id),
        )
        return [as_piece(row) for row in rows]

    def nearest(self, files: FileSet, query: Vectors, limit: int) -> list[Ranked]:
        """The pieces of the files nearest to the one row of ``query``, by cosine, best first."""
        self._database.require_vectors()
        return nearest(self.connection, files, query, limit)

    def vectors(self, chunks: Sequence[int], model: str) -> "dict[int, NDArray[np.float32]]":
        """The vectors of pieces, of those that have one of that model."""
        self._database.require_vectors()
        return vectors_of(self.connection, chunks, model)

    def unembedded(self, model: str, after: str, limit: int) -> list[str]:
        """Ready files without vectors of that model, by id."""
        self._database.require_vectors()
        rows = self.connection.execute(
            "SELECT f.fid FROM file f WHERE f.collection = %s AND f.status = 'ready' "
            "AND f.pieces > 0 AND f.fid > %s AND NOT EXISTS (SELECT 1 FROM piece_vector v "
            "WHERE v.file = f.id AND v.model = %s) ORDER BY f.fid LIMIT %s",
            (self.number, after, model, limit),
        )
        return [row["fid"] for row in rows]
