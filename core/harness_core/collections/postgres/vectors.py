"""The vectors of pieces in pgvector: exact cosines, inside the files that may be read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from harness_core.collections.postgres.database import Connected
from harness_core.collections.store import FileSet, Ranked, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NEAREST: Final = (
    "SELECT v.chunk, v.file, round((1 - (v.embedding <=> %s::vector))::numeric, 6)::float AS score "
    "FROM piece_vector v JOIN chunk c ON c.id = v.chunk JOIN file f ON f.id = v.file "
    "WHERE v.model = %s AND v.file = ANY(%s) AND vector_dims(v.embedding) = %s "
    "ORDER BY score DESC, f.path, c.start, f.fid LIMIT %s"
)


def put_vectors(connection: Connected, file: int, chunks: Sequence[int], vectors: Vectors) -> None:
    """Write the vectors of a file's pieces, in place of those of the same model.

    Raises:
        ValueError: there is not one for each piece.
    """
    if len(vectors.rows) != len(chunks):
        raise ValueError(f"{len(chunks)} pieces were given {len(vectors.rows)} vectors")
    connection.execute(
        "DELETE FROM piece_vector WHERE file = %s AND model = %s", (file, vectors.model)
    )
    with connection.cursor().copy("COPY piece_vector FROM STDIN") as copy:
        for chunk, row in zip(chunks, vectors.rows, strict=True):
            copy.write_row((chunk, file, vectors.model, _written(row)))


def nearest(connection: Connected, files: FileSet, query: Vectors, limit: int) -> list[Ranked]:
    """The nearest pieces, best first."""
    (asked,) = query.rows
    rows = connection.execute(
        _NEAREST, (_written(asked), query.model, sorted(files.ids), asked.size, limit)
    )
    return [Ranked(row["chunk"], row["file"], row["score"]) for row in rows]


def vectors_of(
    connection: Connected, chunks: Sequence[int], model: str
) -> "dict[int, NDArray[np.float32]]":
    """The vectors of pieces, of those that have one of the model."""
    import numpy as np

    rows = connection.execute(
        "SELECT chunk, embedding::real[] AS row FROM piece_vector "
        "WHERE chunk = ANY(%s) AND model = %s",
        (list(chunks), model),
    )
    return {row["chunk"]: np.asarray(row["row"], "<f4") for row in rows}


def _written(row: "NDArray[np.float32]") -> str:
    return str(row.tolist())
