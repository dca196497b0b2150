"""What is read for a question: ranked inside the visible files, then chosen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.collections.access import check_fence, check_state
from harness_core.collections.efforts import Plan
from harness_core.collections.filters import Node
from harness_core.collections.store import FileSet, Passage, Ranker, Snapshot

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


def found(
    snapshot: Snapshot, ranker: Ranker, scope: Scope, query: str, limit: int
) -> list[Found]:
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
    whole = _is_little(files, plan)
    ranked = ranker.rank(snapshot, files, query, files.pieces if whole else plan.candidates)
    chunks = list(dict.fromkeys(one.chunk for one in ranked))
    if whole:
        chunks += [chunk for chunk in snapshot.pieces(files) if chunk not in set(chunks)]
        return _passages(snapshot, chunks, scope)
    return _capped(_passages(snapshot, chunks, scope), plan)


def _is_little(files: FileSet, plan: Plan) -> bool:
    return files.characters <= plan.whole_characters and files.pieces <= plan.whole_pieces


def _passages(snapshot: Snapshot, chunks: Sequence[int], scope: Scope) -> list[Found]:
    passages = snapshot.passages(chunks)
    check_fence(snapshot, passages, scope.node, scope.principals)
    return [
        Found(passage=passage, score=score_at(rank)) for rank, passage in enumerate(passages, 1)
    ]


def _capped(ranked: Iterable[Found], plan: Plan) -> list[Found]:
    """The best, but no more than a few of one file; a reranker is given all its candidates."""
    most = plan.candidates if plan.reader == "rerank" else plan.used
    taken: Counter[str] = Counter()
    kept: list[Found] = []
    for one in ranked:
        if taken[one.passage.file_id] < plan.per_file and len(kept) < most:
            taken[one.passage.file_id] += 1
            kept.append(one)
    return kept
