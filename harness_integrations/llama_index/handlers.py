"""Handlers for LlamaIndex's instrumentation, which write a trace.

They see, and cannot limit: the dispatcher swallows whatever a handler raises.
"""

import sys
from collections import deque
from inspect import BoundArguments
from time import perf_counter
from typing import Any

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
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.events.span import SpanDropEvent
from pydantic import Field, PrivateAttr

from harness_core.calls.trace import Trace
from harness_integrations.llama_index.observing import Observer, described, observer_of
from harness_integrations.shared.watching import Redact

MOST_SPANS = 10_000


class TraceEventHandler(BaseEventHandler):
    """Writes every LLM, embedding and retrieval request into ``trace``, once each.

    A request governed under the same trace is left to it. A stream that is closed early is
    ``cancelled``; a failed request has its error. Usage that no provider reported is counted here.
    ``include_prompts=False`` keeps texts out of the trace, ``redact`` changes them on the way in.
    Beside a ``TraceSpanHandler`` (``instrument`` installs both) it also knows a request made while
    a stream is open from one that is a part of another.
    """

    _observer: Observer = PrivateAttr()
    _embedding: dict[str, str] = PrivateAttr(default_factory=dict)

    def __init__(
        self, trace: Trace, *, include_prompts: bool = True, redact: Redact | None = None
    ) -> None:
        super().__init__()
        self._observer = observer_of(trace)
        self._observer.limit_content(include_prompts=include_prompts, redact=redact)

    @classmethod
    def class_name(cls) -> str:
        return "TraceEventHandler"

    @property
    def trace(self) -> Trace:
        """The trace that is written."""
        return self._observer.trace

    @property
    def unfinished(self) -> list[str]:
        """The models of requests that have started and not ended."""
        return self._observer.unfinished

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take one event in."""
        with self._observer.guarded():
            self._handle(event, event.span_id or "")

    def _handle(self, event: BaseEvent, key: str) -> None:
        observer = self._observer
        match event:
            case LLMChatInProgressEvent() | LLMCompletionInProgressEvent():
                observer.progress(key, event.response)
            case LLMChatStartEvent():
                observer.begin(key, event.messages, *_described(event))
            case LLMCompletionStartEvent():
                observer.begin(key, event.prompt, *_described(event))
            case LLMChatEndEvent() | LLMCompletionEndEvent():
                observer.end(key, event.response)
            case ExceptionEvent():
                observer.fail(key, event.exception)
            case SpanDropEvent():
                observer.fail(key, raised_by(event))
            case _:
                self._other(event, key)

    def _other(self, event: BaseEvent, key: str) -> None:
        if isinstance(event, EmbeddingStartEvent):
            self._embedding[key] = described(event.model_dict, {})[1]
        elif isinstance(event, EmbeddingEndEvent):
            self._observer.embedded(event.chunks, self._embedding.pop(key, "embedding"))
        elif isinstance(event, RetrievalEndEvent):
            asked = event.str_or_query_bundle
            query = asked if isinstance(asked, str) else asked.query_str
            redact = self._observer.shown.redact
            shown = {"query": redact(query) if redact else query}
            self.trace.note(
                "retrieve",
                **(shown if self._observer.shown.content else {}),
                found=len(event.nodes),
            )


class TraceSpan(BaseSpan):
    """A call of LlamaIndex's: what was called, under which other one, and how it ended."""

    name: str = ""
    started: float = Field(default_factory=perf_counter)
    seconds: float | None = None
    error: str | None = None


class TraceSpanHandler(BaseSpanHandler[TraceSpan]):
    """Keeps the newest spans (``spans``) of an app beside its trace, with their parents."""

    _observer: Observer = PrivateAttr()
    _ended: deque[TraceSpan] = PrivateAttr(default_factory=lambda: deque(maxlen=MOST_SPANS))

    def __init__(self, trace: Trace) -> None:
        super().__init__(open_spans={}, completed_spans=[], dropped_spans=[], current_span_ids={})
        self._observer = observer_of(trace)

    @classmethod
    def class_name(cls) -> str:
        return "TraceSpanHandler"

    @property
    def spans(self) -> list[TraceSpan]:
        """The spans that have ended, oldest first."""
        return list(self._ended)

    def new_span(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> TraceSpan:
        """A span begins."""
        return TraceSpan(
            id_=id_, parent_id=parent_span_id, tags=tags or {}, name=id_.partition("-")[0]
        )

    def prepare_to_exit_span(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> TraceSpan | None:
        """A span ends; a stream that it returned may go on."""
        self._observer.returned(id_)
        return self._end(id_)

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> TraceSpan | None:
        """A span ends in an error."""
        return self._end(id_, None if err is None else f"{type(err).__name__}: {err}")

    def _end(self, id_: str, error: str | None = None) -> TraceSpan | None:
        if (span := self.open_spans.get(id_)) is not None:
            span.seconds = perf_counter() - span.started
            span.error = error
            self._ended.append(span)
        return span


def watched(trace: Trace) -> bool:
    """Whether an event handler for the trace is installed."""
    return any(is_of(one, TraceEventHandler, trace) for one in get_dispatcher().event_handlers)


def is_of(handler: Any, kind: type[Any], trace: Trace) -> bool:
    """Whether a handler is of a kind and writes into that trace."""
    return isinstance(handler, kind) and handler._observer.trace is trace  # noqa: SLF001 - our own


def _described(event: LLMChatStartEvent | LLMCompletionStartEvent) -> tuple[dict[str, Any], str]:
    return described(event.model_dict, event.additional_kwargs)


def raised_by(event: SpanDropEvent) -> BaseException:
    """The error behind a dropped span: it is being handled right now."""
    error = sys.exc_info()[1]
    return (
        error if error is not None and str(error) == event.err_str else RuntimeError(event.err_str)
    )
