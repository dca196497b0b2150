"""What is read for a question: ranked inside the visible files, fused, then chosen."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness_core.collections.access import check_fence, check_state
from harness_core.collections.efforts import Plan
from harness_core.collections.filters import Node
from harness_core.collections.searching import Search
from harness_core.collections.store import FileSet, Passage, Piece, Ranked, Ranker, Snapshot
from harness_core.models.tokenizers import count_tokens
from harness_core.ranking.selection import select

_K: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A passage with its ranking value: 1 for the best of every ranking, falling, never 0."""

    passage: Passage
    score: float

    @property
    def place(self) -> tuple[str, int, str]:
        """What equal scores are ordered by."""
        return self.passage.path, self.passage.piece.start, self.passage.file_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a request may read: the filter, and who asks (None where access control is off)."""

    node: Node
    principals: Sequence[str] | None


def found(
    snapshot: Snapshot, ranker: Ranker, scope: Scope, search: Search, limit: int
) -> list[Found]:
    """The best passages for a search."""
    files = _readable(snapshot, scope)
    best = list(_fused(_rankings(snapshot, ranker, files, search, limit)).items())[:limit]
    return _fenced(snapshot, _read(snapshot, dict(best)), scope)


def retrieved(
    snapshot: Snapshot, ranker: Ranker, scope: Scope, search: Search, plan: Plan
) -> list[Found]:
    """The passages an answer is made from; all that is visible where that is little.

    Raises:
        CollectionEmptyError, CollectionNotReadyError: the collection cannot be asked.
        FenceError: the ranker left the visible files.
    """
    files = _readable(snapshot, scope)
    if _is_little(files, plan):
        rankings = _rankings(snapshot, ranker, files, search, files.pieces)
        chosen = _read(snapshot, _fused(rankings, snapshot.pieces(files)))
    else:
        chosen = _chosen(snapshot, ranker, files, search, plan)
    return _fenced(snapshot, list(_within(plan.input_tokens, chosen)), scope)


def _readable(snapshot: Snapshot, scope: Scope) -> FileSet:
    check_state(snapshot.counts())
    return snapshot.visible(scope.node, scope.principals)


def _is_little(files: FileSet, plan: Plan) -> bool:
    return files.characters <= plan.whole_characters and files.pieces <= plan.whole_pieces


def _fenced(snapshot: Snapshot, chosen: list[Found], scope: Scope) -> list[Found]:
    check_fence(snapshot, [one.passage for one in chosen], scope.node, scope.principals)
    return chosen


# --- ranking --------------------------------------------------------------------------------------


def _rankings(
    snapshot: Snapshot, ranker: Ranker, files: FileSet, search: Search, limit: int
) -> list[list[Ranked]]:
    """For each line, the best pieces by its words, and by its vector where it has one."""
    if not files.ids:
        return []
    ranked = []
    for line, vector in search.each():
        ranked.append(ranker.rank(snapshot, files, line, limit))
        if vector is not None:
            ranked.append(snapshot.nearest(files, vector, limit))
    return ranked


def _fused(rankings: Sequence[Sequence[Ranked]], every: Sequence[int] = ()) -> dict[int, float]:
    """Reciprocal ranks by piece, added up over the rankings, best first.

    They tell nothing of what was not ranked. Each ranking goes on with the pieces of ``every``
    that it left out.
    """
    totals: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        whole = dict.fromkeys((*(one.chunk for one in ranking), *every))
        for rank, chunk in enumerate(whole, 1):
            totals[chunk] += (_K + 1) / (_K + rank)
    scores = {chunk: round(total / len(rankings), 6) for chunk, total in totals.items()}
    return dict(sorted(scores.items(), key=lambda one: -one[1]))


def _read(snapshot: Snapshot, scores: Mapping[int, float]) -> list[Found]:
    """The pieces with their texts: read late, for each costs its way through a file's text."""
    each = [Found(passage=p, score=scores[p.chunk]) for p in snapshot.passages(list(scores))]
    return sorted(each, key=lambda one: (-one.score, *one.place))


# --- choosing -------------------------------------------------------------------------------------


def _chosen(
    snapshot: Snapshot, ranker: Ranker, files: FileSet, search: Search, plan: Plan
) -> list[Found]:
    """The best pieces, unlike each other, no more than a few of one file, with their neighbours."""
    limit = most = max(plan.candidates, plan.taken)
    enough = min(plan.taken, plan.per_file * len(files.ids))
    while True:
        rankings = _rankings(snapshot, ranker, files, search, limit)
        kept = _capped(rankings, plan.per_file)
        if len(kept) >= enough or all(len(one) < limit for one in rankings):
            break
        limit *= 4
    ranked = _read(snapshot, dict(list(kept.items())[:most]))
    return _with_neighbours(snapshot, _unlike(snapshot, ranked, search, plan), plan)


def _capped(rankings: Sequence[Sequence[Ranked]], per_file: int) -> dict[int, float]:
    """The pieces by score, best first, no more than so many of one file."""
    file_of = {one.chunk: one.file for ranking in rankings for one in ranking}
    taken: Counter[int] = Counter()
    kept = {}
    for chunk, score in _fused(rankings).items():
        taken[file_of[chunk]] += 1
        if taken[file_of[chunk]] <= per_file:
            kept[chunk] = score
    return kept


def _unlike(snapshot: Snapshot, ranked: list[Found], search: Search, plan: Plan) -> list[Found]:
    """The first ones, or where all have vectors those that repeat each other least."""
    import numpy as np

    rows = {}
    if search.vectors is not None and len(ranked) > plan.taken:
        chunks = [one.passage.chunk for one in ranked]
        rows = snapshot.vectors(chunks, search.vectors.model)
    if not rows or len(rows) < len(ranked):
        return ranked[: plan.taken]
    matrix = np.stack([rows[one.passage.chunk] for one in ranked])
    picked = select([one.score for one in ranked], matrix, plan.taken, plan.mmr)
    return [ranked[number] for number in sorted(picked)]


def _with_neighbours(snapshot: Snapshot, chosen: list[Found], plan: Plan) -> list[Found]:
    """Each passage with the pieces beside it, as far as its file may still give some."""
    if not plan.neighbours:
        return chosen
    by_file: dict[str, list[Found]] = defaultdict(list)
    for one in chosen:
        by_file[one.passage.file_id].append(one)
    joined = [one for ones in by_file.values() for one in _joined(snapshot, ones, plan)]
    return sorted(joined, key=lambda one: (-one.score, *one.place))


def _joined(snapshot: Snapshot, ones: Sequence[Found], plan: Plan) -> Iterator[Found]:
    """The passages of one file, best first; pieces that meet are one passage."""
    file_id = ones[0].passage.file_id
    pieces, text = snapshot.places(file_id), snapshot.text(file_id) or ""
    number = {piece.start: n for n, piece in enumerate(pieces)}
    taken = {number[one.passage.piece.start]: one for one in ones}
    for middle, one in list(taken.items()):
        beside = (
            n for step in range(1, plan.neighbours + 1) for n in (middle - step, middle + step)
        )
        for n in beside:
            if 0 <= n < len(pieces) and len(taken) < plan.per_file:
                taken.setdefault(n, one)
    for run in _runs(sorted(taken)):
        best = max((taken[n] for n in run), key=lambda one: one.score)
        piece = _over([pieces[n] for n in run], best.passage.piece)
        whole = replace(best.passage, piece=piece, text=text[piece.start : piece.stop])
        yield Found(passage=whole, score=best.score)


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _over(pieces: Sequence[Piece], best: Piece) -> Piece:
    """One piece over several in a row; the pages are those of all, the section is the best's."""
    first = [one.first_page for one in pieces if one.first_page is not None]
    last = [one.last_page for one in pieces if one.last_page is not None]
    return Piece(
        start=pieces[0].start, stop=pieces[-1].stop, first_page=min(first, default=None),
        last_page=max(last, default=None), section=best.section,
    )  # fmt: skip


def _within(tokens: int, ranked: Iterable[Found]) -> Iterator[Found]:
    """The best that fit the input, and at least one."""
    left = tokens
    for number, one in enumerate(ranked):
        left -= count_tokens(one.passage.text)
        if left < 0 and number:
            return
        yield one
