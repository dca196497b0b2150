"""A text that is quoted from, prepared once for any number of quotations."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice

import regex

from harness_core.checks.boundaries import Edges
from harness_core.checks.folding import Folded
from harness_core.checks.normalise import UNSPACED, Normal, normalised
from harness_core.checks.passages import without_bold
from harness_core.checks.sentences import Sentences
from harness_core.checks.units import same_measures

_BROKEN_WORD = regex.compile(
    r"(?<=[\p{L}\p{N}][-\u2010\u2011\u2013])[^\S\n]*\n[^\S\n]*(?=[\p{L}\p{N}])"
)
_BROKEN_LINE = regex.compile(rf"(?<=[{UNSPACED}])[^\S\n]*\n[^\S\n]*(?=[{UNSPACED}])")
JUNCTION = 3
"""Characters on either side of a space that make a junction."""
_MOST_PLACES = 100_000


class Source:
    """A text that is quoted from. What is derived from it is made when first needed and kept."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def normal(self) -> Normal:
        """The text as it is compared."""
        return normalised(self.text)

    @cached_property
    def edges(self) -> Edges:
        """Where its words and numbers begin and end."""
        return Edges(self.normal)

    @cached_property
    def sentences(self) -> Sentences:
        """Where its sentences end."""
        return Sentences(self.normal.norm)

    @cached_property
    def junctions(self) -> frozenset[str]:
        """What stands around its spaces, for ruling out quickly that one word follows another."""
        norm, reach = self.normal.norm, JUNCTION
        spaces = (found.start() for found in re.finditer(" ", norm))
        return frozenset(norm[at - reach : at + 1 + reach] for at in spaces if at >= reach)

    @cached_property
    def folded(self) -> Folded:
        """The text as the shadow matcher compares it."""
        return Folded(self.text)

    @cached_property
    def without_bold(self) -> "Source":
        """The text with paired double asterisks removed."""
        return self._other(without_bold(self.text))

    @cached_property
    def unbroken(self) -> "Source":
        """The text with words closed up that a line break opened."""
        return self._other(unbroken(self.text))

    def _other(self, text: str) -> "Source":
        return self if text == self.text else Source(text)


@lru_cache(maxsize=16)
def source_of(text: str) -> Source:
    """The prepared form of ``text``; the last few are remembered."""
    return Source(text)


def unbroken(text: str) -> str:
    """``text`` without line breaks after a hyphen within a word, or between unspaced letters."""
    return _BROKEN_LINE.sub("", _BROKEN_WORD.sub("", text)) if "\n" in text else text


class Places:
    """Where a piece stands in a source as whole words, found as far as they are asked for."""

    def __init__(
        self,
        piece: Normal,
        source: Source,
        *,
        pattern: str | None = None,
        most: int = _MOST_PLACES,
        since: int = 0,
    ) -> None:
        norm = source.normal.norm
        spans = _literal(piece.norm, norm, since) if pattern is None else _like(pattern, norm)
        self._found: list[tuple[int, int]] = []
        self._spans = _proper(islice(spans, most), piece, source)

    def after(self, at: int) -> Iterator[tuple[int, int]]:
        """The places that begin at ``at`` or later, first to last, as (start, end)."""
        index = bisect_left(self._found, (at, 0))
        while index < len(self._found) or self._more():
            if self._found[index][0] >= at:
                yield self._found[index]
            index += 1

    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._found) or self._more()

    def _more(self) -> bool:
        span = next(self._spans, None)
        if span is not None:
            self._found.append(span)
        return span is not None


def _proper(
    spans: Iterable[tuple[int, int]], piece: Normal, source: Source
) -> Iterator[tuple[int, int]]:
    edges, kept = source.edges, source.normal.kept
    for start, end in spans:
        proper = edges.may_begin(start) and edges.may_end(end)
        if proper and same_measures(piece.kept, kept[start:end]):
            yield start, end


def _literal(piece: str, norm: str, since: int) -> Iterator[tuple[int, int]]:
    at = norm.find(piece, since)
    while at >= 0:
        yield at, at + len(piece)
        at = norm.find(piece, at + 1)


def _like(pattern: str, norm: str) -> Iterator[tuple[int, int]]:
    compiled = re.compile(pattern)
    found = compiled.search(norm)
    while found:
        yield found.span()
        found = compiled.search(norm, found.start() + 1)
