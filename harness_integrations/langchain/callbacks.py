"""Callbacks that write a trace: every model and retriever run of any LangChain app is a step.

They see, and do not limit: a callback comes before LangChain's cache, cannot stop a sync call from
an async handler, and is never told of embeddings (``GovernedEmbeddings`` sees those).
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.tracers.context import register_configure_hook

from harness_core.calls.trace import Slot, Trace
from harness_core.errors import RequestRefused
from harness_core.messages import Reply
from harness_integrations.langchain.asking import read_request
from harness_integrations.langchain.models import MARK
from harness_integrations.langchain.replies import from_cache, read_result
from harness_integrations.langchain.sending import CODEC
from harness_integrations.shared.failures import failed_reply
from harness_integrations.shared.watching import Begun, Redact, Shown, Watched, write


@dataclass(slots=True)
class _Seen:
    """A run that has started; ``slot`` is None for one that a governed model records itself."""

    begun: Begun
    slot: Slot | None


class TraceCallbackHandler(BaseCallbackHandler):
    """Writes every LLM, chat model and retriever run into ``trace``, sync and async, once per run.

    A run that LangChain's cache answered is ``cached`` and costs nothing; one that was closed early
    or cancelled is ``cancelled``; a failed one has its error; ``unfinished`` are those that have
    not ended. A model governed under the same trace is left to it. Usage that no provider reported
    is counted here and marked estimated. ``record_content=False`` keeps texts out of the trace,
    ``redact`` changes them on the way in.
    """

    raise_error = False
    run_inline = True

    def __init__(
        self,
        trace: Trace | None = None,
        *,
        record_content: bool = True,
        redact: Redact | None = None,
    ) -> None:
        self.trace = trace if trace is not None else Trace()
        self.record_content = record_content
        self.redact = redact
        self._runs: dict[UUID, _Seen] = {}
        self._searches: dict[UUID, tuple[str, str, float]] = {}
        self._lock = threading.Lock()

    @property
    def unfinished(self) -> list[str]:
        """The models of runs that have started and not ended."""
        with self._lock:
            return [seen.begun.call.model for seen in self._runs.values() if seen.slot is not None]

    # --- models ---------------------------------------------------------------------------------

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Give the run its place in the trace."""
        self._begin(run_id, messages[0] if messages else [], metadata or {}, kwargs)

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """The same for a completion model."""
        self._begin(run_id, [HumanMessage(one) for one in prompts], metadata or {}, kwargs)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Write the step of a run that gave a result."""
        if (seen := self._end(run_id)) is None:
            return
        hit = _is_hit(response)
        if seen.slot is not None or hit:
            self._write(seen, replace(_read(response), cached=hit))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Write the step of a run that failed, was closed or was cancelled."""
        seen = self._end(run_id)
        if seen is None or seen.slot is None:
            return
        if isinstance(error, RequestRefused):
            self.trace.void(seen.slot)  # never sent; whoever refused it has the entry
            return
        closed = isinstance(error, (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt))
        partial = _read(kwargs.get("response"))
        if closed:
            reply = replace(partial, ok=False, error="closed before its end", finish_reason=None)
        else:
            known = error if isinstance(error, Exception) else RuntimeError(repr(error))
            reply = failed_reply(known, text=partial.text, usage=partial.usage)
        self._write(seen, reply, cancelled=closed)

    # --- retrievers -----------------------------------------------------------------------------

    def on_retriever_start(
        self, serialized: dict[str, Any], query: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Remember when a search began."""
        name = str(kwargs.get("name") or "retriever")
        with self._lock:
            self._searches.setdefault(run_id, (name, query, perf_counter()))

    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note a search and what it found."""
        self._search(run_id, found=len(documents), ids=[one.id for one in documents])

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note a search that failed."""
        self._search(run_id, error=f"{type(error).__name__}: {error}")

    # --- writing --------------------------------------------------------------------------------

    def _begin(
        self,
        run_id: UUID,
        messages: Sequence[BaseMessage],
        metadata: Mapping[str, Any],
        known: Mapping[str, Any],
    ) -> None:
        with self._lock:
            if run_id in self._runs:
                return
            governed = metadata.get(MARK) == self.trace.run_id
            settings = {**_listed(metadata), **(known.get("invocation_params") or {})}
            request = read_request(messages, settings, label=str(known.get("name") or "chat"))
            watched = Watched("langchain", request.model or "", CODEC)
            begun = Begun.of(request, watched, self.trace)
            self._runs[run_id] = _Seen(begun, None if governed else self.trace.slot())

    def _end(self, run_id: UUID) -> _Seen | None:
        with self._lock:
            return self._runs.pop(run_id, None)

    def _write(self, seen: _Seen, reply: Reply, *, cancelled: bool = False) -> None:
        shown = Shown(content=self.record_content, redact=self.redact)
        slot = seen.slot or self.trace.slot()
        write(seen.begun, reply, slot, self.trace, shown, cancelled=cancelled)

    def _search(self, run_id: UUID, **found: Any) -> None:
        with self._lock:
            begun = self._searches.pop(run_id, None)
        if begun is None:
            return
        name, query, clock = begun
        said = self.redact(query) if self.redact is not None else query
        shown = {"query": said} if self.record_content else {}
        self.trace.note(name, **shown, **found, seconds=round(perf_counter() - clock, 3))


_current: ContextVar[TraceCallbackHandler | None] = ContextVar(
    "harness_trace_handler", default=None
)
register_configure_hook(_current, inheritable=True)  # once: the list of hooks is never emptied


@contextmanager
def trace_calls(
    trace: Trace | None = None, *, record_content: bool = True, redact: Redact | None = None
) -> Iterator[Trace]:
    """Write every model and retriever run inside into a trace, without passing callbacks.

    Runs that have not ended when the block does are noted in the trace as ``unfinished``.
    """
    handler = TraceCallbackHandler(trace, record_content=record_content, redact=redact)
    token = _current.set(handler)
    try:
        yield handler.trace
    finally:
        _current.reset(token)
        if handler.unfinished:
            handler.trace.note("unfinished", models=handler.unfinished)


def _listed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the standard metadata of a run says of its settings."""
    names = {
        "model": "ls_model_name", "temperature": "ls_temperature",
        "max_tokens": "ls_max_tokens", "stop": "ls_stop",
    }  # fmt: skip
    found = {name: metadata.get(theirs) for name, theirs in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _read(response: LLMResult | None) -> Reply:
    """The reply in what a run ended with."""
    rows = response.generations if response is not None else []
    first = next((row[0] for row in rows if row), None)
    if response is None or first is None:
        return Reply(ok=True)
    if not isinstance(first, ChatGeneration):
        message = AIMessage(content=first.text)
        first = ChatGeneration(message=message, generation_info=first.generation_info)
    return read_result(ChatResult(generations=[first], llm_output=response.llm_output))


def _is_hit(response: LLMResult) -> bool:
    """Whether LangChain's cache answered; a result with its own output came from the provider."""
    first = next((row[0] for row in response.generations if row), None)
    message = getattr(first, "message", None)
    return response.llm_output is None and message is not None and from_cache(message)
