"""The pieces of a file put into the index of its collection, and taken out again."""

import sqlite3
from collections import Counter
from collections.abc import Sequence

from harness_core.collections.sqlite.catalogue import info_of
from harness_core.collections.store import Piece, TextForm
from harness_core.collections.words import indexed


def words_of(form: TextForm) -> list[list[str]]:
    """The words of each piece."""
    return [indexed(form.text[piece.start : piece.stop]) for piece in form.pieces]


def put_in(
    connection: sqlite3.Connection,
    number: int,
    file: int,
    form: TextForm,
    words: Sequence[Sequence[str]],
) -> None:
    """Write the text of a file, its pieces and their words."""
    connection.execute("INSERT INTO body VALUES (?, ?)", (file, form.text))
    enforced = _enforced(connection, number)
    for piece, tokens in zip(form.pieces, words, strict=True):
        chunk = _put_piece(connection, file, piece, len(tokens))
        if enforced:
            connection.executemany(
                f"INSERT INTO post_{number} VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - a number
                [(word, file, chunk, n, len(tokens)) for word, n in Counter(tokens).items()],
            )
        else:
            connection.execute(
                f"INSERT INTO fts_{number}(rowid, words) VALUES (?, ?)",  # noqa: S608 - a number
                (chunk, " ".join(tokens)),
            )


def take_out(connection: sqlite3.Connection, number: int, file: int) -> None:
    """Remove the words of a file's pieces from the index."""
    if not _enforced(connection, number):
        connection.execute(
            f"DELETE FROM fts_{number} WHERE rowid IN (SELECT id FROM chunk WHERE file = ?)",  # noqa: S608 - a number
            (file,),
        )
        return
    rows = connection.execute(
        "SELECT substr(b.text, c.start + 1, c.stop - c.start) AS text "
        "FROM chunk c JOIN body b ON b.file = c.file WHERE c.file = ?",
        (file,),
    )
    words = {word for row in rows for word in indexed(row["text"])}
    connection.executemany(
        f"DELETE FROM post_{number} WHERE word = ? AND file = ?",  # noqa: S608 - a number
        [(word, file) for word in words],
    )


def _enforced(connection: sqlite3.Connection, number: int) -> bool:
    return info_of(connection, number)[0].access_control == "enforced"


def _put_piece(connection: sqlite3.Connection, file: int, piece: Piece, words: int) -> int:
    made = connection.execute(
        "INSERT INTO chunk(file, start, stop, first_page, last_page, section, words) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (file, piece.start, piece.stop, piece.first_page, piece.last_page, piece.section, words),
    )
    return int(made.lastrowid or 0)
