"""Choosing chunks: scored against the question, picked, fitted, and put in reading order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_core.documents.types import Chunk
from harness_core.flows.types import Flow, Work
from harness_core.ranking.bm25 import BM25
from harness_core.ranking.embedders import Vectors
from harness_core.ranking.selection import arrange, blend, select, similarities
from harness_core.reading.job import Fitted, Job

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranked:
    """Chunks scored against the question; ``vectors`` are the chunks' own."""

    scores: "NDArray[np.float64]"
    vectors: Vectors

    def top(self, count: int = 5) -> list[float]:
        """The best scores, four decimals."""
        return [round(float(score), 4) for score in sorted(self.scores, reverse=True)[:count]]


def rank(job: Job) -> Flow[Ranked]:
    """Score every chunk by its similarity to the question.

    Question and chunks are embedded in one set. Lexical vectors are coarse, so their cosine is
    blended with BM25.
    """
    texts = [chunk.text for chunk in job.chunks]
    vectors = yield from job.embed([job.question, *texts])
    scores = yield Work(lambda: _scores(job.question, texts, vectors))
    own = Vectors(
        matrix=vectors.matrix[1:],
        source=vectors.source,
        fallback=vectors.fallback,
        reason=vectors.reason,
        failed_steps=vectors.failed_steps,
    )
    return Ranked(scores=scores, vectors=own)


def _scores(question: str, texts: Sequence[str], vectors: Vectors) -> "NDArray[np.float64]":
    cosines = similarities(vectors.matrix[1:], vectors.matrix[0])
    if vectors.source != "lexical":
        return cosines
    return blend(cosines, BM25(texts).scores(question))


def pick(job: Job, ranked: Ranked) -> list[int]:
    """Positions of the chosen chunks, best first; the single best when none is eligible."""
    import numpy as np

    spec, scores = job.spec, ranked.scores
    count = min(max(spec.top_k, 1), len(job.chunks))
    eligible = np.where(scores >= spec.min_score, scores, -np.inf)
    picked = select(eligible, ranked.vectors.matrix, count, spec.mmr)
    return picked or select(scores, None, 1, 1.0)


def placed(job: Job, fitted: Fitted, order: Sequence[Chunk]) -> list[Chunk]:
    """The fitted chunks in ``context_order``; ``order`` lists all candidates, best first.

    Fitting comes first and arranging after, so the order never changes the set.
    """
    position = {chunk.chunk_id: number for number, chunk in enumerate(job.chunks)}
    kept = [chunk for chunk in order if chunk in fitted.chunks]
    by_position = {position[chunk.chunk_id]: chunk for chunk in kept}
    ranked = [position[chunk.chunk_id] for chunk in kept]
    return [by_position[number] for number in arrange(ranked, job.spec.context_order)]


def score_map(chunks: Sequence[Chunk], scores: Sequence[float]) -> Mapping[int, float]:
    """Scores by chunk id."""
    return {c.chunk_id: float(s) for c, s in zip(chunks, scores, strict=True)}
