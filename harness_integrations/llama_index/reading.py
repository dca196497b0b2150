"""One read by a LlamaIndex object: which client sends, which trace records, what a limit means."""

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index_instrumentation import get_dispatcher

from harness_core.answer import Answer
from harness_core.calls.ambient import trace_for
from harness_core.calls.cache import ResponseCache
from harness_core.calls.governor import Governor
from harness_core.calls.progress import OnProgress, Progress
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.client import Client, OnText
from harness_core.documents.types import Chunks
from harness_core.errors import BadSettingError
from harness_core.pipeline import aread, read
from harness_core.reading.flow import checked_question, make_job
from harness_core.reading.job import Job
from harness_core.reading.preflight import Estimate, estimated
from harness_core.reading.registry import find_reader
from harness_core.reading.spec import ReadSpec
from harness_integrations.llama_index.client import LlamaIndexClient
from harness_integrations.llama_index.errors import told
from harness_integrations.llama_index.events import (
    ReadingEndEvent,
    ReadingStartEvent,
    ReadingStepEvent,
)
from harness_integrations.llama_index.governed import same_trace
from harness_integrations.shared.stopped import UNAFFORDABLE, refusal_of, unaffordable
from harness_integrations.shared.streaming import atext_stream, text_stream

_dispatcher = get_dispatcher(__name__)
OnLimit = Literal["partial", "error"]


def client_of(
    llm: Any,
    *,
    embeddings: BaseEmbedding | None = None,
    response_cache: ResponseCache | None = None,
    allow_uncapped: bool = False,
) -> Client:
    """What sends a reader's requests: a core client as it is, an LLM through ``LlamaIndexClient``.

    A ``ReplayLLM`` answers a reader from its recording, as the core's replay does.

    Raises:
        BadSettingError: something that is neither.
    """
    replay = getattr(llm, "replay", None)
    if isinstance(replay, ReplayClient):
        return replay
    if isinstance(llm, LLM):
        return LlamaIndexClient(
            llm, embeddings=embeddings, cache=response_cache, allow_uncapped=allow_uncapped
        )
    if not isinstance(llm, Client):
        raise BadSettingError(f"llm is a LlamaIndex LLM or a core client, not {type(llm).__name__}")
    with_cache = getattr(llm, "with_cache", None)
    return with_cache(response_cache) if response_cache is not None and with_cache else llm


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read: settings that stay, shared by every question.

    ``trace`` and ``governor`` name the budget; with neither it is that of a governed LLM, of the
    ``governed_run`` around, or a fresh one for each read.
    """

    client: Client
    spec: ReadSpec
    own_trace: Trace | None = None
    governor: Governor | None = None
    on_limit: OnLimit = "partial"
    prompts: dict[str, BasePromptTemplate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.on_limit not in ("partial", "error"):
            raise BadSettingError(f"on_limit is partial or error, not {self.on_limit!r}")
        self.trace()  # two budgets are said now, before anything is sent

    def trace(self) -> Trace | None:
        """The trace of a read made here and now; None for a fresh one."""
        governed = getattr(self.client, "governed", None)
        if governed is None:
            return trace_for(self.own_trace, self.governor)
        if self.own_trace is not None or self.governor is not None:
            same_trace(governed, trace_for(self.own_trace, self.governor))
        try:
            known: Trace = governed.trace
        except TypeError:
            return None
        return known

    def prompted(self, question: str) -> ReadSpec:
        """The spec with what ``update_prompts`` changed."""
        template = self.prompts.get("instructions")
        text = "" if template is None else template.format(query_str=question).strip()
        return self.spec if text == (self.spec.instructions or "") else self.spec.having(
            instructions=text or None
        )  # fmt: skip

    def job(self, question: str, chunks: Chunks, trace: Trace | None = None) -> Job:
        """The job of a read, for what asks a part of it only."""
        known = trace or self.trace() or Trace()
        return make_job(
            chunks, checked_question(question), self.prompted(question), self.client, known
        )

    def estimate(self, question: str, chunks: Chunks) -> Estimate:
        """What a read would need; sends nothing."""
        job = self.job(question, chunks, Trace())
        return estimated(job, find_reader(self.spec.reader), self.client)

    # --- reading --------------------------------------------------------------------------------

    def read(self, question: str, chunks: Chunks, on_text: OnText | None = None) -> Answer:
        """Read and answer.

        Raises:
            RequestRefused: a limit was reached under ``on_limit="error"``.
        """
        trace, spec, heard = self._begun(question, chunks)
        try:
            answer = read(
                chunks, question, self.client, spec, trace=trace, on_text=on_text, on_progress=heard
            )
        except UNAFFORDABLE as error:
            answer = unaffordable(error, question, spec.reader, trace)
        return self._ended(answer, trace)

    async def aread(self, question: str, chunks: Chunks, on_text: OnText | None = None) -> Answer:
        """The async twin of ``read``."""
        trace, spec, heard = self._begun(question, chunks)
        try:
            answer = await aread(
                chunks, question, self.client, spec, trace=trace, on_text=on_text, on_progress=heard
            )
        except UNAFFORDABLE as error:
            answer = unaffordable(error, question, spec.reader, trace)
        return self._ended(answer, trace)

    def stream(
        self, question: str, chunks: Chunks, done: Callable[[Answer], None]
    ) -> Generator[str, None, None]:
        """The answer's text in pieces; ``done`` has the answer before the last of them."""
        return text_stream(
            lambda heard: self.read(question, chunks, heard), _wording(done),
            whole=self.spec.premise,
        )  # fmt: skip

    def astream(
        self, question: str, chunks: Chunks, done: Callable[[Answer], None]
    ) -> AsyncGenerator[str, None]:
        """The async twin of ``stream``."""
        return atext_stream(
            lambda heard: self.aread(question, chunks, heard), _wording(done),
            whole=self.spec.premise,
        )  # fmt: skip

    def _begun(self, question: str, chunks: Chunks) -> tuple[Trace, ReadSpec, OnProgress]:
        trace = self.trace() or Trace(meta={"reader": self.spec.reader})
        _dispatcher.event(ReadingStartEvent(
            reader=self.spec.reader, question=question, chunks=len(chunks), run_id=trace.run_id,
        ))  # fmt: skip

        def heard(step: Progress) -> None:
            _dispatcher.event(ReadingStepEvent(
                label=step.stage, done=step.done, total=step.total, run_id=trace.run_id,
            ))  # fmt: skip

        return trace, self.prompted(question), heard

    def _ended(self, answer: Answer, trace: Trace) -> Answer:
        totals = answer.totals()
        _dispatcher.event(ReadingEndEvent(
            reader=answer.reader, partial=answer.partial, found=answer.found, calls=totals.calls,
            usd=totals.usd, run_id=trace.run_id,
        ))  # fmt: skip
        refusal = refusal_of(answer, trace, self.client.model)
        if self.on_limit == "error" and refusal is not None:
            raise told(refusal, trace)
        return answer


def _wording(done: Callable[[Answer], None]) -> Callable[[Answer], str]:
    """Hands the answer on, and gives its text."""

    def ended(answer: Answer) -> str:
        done(answer)
        return answer.wording()

    return ended
