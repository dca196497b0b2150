"""Ask every chunk the question, then merge the answers in a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness_core.answer import Answer
from harness_core.documents.types import Chunk
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Reply
from harness_core.reading.answers import row
from harness_core.reading.batches import ask_each, why_nothing
from harness_core.reading.job import Job
from harness_core.reading.merging import Merged, merge
from harness_core.reading.premises import as_finding, read_merged
from harness_core.reading.verdicts import Verdict, read_verdict
from harness_core.reading.worst import merge_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class MapReduce:
    """One answer per chunk, all at once; the useful ones merged level by level."""

    signature: ClassVar = "all|N+logN|tree"
    cost: ClassVar = "N + merges"
    stages: ClassVar = ("map.answer", "reduce")
    use: ClassVar = "When the answer may be anywhere in a long document, or in several places."

    def expected(self, job: Job) -> int:
        """A request per chunk and one merge for five."""
        return len(job.chunks) + -(-len(job.chunks) // 5)

    def worst(self, job: Job) -> int:
        """A request per chunk and the largest merge tree their caps allow."""
        spec, count = job.spec, len(job.chunks)
        return count + merge_tree(job, count, spec.max_chunk_tokens, spec.max_answer_tokens)

    def read(self, job: Job, /) -> Flow[Answer]:
        """Ask each chunk, keep the answers that say something, merge them."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        job.foresee(len(job.chunks))
        replies = yield from ask_each(
            job,
            [
                job.answering([chunk], "map.answer", cap=job.spec.max_chunk_tokens, final=False)
                for chunk in job.chunks
            ],
        )
        verdicts = [read_verdict(job, reply) for reply in replies]
        useful = [
            (chunk, verdict)
            for chunk, verdict in zip(job.chunks, verdicts, strict=True)
            if verdict.found
        ]
        failed = sum(not v.ok and not r.refused for v, r in zip(verdicts, replies, strict=True))
        if not useful:
            return self._nothing(job, replies, failed)
        merged = yield from merge(job, [as_finding(v) for _, v in useful], "reduce")
        return self._merged(job, replies, useful, merged, failed)

    def _nothing(self, job: Job, replies: Sequence[Reply], failed: int) -> Answer:
        cut = sum(reply.cut for reply in replies)
        sent = [c.chunk_id for c, r in zip(job.chunks, replies, strict=True) if not r.refused]
        return job.answer(
            SENTINEL,
            sent=sent,
            partial=failed + cut > 0 or any(reply.refused for reply in replies),
            notes={
                "chunks": len(job.chunks),
                "failed_calls": failed,
                "truncated_calls": cut,
                "reason": why_nothing(replies, "no chunk yielded an answer"),
            },
        )

    def _merged(
        self,
        job: Job,
        replies: Sequence[Reply],
        useful: Sequence[tuple[Chunk, Verdict]],
        merged: Merged,
        failed: int,
    ) -> Answer:
        text, premise = read_merged(job, merged)
        cut = sum(reply.cut for reply in replies) + merged.truncated_calls
        contradicting = [c.chunk_id for c, v in useful if v.premise is not None]
        faults = failed + merged.failed + merged.truncated + cut
        capped = any(reply.refused for reply in replies)
        notes: dict[str, object] = {
            "chunks": len(job.chunks),
            "answered": len(useful),
            "failed_calls": failed + merged.failed,
            "merge_failures": merged.failed,
            "truncated_calls": cut,
            "truncations": merged.truncated,
            "merge_levels": merged.levels,
            "merge_ok": merged.ok,
            "error": merged.error,
        }
        if job.spec.premise:
            notes["premise_chunks"] = contradicting
        return job.answer(
            text,
            used=[chunk.chunk_id for chunk, _ in useful],
            sent=[chunk.chunk_id for chunk in job.chunks],
            evidence=[row(chunk, verdict.text, kind="answer") for chunk, verdict in useful],
            partial=faults > 0 or capped or not merged.ok,
            notes=notes,
            premise=premise,
        )
