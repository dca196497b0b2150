"""The vectors of a file's pieces: a row each, one blob for each model, in the pieces' order."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from harness_core.collections.store import FileSet, Ranked, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIGITS: Final = 6
"""Cosines that agree to so many decimals are equal: sums of floats depend on their order."""

_ROWS: Final = (
    "SELECT file, rows FROM vector WHERE model = ? AND dimensions = ? "
    "AND file IN (SELECT value FROM json_each(?))"
)
_PIECES: Final = (
    "SELECT c.id, c.file FROM chunk c JOIN file f ON f.id = c.file "
    "WHERE c.file IN (SELECT value FROM json_each(?)) ORDER BY f.path, c.start, f.fid"
)
_HELD: Final = (
    "SELECT v.file, v.rows, v.dimensions FROM vector v WHERE v.model = ? AND v.file IN "
    "(SELECT c.file FROM chunk c JOIN json_each(?) j ON c.id = j.value)"
)


def put_vectors(connection: sqlite3.Connection, file: int, vectors: Vectors, pieces: int) -> None:
    """Write the vectors of a file, in place of those of the same model.

    Raises:
        ValueError: there is not one for each of its ``pieces``.
    """
    rows, dimensions = vectors.rows.shape
    if rows != pieces:
        raise ValueError(f"{pieces} pieces were given {rows} vectors")
    connection.execute(
        "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)",
        (file, vectors.model, dimensions, vectors.rows.astype("<f4").tobytes()),
    )


def nearest(
    connection: sqlite3.Connection, files: FileSet, query: Vectors, limit: int
) -> list[Ranked]:
    """Exact cosines over every piece of the files, a file at a time: nothing is kept in memory."""
    near = _near(list(_cosines(connection, files, query)), limit)
    named = json.dumps(sorted({file for file, _ in near}))
    ranked = [
        Ranked(chunk, file, near[file, place])
        for chunk, file, place in _placed(connection, named)
        if (file, place) in near
    ]
    return sorted(ranked, key=lambda one: -one.score)[:limit]


def vectors_of(
    connection: sqlite3.Connection, chunks: Sequence[int], model: str
) -> "dict[int, NDArray[np.float32]]":
    """The vectors of pieces, of those that have one of the model."""
    import numpy as np

    held = {
        row["file"]: np.frombuffer(row["rows"], "<f4").reshape(-1, row["dimensions"])
        for row in connection.execute(_HELD, (model, json.dumps(list(chunks))))
    }
    wanted = frozenset(chunks)
    return {
        chunk: held[file][place]
        for chunk, file, place in _placed(connection, json.dumps(sorted(held)))
        if chunk in wanted
    }


def _cosines(
    connection: sqlite3.Connection, files: FileSet, query: Vectors
) -> "Iterator[tuple[int, NDArray[np.float32]]]":
    import numpy as np

    (asked,) = query.rows.astype("<f4")
    inside = json.dumps(sorted(files.ids))
    for file, rows in connection.execute(_ROWS, (query.model, asked.size, inside)):
        yield file, np.frombuffer(rows, "<f4").reshape(-1, asked.size) @ asked


def _near(
    found: "Sequence[tuple[int, NDArray[np.float32]]]", limit: int
) -> dict[tuple[int, int], float]:
    """By file and place, the cosines of the best ``limit`` pieces and of the last one's equals."""
    import numpy as np

    if not found or limit < 1:
        return {}
    every = np.concatenate([cosines for _, cosines in found]).astype(float).round(DIGITS)
    least = np.partition(every, -limit)[-limit] if limit < every.size else every.min()
    sizes = [cosines.size for _, cosines in found]
    files = np.repeat([file for file, _ in found], sizes)
    places = np.concatenate([np.arange(size) for size in sizes])
    best = every >= least
    pairs = zip(files[best].tolist(), places[best].tolist(), strict=True)
    return dict(zip(pairs, every[best].tolist(), strict=True))


def _placed(connection: sqlite3.Connection, files: str) -> Iterator[tuple[int, int, int]]:
    """Piece, file, and place among the file's pieces, of the listed files; ordered as ties are."""
    seen: Counter[int] = Counter()
    for chunk, file in connection.execute(_PIECES, (files,)):
        yield chunk, file, seen[file]
        seen[file] += 1
