"""Any LlamaIndex LLM as the core's model client."""

import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, closing
from typing import Any, NamedTuple

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from harness_core.calls.cache import ResponseCache
from harness_core.calls.trace import Trace
from harness_core.flows.streaming import ABANDONED
from harness_core.messages import Embeddings, OnText, Reply, Request, Texts
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
from harness_integrations.llama_index.messages import ResponseCodec, from_ours
from harness_integrations.llama_index.replies import Broken, joined, read_response
from harness_integrations.shared.failures import failed_reply
from harness_integrations.shared.governing import AdaptedClient, need_asyncio
from harness_integrations.shared.streaming import StreamClosed

CODEC = ResponseCodec()


class _Ready(NamedTuple):
    """A request as one of the LLM's own calls."""

    llm: LLM
    kind: str
    given: Any
    kwargs: Mapping[str, Any]


class LlamaIndexClient(AdaptedClient):
    """Sends requests through ``llm``, one attempt each, the output cap enforced on a copy of it.

    Requests are priced and recorded as the LLM's model, whatever a spec names, with one warning. A
    schema goes out natively with LlamaIndex's OpenAI classes, elsewhere as words in the prompt.
    ``llm.system_prompt`` is not added: ``chat`` does not. A governed LLM is unwrapped, so that a
    request is governed once; ``trace`` is then its trace. Without ``embeddings`` readers rank by
    words. ``allow_uncapped`` accepts an LLM whose output cannot be capped.

    Raises:
        OutputCapUnenforceable: the output of ``llm`` cannot be capped.
        TypeError: something that is no LLM.
    """

    api = "llama_index"
    codec = CODEC

    def __init__(
        self,
        llm: LLM,
        *,
        embeddings: BaseEmbedding | None = None,
        cache: ResponseCache | None = None,
        allow_uncapped: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(llm, LLM):
            raise TypeError(f"llm is a LlamaIndex LLM, not {type(llm).__name__}")
        from harness_integrations.llama_index.governed import GovernedLLM

        self.governed = llm if isinstance(llm, GovernedLLM) else None
        inner = llm.llm if isinstance(llm, GovernedLLM) else llm
        allowed = allow_uncapped or (self.governed is not None and self.governed.allow_uncapped)
        if not allowed:
            need_cap(inner)
        self.llm: LLM = tried_once(inner)
        self.model = model_name(inner)
        self.cache = cache if self.governed is None else cache or self.governed.response_cache
        self.identity = identity_of(inner)
        self.takes_temperature = "temperature" in type(inner).model_fields
        self._embeddings = _embeddings_client(embeddings)
        self.can_embed = self._embeddings is not None
        if self._embeddings is not None:
            self.embedding_model = self._embeddings.model

    @property
    def trace(self) -> Trace | None:
        """The trace of the governed LLM inside; None without one."""
        return None if self.governed is None else self.governed.trace

    def adapted(self, request: Request) -> Request:
        """An app's own call as it is; of a reader's request what the LLM can take."""
        return request if isinstance(request.payload, Payload) else super().adapted(request)

    def takes_effort(self, effort: str) -> bool:
        """Whether the LLM is of a class that takes an effort per request."""
        return speaks_openai(self.llm) or speaks_responses(self.llm)

    # --- the client protocol --------------------------------------------------------------------

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Ask once; with ``on_text`` stream. A provider's exception travels on the failed reply."""
        ready = self._ready(request)
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
        ready = self._ready(request)
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
        ready = self._ready(request, streamed=True)
        try:
            source = _method(ready, "stream_")(ready.given, **ready.kwargs)
            with closing(source):
                yield from source
        except Exception as error:  # noqa: BLE001 - as above
            yield Broken(error)

    async def astream(self, request: Request, /) -> AsyncGenerator[Any, None]:
        """The async twin of ``stream``."""
        need_asyncio("a LlamaIndex LLM")
        ready = self._ready(request, streamed=True)
        try:
            source = await _method(ready, "astream_")(ready.given, **ready.kwargs)
            async with aclosing(source):
                async for piece in source:
                    yield piece
        except Exception as error:  # noqa: BLE001 - as above
            yield Broken(error)

    def embed(self, request: Texts, /) -> Embeddings:
        """Vectors from ``embeddings``; without them a failed outcome that says so."""
        return (
            super().embed(request) if self._embeddings is None else self._embeddings.embed(request)
        )

    async def aembed(self, request: Texts, /) -> Embeddings:
        """The async twin of ``embed``."""
        if self._embeddings is None:
            return super().embed(request)
        vectors: Embeddings = await self._embeddings.aembed(request)
        return vectors

    def __repr__(self) -> str:
        return f"LlamaIndexClient({self.model!r})"

    # --- what it becomes ------------------------------------------------------------------------

    def _ready(self, request: Request, *, streamed: bool = False) -> _Ready:
        asked = request.payload
        if isinstance(asked, Payload):
            ready = self._as_asked(request, asked)
        else:
            ready = self._as_read(request)
        if streamed and speaks_openai(ready.llm):  # else its streams report no usage
            options = {"include_usage": True, **dict(ready.kwargs.get("stream_options") or {})}
            ready = ready._replace(kwargs={**ready.kwargs, "stream_options": options})
        return ready

    def _as_asked(self, request: Request, asked: Payload) -> _Ready:
        """An app's own call: as it came, but for the cap, which its bound was made with."""
        given: Any = asked.prompt if asked.kind == "complete" else asked.messages
        guessed = not model_info(request.model or self.model).certain
        if request.max_output is None or (asked.cap is None and not guessed):
            return _Ready(self.llm, asked.kind, given, asked.kwargs)
        llm = capped(self.llm, request.max_output)
        if llm is self.llm:  # it was said that it may go uncapped
            return _Ready(llm, asked.kind, given, asked.kwargs)
        return _Ready(llm, asked.kind, given, without_caps(asked.kwargs))

    def _as_read(self, request: Request) -> _Ready:
        """A reader's request."""
        llm = self.llm
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


def _embeddings_client(embeddings: BaseEmbedding | None) -> Any:
    if embeddings is None:
        return None
    from harness_integrations.llama_index.embeddings import EmbeddingClient, bare_embedding

    return EmbeddingClient(bare_embedding(embeddings), model_name(bare_embedding(embeddings)))
