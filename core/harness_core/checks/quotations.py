"""Whether a quotation is in its source, word for word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from harness_core.checks.negation import denied
from harness_core.checks.normalise import Normal
from harness_core.checks.passages import (
    Join,
    Passage,
    has_elision,
    joined,
    split_passages,
    whole_piece,
    without_bold,
)
from harness_core.checks.runs import run_share
from harness_core.checks.shadow import Status, compare_edits
from harness_core.checks.sources import Places, Source, source_of, unbroken

_MOST_GAPS = 2000
_LONGEST_GAP = 2000
_BARE_GAP = 20
_MOST_PASSAGES = 1000
_MOST_SCORED = 20
_BEST_OF_THE_FAILED = 0.999
_LONGEST_HYPHENATED = 5000
_WORDY = regex.compile(r"[\p{L}\p{N}\p{Sm}]")
_LABEL = regex.compile(r"\W{0,9}\((?:[a-z]|[ivx]{1,4})\) ?")
_HYPHEN_INSIDE = regex.compile(r"(?<=\p{L})-(?=\p{L})")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteCheck:
    """What was found out about one quotation.

    ``verified`` says whether it is in its source word for word; None when there is nothing to look
    for or nothing to look in. ``match`` is 1 for a verified one, otherwise the longest run of its
    words that the source holds, as a share, 0 to 1. The rest is the shadow matcher's, which
    measures edits and decides nothing: see ``harness_core.checks.shadow``.
    """

    verified: bool | None = None
    match: float | None = None
    status: Status = "unchecked"
    similarity: float | None = None
    coverage: float | None = None
    edits: int | None = None
    critical_ok: bool | None = None
    chunk_id: int | None = None
    kind: str | None = None
    span: str = ""


def verify_quotation(
    quotation: str, source: str | Source | None, *, whole: bool = False
) -> QuoteCheck:
    """Check ``quotation`` against ``source``.

    Case, quote marks, kinds of dash and space, bold marks and hard line wraps make no difference;
    list items and separate quotations may come from anywhere. An elision may leave words out, but
    no denial, and no end of a sentence unless it resumes at a beginning. With ``whole`` the
    quotation is one piece as it stands. A quotation that breaks off before a later "not" is still
    one that is in the source.
    """
    if source is None:
        return QuoteCheck()
    source = source if isinstance(source, Source) else source_of(source)
    pieces = _whole(quotation) if whole else _pieces(quotation)
    if not pieces or not source.normal.norm:
        return QuoteCheck()
    match = _whole_match(pieces[0], source) if whole else _match(quotation, source)
    shadow = compare_edits(pieces, source)
    return QuoteCheck(
        verified=match is None,
        match=1.0 if match is None else min(round(match, 3), _BEST_OF_THE_FAILED),
        status=shadow.status,
        similarity=shadow.similarity,
        coverage=shadow.coverage,
        edits=shadow.edits,
        critical_ok=shadow.critical_ok,
    )


def is_verbatim(quotation: str, source: str | Source | None) -> bool | None:
    """``verify_quotation(...).verified`` alone, without measuring what is not there."""
    if source is None:
        return None
    source = source if isinstance(source, Source) else source_of(source)
    if not _pieces(quotation) or not source.normal.norm:
        return None
    return _failed_readings(quotation, source) == []


def _whole(quotation: str) -> list[Normal]:
    piece = whole_piece(quotation, trim=False)
    return [] if piece is None else [piece]


def _pieces(quotation: str) -> list[Normal]:
    return [piece for passage in split_passages(quotation) for piece in passage.pieces]


def _whole_match(piece: Normal, source: Source) -> float | None:
    return None if Places(piece, source).any() else run_share([piece], source)


def _match(quotation: str, source: Source) -> float | None:
    """None for a quotation that is in the source, otherwise how much of it is."""
    failed = _failed_readings(quotation, source)
    scored = [reading for reading in failed if reading.source in (source, source.without_bold)]
    return max((reading.share() for reading in scored), default=None)


def _failed_readings(quotation: str, source: Source) -> list["_Reading"]:
    """The readings under which the quotation is not in the source; none when it is under one."""
    failed: list[_Reading] = []
    for text, view in _readings(quotation, source):
        reading = _Reading(text, view)
        if not reading.failures:
            return []
        failed.append(reading)
    return [] if any(reading.stands_without_hyphens() for reading in failed) else failed


def _readings(quotation: str, source: Source) -> Iterator[tuple[str, Source]]:
    """The quotation as written; without bold on both sides; with broken words closed on both."""
    yield quotation, source
    if "**" in quotation or source.without_bold is not source:
        quotation, source = without_bold(quotation), source.without_bold
        yield quotation, source
    closed = unbroken(quotation)
    if closed != quotation or source.unbroken is not source:
        yield closed, source.unbroken


class _Reading:
    """A quotation read in one way, beside its source read in the same way."""

    def __init__(self, quotation: str, source: Source) -> None:
        self.source = source
        self._norm, self._kept = source.normal
        self._places: dict[Normal, Places] = {}
        self._passages = split_passages(quotation)
        self.failures = [] if self._copied(quotation) else self._failures()

    def stands_without_hyphens(self) -> bool:
        """Whether the source has it when hyphens inside its words are left out.

        Only hyphens of the quotation: one that the source has is never left out.
        """
        if len(self._passages) != 1 or has_elision(self._passages[0].text):
            return False
        (piece,) = self._passages[0].pieces
        if len(piece.norm) > _LONGEST_HYPHENATED:
            return False
        parts = [re.escape(part) for part in _HYPHEN_INSIDE.split(piece.norm)]
        pattern = "-?".join(parts)
        return len(parts) > 1 and Places(piece, self.source, pattern=pattern).any()

    def share(self) -> float:
        """The share found of the weakest passage, 0 to 1."""
        return min(run_share(pieces, self.source) for pieces in self.failures[:_MOST_SCORED])

    def _copied(self, quotation: str) -> bool:
        """Whether the whole of it stands in the source in one run."""
        piece = whole_piece(quotation)
        return piece is not None and self._at(piece).any()

    def _failures(self) -> list[tuple[Normal, ...]]:
        """The passages that are not found, or else the pairs whose join does not hold."""
        if len(self._passages) > _MOST_PASSAGES:
            return [self._passages[0].pieces]
        self._passages = self._unwrapped()
        lost = [one.pieces for one in self._passages if not self._found(one.pieces)]
        return lost or [
            (*first.pieces, *second.pieces)
            for first, second in pairwise(self._passages)
            if not self._join_holds(first, second)
        ]

    def _at(self, piece: Normal) -> Places:
        if piece not in self._places:
            self._places[piece] = Places(piece, self.source)
        return self._places[piece]

    def _unwrapped(self) -> list[Passage]:
        """The passages, with lines that are one passage in the source joined."""
        groups: list[list[Passage]] = []
        for passage in self._passages:
            if (
                groups
                and passage.join is Join.WRAP
                and not self._sentence_between(groups[-1][-1], passage)
            ):
                groups[-1].append(passage)
            else:
                groups.append([passage])
        return [joined(group) for group in groups]

    def _sentence_between(self, first: Passage, second: Passage) -> bool:
        sentences = self.source.sentences
        return any(
            (stop := sentences.first_end(end, end + _BARE_GAP)) is not None
            and not _WORDY.search(self._kept, end, stop)
            for _, end in self._at(first.pieces[-1]).after(0)
        ) or any(sentences.begins(start) for start, _ in self._at(second.pieces[0]).after(0))

    def _found(self, pieces: Sequence[Normal]) -> bool:
        """Whether ``pieces`` stand in order with nothing left out between them that may not be."""
        places = [self._at(piece) for piece in pieces]
        paths = [places[0].after(0)]
        ends = [0]
        dead: set[tuple[int, int]] = set()
        gaps = 0
        while paths:
            depth = len(paths)
            start, end = next(paths[-1], (-1, -1))
            if start < 0:
                paths.pop()
                ends.pop()
                continue
            if depth > 1:
                gaps += 1
                if gaps > _MOST_GAPS:
                    return False
                if not self._may_leave_out(ends[-1], start):
                    continue
            if depth == len(places):
                return True
            if (depth, end) not in dead:
                dead.add((depth, end))
                paths.append(places[depth].after(end))
                ends.append(end)
        return False

    def _may_leave_out(self, start: int, stop: int) -> bool:
        if self._bare(start, stop):
            return True
        sentences = self.source.sentences
        over = sentences.first_end(start, stop)
        if over is not None and not sentences.begins(stop):
            return False
        # the rest of a sentence that is broken off may not deny it either
        until = stop if over is None else over
        return until - start <= _LONGEST_GAP and not denied(self._norm[start:until])

    def _join_holds(self, first: Passage, second: Passage) -> bool:
        """Whether two passages are a copy, or never two parts of one sentence taken together."""
        apart = True
        following = self._at(second.pieces[0])
        for _, end in self._at(first.pieces[-1]).after(0):
            start, _ = next(following.after(end), (-1, -1))
            if start < 0:
                break
            if self._bare(end, start) or _LABEL.fullmatch(self._norm, end, start):
                return True
            apart = apart and self._may_stand_apart(end, start, second.join)
        return apart

    def _may_stand_apart(self, start: int, stop: int, join: Join) -> bool:
        if self.source.sentences.first_end(start, stop) is not None:
            return True
        short = stop - start <= _LONGEST_GAP
        return join is Join.ELIDED and short and not denied(self._norm[start:stop])

    def _bare(self, start: int, stop: int) -> bool:
        return stop - start <= _BARE_GAP and not _WORDY.search(self._kept, start, stop)
