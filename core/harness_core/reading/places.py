"""Where a piece of evidence stands in the document: its page and section, looked up in the text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from harness_core.answer import Evidence
from harness_core.documents.types import Document, Page

if TYPE_CHECKING:
    from harness_core.checks.sources import Source

T = TypeVar("T")


def placed(rows: Sequence[Evidence], document: Document) -> list[Evidence]:
    """The rows, each with the one page that holds its text, and the one section if it had none.

    A chunk's answer, a quotation that was not found, and text that stands on several pages or on
    none are left as they are.
    """
    blocks = [block for block in document.blocks if block.page is not None]
    pages = _texts((block.page, block.text) for block in blocks)
    sections = _texts((block.section, block.text) for block in blocks if block.section)
    return [_placed(row, pages, sections) for row in rows] if pages else list(rows)


def _texts(parts: Iterable[tuple[T, str]]) -> "dict[T, Source]":
    """The parts of each place, put together in their order."""
    from harness_core.checks.sources import Source

    texts: dict[T, list[str]] = {}
    for place, text in parts:
        texts.setdefault(place, []).append(text)
    return {place: Source("\n".join(found)) for place, found in texts.items()}


def _placed(
    row: Evidence, pages: "Mapping[Page | None, Source]", sections: "Mapping[str, Source]"
) -> Evidence:
    if row.kind == "answer" or (row.verified is False and (row.match or 0) < 1):
        return row
    changes: dict[str, object] = {}
    if len(found := _holding(row.text, pages)) == 1:
        changes["page"] = found[0]
        if row.section is None and len(named := _holding(row.text, sections)) == 1:
            changes["section"] = named[0]
    return row.model_copy(update=changes) if changes else row


def _holding(text: str, places: "Mapping[T, Source]") -> list[T]:
    """The places whose text holds another as whole words, in one piece; two are enough."""
    from harness_core.checks.passages import whole_piece
    from harness_core.checks.sources import Places

    piece = whole_piece(text)
    found: list[T] = []
    for place, source in places.items():
        if piece is not None and len(found) < 2 and Places(piece, source).any():
            found.append(place)
    return found
