"""Packing units (paragraphs, sentences, statements) into chunks under a token cap.

Each unit is counted once, and while the counts add up to no more than the cap the units fit. The
joined text is measured near the cap, where the parts may say too much or too little.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness_core.models import count_many, count_tokens
from harness_core.segmenting.cutting import hard_split, longest, tail
from harness_core.segmenting.units import NOWHERE, Origin, agreed


class Packed(NamedTuple):
    """A chunk: its text and tokens, the units it was packed from, and what it carries.

    ``first`` and ``last`` are places in the units as given; the text before ``own`` is the end of
    the chunk before, and ``last`` is the last unit of its own.
    """

    text: str
    tokens: int
    origin: Origin
    first: int
    last: int
    own: int = 0


class _Unit(NamedTuple):
    text: str
    tokens: int
    origin: Origin
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How to pack: sizes in tokens, and what joins units in a chunk."""

    cap: int
    overlap: int = 0
    floor: int = 0
    joiner: str = "\n\n"

    def pack(self, texts: Sequence[str], origins: Sequence[Origin] = ()) -> list[Packed]:
        """The chunks, in order, each within ``cap`` (at least 16) as measured.

        A unit over the cap is split. With ``overlap`` each chunk begins with the end of the one
        before, as far as both fit; a chunk under ``floor`` joins the one before where that fits.
        """
        sized = Packing(
            cap=max(self.cap, 16),
            overlap=min(max(self.overlap, 0), max(self.cap, 16) - 1),
            floor=min(max(self.floor, 0), max(self.cap, 16)),
            joiner=self.joiner,
        )
        units = list(_units(texts, origins, sized.cap))
        packed = list(sized._filled(units))
        return list(sized._without_runts(packed)) if sized.floor else packed

    def _filled(self, units: Sequence[_Unit]) -> Iterator[Packed]:
        start, carried = 0, ""
        while start < len(units):
            chunk, end = self._fill(units, start, carried)
            yield chunk
            carried = ""
            if self.overlap and end < len(units):
                carried = self._carry(chunk.text, units[end])
            start = end

    def _fill(self, units: Sequence[_Unit], start: int, carried: str) -> tuple[Packed, int]:
        head = carried + self.joiner if carried else ""

        def joined(count: int) -> str:
            return head + self.joiner.join([unit.text for unit in units[start : start + count]])

        def measure(count: int) -> int:
            return count_tokens(joined(count)) if head or count > 1 else units[start].tokens

        count = self._room(units, start, count_tokens(carried))
        tokens = measure(count)
        while (added := self._more(units, start + count, tokens)) > 0:
            count += added
            tokens = measure(count)
        if tokens > self.cap and count > 1:  # this tokenizer counts what joins them
            count = longest(measure, count, self.cap, guess=count) or 1
            tokens = measure(count)
        end, reach = start + count, _reach(units, start, carried)
        origin = agreed([unit.origin for unit in units[reach:end]])
        numbers = units[start].number, units[end - 1].number
        return Packed(joined(count), tokens, origin, *numbers, len(head)), end

    def _more(self, units: Sequence[_Unit], place: int, total: int) -> int:
        """How many units a measured chunk still takes; none once it is nearly full."""
        if place == len(units) or total + max(units[place].tokens, self.cap // 8) > self.cap:
            return 0
        return self._room(units, place, total)

    def _room(self, units: Sequence[_Unit], start: int, total: int) -> int:
        """How many units from ``start`` on add up to no more than the cap, at least one."""
        for place in range(start, len(units)):
            total += units[place].tokens
            if total > self.cap and place > start:
                return place - start
        return len(units) - start

    def _carry(self, text: str, following: _Unit) -> str:
        """The end of ``text`` that fits in front of the next unit."""
        want = min(self.overlap, self.cap - following.tokens)
        while want > 0:
            carried = tail(text, want)
            excess = count_tokens(carried + self.joiner + following.text) - self.cap
            if not carried.strip() or excess <= 0:
                return carried.strip() and carried
            want -= excess
        return ""

    def _without_runts(self, packed: Iterable[Packed]) -> Iterator[Packed]:
        before: Packed | None = None
        for chunk in packed:
            merged = None
            if before is not None and chunk.tokens < self.floor:
                merged = self._merged(before, chunk)
            if before is not None and merged is None:
                yield before
            before = merged or chunk
        if before is not None:
            yield before

    def _merged(self, before: Packed, runt: Packed) -> Packed | None:
        text = before.text + self.joiner + runt.text[runt.own :]
        tokens = count_tokens(text)
        if tokens > self.cap:
            return None
        same = (a if a == b else None for a, b in zip(before.origin, runt.origin, strict=True))
        return before._replace(text=text, tokens=tokens, origin=Origin(*same), last=runt.last)


def _units(texts: Sequence[str], origins: Sequence[Origin], cap: int) -> Iterator[_Unit]:
    for number, (text, tokens) in enumerate(zip(texts, count_many(texts), strict=True)):
        if not text.strip():
            continue
        origin = origins[number] if origins else NOWHERE
        if tokens <= cap:
            yield _Unit(text, tokens, origin, number)
            continue
        pieces = hard_split(text, cap)
        for piece, size in zip(pieces, count_many(pieces), strict=True):
            if piece.strip():
                yield _Unit(piece, size, origin, number)


def _reach(units: Sequence[_Unit], start: int, carried: str) -> int:
    """The earliest unit that the carried text reaches into, found by counting words back."""
    words = len(carried.split())
    while words > 0 and start > 0:
        start -= 1
        words -= len(units[start].text.split())
    return start
