"""Carry a draft answer through the chunks and revise it with each."""

from dataclasses import dataclass, field
from typing import ClassVar

from harness_core.answer import Answer
from harness_core.documents.types import Chunk
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow, Pause
from harness_core.messages import SENTINEL, Reply, Request
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.job import Job
from harness_core.reading.premises import as_finding
from harness_core.reading.prompts import UNCHANGED, fence, question_line, rendered, system_and
from harness_core.reading.verdicts import Verdict, read_verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Refine:
    """One request per chunk, in order, each with the draft that came out of the one before."""

    signature: ClassVar = "all|N|forward"
    cost: ClassVar = "N"
    stages: ClassVar = ("refine.draft", "refine.revise")
    use: ClassVar = "When the answer builds up along the document, such as a course of events."

    def expected(self, job: Job) -> int:
        """A request per chunk."""
        return len(job.chunks)

    def read(self, job: Job, /) -> Flow[Answer]:
        """Draft from the first chunk, revise with every later one; a limit ends it."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        draft = _Draft(job=job, most=self._half(job))
        for chunk in job.chunks:
            if job.spec.delay_between_calls > 0 and chunk is not job.chunks[0]:
                yield Pause(job.spec.delay_between_calls)
            excerpt = draft.fitted(rendered(chunk), "refine.excerpt", chunk)
            carried = draft.fitted(draft.text, "refine.draft", chunk)
            reply = yield from ask(self._request(job, chunk, excerpt, carried))
            if reply.refused:
                break
            draft.take(reply, chunk, carried)
        return draft.answer()

    def _half(self, job: Job) -> int:
        """Tokens that the draft, or an excerpt, may take up."""
        return max(min(job.room("answer"), job.room("refine")) // 2, 64)

    def _request(self, job: Job, chunk: Chunk, excerpt: str, carried: str) -> Request:
        shown, cite = [(chunk.chunk_id, chunk.text)], job.spec.cite
        final = chunk is job.chunks[-1]
        if not carried:
            task = job.task("answer", shown, cite=cite)
            return job.answering_from(excerpt, "refine.draft", task=task, final=final)
        messages = system_and(
            job.voice.system("refine"),
            question_line(job.question),
            fence("draft", carried),
            fence("new_excerpt", excerpt),
            UNCHANGED,
        )
        task = job.task("revise", shown, draft=carried, cite=cite)
        cap = job.spec.max_answer_tokens
        return job.request("refine.revise", messages, cap, task=task, final=final)


@dataclass(slots=True, kw_only=True)
class _Draft:
    """The draft of one read, and what became of it on the way."""

    job: Job
    most: int
    verdict: Verdict | None = None
    visited: list[int] = field(default_factory=list)
    revisions: int = 0
    failed: int = 0
    cut_off: int = 0
    truncations: int = 0
    tokens_truncated: int = 0

    @property
    def text(self) -> str:
        return "" if self.verdict is None else as_finding(self.verdict)

    def fitted(self, text: str, where: str, chunk: Chunk) -> str:
        """``text`` cut to what it may take up; only the request sees the cut."""
        cut = self.job.cut(text, self.most, where, chunk_id=chunk.chunk_id)
        self.truncations += cut.dropped > 0
        self.tokens_truncated += cut.dropped
        return cut.text

    def take(self, reply: Reply, chunk: Chunk, carried: str) -> None:
        """Make a reply the draft; an unusable one leaves the old."""
        tokens_in = tokens_out = count_tokens(carried, self.job.model)
        verdict = read_verdict(self.job, reply)
        if verdict.ok:
            self.verdict = verdict
            self.visited.append(chunk.chunk_id)
            self.revisions += bool(carried) and self.text != carried.strip()
            self.cut_off += verdict.cut
            tokens_out = count_tokens(self.text, self.job.model)
        else:
            self.failed += 1
        if reply.step is not None:
            state = {"tokens_in": tokens_in, "tokens_out": tokens_out}
            self.job.notebook.amend(reply.step, state=state)

    def answer(self) -> Answer:
        """The last draft; partial when a chunk or a part of a text was lost on the way."""
        whole = len(self.visited) == len(self.job.chunks)
        return self.job.answer(
            SENTINEL if self.verdict is None else self.verdict.text,
            used=self.visited,
            partial=not whole or self.truncations > 0 or self.cut_off > 0,
            notes={
                "chunks": len(self.job.chunks),
                "visited": len(self.visited),
                "revisions": self.revisions,
                "failed_calls": self.failed,
                "truncated_calls": self.cut_off,
                "truncations": self.truncations,
                "tokens_truncated": self.tokens_truncated,
            },
            premise=None if self.verdict is None else self.verdict.premise,
        )
