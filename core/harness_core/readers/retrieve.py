"""Rank the chunks by similarity to the question and answer from the best of them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from harness_core.answer import Answer
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow
from harness_core.reading.answers import verbatim
from harness_core.reading.job import Job
from harness_core.reading.selection import pick, placed, rank, score_map
from harness_core.reading.verdicts import concluded


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieve:
    """The ``top_k`` most similar chunks in one request."""

    signature: ClassVar = "topk|1|none"
    cost: ClassVar = "1 + embeddings"
    stages: ClassVar = ("retrieve.answer",)
    use: ClassVar = "When the answer stands in few places and the cost must not grow with length."

    def expected(self, job: Job) -> int:
        """One request."""
        return 1

    def embedding_texts(self, job: Job) -> list[str]:
        """What it embeds: the question and every chunk."""
        return [job.question, *(chunk.text for chunk in job.chunks)]

    def read(self, job: Job, /) -> Flow[Answer]:
        """Rank, pick, fit, arrange, ask once."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        ranked = yield from rank(job)
        chosen = [job.chunks[number] for number in pick(job, ranked)]
        fitted = job.fit(chosen)
        shown = placed(job, fitted, chosen)
        spec, vectors = job.spec, ranked.vectors
        top_k = min(max(spec.top_k, 1), len(job.chunks))
        notes: dict[str, Any] = {
            "chunks": len(job.chunks),
            "top_k": top_k,
            "used": len(shown),
            "dropped_chunks": len(fitted.dropped),
            "embedding_source": vectors.source,
            "embedding_fallback": vectors.fallback,
            "mmr": spec.mmr,
            "context_order": spec.context_order,
        }
        if not shown:
            return job.nothing("no chosen chunk fits the context window", **notes)
        job.notebook.note(
            "retrieve.rank", k=top_k, kept=len(shown), embedding_source=vectors.source,
            mmr=spec.mmr, context_order=spec.context_order, top_scores=ranked.top(),
        )  # fmt: skip
        reply = yield from ask(job.answering(shown, "retrieve.answer"))
        return concluded(
            job,
            reply,
            used=[chunk.chunk_id for chunk in shown],
            evidence=verbatim(shown, score_map(job.chunks, ranked.scores.tolist())),
            partial=bool(fitted.dropped) or vectors.fallback,
            notes=notes,
        )
