"""What is read for a question: ranked inside the visible files, then chosen."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.collections.access import check_fence, check_state
from harness_core.collections.efforts import Plan
from harness_core.collections.filters import Node
from harness_core.collections.store import FileSet, Passage, Ranked, Ranker, Snapshot

_K: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A passage with its ranking value: 1 for the best, falling with the rank, never 0."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a request may read: the filter, and who asks (None where access control is off)."""

    node: Node
    principals: Sequence[str] | None


def score_at(rank: int) -> float:
    """The ranking value of a rank from 1: it says nothing about files that were not ranked."""
    return round((_K + 1) / (_K + rank), 6)


def found(snapshot: Snapshot, ranker: Ranker, scope: Scope, query: str, limit: int) -> list[Found]:
    """The best passages for a search."""
    check_state(snapshot.counts())
    files = snapshot.visible(scope.node, scope.principals)
    if not files.ids:
        return []
    ranked = [one.chunk for one in ranker.rank(snapshot, files, query, limit)]
    return _passages(snapshot, ranked, scope)


def retrieved(
    snapshot: Snapshot, ranker: Ranker, scope: Scope, query: str, plan: Plan
) -> list[Found]:
    """The passages an answer is made from; all that is visible where that is little.

    Raises:
        CollectionEmptyError, CollectionNotReadyError: the collection cannot be asked.
        FenceError: the ranker left the visible files.
    """
    check_state(snapshot.counts())
    files = snapshot.visible(scope.node, scope.principals)
    if not files.ids:
        return []
    if not _is_little(files, plan):
        return _passages(snapshot, _spread(snapshot, ranker, files, query, plan), scope)
    ranked = [one.chunk for one in ranker.rank(snapshot, files, query, files.pieces)]
    return _passages(snapshot, list(dict.fromkeys(ranked + snapshot.pieces(files))), scope)


def _is_little(files: FileSet, plan: Plan) -> bool:
    return files.characters <= plan.whole_characters and files.pieces <= plan.whole_pieces


def _passages(snapshot: Snapshot, chunks: Sequence[int], scope: Scope) -> list[Found]:
    passages = snapshot.passages(chunks)
    check_fence(snapshot, passages, scope.node, scope.principals)
    return [
        Found(passage=passage, score=score_at(rank)) for rank, passage in enumerate(passages, 1)
    ]


def _spread(
    snapshot: Snapshot, ranker: Ranker, files: FileSet, query: str, plan: Plan
) -> list[int]:
    """The best pieces, but no more than a few of one file; a reranker is given all candidates."""
    most = plan.candidates if plan.reader == "rerank" else plan.used
    limit = plan.candidates
    while True:
        ranked = ranker.rank(snapshot, files, query, limit)
        kept = list(_capped(ranked, plan.per_file))[:most]
        if len(kept) == most or len(ranked) < limit:
            return kept
        limit *= 4


def _capped(ranked: Iterable[Ranked], per_file: int) -> Iterator[int]:
    taken: Counter[int] = Counter()
    for one in ranked:
        taken[one.file] += 1
        if taken[one.file] <= per_file:
            yield one.chunk
