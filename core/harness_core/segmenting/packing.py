"""Packing units (paragraphs, sentences, statements) into chunks under a token cap.

A chunk takes units as long as its text, measured as it is joined, stays within the cap. What was
just measured says where to look next, so most text is counted once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from harness_core.models import count_tokens
from harness_core.segmenting.cutting import Fit, hard_split, longest, tail
from harness_core.segmenting.units import NOWHERE, Origin, agreed, merged


class Packed(NamedTuple):
    """A chunk: its text and tokens, the units it was packed from, and what it carries.

    ``first`` and ``last`` are places in the units as given, without what is carried: the text
    before ``own`` is the end of the chunk before.
    """

    text: str
    tokens: int
    origin: Origin
    first: int
    last: int
    own: int = 0


class _Unit(NamedTuple):
    text: str
    origin: Origin
    number: int
    total: int  # characters of this unit and all that come after it, joiners included


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How to pack: sizes in tokens, what joins units, how one over the cap is split."""

    cap: int
    overlap: int = 0
    floor: int = 0
    joiner: str = "\n\n"
    split: Callable[[str, int], Sequence[str]] = hard_split

    def pack(self, texts: Sequence[str], origins: Sequence[Origin] = ()) -> list[Packed]:
        """The chunks, in order, each within ``cap`` (at least 16) as measured.

        A unit over the cap is split. With ``overlap`` each chunk begins with the end of the one
        before, as far as both fit; a chunk under ``floor`` joins the one before where that fits.
        """
        packed = _Packer(self, texts, origins).chunks()
        return list(self._without_runts(packed)) if self.floor > 0 else list(packed)

    def _without_runts(self, packed: Iterable[Packed]) -> Iterator[Packed]:
        before: Packed | None = None
        for chunk in packed:
            whole = None
            if before is not None and chunk.tokens < min(self.floor, self.cap):
                whole = self._merged(before, chunk)
            if before is not None and whole is None:
                yield before
            before = whole or chunk
        if before is not None:
            yield before

    def _merged(self, before: Packed, runt: Packed) -> Packed | None:
        text = before.text + self.joiner + runt.text[runt.own :]
        tokens = count_tokens(text)
        if tokens > max(self.cap, 16):
            return None
        origin = merged(before.origin, runt.origin)
        return before._replace(text=text, tokens=tokens, origin=origin, last=runt.last)


class _Packer:
    """One packing under way: the units to come are a stack, the next one on top."""

    def __init__(self, how: Packing, texts: Sequence[str], origins: Sequence[Origin]) -> None:
        self.cap = max(how.cap, 16)
        self.overlap = min(max(how.overlap, 0), self.cap - 1)
        self.joiner, self.split = how.joiner, how.split
        self.coming: list[_Unit] = []
        self.packed: list[_Unit] = []
        self.chars = 0  # what fitted last time
        for number in range(len(texts) - 1, -1, -1):
            self._push(texts[number], origins[number] if origins else NOWHERE, number)

    def chunks(self) -> Iterator[Packed]:
        before = ""
        while self.coming:
            carried, fit = self._fit(before)
            if not fit.units and self._split_next():
                continue
            chunk = self._take(carried, max(fit.units, 1), fit.tokens)
            before, self.chars = chunk.text, fit.chars
            yield chunk

    def _push(self, text: str, origin: Origin, number: int) -> None:
        if text.strip():
            total = self.coming[-1].total if self.coming else 0
            self.coming.append(_Unit(text, origin, number, total + len(text) + len(self.joiner)))

    def _joined(self, carried: str, count: int) -> str:
        texts = [unit.text for unit in self.coming[: -count - 1 : -1]]
        return self.joiner.join([carried, *texts] if carried else texts)

    def _measure(self, carried: str, count: int) -> int:
        return count_tokens(self._joined(carried, count))

    def _length(self, carried: str, count: int) -> int:
        rest = self.coming[-count - 1].total if count < len(self.coming) else 0
        return len(carried) + self.coming[-1].total - rest

    def _fit(self, before: str) -> tuple[str, Fit]:
        """What is carried from the chunk before, and how many units fit behind it."""
        want = self.overlap if before else 0
        while True:
            carried = tail(before, want)
            carried = carried if carried.strip() else ""
            fit = longest(
                partial(self._measure, carried),
                partial(self._length, carried),
                len(self.coming),
                self.cap,
                chars=self.chars,
                exact=False,
            )
            if fit.units or not carried:
                return carried, fit
            want -= self._measure(carried, 1) - self.cap

    def _split_next(self) -> bool:
        """Put the pieces of the next unit in its place; False when it cannot be split."""
        unit = self.coming.pop()
        pieces = self.split(unit.text, self.cap)
        for piece in reversed(pieces):
            self._push(piece, unit.origin, unit.number)
        return len(pieces) > 1

    def _take(self, carried: str, count: int, tokens: int) -> Packed:
        text = self._joined(carried, count)
        reach = _reach(self.packed, carried)
        first = len(self.packed)
        self.packed += reversed(self.coming[-count:])
        del self.coming[-count:]
        own = self.packed[first:]
        return Packed(
            text=text,
            tokens=tokens or count_tokens(text),
            origin=agreed([unit.origin for unit in self.packed[reach:]]),
            first=own[0].number,
            last=own[-1].number,
            own=len(carried) + len(self.joiner) if carried else 0,
        )


def _reach(packed: Sequence[_Unit], carried: str) -> int:
    """The earliest unit that the carried text reaches into, found by counting words back."""
    place, words = len(packed), len(carried.split())
    while words > 0 and place > 0:
        place -= 1
        words -= len(packed[place].text.split())
    return place
