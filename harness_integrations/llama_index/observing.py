"""What handlers see of an app's requests, written as steps of a trace: one step per request.

Both of LlamaIndex's event systems tell of one request, and decorated methods call each other, so
events are not counted: a request is known by its span, and one made inside an open one is part of
that.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from harness_core.calls.trace import Slot, Trace
from harness_core.errors import RequestRefused
from harness_core.flows.types import inside
from harness_core.messages import Embeddings, Reply, Request, Texts, Usage, clean_text
from harness_core.models.tokenizers import count_tokens, provenance
from harness_integrations.llama_index.asking import read_request
from harness_integrations.llama_index.replies import Response, joined, read_response
from harness_integrations.llama_index.sending import CODEC
from harness_integrations.shared.failures import Broken, failed_reply
from harness_integrations.shared.settings import is_count
from harness_integrations.shared.watching import Begun, Redact, Shown, Watched, write

MOST_KNOWN = 10_000
"""Requests of which it is remembered that they were seen."""

_CLOSED = (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt)


@dataclass(slots=True)
class Seen:
    """A request that has started. ``returned``: its call is over, so what is open is a stream."""

    begun: Begun
    slot: Slot
    returned: bool = False
    pieces: list[Any] = field(default_factory=list)


_current: ContextVar[str | None] = ContextVar("observed_request", default=None)


class Observer:
    """Writes what is seen of requests into one trace; shared by all handlers of that trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.shown = Shown()
        self._open: dict[str, Seen] = {}
        self._known: dict[str, None] = {}
        self._lock = threading.RLock()

    def limit_content(self, *, include_prompts: bool, redact: Redact | None) -> None:
        """Keep texts out or change them; once any handler asked for it, it holds for all."""
        before = self.shown
        self.shown = Shown(
            content=before.content and include_prompts, redact=redact or before.redact
        )

    @property
    def unfinished(self) -> list[str]:
        """The models of requests that have started and not ended."""
        with self._lock:
            return [seen.begun.call.model for seen in self._open.values()]

    def knows(self, key: str) -> bool:
        """Whether a request is seen already, by whichever handler."""
        return key in self._known

    def begin(
        self, key: str, given: Sequence[ChatMessage] | str, settings: Mapping[str, Any], model: str
    ) -> None:
        """A request starts, unless it is governed by this trace or a part of an open one."""
        here = inside.get()
        if here is not None and here.trace is self.trace:
            return
        with self._lock:
            outer = self._open.get(_current.get() or "")
            known = key in self._known
            self._remember(key)
            if known or (outer is not None and not outer.returned):
                return
            messages = [ChatMessage(role=MessageRole.USER, content=given)] if isinstance(
                given, str
            ) else given  # fmt: skip
            label = "complete" if isinstance(given, str) else "chat"
            request = read_request(messages, settings, model=model, label=label)
            self._open[key] = Seen(self._begun(request, model), self.trace.slot())
        _current.set(key)

    def progress(self, key: str, piece: Response) -> None:
        """A piece of a stream; it is a reference, never read ahead."""
        if (seen := self._open.get(key)) is not None:
            seen.pieces.append(piece)

    def returned(self, key: str) -> None:
        """The call of a request is over; its stream may go on."""
        if (seen := self._open.get(key)) is not None:
            seen.returned = True

    def end(self, key: str, response: Response | None) -> None:
        """A request has its reply."""
        if (seen := self._take(key)) is None:
            return
        if seen.pieces:
            self._write(seen, joined(seen.pieces, True))
        else:
            self._write(seen, Reply(ok=True) if response is None else read_response(response))

    def fail(self, key: str, error: BaseException) -> None:
        """A request failed, was cancelled, or its stream was closed."""
        if (seen := self._take(key)) is None:
            return
        if isinstance(error, RequestRefused):
            self.trace.void(seen.slot)  # never sent; whoever refused it has the entry
        elif isinstance(error, _CLOSED):
            partial = replace(joined(seen.pieces, False), ok=False, error="closed before its end")
            self._write(seen, replace(partial, finish_reason=None), cancelled=True)
        else:
            known = error if isinstance(error, Exception) else RuntimeError(repr(error))
            broken = joined([*seen.pieces, Broken(known)], False)
            self._write(seen, broken if seen.pieces else failed_reply(known))

    def embedded(self, texts: Sequence[str], model: str) -> None:
        """An embedding request has its vectors."""
        here = inside.get()
        if here is not None and here.trace is self.trace:
            return
        asked = Texts(texts=tuple(map(clean_text, texts)), model=model, label="embed")
        tokens = sum(count_tokens(text, model) for text in texts)
        usage = Usage(input=tokens, output=0, provenance=provenance(model=model))
        seen = Seen(self._begun(asked, model), self.trace.slot())
        self._write(seen, Embeddings(ok=True, usage=usage))

    def forget(self, key: str) -> None:
        """A request that somebody else records after all: its place is given back."""
        with self._lock:
            self._remember(key)
        if (seen := self._take(key)) is not None:
            self.trace.void(seen.slot)

    def sweep(self) -> None:
        """Streams that nobody read to an end: recorded as open, and nothing waits for them."""
        with self._lock:
            keys = list(self._open)
        for key in keys:
            if (seen := self._take(key)) is not None:
                left = Reply.failed(
                    "open: it had not ended when the recording did", sent=bool(seen.pieces),
                    text=joined(seen.pieces, False).text if seen.pieces else "",
                )  # fmt: skip
                self._write(seen, left, cancelled=True)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """A fault in a handler never reaches the app; the trace tells of it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the app goes on
            self.trace.note("handler.error", error=f"{type(error).__name__}: {error}")

    def _remember(self, key: str) -> None:
        self._known[key] = None
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _take(self, key: str) -> Seen | None:
        with self._lock:
            return self._open.pop(key, None)

    def _write(self, seen: Seen, outcome: Reply | Embeddings, *, cancelled: bool = False) -> None:
        write(seen.begun, outcome, seen.slot, self.trace, self.shown, cancelled=cancelled)

    def _begun(self, asked: Request | Texts, model: str) -> Begun:
        return Begun.of(asked, Watched("llama_index", model, CODEC), self.trace)


_observers: WeakKeyDictionary[Trace, Observer] = WeakKeyDictionary()


def observer_of(trace: Trace) -> Observer:
    """The observer that all handlers of a trace share, so that no request is seen twice."""
    return _observers.setdefault(trace, Observer(trace))


def described(payload: Mapping[str, Any], called: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Settings and model of a request, from an LLM's description (two forms) and its call."""
    inner = payload.get("llm")  # of a StructuredLLM, in the older form
    payload = inner if isinstance(inner, Mapping) else payload
    cap = payload.get("max_tokens") or payload.get("num_output")
    own = {
        "temperature": payload.get("temperature"),
        "max_output": cap if is_count(cap) else None,
    }
    name = called.get("model") or payload.get("model_name") or payload.get("model")
    if not isinstance(name, str) or name == "unknown":
        name = str(payload.get("class_name") or "unknown")
    return {**own, **called}, name
