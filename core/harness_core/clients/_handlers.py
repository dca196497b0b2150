"""Clients that call a function instead of a server."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from anyio.to_thread import run_sync

from harness_core.client import BaseClient, OnText
from harness_core.clients._handler_replies import as_embeddings, as_reply
from harness_core.errors import (
    AuthError,
    BadSettingError,
    ReplayExhaustedError,
    ReplayMissError,
    TraceError,
)
from harness_core.messages import Embeddings, Reply, Request, Texts

Handler: TypeAlias = Callable[[Any, dict[str, Any]], Any]

STOPPING = (AuthError, ReplayMissError, ReplayExhaustedError, TraceError)
"""What a handler may raise to stop the whole run; everything else fails its one request."""


@dataclass(frozen=True, slots=True)
class Function:
    """A user's function of (given, params), or of the first alone, and whether it is async."""

    call: Handler
    is_async: bool

    @classmethod
    def of(cls, fn: Any, *, what: str) -> "Function":
        """``fn`` made uniform.

        Raises:
            BadSettingError: ``fn`` is no function; ``what`` names the argument it came in.
        """
        if not callable(fn):
            raise BadSettingError(f"{what} is a function, not {type(fn).__name__}")
        own_call = getattr(fn, "__call__", None)  # noqa: B004 - an object's async __call__
        is_async = inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(own_call)
        try:
            inspect.signature(fn).bind([], {})
        except (TypeError, ValueError):
            return cls(lambda given, _params: fn(given), is_async)
        return cls(fn, is_async)

    def outcome(self, given: Any, params: dict[str, Any]) -> Any:
        """What the function returns, or the exception it raised."""
        try:
            return self.call(given, params)
        except STOPPING:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is its request's alone
            return error

    def sync_outcome(self, given: Any, params: dict[str, Any]) -> Any:
        """``outcome`` where nothing can be awaited.

        Raises:
            BadSettingError: the function is async.
        """
        result = None if self.is_async else self.outcome(given, params)
        if self.is_async or inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise BadSettingError("this client's function is async: use the calls that await it")
        return result

    async def async_outcome(self, given: Any, params: dict[str, Any]) -> Any:
        """``outcome``, awaited; a function that is not async runs in a worker thread."""
        if self.is_async:
            result = self.outcome(given, params)
        else:
            # in a list: trio takes a coroutine that a thread returns for a mistake
            boxed = await run_sync(lambda: [self.outcome(given, params)], abandon_on_cancel=True)
            result = boxed[0]
        try:
            return await result if inspect.isawaitable(result) else result
        except STOPPING:
            raise
        except Exception as error:  # noqa: BLE001 - the same
            return error


class HandlerClient(BaseClient):
    """Sends by calling ``fn(messages, params)`` and embeds by calling ``embed(texts, params)``."""

    def __init__(self, fn: Any, embed: Any) -> None:
        self._fn = Function.of(fn, what="fn")
        self._embed = None if embed is None else Function.of(embed, what="embed")
        self.can_embed = embed is not None

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Call the function; ``on_text`` is given its whole text at once.

        Raises:
            BadSettingError: the function is async.
        """
        given, params = _given(request), self._params(request)
        place = self._place()
        reply = as_reply(self._fn.sync_outcome(given, params), request, params["model"])
        return self._sent(place, request, params, reply, on_text)

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Await the function, or call it in a worker thread when it is not async."""
        given, params = _given(request), self._params(request)
        place = self._place()
        reply = as_reply(await self._fn.async_outcome(given, params), request, params["model"])
        return self._sent(place, request, params, reply, on_text)

    def embed(self, request: Texts, /) -> Embeddings:
        """Call the embedding function. Raises as ``send``."""
        if self._embed is None:
            return super().embed(request)
        place, params = self._place(), self._embed_params(request)
        result = self._embed.sync_outcome(list(request.texts), params)
        return self._embedded(place, request, as_embeddings(result, request, params["model"]))

    async def aembed(self, request: Texts, /) -> Embeddings:
        """The async twin of ``embed``."""
        if self._embed is None:
            return super().embed(request)
        place, params = self._place(), self._embed_params(request)
        result = await self._embed.async_outcome(list(request.texts), params)
        return self._embedded(place, request, as_embeddings(result, request, params["model"]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, can_embed={self.can_embed})"

    # --- what a client that keeps a log overrides -----------------------------------------------

    def _place(self) -> Any:
        """Where a request that begins now stands among the others."""

    def _keep_call(
        self, place: Any, request: Request, params: dict[str, Any], reply: Reply
    ) -> None:
        """Take note of an answered request."""

    def _keep_embed(self, place: Any, request: Texts, embeddings: Embeddings) -> None:
        """Take note of embedded texts."""

    # --------------------------------------------------------------------------------------------

    def _sent(
        self, place: Any, request: Request, params: dict[str, Any], reply: Reply, on_text: Any
    ) -> Reply:
        self._keep_call(place, request, params, reply)
        if on_text is not None and reply.ok:
            on_text(reply.text)
        return reply

    def _embedded(self, place: Any, request: Texts, embeddings: Embeddings) -> Embeddings:
        self._keep_embed(place, request, embeddings)
        return embeddings

    def _params(self, request: Request) -> dict[str, Any]:
        """What a handler is told; the cap is the one asked for, before any raise."""
        known = request.payload if isinstance(request.payload, Mapping) else {}
        params: dict[str, Any] = {
            "model": request.model or self.model,
            "max_output": known.get("max_output_asked", request.max_output),
            "temperature": request.temperature,
            "schema": request.schema,
            "schema_name": request.schema_name,
            "label": request.label,
            "draw_index": request.draw_index,
        }
        if "prompt_tokens" in known:
            params["prompt_tokens"] = known["prompt_tokens"]
        return params if request.effort is None else {**params, "effort": request.effort}

    def _embed_params(self, request: Texts) -> dict[str, Any]:
        return {"model": request.model or self.embedding_model, "label": request.label}


def _given(request: Request) -> list[dict[str, Any]]:
    return [message.as_json() for message in request.messages]
