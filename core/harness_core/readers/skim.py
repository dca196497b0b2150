"""Copy out of every chunk what bears on the question, then answer from those passages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness_core.answer import Answer, Evidence
from harness_core.checks.citations import cited
from harness_core.flows.ask import ask, work
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Reply
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.answers import extracted
from harness_core.reading.batches import ask_each, failures, why_nothing
from harness_core.reading.job import Job
from harness_core.reading.merging import Merged, merge
from harness_core.reading.passages import copied, copying, labelled
from harness_core.reading.prompts import rendered
from harness_core.reading.verdicts import concluded
from harness_core.reading.worst import merge_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Skim:
    """A request per chunk that copies passages, all at once, and one answer from the passages."""

    signature: ClassVar = "all|N+1|none"
    cost: ClassVar = "N + 1"
    stages: ClassVar = ("skim.extract", "skim.consolidate", "skim.answer")
    use: ClassVar = "When the answer must rest on checked quotations from anywhere in the document."

    def expected(self, job: Job) -> int:
        """A request per chunk and the answer."""
        return len(job.chunks) + 1

    def inputs(self, job: Job) -> list[tuple[str, int]]:
        """Every chunk, to the model that extracts."""
        return [(job.spec.skim_model or job.model, job.tokens)]

    def worst(self, job: Job) -> int:
        """Also a merge tree, when passages of full length would not fit one request."""
        spec, count = job.spec, len(job.chunks)
        if count * spec.max_chunk_tokens <= job.room("answer"):
            return count + 1
        room = job.room("summarise", restate="never")
        tree = merge_tree(job, count, spec.max_chunk_tokens, spec.max_answer_tokens, room)
        return count + 1 + tree

    def read(self, job: Job, /) -> Flow[Answer]:
        """Copy passages from each chunk, consolidate them if they are too many, answer once."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        replies = yield from ask_each(
            job, [copying(job, [chunk], rendered(chunk), "skim.extract") for chunk in job.chunks]
        )
        evidence = yield from work(lambda: self._evidence(job, replies))
        if not evidence:
            return self._nothing(job, replies)
        pieces = [labelled(row) for row in evidence]
        body = "\n\n".join(pieces)
        merged = None
        if count_tokens(body, job.model) > job.room("answer"):
            merged = yield from merge(
                job, pieces, "skim.consolidate", purpose="summarise", kind="evidence"
            )
            body = merged.text
        return (yield from self._answered(job, replies, evidence, body, merged))

    def _evidence(self, job: Job, replies: Sequence[Reply]) -> list[Evidence]:
        found = [(chunk, copied(reply)) for chunk, reply in zip(job.chunks, replies, strict=True)]
        return [extracted(chunk, text, chunk.quoted) for chunk, text in found if text is not None]

    def _nothing(self, job: Job, replies: Sequence[Reply]) -> Answer:
        cut = sum(reply.cut for reply in replies)
        return job.answer(
            SENTINEL,
            sent=[c.chunk_id for c, r in zip(job.chunks, replies, strict=True) if not r.refused],
            partial=cut > 0 or not all(reply.usable for reply in replies),
            notes={
                "chunks": len(job.chunks),
                "failed_calls": failures(replies),
                "truncated_calls": cut,
                "reason": why_nothing(replies, "no chunk holds anything on the question"),
            },
        )

    def _answered(
        self,
        job: Job,
        replies: Sequence[Reply],
        evidence: Sequence[Evidence],
        body: str,
        merged: Merged | None,
    ) -> Flow[Answer]:
        """Ask once; after a consolidation only a label that is still there may be cited."""
        used = [row.chunk_id for row in evidence if row.chunk_id is not None]
        shown = job.cut(body, job.room("answer"), "skim.answer.input")
        labels = cited(shown.text).ids
        sent = [chunk.chunk_id for chunk in job.chunks]
        if merged is not None:
            sent = [chunk_id for chunk_id in used if chunk_id in labels]
        cite = job.spec.cite and bool(sent)
        passages = [(row.chunk_id, row.text) for row in evidence]
        task = job.task("answer", passages if merged is None else [(None, shown.text)], cite=cite)
        reply = yield from ask(
            job.answering_from(shown.text, "skim.answer", task=task, tag="evidence", cite=cite)
        )
        tree = Merged(text="", ok=True) if merged is None else merged
        return concluded(
            job,
            reply,
            used=used,
            sent=sent,
            evidence=evidence,
            partial=not all(reply.usable for reply in replies)
            or not tree.ok
            or tree.failed + tree.truncated + shown.dropped > 0,
            notes={
                "chunks": len(job.chunks),
                "with_evidence": len(evidence),
                "failed_calls": failures(replies) + tree.failed,
                "truncations": tree.truncated + (shown.dropped > 0),
                "evidence_consolidated": merged is not None,
                "evidence_verified": sum(row.verified is True for row in evidence),
                "merge_ok": None if merged is None else merged.ok,
                "cite_dropped": None if merged is None else job.spec.cite and not cite,
                "error": None if tree.failed else tree.error,
            },
            cut=sum(reply.cut for reply in replies) + tree.truncated_calls,
        )
