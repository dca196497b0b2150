"""The client behind a governed chat model: it calls the wrapped model's own methods, once each."""

import inspect
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, closing
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult

from harness_core.calls.keys import content_hash
from harness_core.client import BaseClient, OnText
from harness_core.messages import Reply, Request
from harness_core.models.registry import model_info
from harness_integrations.langchain.asking import Payload, model_name
from harness_integrations.langchain.messages import MessageCodec
from harness_integrations.langchain.replies import chunks_of, read_result
from harness_integrations.shared.failures import Broken, failed_reply
from harness_integrations.shared.governing import need_asyncio
from harness_integrations.shared.retries import without_retries
from harness_integrations.shared.settings import CAPS
from harness_integrations.shared.snapshots import plain

CODEC = MessageCodec()
_NOT_IDENTITY = frozenset({
    "max_retries", "timeout", "request_timeout", "stream", "streaming", "stream_usage", "stop",
})  # fmt: skip


class BoundClient(BaseClient):
    """Sends what a request carries as its payload, through one chat model.

    Retries inside the provider's client are off, and a stream is asked to report its usage.
    """

    api = "langchain"
    provider = True
    codec = CODEC

    def __init__(self, bound: BaseChatModel, cache: Any = None) -> None:
        self.bound = bound
        self.model = model_name(bound)
        self.cache = cache
        self.quiet: BaseChatModel = without_retries(bound, stream_usage=True)
        self.identity = identity_of(bound) if cache is not None else None

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Call ``_generate``; a provider's exception travels on the failed reply."""
        asked, kwargs = _payload(request), self._kwargs(request)
        model = self._capped(request)
        extra = _run_manager(model._generate, asked)  # noqa: SLF001 - the one seam below the cache
        try:
            return read_result(
                model._generate(asked.messages, stop=asked.stop, **extra, **kwargs)  # noqa: SLF001
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, it is its request's
            return failed_reply(error)

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Await ``_agenerate``."""
        need_asyncio("a governed LangChain model")
        asked, kwargs = _payload(request), self._kwargs(request)
        model = self._capped(request)
        extra = _run_manager(model._agenerate, asked)  # noqa: SLF001
        try:
            result = await model._agenerate(  # noqa: SLF001
                asked.messages, stop=asked.stop, **extra, **kwargs
            )
            return read_result(result)
        except Exception as error:  # noqa: BLE001 - as above
            return failed_reply(error)

    def stream(self, request: Request, /) -> Generator[Any, None, None]:
        """The chunks of ``_stream``; of ``_generate`` where the model cannot stream."""
        asked, model = _payload(request), self._capped(request)
        if not streams(model):
            yield from _whole(self.send(request))
            return
        try:
            chunks: Any = model._stream(  # noqa: SLF001
                asked.messages, stop=asked.stop, **self._kwargs(request)
            )
            with closing(chunks):
                yield from chunks
        except Exception as error:  # noqa: BLE001 - as above
            yield Broken(error)

    async def astream(self, request: Request, /) -> AsyncGenerator[Any, None]:
        """The chunks of ``_astream``."""
        need_asyncio("a governed LangChain model")
        asked, model = _payload(request), self._capped(request)
        if not streams(model):
            for piece in _whole(await self.asend(request)):
                yield piece
            return
        try:
            chunks: Any = model._astream(  # noqa: SLF001
                asked.messages, stop=asked.stop, **self._kwargs(request)
            )
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        except Exception as error:  # noqa: BLE001 - as above
            yield Broken(error)

    def _kwargs(self, request: Request) -> dict[str, Any]:
        """The call's own keywords, with the cap that the bound was made with where it differs."""
        asked = _payload(request)
        name = cap_name(self.bound)
        if not self._must_cap(request) or name is None or name == "num_predict":
            return dict(asked.kwargs)
        kept = {key: value for key, value in asked.kwargs.items() if key not in CAPS}
        return {**kept, name: request.max_output}

    def _capped(self, request: Request) -> BaseChatModel:
        """Ollama's cap is a field: as a keyword it would displace the model's other options."""
        if cap_name(self.bound) != "num_predict" or not self._must_cap(request):
            return self.quiet
        return self.quiet.model_copy(update={"num_predict": request.max_output})

    def _must_cap(self, request: Request) -> bool:
        asked = _payload(request)
        if asked.cap is not None:
            return request.max_output != asked.cap
        return not model_info(request.model or self.model).certain  # its own limit is a guess


def cap_name(model: Any) -> str | None:
    """The keyword by which a chat model takes an output cap; None when it has none we know."""
    fields = type(model).model_fields
    return next((name for name in CAPS if name in fields), None)


def streams(model: BaseChatModel) -> bool:
    """Whether a chat model has a stream of its own."""
    kind = type(model)
    base = BaseChatModel
    return kind._stream is not base._stream or kind._astream is not base._astream  # noqa: SLF001


def identity_of(model: BaseChatModel) -> str:
    """What tells models with equal names apart in a cache: class and settings, no client's."""
    kind = type(model)
    settings = {
        name: plain(value)
        for name, value in model._get_invocation_params().items()  # noqa: SLF001 - as LangChain's cache
        if name not in _NOT_IDENTITY
    }
    base = {n: str(getattr(model, n)) for n in ("base_url", "openai_api_base") if hasattr(model, n)}
    return f"{kind.__module__}.{kind.__qualname__}:{content_hash([settings, base])[:16]}"


def _payload(request: Request) -> Payload:
    payload = request.payload
    if not isinstance(payload, Payload):
        raise TypeError("a governed chat model sends only what was asked of it")
    return payload


def _run_manager(method: Any, asked: Payload) -> Mapping[str, Any]:
    return {"run_manager": asked.run_manager} if _takes_run_manager(method.__func__) else {}


@lru_cache(maxsize=256)
def _takes_run_manager(function: Any) -> bool:
    return "run_manager" in inspect.signature(function).parameters


def _whole(reply: Reply) -> list[Any]:
    if reply.cause is not None and isinstance(reply.cause, Exception):
        return [Broken(reply.cause)]
    raw = reply.raw
    if not isinstance(raw, ChatResult) or not raw.generations:
        return []
    return list(chunks_of(raw))
