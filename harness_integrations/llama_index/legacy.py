"""The handler for apps that still use LlamaIndex's callback managers."""

from typing import Any

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.instrumentation.span import active_span_id

from harness_core.calls.trace import Trace
from harness_integrations.llama_index.handlers import watched
from harness_integrations.llama_index.observing import described, observer_of
from harness_integrations.shared.watching import Redact


class TraceCallbackHandler(BaseCallbackHandler):
    """Writes LLM and embedding requests into ``trace``; none that another handler of it has seen.

    A callback manager may be replaced by LlamaIndex without a word; where that matters use
    ``instrument(trace)``, and to limit ``GovernedLLM``.
    """

    def __init__(
        self, trace: Trace, *, include_prompts: bool = True, redact: Redact | None = None
    ) -> None:
        super().__init__(event_starts_to_ignore=[], event_ends_to_ignore=[])
        self._observer = observer_of(trace)
        self._observer.limit_content(include_prompts=include_prompts, redact=redact)
        self._keys: dict[str, str] = {}
        self._embedding: dict[str, str] = {}

    @property
    def trace(self) -> Trace:
        """The trace that is written."""
        return self._observer.trace

    def on_event_start(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        parent_id: str = "",
        **kwargs: Any,
    ) -> str:
        """A request starts."""
        told = payload or {}
        with self._observer.guarded():
            if event_type == CBEventType.LLM:
                self._begin(event_id, told)
            elif event_type == CBEventType.EMBEDDING:
                self._embedding[event_id] = described(told.get(EventPayload.SERIALIZED) or {}, {})[
                    1
                ]
        return event_id

    def on_event_end(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        **kwargs: Any,
    ) -> None:
        """A request ends."""
        told = payload or {}
        with self._observer.guarded():
            if (
                event_type == CBEventType.LLM
                and (key := self._keys.pop(event_id, None)) is not None
            ):
                if (error := told.get(EventPayload.EXCEPTION)) is not None:
                    self._observer.fail(key, error)
                else:
                    response = told.get(EventPayload.RESPONSE) or told.get(EventPayload.COMPLETION)
                    self._observer.end(key, response)
            elif event_type == CBEventType.EMBEDDING:
                model = self._embedding.pop(event_id, "embedding")
                if active_span_id.get() is None or not watched(self.trace):
                    self._observer.embedded(told.get(EventPayload.CHUNKS) or (), model)

    def start_trace(self, trace_id: str | None = None) -> None:
        """Nothing to do: the trace is open."""

    def end_trace(
        self, trace_id: str | None = None, trace_map: dict[str, list[str]] | None = None
    ) -> None:
        """Nothing to do: the trace stays open."""

    def _begin(self, event_id: str, told: dict[str, Any]) -> None:
        span = active_span_id.get()
        if span is not None and self._observer.knows(span):
            return  # the other system was first
        key = span or event_id
        called = told.get(EventPayload.ADDITIONAL_KWARGS) or {}
        settings, model = described(told.get(EventPayload.SERIALIZED) or {}, called)
        given = told.get(EventPayload.MESSAGES)
        given = told.get(EventPayload.PROMPT, "") if given is None else given
        self._keys[event_id] = key
        self._observer.begin(key, given, settings, model)
