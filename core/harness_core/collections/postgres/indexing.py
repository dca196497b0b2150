"""The pieces of a file put into the index of its collection, and taken out again."""

from collections.abc import Sequence

from harness_core.collections.postgres.database import Connected
from harness_core.collections.postings import PLACE_BYTES, packed
from harness_core.collections.store import TextForm


def put_in(
    connection: Connected, number: int, file: int, form: TextForm, words: Sequence[Sequence[str]]
) -> list[int]:
    """Write the text of a file, its pieces and their words; the numbers of its pieces."""
    connection.execute("INSERT INTO body VALUES (%s, %s)", (file, form.text))
    rows = connection.execute(
        "SELECT nextval(pg_get_serial_sequence('chunk', 'id')) AS id FROM generate_series(1, %s)",
        (len(form.pieces),),
    )
    chunks = [row["id"] for row in rows]
    with connection.cursor().copy(
        "COPY chunk(id, file, start, stop, first_page, last_page, section) FROM STDIN"
    ) as copy:
        for chunk, piece in zip(chunks, form.pieces, strict=True):
            copy.write_row((
                chunk, file, piece.start, piece.stop, piece.first_page, piece.last_page,
                piece.section,
            ))  # fmt: skip
    with connection.cursor().copy("COPY posting FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "text", "int8", "int4", "bytea"])
        for word, places in packed(chunks, words).items():
            copy.write_row((number, word, file, len(places) // PLACE_BYTES, places))
    return chunks


def take_out(connection: Connected, file: int) -> None:
    """Remove the words of a file from the index."""
    connection.execute("DELETE FROM posting WHERE file = %s", (file,))
