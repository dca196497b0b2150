"""Summarise every chunk, then the summaries, until they fit one request; answer from those."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness_core.answer import Answer
from harness_core.errors import OverflowWarning, warn
from harness_core.flows.ask import ask, ask_all
from harness_core.flows.types import Flow
from harness_core.messages import Reply, Request
from harness_core.models.registry import model_info
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.batches import failures, why_nothing
from harness_core.reading.job import Job
from harness_core.reading.verdicts import read_verdict
from harness_core.reading.worst import summary_levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchical:
    """Summaries of summaries, in levels of ``fan_in``, and one answer from the last."""

    signature: ClassVar = "all|N+tree+1|tree"
    cost: ClassVar = "N + fan-in levels + 1"
    stages: ClassVar = ("hier.summarise", "hier.answer")
    use: ClassVar = "When the gist of a whole long document counts, and not its wording."

    def expected(self, job: Job) -> int:
        """A request per chunk, one per first group, and the answer."""
        count = len(job.chunks)
        return count + -(-count // job.spec.fan_in) + 1

    def inputs(self, job: Job) -> list[tuple[str, int]]:
        """Every chunk, to the model that summarises."""
        return [(job.spec.summary_model or job.model, job.tokens)]

    def worst(self, job: Job) -> int:
        """All the levels that summaries of full length need."""
        spec, room = job.spec, job.room("answer", cite=False)
        summary = min(
            spec.max_summary_tokens, model_info(spec.summary_model or job.model).max_output
        )
        return summary_levels(len(job.chunks), summary, room, spec.fan_in, spec.max_levels)

    def read(self, job: Job, /) -> Flow[Answer]:
        """Summarise each chunk; then groups of summaries, while they are too long; answer."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        room = job.room("answer", cite=False)
        tree = _Tree(job=job)
        replies = yield from tree.level([(chunk.chunk_id, chunk.text) for chunk in job.chunks])
        if not tree.pieces:
            return self._nothing(job, tree, replies)
        while tree.tokens > room and tree.levels < job.spec.max_levels:
            before, groups = len(tree.pieces), tree.groups()
            yield from tree.level([(None, group) for group in groups], instead=groups)
            if len(tree.pieces) >= before:
                break
        return (yield from self._answered(job, tree, room))

    def _nothing(self, job: Job, tree: "_Tree", replies: Sequence[Reply]) -> Answer:
        reason = why_nothing(replies, "no chunk gave a summary")
        return job.nothing(
            reason,
            chunks=len(job.chunks),
            levels=tree.levels,
            failed_summaries=tree.failed,
            truncated_calls=tree.cut_off,
        )

    def _answered(self, job: Job, tree: "_Tree", room: int) -> Flow[Answer]:
        """Ask once, over the summaries cut to the room; failing that, they are the answer."""
        shown = job.cut(tree.text, room, "hier.summaries")
        if shown.dropped:
            warn(OverflowWarning(
                f"after {tree.levels} level(s) the summaries do not fit one request to "
                f"{job.model!r}: {shown.dropped} tokens are cut; raise max_levels, or take a model "
                "with a larger window"
            ))  # fmt: skip
        task = job.task("answer", [(None, shown.text)])
        reply = yield from ask(
            job.answering_from(shown.text, "hier.answer", task=task, tag="summaries", cite=False)
        )
        verdict = read_verdict(job, reply)
        cut = tree.cut_off + verdict.cut
        return job.answer(
            verdict.text if verdict.ok else shown.text,
            used=[chunk.chunk_id for chunk in job.chunks],
            partial=not (verdict.ok and tree.whole) or shown.dropped > 0 or cut > 0,
            notes={
                "chunks": len(job.chunks),
                "levels": tree.levels,
                "final_summaries": len(tree.pieces),
                "failed_summaries": tree.failed,
                "truncated_calls": cut,
                "summaries_truncated": shown.dropped > 0,
                "tokens_truncated": shown.dropped,
                "error": verdict.error,
            },
            premise=verdict.premise,
        )


@dataclass(slots=True, kw_only=True)
class _Tree:
    """The summaries of one read, and what became of them on the way up."""

    job: Job
    pieces: Sequence[str] = ()
    levels: int = 0
    failed: int = 0
    cut_off: int = 0
    whole: bool = True

    @property
    def text(self) -> str:
        return "\n\n".join(self.pieces)

    @property
    def tokens(self) -> int:
        return count_tokens(self.text, self.job.model)

    def groups(self) -> list[str]:
        """``fan_in`` consecutive summaries each, one after the other."""
        fan = self.job.spec.fan_in
        starts = range(0, len(self.pieces), fan)
        return ["\n\n".join(self.pieces[start : start + fan]) for start in starts]

    def level(
        self, texts: Sequence[tuple[int | None, str]], instead: Sequence[str] = ()
    ) -> Flow[list[Reply]]:
        """Summarise texts side by side. One that brought no summary goes up as ``instead`` has it.

        A level without a single summary changes nothing.
        """
        self.levels += 1
        replies = yield from ask_all(self._request(source, text) for source, text in texts)
        self.failed += failures(replies)
        self.cut_off += sum(reply.cut for reply in replies)
        self.whole &= all(reply.usable for reply in replies)
        if any(reply.usable for reply in replies):
            up = [reply.text.strip() if reply.usable else "" for reply in replies]
            if instead:
                up = [new or old for new, old in zip(up, instead, strict=True)]
            self.pieces = [piece for piece in up if piece]
        self._record([text for _, text in texts], replies)
        return replies

    def _request(self, source: int | None, text: str) -> Request:
        spec, label = self.job.spec, f"hier.summarise.L{self.levels}"
        return self.job.asking(
            "summarise", label, text, tag="text", cap=spec.max_summary_tokens,
            model=spec.summary_model, task=self.job.task("summarise", [(source, text)]),
        )  # fmt: skip

    def _record(self, texts: Sequence[str], replies: Sequence[Reply]) -> None:
        model, notebook = self.job.model, self.job.notebook
        for text, reply in zip(texts, replies, strict=True):
            if reply.step is not None:
                before, after = count_tokens(text, model), count_tokens(reply.text, model)
                notebook.amend(reply.step, state={"tokens_in": before, "tokens_out": after})
        notebook.note(f"hier.state.L{self.levels}", summaries=len(self.pieces), tokens=self.tokens)
