"""Spans read back from the stored text, under the same rules as an answer."""

from collections.abc import Sequence

from harness_core.collections.access import may_read
from harness_core.collections.contract import AskedSpan, Span, SpanPart
from harness_core.collections.filters.nodes import Every
from harness_core.collections.store import Piece, Snapshot

_EVERYTHING = Every()


def read_back(
    snapshot: Snapshot, spans: Sequence[AskedSpan], principals: Sequence[str] | None
) -> list[SpanPart]:
    """A part per span; one that may not be read looks like one that is not there."""
    return [_part(snapshot, span, principals) for span in spans]


def visible_text(snapshot: Snapshot, file_id: str, principals: Sequence[str] | None) -> str | None:
    """The text of a file that may be read; None for one that is absent or may not."""
    allowed = may_read(snapshot.file(file_id), _EVERYTHING, principals)
    return snapshot.text(file_id) if allowed else None


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
