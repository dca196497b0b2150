"""What was found, as excerpts under labels that no file can know, and as sources of an answer."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Final
from unicodedata import category

from harness_core.collections.contract import AnswerRequest, PageRange, Source, Span
from harness_core.collections.markers import ref
from harness_core.collections.retrieval import Found
from harness_core.documents.types import Chunk, Chunks
from harness_core.models.tokenizers import count_tokens

_LABEL_CHARS: Final = 198  # and its two quotes


def labels_of(request: AnswerRequest, found: Sequence[Found], secret: bytes) -> dict[int, Found]:
    """Numbers for the excerpts that nobody who writes a file can know.

    They are the same for the same request over the same pieces, so that caches and replays hold.
    """
    asked = request.model_dump(mode="json", exclude={"sources", "principals", "query_image"})
    seen = [[f.passage.chunk, f.passage.file_id] for f in found]
    text = json.dumps([asked, seen], sort_keys=True).encode()
    drawn = int.from_bytes(hmac.new(secret, text, hashlib.sha256).digest()[:8], "big")
    base = (10**8 + drawn % (9 * 10**8)) * 1000
    return {base + place: one for place, one in enumerate(found, 1)}


def chunks_of(labels: Mapping[int, Found]) -> Chunks:
    """The excerpts as a reader reads them, best first."""
    return Chunks(
        chunks=tuple(
            Chunk(
                chunk_id=label,
                text=one.passage.text,
                tokens=count_tokens(one.passage.text),
                page=one.passage.piece.first_page,
                section=_heading(one),
            )
            for label, one in labels.items()
        ),
        method="collection",
        extra={"ranked": True},
    )


def span_of(one: Found) -> Span:
    """The place of a passage."""
    passage, piece = one.passage, one.passage.piece
    pages = None
    if piece.first_page is not None and piece.last_page is not None:
        pages = PageRange(start=piece.first_page, end=piece.last_page + 1)
    return Span(
        file_id=passage.file_id, unit="chars", start=piece.start, end=piece.stop, pages=pages
    )


def source_of(number: int, one: Found, grade: float | None, *, cited: bool) -> Source:
    """A passage as the source of that number; the model's grade, where there is one, ranks it."""
    return Source(
        ref=ref(number),
        span=span_of(one),
        path=one.passage.path,
        content_type=one.passage.content_type,
        score=one.score if grade is None else grade,
        cited=cited,
    )


def _heading(one: Found) -> str:
    """Path and section as a quoted label of at most 200 characters; files choose what is in it."""
    path, section = one.passage.path[:100], one.passage.piece.section
    said = f"{path} > {section}" if section else path
    plain = "".join(" " if category(c) in ("Cc", "Cf", "Cs") else c for c in said)
    return '"{}"'.format(plain[:_LABEL_CHARS].replace('"', "'"))
