"""Cut at the strongest separator that is needed, down to characters."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import regex

from harness_core.documents.types import Chunks, Document
from harness_core.models import count_tokens
from harness_core.segmenting.chunks import packed_chunks
from harness_core.segmenting.cutting import split_characters
from harness_core.segmenting.packing import Packing
from harness_core.segmenting.spec import SegmentSpec

_SEPARATORS = ("\n\n\n", "\n\n", "\n", ". ", "; ", ", ", " ")
_LAST = (regex.compile(r"[.!?]\s+|[。！？]\s*"), regex.compile(r"\s+"))  # noqa: RUF001


def segment(document: Document, spec: SegmentSpec) -> Chunks:
    """Pieces of the text as it stands, packed.

    Without overlap chunks add up to the text, save for blank runs that are over the cap alone.
    """
    patterns = _patterns(spec.separators or _SEPARATORS)
    packing = Packing(
        cap=spec.max_tokens,
        overlap=spec.overlap_tokens,
        floor=spec.min_tokens,
        joiner="",
        split=lambda text, cap: list(_cut(text, cap, patterns, lambda part: _fits(part, cap))),
    )
    # what is far over the cap is cut without being counted; the rest when it is packed
    far = 8 * spec.max_tokens
    found = _cut(document.text, spec.max_tokens, patterns, lambda part: len(part) <= far)
    return packed_chunks(packing.pack(list(found)), "recursive", spec)


def pieces(text: str, cap: int, separators: Iterable[str] = _SEPARATORS) -> list[str]:
    """``text`` cut after separators until each piece has at most ``cap`` tokens.

    The pieces add up to the text. Each is cut at the first separator it holds, then at ends of
    sentences, at white space and last between characters.
    """
    return list(_cut(text, cap, _patterns(separators), lambda part: _fits(part, cap)))


def _patterns(separators: Iterable[str]) -> tuple[regex.Pattern[str], ...]:
    return (*(regex.compile(regex.escape(one)) for one in separators), *_LAST)


def _fits(text: str, cap: int) -> bool:
    return count_tokens(text) <= cap


def _cut(
    text: str, cap: int, patterns: Sequence[regex.Pattern[str]], whole: Callable[[str], bool]
) -> Iterator[str]:
    if whole(text):
        yield text
        return
    for place, pattern in enumerate(patterns):
        parts = _glued(text, pattern)
        if len(parts) > 1:
            for part in parts:
                yield from _cut(part, cap, patterns[place + 1 :], whole)
            return
    yield from split_characters(text, cap)


def _glued(text: str, pattern: regex.Pattern[str]) -> list[str]:
    """``text`` cut after each match; what is blank stays with its neighbour."""
    cuts, before, visible = [0], 0, False
    for end in (*(match.end() for match in pattern.finditer(text)), len(text)):
        if text[before:end].strip():
            if visible:
                cuts.append(before)
            visible = True
        before = end
    return [text[start:end] for start, end in pairwise((*cuts, len(text)))]
