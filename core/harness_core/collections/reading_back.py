"""Spans read back from the stored text, under the same rules as an answer."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harness_core.collections.access import readable_text
from harness_core.collections.contract import AskedSpan, Span, SpanPart
from harness_core.collections.filters.nodes import Every
from harness_core.collections.ids import is_id
from harness_core.collections.store import Piece, Snapshot

INLINE_BYTES: Final = 4 * 2**20
"""How much text one reply holds."""

_EVERYTHING = Every()


def read_back(
    snapshot: Snapshot, spans: Sequence[AskedSpan], principals: Sequence[str] | None
) -> Iterator[SpanPart]:
    """A part per span; one that may not be read looks like one that is not there."""
    return (_part(snapshot, span, principals) for span in spans)


def inline(parts: Iterable[SpanPart]) -> list[SpanPart]:
    """The parts, without the texts that one reply has no room for (``too_large``)."""
    return list(_fitting(parts))


def without_texts(parts: Iterable[SpanPart]) -> list[SpanPart]:
    """The parts as they are where their texts are fetched one by one."""
    return [part.model_copy(update={"text": None}) for part in parts]


def _fitting(parts: Iterable[SpanPart]) -> Iterator[SpanPart]:
    room = INLINE_BYTES
    for part in parts:
        size = part.size_bytes or 0
        if size > room:
            yield part.model_copy(update={"text": None, "error": "too_large"})
        else:
            room -= size
            yield part


def visible_text(snapshot: Snapshot, file_id: str, principals: Sequence[str] | None) -> str | None:
    """The text of a file that may be read; None for one that is absent or may not."""
    known = is_id(file_id)
    return readable_text(snapshot, file_id, _EVERYTHING, principals) if known else None


def _part(snapshot: Snapshot, asked: AskedSpan, principals: Sequence[str] | None) -> SpanPart:
    span = Span(**asked.model_dump(exclude_none=True))
    text = visible_text(snapshot, asked.file_id, principals)
    if text is None:
        return SpanPart(span=span, error="not_found")
    place = _place(snapshot, asked, len(text))
    if isinstance(place, str):
        return SpanPart(span=span, error=place)
    said = text[place[0] : place[1]]
    size = len(said.encode())
    return SpanPart(span=span, text=said, content_type="text/plain", size_bytes=size)


def _place(snapshot: Snapshot, asked: AskedSpan, length: int) -> tuple[int, int] | str:
    """Where the span is, or what is wrong with it."""
    if asked.unit == "file":
        return (0, length) if asked.start is None and asked.end is None else "out_of_range"
    if asked.start is None or asked.end is None or asked.start >= asked.end:
        return "out_of_range"
    if asked.unit == "pages":
        return _of_pages(snapshot, asked.file_id, asked.start, asked.end)
    if asked.unit != "chars" or asked.end > length:
        return "out_of_range"
    if asked.pages is not None:
        over = [p for p in snapshot.places(asked.file_id) if _touches(p, asked.start, asked.end)]
        first = min((p.first_page for p in over if p.first_page is not None), default=None)
        last = max((p.last_page for p in over if p.last_page is not None), default=None)
        if last is None or (first, last + 1) != (asked.pages.start, asked.pages.end):
            return "pages_mismatch"
    return asked.start, asked.end


def _touches(piece: Piece, start: int, stop: int) -> bool:
    return piece.start < stop and piece.stop > start


def _of_pages(snapshot: Snapshot, file_id: str, first: int, end: int) -> tuple[int, int] | str:
    """The pieces that stand on the pages from ``first`` to before ``end``."""
    on = [
        piece
        for piece in snapshot.places(file_id)
        if piece.first_page is not None
        and piece.last_page is not None
        and piece.first_page < end
        and piece.last_page >= first
    ]
    return (on[0].start, on[-1].stop) if on else "out_of_range"
