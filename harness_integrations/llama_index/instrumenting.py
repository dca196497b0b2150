"""Handlers put in place for a while: exactly those are removed again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index_instrumentation import get_dispatcher

from harness_core.calls.trace import Trace
from harness_integrations.llama_index.handlers import (
    TraceEventHandler,
    TraceSpanHandler,
    is_of,
)
from harness_integrations.llama_index.legacy import TraceCallbackHandler
from harness_integrations.llama_index.observing import observer_of
from harness_integrations.shared.watching import Redact


@contextmanager
def instrument(
    trace: Trace,
    *,
    dispatcher: Any = None,
    legacy: bool = False,
    include_prompts: bool = True,
    redact: Redact | None = None,
) -> Iterator[Trace]:
    """Write what LlamaIndex does inside into ``trace``; the handlers go again at the end.

    They are added to ``dispatcher`` (none: the root one), with ``legacy`` to
    ``Settings.callback_manager`` as well, at most one of a kind per trace; what others added stays.
    Streams that nobody read to an end are recorded as open.
    """
    root = get_dispatcher() if dispatcher is None else dispatcher
    added: list[tuple[list[Any], Any]] = []
    if not any(is_of(one, TraceEventHandler, trace) for one in root.event_handlers):
        handler = TraceEventHandler(trace, include_prompts=include_prompts, redact=redact)
        added.append((root.event_handlers, handler))
    if not any(is_of(one, TraceSpanHandler, trace) for one in root.span_handlers):
        added.append((root.span_handlers, TraceSpanHandler(trace)))
    if legacy:
        from llama_index.core import Settings

        handlers = Settings.callback_manager.handlers
        if not any(
            isinstance(one, TraceCallbackHandler) and one.trace is trace for one in handlers
        ):
            one = TraceCallbackHandler(trace, include_prompts=include_prompts, redact=redact)
            added.append((handlers, one))
    for handlers, one in added:
        handlers.append(one)
    try:
        yield trace
    finally:
        for handlers, one in added:
            _remove(handlers, one)
        if added:
            observer_of(trace).sweep()


def _remove(handlers: list[Any], handler: Any) -> None:
    for place, one in enumerate(handlers):
        if one is handler:  # by identity: pydantic objects with equal fields are equal
            del handlers[place]
            return
