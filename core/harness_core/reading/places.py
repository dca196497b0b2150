"""Where a piece of evidence stands in the document: its page and section, looked up in the text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness_core.answer import Evidence
from harness_core.documents.types import Document, Page

if TYPE_CHECKING:
    from harness_core.checks.sources import Source


class _Place(NamedTuple):
    text: "Source"
    page: Page
    section: str | None


def placed(rows: Sequence[Evidence], document: Document) -> list[Evidence]:
    """The rows, each with the one page that holds its text, and the section there if it had none.

    A chunk's answer, a quotation that was not found, and text that stands on several pages or on
    none are left as they are.
    """
    from harness_core.checks.sources import Source

    places = [
        _Place(Source(block.text), block.page, block.section)
        for block in document.blocks
        if block.page is not None
    ]
    return [_placed(row, places) for row in rows] if places else list(rows)


def _placed(row: Evidence, places: Sequence[_Place]) -> Evidence:
    if row.kind == "answer" or (row.verified is False and (row.match or 0) < 1):
        return row
    found = [place for place in places if _holds(place.text, row.text)]
    if len({place.page for place in found}) != 1:
        return row
    changes: dict[str, object] = {"page": found[0].page}
    sections = {place.section for place in found if place.section}
    if row.section is None and len(sections) == 1:
        changes["section"] = sections.pop()
    return row.model_copy(update=changes)


def _holds(source: "Source", text: str) -> bool:
    """Whether a text holds another as whole words, in one piece."""
    from harness_core.checks.passages import whole_piece
    from harness_core.checks.sources import Places

    piece = whole_piece(text)
    return piece is not None and Places(piece, source).any()
