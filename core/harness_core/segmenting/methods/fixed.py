"""Windows of as many words as fit, wherever they end: a control condition."""

from collections.abc import Iterator

from harness_core.documents.types import Chunks, Document
from harness_core.models import count_tokens
from harness_core.segmenting.chunks import new_chunks
from harness_core.segmenting.cutting import longest, word_spans
from harness_core.segmenting.spec import SegmentSpec


def segment(document: Document, spec: SegmentSpec) -> Chunks:
    """Windows over the whole text; ``min_tokens`` has no meaning here."""
    windows = _windows(document.text, spec.max_tokens, spec.overlap_tokens)
    return new_chunks(list(windows), "fixed", spec)


def _windows(text: str, cap: int, overlap: int) -> Iterator[str]:
    starts, ends = word_spans(text)
    first, guess = 0, cap
    while first < len(starts):

        def window(size: int, first: int = first) -> int:
            return count_tokens(text[starts[first] : ends[first + size - 1]])

        guess = longest(window, len(starts) - first, cap, guess=guess) or 1
        end = first + guess
        yield text[starts[first] : ends[end - 1]]
        if end == len(starts):
            return

        def shared(size: int, end: int = end) -> int:
            return count_tokens(text[starts[end - size] : ends[end - 1]])

        kept = longest(shared, guess - 1, overlap - 1, guess=overlap) if guess > 1 else 0
        first = end - kept
