"""Windows of as many words as fit, wherever they end: a control condition."""

from collections.abc import Iterator

from harness_core.documents.types import Chunks, Document
from harness_core.segmenting.chunks import new_chunks
from harness_core.segmenting.cutting import longest_slice, tail_words, word_spans
from harness_core.segmenting.spec import SegmentSpec


def segment(document: Document, spec: SegmentSpec) -> Chunks:
    """Windows over the whole text; ``min_tokens`` has no meaning here."""
    windows = _windows(document.text, spec.max_tokens, spec.overlap_tokens)
    return new_chunks(list(windows), "fixed", spec)


def _windows(text: str, cap: int, overlap: int) -> Iterator[str]:
    spans = word_spans(text)
    first, chars, done = 0, 0, 0
    while first < len(spans.starts):
        fit = longest_slice(text, spans, first, cap, chars=chars)
        end, chars = first + max(fit.units, 1), fit.chars
        window = text[spans.starts[first] : spans.ends[end - 1]]
        if end > done:  # else all of it is in the window before
            yield window
        if end == len(spans.starts):
            return
        shared = tail_words(window, overlap - 1)
        first, done = max(end - shared, first + 1), max(end, done)
