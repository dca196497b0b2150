"""A gate for LLMs and embeddings that cannot be replaced.

It sits where LlamaIndex asks a rate limiter, knows the request from the event just before, and
refuses there. It cannot set an output cap, and it never hears of what provider classes send around
``chat`` (``structured_predict`` of OpenAIResponses, Anthropic and GoogleGenAI): where that matters,
use ``GovernedLLM``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.embedding import (
    EmbeddingEndEvent,
    EmbeddingStartEvent,
)
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.llms import LLM
from llama_index.core.rate_limiter import BaseRateLimiter
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.events.span import SpanDropEvent
from pydantic import PrivateAttr

from harness_core.calls.exchange import exchange
from harness_core.calls.governor import Governor
from harness_core.calls.ledger import Demand
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.errors import BadSettingError, RequestRefused
from harness_core.flows.streaming import ABANDONED, advance
from harness_core.flows.types import Drive, Send, Wait
from harness_core.messages import Outcome, Reply
from harness_integrations.llama_index.asking import asked_of, model_name
from harness_integrations.llama_index.errors import raise_failed, told
from harness_integrations.llama_index.governed import GovernedLLM
from harness_integrations.llama_index.handlers import raised_by, watched
from harness_integrations.llama_index.observing import observer_of
from harness_integrations.llama_index.replies import joined, read_response
from harness_integrations.llama_index.sending import LLMClient
from harness_integrations.shared.failures import failed_reply
from harness_integrations.shared.governing import governed_trace

_started: ContextVar[BaseEvent | None] = ContextVar("started_event", default=None)
_passing: ContextVar[str | None] = ContextVar("passing_gate", default=None)


class RequestGate(BaseRateLimiter):
    """Takes the place of an LLM's or embedding's rate limiter, and holds it to a trace's limits.

    Every request that passes is recorded; an LLM's is held until it ends. What an embedding is sent
    is not known before, so its requests are counted, and held to what is spent already.
    """

    def __init__(self, target: Any, trace: Trace) -> None:
        self.trace = trace
        self.before = target.rate_limiter
        self._target = target
        self._client = LLMClient(target, allow_uncapped=True) if isinstance(target, LLM) else None
        self._open: dict[str, Drive[Outcome]] = {}
        self._pieces: dict[str, list[Any]] = {}
        self._embedding: set[str] = set()

    def acquire(self, num_tokens: int = 0) -> None:
        """Let the request pass whose event was the last, or refuse it."""
        self._admit()
        if self.before is not None:
            self.before.acquire(num_tokens)

    async def async_acquire(self, num_tokens: int = 0) -> None:
        """The async twin of ``acquire``."""
        self._admit()
        if self.before is not None:
            await self.before.async_acquire(num_tokens)

    def ended(self, event: BaseEvent) -> None:
        """Settle the request that an event tells the end of."""
        key = event.span_id or ""
        if isinstance(event, EmbeddingEndEvent):
            if key in self._embedding:
                self._embedding.discard(key)
                if not watched(self.trace):
                    observer_of(self.trace).embedded(event.chunks, model_name(self._target))
        elif isinstance(event, (LLMChatInProgressEvent, LLMCompletionInProgressEvent)):
            if key in self._open:
                self._pieces.setdefault(key, []).append(event.response)
        elif (flow := self._open.pop(key, None)) is not None:
            advance(flow, self._outcome(event, self._pieces.pop(key, [])))

    def close(self) -> None:
        """Charge what never ended at what it was held at."""
        for flow in [self._open.pop(key) for key in list(self._open)]:
            flow.close()

    def _admit(self) -> None:
        event = _started.get()
        _started.set(None)
        if _passing.get() in self._open or event is None:
            return  # a part of a request that has passed
        key = event.span_id or ""
        if isinstance(event, EmbeddingStartEvent):
            self._admit_embedding(key)
            return
        if isinstance(event, LLMChatStartEvent):
            given: Any = event.messages
        elif isinstance(event, LLMCompletionStartEvent):
            given = event.prompt
        else:
            return
        self._admit_request(key, given, event.additional_kwargs)

    def _admit_request(self, key: str, given: Any, kwargs: dict[str, Any]) -> None:
        if self._client is None:
            return
        observer_of(self.trace).forget(key)  # it is recorded here
        request = asked_of(self._target, given, kwargs)
        flow = exchange(request, Run(self._client, self.trace))
        try:
            todo: Any = advance(flow)
            while not isinstance(todo, (Send, Reply)):
                todo = advance(flow, False) if isinstance(todo, Wait) else advance(flow)
        except RequestRefused as refusal:
            raise told(refusal, self.trace) from None
        if isinstance(todo, Reply):
            raise_failed(todo, self.trace)
            return
        self._open[key] = flow
        _passing.set(key)

    def _admit_embedding(self, key: str) -> None:
        limits, ledger = self.trace.governor.limits(), self.trace.ledger
        demand = Demand(label="embed", model=model_name(self._target), tokens=0, pico=0)
        refusal = ledger.permit(demand, limits) or ledger.hopeless(demand, limits)
        if refusal is not None:
            self.trace.refuse(refusal)
            raise told(
                RequestRefused(refusal.message, refusal.reason, refusal.label, refusal.model),
                self.trace,
            )
        self._embedding.add(key)

    def _outcome(self, event: BaseEvent, pieces: list[Any]) -> Reply:
        if isinstance(event, (LLMChatEndEvent, LLMCompletionEndEvent)):
            if pieces:
                return joined(pieces, True)
            return Reply(ok=True) if event.response is None else read_response(event.response)
        error = event.exception if isinstance(event, ExceptionEvent) else _cause(event)
        if isinstance(error, Exception):
            return failed_reply(error)
        return replace(joined(pieces, False), finish_reason=ABANDONED)


class _GateHandler(BaseEventHandler):
    """Tells a gate which request comes next, and how it ended."""

    _gate: RequestGate = PrivateAttr()

    def __init__(self, gate: RequestGate) -> None:
        super().__init__()
        self._gate = gate

    @classmethod
    def class_name(cls) -> str:
        return "GateHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take one event in."""
        if isinstance(event, (LLMChatStartEvent, LLMCompletionStartEvent, EmbeddingStartEvent)):
            _started.set(event)
        elif isinstance(event, _ENDS):
            self._gate.ended(event)


_ENDS = (
    LLMChatEndEvent, LLMCompletionEndEvent, LLMChatInProgressEvent, LLMCompletionInProgressEvent,
    EmbeddingEndEvent, ExceptionEvent, SpanDropEvent,
)  # fmt: skip


@contextmanager
def install_gate(
    obj: LLM | BaseEmbedding, trace: Trace | None = None, *, governor: Governor | None = None
) -> Iterator[Trace]:
    """Hold an LLM or embedding that cannot be replaced to the limits of ``trace``, inside.

    Its own rate limiter still works, and is back at the end. The hole: ``structured_predict`` of
    provider classes that call their SDK directly passes unseen. No output cap is set, so the bound
    of a request without one is the model's own.

    Raises:
        BadSettingError: ``obj`` is governed already, or has no rate limiter.
    """
    if isinstance(obj, GovernedLLM) or not hasattr(obj, "rate_limiter"):
        raise BadSettingError(f"a gate is for bare LLMs and embeddings, not {type(obj).__name__}")
    run = governed_trace("install_gate", trace, governor)
    gate = RequestGate(obj, run)
    handler = _GateHandler(gate)
    handlers = get_dispatcher().event_handlers
    handlers.append(handler)
    obj.rate_limiter = gate
    try:
        yield run
    finally:
        obj.rate_limiter = gate.before
        handlers[:] = [one for one in handlers if one is not handler]
        gate.close()


def _cause(event: BaseEvent) -> BaseException:
    return raised_by(event) if isinstance(event, SpanDropEvent) else RuntimeError("unknown")
