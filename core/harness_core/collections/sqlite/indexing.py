"""The pieces of a file put into the index of its collection, and taken out again."""

import sqlite3
from collections.abc import Sequence

from harness_core.collections.postings import packed
from harness_core.collections.sqlite.catalogue import info_of
from harness_core.collections.sqlite.schema import PART_BITS
from harness_core.collections.sqlite.vectors import put_vectors
from harness_core.collections.store import Piece, TextForm


def put_in(
    connection: sqlite3.Connection,
    number: int,
    file: int,
    form: TextForm,
    words: Sequence[Sequence[str]],
) -> None:
    """Write the text of a file, its pieces, their words and their vectors."""
    connection.execute("INSERT INTO body VALUES (?, ?)", (file, form.text))
    if form.vectors is not None:
        put_vectors(connection, file, form.vectors, len(form.pieces))
    chunks = [
        _put_piece(connection, file, piece, len(tokens))
        for piece, tokens in zip(form.pieces, words, strict=True)
    ]
    if _enforced(connection, number):
        connection.executemany(
            f"INSERT INTO post_{number} VALUES (?, ?, ?, ?)",  # noqa: S608 - a number
            [(file >> PART_BITS, word, file, places)
             for word, places in sorted(packed(chunks, words).items())],
        )  # fmt: skip
    else:
        connection.executemany(
            f"INSERT INTO fts_{number}(rowid, words) VALUES (?, ?)",  # noqa: S608 - a number
            zip(chunks, map(" ".join, words), strict=True),
        )


def take_out(connection: sqlite3.Connection, number: int, file: int) -> None:
    """Remove the words of a file's pieces from the index."""
    if _enforced(connection, number):
        connection.execute(
            f"DELETE FROM post_{number} WHERE part = ? AND file = ?",  # noqa: S608 - a number
            (file >> PART_BITS, file),
        )
    else:
        connection.execute(
            f"DELETE FROM fts_{number} WHERE rowid IN (SELECT id FROM chunk WHERE file = ?)",  # noqa: S608 - a number
            (file,),
        )


def _enforced(connection: sqlite3.Connection, number: int) -> bool:
    return info_of(connection, number).access_control == "enforced"


def _put_piece(connection: sqlite3.Connection, file: int, piece: Piece, words: int) -> int:
    made = connection.execute(
        "INSERT INTO chunk(file, start, stop, first_page, last_page, section, words) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (file, piece.start, piece.stop, piece.first_page, piece.last_page, piece.section, words),
    )
    return int(made.lastrowid or 0)
