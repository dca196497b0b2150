"""The shadow matcher: how many edits a quotation is away from its source. Recorded, never decisive.

Its rules are this project's own. It forgives what extraction does to text (ligatures, hyphens at
line breaks, letters that OCR confuses) and nothing in numbers, units and negations.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from harness_core.checks.alignment import Edit, Stretch, TooLongError, closest, edits_between
from harness_core.checks.critical import critical_tokens
from harness_core.checks.folding import Folded
from harness_core.checks.normalise import UNSPACED, Normal
from harness_core.checks.sources import Source

Status = Literal["exact", "near", "altered", "absent", "unchecked"]
"""``exact``: no edit; ``near``: few, none of them critical; ``altered``: some in what is critical,
or too many; ``absent``: nothing like it is there; ``unchecked``: nothing to compare, or too much.
"""

_ORDER: tuple[Status, ...] = ("exact", "near", "altered", "absent", "unchecked")
_NEAR, _COVERED, _LIKE, _SHORT = 0.90, 0.85, 0.75, 12
_MOST_COPIES = 50
_LONGEST_TOKEN = 40
_TOKEN = regex.compile(rf"[{UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]+", regex.VERSION1)
_ATTACHED = regex.compile(
    rf"[[\p{{L}}\p{{M}}\p{{N}}\p{{Sc}}.,:/'^%‰°<>=≤≥±+\-]--[{UNSPACED}]]*", regex.VERSION1
)
_ATTACHED_BEFORE = regex.compile(rf"(?r){_ATTACHED.pattern}", regex.VERSION1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How close a quotation is to its source.

    ``similarity`` is one less the edits per character, ``coverage`` the share of its words that
    the source has in their places, both 0 to 1; ``edits`` counts edits, 0 only where nothing
    differs; ``critical_ok`` says that numbers, units and negations are the same. All are None for
    ``unchecked``.
    """

    status: Status = "unchecked"
    similarity: float | None = None
    coverage: float | None = None
    edits: int | None = None
    critical_ok: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aligned:
    """One piece beside the stretch of the source that is closest to it."""

    length: int
    cost: float
    coverage: float
    critical_ok: bool

    @property
    def similarity(self) -> float:
        return min(1.0, max(0.0, 1 - self.cost / self.length))

    @property
    def status(self) -> Status:
        if self.similarity < _LIKE:
            return "absent"
        if not self.critical_ok:
            return "altered"
        if self.cost == 0:
            return "exact"
        close = self.similarity >= _NEAR and self.coverage >= _COVERED and self.length >= _SHORT
        return "near" if close else "altered"


def compare_edits(pieces: Sequence[Normal], source: Source) -> Comparison:
    """How many edits the pieces of a quotation are away from ``source``, each by itself.

    Similarity and coverage are means by length, the status is the worst. What lies between the
    pieces, left out by an elision, is not looked at.
    """
    try:
        aligned = [_aligned(Folded(piece.kept), source.folded) for piece in pieces]
    except TooLongError:
        return Comparison()
    length = sum(one.length for one in aligned)
    if not length:
        return Comparison()
    return Comparison(
        status=max((one.status for one in aligned), key=_ORDER.index),
        similarity=round(sum(one.similarity * one.length for one in aligned) / length, 3),
        coverage=round(sum(one.coverage * one.length for one in aligned) / length, 3),
        edits=math.ceil(sum(one.cost for one in aligned)),
        critical_ok=all(one.critical_ok for one in aligned),
    )


def _aligned(piece: Folded, text: Folded) -> _Aligned:
    copied: _Aligned | None = None
    for stretch in _copies(piece.norm, text.norm):
        copied = _beside(piece, text, stretch, [])
        if copied.critical_ok:
            return copied
    if copied is not None:
        return copied
    near = closest(piece.norm, text.norm)
    if near is None:
        nothing = not critical_tokens(piece.cased)
        length = len(piece.norm)
        return _Aligned(
            length=length,
            cost=float(length),
            coverage=0.0,
            critical_ok=nothing,
        )
    return _beside(piece, text, near, edits_between(piece, text, near))


def _copies(piece: str, text: str) -> Iterator[Stretch]:
    at = text.find(piece)
    for _ in range(_MOST_COPIES):
        if at < 0:
            return
        yield Stretch(start=at, stop=at + len(piece))
        at = text.find(piece, at + 1)


def _beside(piece: Folded, text: Folded, stretch: Stretch, edits: list[Edit]) -> _Aligned:
    """Words cut off at the edges of the stretch count as they stand in the source."""
    before, after = _attached(text.norm, stretch)
    start, stop = stretch.start - len(before), stretch.stop + len(after)
    end = len(piece.norm)
    cut = [
        Edit(start=0, stop=0, instead=before, cost=len(before)),
        Edit(start=end, stop=end, instead=after.rstrip(".,:"), cost=len(after.rstrip(".,:"))),
    ]
    there = text.cased[start:stop]
    return _Aligned(
        length=end,
        cost=sum(edit.cost for edit in edits),
        coverage=_coverage(piece.norm, [*edits, *cut]),
        critical_ok=piece.cased == there or critical_tokens(piece.cased) == critical_tokens(there),
    )


def _attached(text: str, stretch: Stretch) -> tuple[str, str]:
    """What belongs to the words at the edges of ``stretch`` and lies outside it."""
    start, stop = stretch.start, stretch.stop
    if start >= stop:
        return "", ""
    before = _ATTACHED_BEFORE.match(text, max(0, start - _LONGEST_TOKEN), start)
    after = _ATTACHED.match(text, stop, stop + _LONGEST_TOKEN)
    return (
        "" if before is None or text[start].isspace() else before[0],
        "" if after is None or text[stop - 1].isspace() else after[0],
    )


def _coverage(piece: str, edits: list[Edit]) -> float:
    """The share of the words of ``piece`` that no edit has changed."""
    costly = [edit for edit in edits if edit.cost >= 1]
    if not costly:
        return 1.0
    tokens = [found.span() for found in _TOKEN.finditer(piece)]
    changed = sum(any(_touches(edit, *token) for edit in costly) for token in tokens)
    return 1 - changed / len(tokens) if tokens else 0.0


def _touches(edit: Edit, start: int, stop: int) -> bool:
    if edit.start < edit.stop:
        return edit.start < stop and edit.stop > start
    inside = start < edit.start < stop
    return (
        inside
        or (edit.start == start and edit.instead[-1:].isalnum())
        or (edit.start == stop and edit.instead[:1].isalnum())
    )
