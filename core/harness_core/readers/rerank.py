"""Have a model score the likeliest chunks, and answer from the best of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from harness_core.answer import Answer
from harness_core.documents.types import Chunk
from harness_core.errors import RerankDegradedWarning, RerankPrefilterWarning, warn
from harness_core.flows.ask import ask, ask_all, work
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Reply, Request, parse_json
from harness_core.ranking.bm25 import BM25
from harness_core.ranking.embedders import Vectors
from harness_core.ranking.selection import select, similarities, spread
from harness_core.reading.answers import verbatim
from harness_core.reading.fields import number_field, strict_object
from harness_core.reading.job import Job
from harness_core.reading.selection import placed
from harness_core.reading.verdicts import concluded

Outcome = Literal["scored", "unscorable", "failed", "capped"]
Prefilter = Literal["bm25", "embedding", "spread", "given"]

SCORE_TOKENS = 200
SCHEMA = strict_object({
    "score": {"type": "integer", "minimum": 0, "maximum": 10},
    "reason": {"type": "string"},
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chunks worth scoring, best first, how they were found, and the scores that found them."""

    chunks: tuple[Chunk, ...]
    method: Prefilter
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Candidates with the scores to go by: the model's, or the prefilter's when it gave none."""

    candidates: Candidates
    scores: dict[int, float]
    outcomes: tuple[Outcome, ...]

    @property
    def degraded(self) -> bool:
        """Whether not one candidate was scored."""
        return "scored" not in self.outcomes

    @property
    def unjudged(self) -> bool:
        """Whether some candidates were scored and others were not."""
        return not self.degraded and any(one != "scored" for one in self.outcomes)

    @property
    def reason(self) -> str | None:
        """Why an answer from these scores is partial, in words."""
        left = sum(one != "scored" for one in self.outcomes)
        return f"{left} candidate(s) were not judged" if self.unjudged else None

    def best(self, least: float) -> list[Chunk]:
        """The candidates that score at least ``least``, best first; all of them when degraded."""
        found = [c for c in self.candidates.chunks if c.chunk_id in self.scores]
        kept = [c for c in found if self.degraded or self.scores[c.chunk_id] >= least]
        return sorted(kept, key=lambda chunk: -self.scores[chunk.chunk_id])

    def notes(self) -> dict[str, Any]:
        """What every answer says about the scoring."""
        return {
            "candidates": len(self.candidates.chunks),
            "scoring_failures": self.outcomes.count("failed"),
            "unscorable": self.outcomes.count("unscorable"),
            "prefilter": self.candidates.method,
            "degraded_to_bm25": self.degraded,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerank:
    """Word matching picks candidates, the model scores each alone, the winners answer.

    Chunks that say they are ``ranked`` (in ``extra``) are candidates in the order they come in.
    """

    signature: ClassVar = "topk|m+1|none"
    cost: ClassVar = "m + 1"
    stages: ClassVar = ("rerank.score", "rerank.answer")
    use: ClassVar = "When word matching finds the neighbourhood but not the best passage in it."

    def expected(self, job: Job) -> int:
        """A request per candidate, and the answer."""
        return min(job.spec.rerank_candidates, len(job.chunks)) + 1

    def passes(self, job: Job) -> int:
        """A chunk is scored, and may then be answered from."""
        return 2

    def embedding_texts(self, job: Job) -> list[str]:
        """What it embeds: question and chunks, only where words cannot tell the candidates."""
        texts = [chunk.text for chunk in job.chunks]
        if job.spec.rerank_candidates >= len(texts) or BM25(texts).scores(job.question).any():
            return []
        return [job.question, *texts]

    def read(self, job: Job, /) -> Flow[Answer]:
        """Find candidates, score them, keep the best, ask once."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        candidates = yield from self._candidates(job)
        replies = yield from ask_all(self._scoring(job, one) for one in candidates.chunks)
        scored = scores_of(candidates, replies)
        if scored.degraded:
            _warn_degraded(scored)
        best = scored.best(job.spec.rerank_min_score)
        if not best:
            return self._none_kept(job, scored)
        return (yield from self._answered(job, scored, best[: job.spec.top_k]))

    def _candidates(self, job: Job) -> Flow[Candidates]:
        texts = [chunk.text for chunk in job.chunks]
        most = min(job.spec.rerank_candidates, len(texts))
        if job.chunks.extra.get("ranked"):
            return _picked(job, range(most), range(len(texts), 0, -1), "given")
        words = yield from work(lambda: BM25(texts).scores(job.question))
        if most == len(texts) or words.any():
            return _picked(job, select(words, None, most, 1.0), words.tolist(), "bm25")
        vectors = yield from job.embed([job.question, *texts])
        near = _usable_similarities(vectors)
        if near is None:
            warn(RerankPrefilterWarning(
                "no chunk shares a word with the question and embeddings cannot rank them; the "
                f"{most} candidates are spread evenly over the document"
            ))  # fmt: skip
            return _picked(job, spread(len(texts), most), words.tolist(), "spread")
        warn(RerankPrefilterWarning(
            "no chunk shares a word with the question; the candidates are picked by similarity"
        ))  # fmt: skip
        return _picked(job, select(near, None, most, 1.0), near, "embedding")

    def _scoring(self, job: Job, chunk: Chunk) -> Request:
        return job.asking(
            "score",
            "rerank.score",
            chunk.text,
            cap=SCORE_TOKENS,
            model=job.spec.skim_model,
            schema=SCHEMA,
            schema_name="relevance",
            task=job.task("score", [(chunk.chunk_id, chunk.text)]),
        )

    def _none_kept(self, job: Job, scored: Scored) -> Answer:
        return job.answer(
            SENTINEL,
            sent=[chunk.chunk_id for chunk in scored.candidates.chunks],
            partial=scored.unjudged or scored.candidates.method == "spread",
            notes={
                "chunks": len(job.chunks),
                **scored.notes(),
                "reason": f"no candidate scored {job.spec.rerank_min_score:g} or more",
            },
        )

    def _answered(self, job: Job, scored: Scored, best: Sequence[Chunk]) -> Flow[Answer]:
        fitted = job.fit(best)
        shown = placed(job, fitted, best)
        notes = {
            "chunks": len(job.chunks),
            **scored.notes(),
            "used": len(shown),
            "dropped_chunks": len(fitted.dropped),
        }
        if not shown:
            return job.nothing("no chosen chunk fits the context window", **notes)
        ranked = sorted(scored.scores.values(), reverse=True)
        job.notebook.note(
            "rerank.select",
            candidates=len(scored.candidates.chunks),
            kept=len(shown),
            prefilter=scored.candidates.method,
            degraded_to_bm25=scored.degraded,
            context_order=job.spec.context_order,
            scores=[round(score, 2) for score in ranked[:10]],
        )
        reply = yield from ask(job.answering(shown, "rerank.answer"))
        return concluded(
            job,
            reply,
            used=[chunk.chunk_id for chunk in shown],
            evidence=verbatim(shown, scored.scores),
            partial=scored.degraded
            or scored.unjudged
            or scored.candidates.method == "spread"
            or bool(fitted.dropped),
            notes={**notes, "reason": scored.reason},
        )


def read_score(reply: Reply) -> tuple[Outcome, float]:
    """A reply to a scoring request: what became of it, and the score (0 where there is none).

    A score outside 0 to 10 is no score.
    """
    if reply.refused:
        return "capped", 0.0
    record = parse_json(reply.text) if reply.usable else None
    if record is None:
        return "failed", 0.0
    score = number_field(record, "score")
    return ("scored", score) if score is not None and 0 <= score <= 10 else ("unscorable", 0.0)


def scores_of(candidates: Candidates, replies: Sequence[Reply]) -> Scored:
    """The replies read; where none holds a score, the prefilter's scores stand."""
    read = [read_score(reply) for reply in replies]
    scores = {
        chunk.chunk_id: score
        for chunk, (outcome, score) in zip(candidates.chunks, read, strict=True)
        if outcome == "scored"
    }
    instead = zip((c.chunk_id for c in candidates.chunks), candidates.scores, strict=True)
    return Scored(
        candidates=candidates,
        scores=scores or dict(instead),
        outcomes=tuple(outcome for outcome, _ in read),
    )


def _picked(
    job: Job,
    positions: Sequence[int],
    scores: Sequence[float],
    method: Prefilter,
) -> Candidates:
    return Candidates(
        chunks=tuple(job.chunks[number] for number in positions),
        method=method,
        scores=tuple(float(scores[number]) for number in positions),
    )


def _usable_similarities(vectors: Vectors) -> list[float] | None:
    """Similarity of each chunk to the question; None where they say nothing."""
    import numpy as np

    if vectors.source == "lexical":
        return None
    near = similarities(vectors.matrix[1:], vectors.matrix[0])
    return near.tolist() if np.isfinite(near).all() and np.ptp(near) > 0 else None


def _warn_degraded(scored: Scored) -> None:
    counts = {name: scored.outcomes.count(name) for name in ("failed", "unscorable", "capped")}
    if counts["failed"] == len(scored.outcomes):
        why = "every scoring request failed; does the endpoint support structured output?"
    else:
        why = (
            f"{counts['failed']} request(s) failed, {counts['unscorable']} gave no number from 0 "
            f"to 10, {counts['capped']} were not sent"
        )
    warn(RerankDegradedWarning(f"no candidate was scored, so the prefilter decides: {why}"))
