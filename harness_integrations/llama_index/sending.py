"""What sends through a LlamaIndex LLM: its own methods, on copies that carry each request's cap."""

import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, closing
from typing import Any, NamedTuple

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from harness_core.calls.cache import ResponseCache
from harness_core.client import OnText
from harness_core.flows.streaming import ABANDONED
from harness_core.messages import Reply, Request
from harness_core.models.registry import model_info
from harness_integrations.llama_index.asking import (
    Payload,
    capped,
    changed,
    identity_of,
    model_name,
    need_cap,
    own_settings,
    speaks_openai,
    speaks_responses,
    tried_once,
    without_caps,
)
from harness_integrations.llama_index.loops import PerLoop
from harness_integrations.llama_index.messages import ResponseCodec, from_ours
from harness_integrations.llama_index.replies import joined, read_response
from harness_integrations.shared.failures import Broken, failed_reply
from harness_integrations.shared.governing import AdaptedClient, need_asyncio
from harness_integrations.shared.streaming import StreamClosed

CODEC = ResponseCodec()


class _Ready(NamedTuple):
    """A request as one of the LLM's own calls."""

    llm: LLM
    kind: str
    given: Any
    kwargs: Mapping[str, Any]


class LLMClient(AdaptedClient):
    """Sends an app's own calls and a reader's requests through one LLM, one attempt each.

    Raises:
        OutputCapUnenforceable: the output of ``llm`` cannot be capped, and ``allow_uncapped`` is
            not set.
    """

    api = "llama_index"
    codec = CODEC

    def __init__(
        self, llm: LLM, *, cache: ResponseCache | None = None, allow_uncapped: bool = False
    ) -> None:
        super().__init__()
        if not allow_uncapped:
            need_cap(llm)
        self.llm: LLM = tried_once(llm)
        self._loops: PerLoop[LLM] = PerLoop()
        self.model = model_name(llm)
        self.cache = cache
        self.identity = identity_of(llm)
        self.takes_temperature = "temperature" in type(llm).model_fields

    def adapted(self, request: Request) -> Request:
        """An app's own call as it is; of a reader's request what the LLM can take."""
        return request if isinstance(request.payload, Payload) else super().adapted(request)

    def takes_effort(self, effort: str) -> bool:
        """Whether the LLM is of a class that takes an effort per request."""
        return speaks_openai(self.llm) or speaks_responses(self.llm)

    # --- the client protocol --------------------------------------------------------------------

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Ask once; with ``on_text`` stream. A provider's exception travels on the failed reply."""
        ready = self._ready(request, self.llm)
        try:
            if on_text is None:
                return read_response(_method(ready, "")(ready.given, **ready.kwargs))
            pieces: list[Any] = []
            with closing(self.stream(request)) as source:
                for piece in source:
                    pieces.append(piece)
                    if not _heard(on_text, piece):
                        return _abandoned(pieces)
            return joined(pieces, True)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is its request's
            return failed_reply(error)

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """The async twin of ``send``, on asyncio."""
        need_asyncio("a LlamaIndex LLM")
        ready = self._ready(request, self._loops.here(self.llm))
        try:
            if on_text is None:
                return read_response(await _method(ready, "a")(ready.given, **ready.kwargs))
            pieces: list[Any] = []
            async with aclosing(self.astream(request)) as source:
                async for piece in source:
                    pieces.append(piece)
                    if not _heard(on_text, piece):
                        return _abandoned(pieces)
            return joined(pieces, True)
        except Exception as error:  # noqa: BLE001 - as above
            return failed_reply(error)

    def stream(self, request: Request, /) -> Generator[Any, None, None]:
        """The LLM's own pieces; what its provider raises is the last one."""
        ready = self._ready(request, self.llm, streamed=True)
        try:
            source = _method(ready, "stream_")(ready.given, **ready.kwargs)
            with closing(source):
                yield from source
        except Exception as error:  # noqa: BLE001 - as above
            yield Broken(error)

    async def astream(self, request: Request, /) -> AsyncGenerator[Any, None]:
        """The async twin of ``stream``."""
        need_asyncio("a LlamaIndex LLM")
        ready = self._ready(request, self._loops.here(self.llm), streamed=True)
        try:
            source = await _method(ready, "astream_")(ready.given, **ready.kwargs)
            async with aclosing(source):
                async for piece in source:
                    yield piece
        except Exception as error:  # noqa: BLE001 - as above
            yield Broken(error)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    # --- what it becomes ------------------------------------------------------------------------

    def _ready(self, request: Request, llm: LLM, *, streamed: bool = False) -> _Ready:
        asked = request.payload
        if isinstance(asked, Payload):
            ready = self._as_asked(request, asked, llm)
        else:
            ready = self._as_read(request, llm)
        if streamed and speaks_openai(ready.llm):  # else its streams report no usage
            options = {"include_usage": True, **dict(ready.kwargs.get("stream_options") or {})}
            ready = ready._replace(kwargs={**ready.kwargs, "stream_options": options})
        return ready

    def _as_asked(self, request: Request, asked: Payload, bare: LLM) -> _Ready:
        """An app's own call: as it came, but for the cap, which its bound was made with."""
        given: Any = asked.prompt if asked.kind == "complete" else asked.messages
        guessed = not model_info(request.model or self.model).certain
        if request.max_output is None or (asked.cap is None and not guessed):
            return _Ready(bare, asked.kind, given, asked.kwargs)
        llm = capped(bare, request.max_output)
        if llm is bare:  # it was said that it may go uncapped
            return _Ready(llm, asked.kind, given, asked.kwargs)
        return _Ready(llm, asked.kind, given, without_caps(asked.kwargs))

    def _as_read(self, request: Request, llm: LLM) -> _Ready:
        """A reader's request."""
        if request.max_output is not None:
            llm = capped(llm, request.max_output)
        if request.temperature is not None and self.takes_temperature:
            llm = changed(llm, temperature=request.temperature)
        messages = from_ours(request.messages)
        kwargs: dict[str, Any] = {}
        if request.schema is not None:
            kwargs = self._schema(request)
            if not kwargs:
                messages.append(ChatMessage(role=MessageRole.USER, content=_asking_json(request)))
        if request.effort is not None:
            kwargs |= _effort(llm, request.effort)
        if request.stop:
            kwargs["stop"] = list(request.stop)
        return _Ready(llm, "chat", messages, kwargs)

    def _schema(self, request: Request) -> dict[str, Any]:
        """The keyword that takes a schema, for the classes it is known of."""
        wanted = {"name": request.schema_name, "schema": request.schema, "strict": True}
        if speaks_responses(self.llm):
            return {"text": {"format": {"type": "json_schema", **wanted}}}
        if speaks_openai(self.llm):
            return {"response_format": {"type": "json_schema", "json_schema": wanted}}
        return {}


def _method(ready: _Ready, prefix: str) -> Callable[..., Any]:
    method: Callable[..., Any] = getattr(ready.llm, f"{prefix}{ready.kind}")
    return method


def _effort(llm: LLM, effort: str) -> dict[str, Any]:
    if not speaks_responses(llm):
        return {"reasoning_effort": effort}
    return {"reasoning": {**dict(own_settings(llm).get("reasoning") or {}), "effort": effort}}


def _asking_json(request: Request) -> str:
    schema = json.dumps(request.schema, ensure_ascii=False)
    return f"Answer with a single JSON object that fits this schema, and no other text:\n{schema}"


def _heard(on_text: OnText, piece: Any) -> bool:
    """Whether a piece was heard; False when nobody listens any more."""
    try:
        if not isinstance(piece, Broken) and piece.delta:
            on_text(piece.delta)
    except StreamClosed:
        return False
    return True


def _abandoned(pieces: list[Any]) -> Reply:
    from dataclasses import replace

    return replace(joined(pieces, False), finish_reason=ABANDONED)
