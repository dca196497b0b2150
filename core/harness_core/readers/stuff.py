"""Put the whole document into one request."""

from dataclasses import dataclass
from typing import ClassVar

from harness_core.answer import Answer
from harness_core.errors import OverflowError, OverflowWarning, warn  # noqa: A004 - our own
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow
from harness_core.reading.answers import verbatim
from harness_core.reading.job import Fitted, Job, limit_words
from harness_core.reading.verdicts import concluded


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuff:
    """All chunks in one request; what does not fit is dropped, and said."""

    signature: ClassVar = "all|1|none"
    cost: ClassVar = "1"
    stages: ClassVar = ("stuff.answer",)
    use: ClassVar = "When the document fits one request."

    def expected(self, job: Job) -> int:
        """One request."""
        return 1

    def inputs(self, job: Job) -> list[tuple[str, int]]:
        """The document, as far as one request holds it."""
        return [(job.model, min(job.tokens, job.room("answer")))]

    def read(self, job: Job, /) -> Flow[Answer]:
        """Fit the chunks in document order, then ask once."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", dropped_chunks=0)
        fitted = job.fit(job.chunks)
        if fitted.dropped:
            self._overflow(job, fitted)
        if not fitted.chunks:
            return job.nothing("no chunk fits the context window", dropped_chunks=len(job.chunks))
        reply = yield from ask(job.answering(fitted.chunks, "stuff.answer"))
        dropped = len(fitted.dropped)
        if reply.refused:
            reason = f"the {limit_words(reply)} kept the request from being sent"
            return job.nothing(reason, dropped_chunks=dropped)
        return concluded(
            job,
            reply,
            used=fitted.ids,
            evidence=verbatim(fitted.chunks),
            partial=dropped > 0,
            notes={"dropped_chunks": dropped},
        )

    def _overflow(self, job: Job, fitted: Fitted) -> None:
        total = job.tokens
        said = (
            f"the document of {total} tokens does not fit one request to {job.model!r}, which has "
            f"room for {job.room('answer')}; {len(fitted.dropped)} chunk(s) are left out"
        )
        if job.spec.on_overflow == "error":
            raise OverflowError(f"{said}; use another reader or a model with a larger window")
        warn(OverflowWarning(said))
