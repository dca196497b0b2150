"""A client of every server that speaks OpenAI's Responses or Chat Completions API.

The official SDK does the transport; which attempts are made, what goes out and what a reply means
is decided in ``wire``. Sync and async differ in the two methods that post, and in nothing else.
"""

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, closing
from json import JSONDecodeError
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel

from harness_core.client import BaseClient, OnText
from harness_core.clients.wire.bodies import chat_body, responses_body
from harness_core.clients.wire.credentials import (
    Headers,
    checked_headers,
    redacted,
    resolve_key,
    sent_headers,
)
from harness_core.clients.wire.embeddings import read_embeddings
from harness_core.clients.wire.replies import failure, read_reply
from harness_core.clients.wire.retries import (
    Attempt,
    Joiner,
    Landed,
    Patience,
    arrived,
    attempts,
    joined,
)
from harness_core.clients.wire.streams import events_of
from harness_core.config import checked, setting
from harness_core.errors import BadKeyError, BadSettingError, MissingDepError
from harness_core.flows.types import Pause
from harness_core.messages import Embeddings, Reply, Request, Texts

if TYPE_CHECKING:
    import httpx
    import openai

T = TypeVar("T")
_Talk: TypeAlias = Generator[Attempt | Pause, Landed | None, T]
_Opened: TypeAlias = "AsyncGenerator[openai.AsyncOpenAI, None]"

_OPENAI = "https://api.openai.com/v1"
_SDK: Any = {"api_key": "in the headers of each request", "max_retries": 0}


class OpenAIClient(BaseClient):
    """Sends to the Responses API or to Chat Completions.

    What is not given follows the setting of the same purpose when it is used. The key is
    ``api_key``, else OPENAI_API_KEY at the time of the request; OPENAI_BASE_URL is the address
    where neither ``base_url`` nor the setting names one. Naming any header makes a key optional,
    and a header of value None is not sent. ``extra_body`` is laid over every request for text,
    mapping by mapping. ``timeout`` (1 to 3600 seconds) bounds one attempt. ``pause`` and ``apause``
    are what waits between attempts.

    Making one sends nothing and needs no key.

    Raises:
        BadSettingError: an unknown ``api``, or credentials inside ``base_url``.
        HeaderError: headers that cannot be sent.
    """

    provider = True
    can_embed = True

    def __init__(
        self,
        model: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        api: str | None = None,
        embedding_model: str | None = None,
        headers: Mapping[str, Any] | None = None,
        max_retries: int | None = None,
        retry_pause_base: float | None = None,
        timeout: float | None = None,
        extra_body: Mapping[str, Any] | None = None,
        http_client: "httpx.Client | None" = None,
        async_http_client: "httpx.AsyncClient | None" = None,
    ) -> None:
        given = {
            "model": model,
            "api_base": base_url,
            "api": api,
            "embedding_model": embedding_model,
            "max_retries": max_retries,
            "retry_pause_base": retry_pause_base,
            "request_timeout": timeout,
        }
        self._given = {name: checked(name, v) for name, v in given.items() if v is not None}
        if "@" in self.base_url.partition("://")[2].partition("/")[0]:
            raise BadSettingError("base_url holds credentials; pass them as api_key or headers")
        self._api_key = api_key
        self._headers = None if headers is None else checked_headers(headers)
        self.extra_body = dict(extra_body or {})
        self.pause: Callable[[float], None] = time.sleep
        self.apause: Callable[[float], Awaitable[None]] = anyio.sleep
        self._http_client = http_client
        self._async_http_client = async_http_client
        self._sync_sdk: openai.OpenAI | None = None
        self._async_sdks: WeakKeyDictionary[object, tuple[_Opened, openai.AsyncOpenAI]] = (
            WeakKeyDictionary()
        )

    @property
    def model(self) -> str:  # type: ignore[override]  # read-only: it may follow a setting
        """The model of requests that name none."""
        return str(self._setting("model"))

    @property
    def embedding_model(self) -> str:  # type: ignore[override]  # as above
        """The model of embedding requests that name none."""
        return str(self._setting("embedding_model"))

    @property
    def api(self) -> str:  # type: ignore[override]  # as above
        """``responses`` or ``chat``."""
        return str(self._setting("api"))

    @property
    def base_url(self) -> str:  # type: ignore[override]  # as above
        """The server's address, without a slash at its end."""
        named = str(self._setting("api_base"))
        if "api_base" not in self._given and named == _OPENAI:
            named = os.environ.get("OPENAI_BASE_URL", "").strip() or named
        return named.rstrip("/")

    def check(self) -> None:
        """Raise what a request would raise before it is sent.

        Raises:
            AuthError: neither a key nor a header; BadKeyError for a key that cannot be sent.
            HeaderError: the setting ``api_headers`` cannot be sent.
        """
        self._sent_headers()

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Send one request; with ``on_text`` its text is passed on as it arrives.

        Raises:
            AuthError, HeaderError: as ``check``. MissingDepError: the SDK is not installed.
        """
        return self._drive(self._talk(request, on_text))

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """The async twin of ``send``, on asyncio and trio."""
        return await self._adrive(self._talk(request, on_text))

    def embed(self, request: Texts, /) -> Embeddings:
        """Vectors for texts, one row each, of length 1. Raises as ``send``."""
        return self._drive(self._vectors(request))

    async def aembed(self, request: Texts, /) -> Embeddings:
        """The async twin of ``embed``."""
        return await self._adrive(self._vectors(request))

    def __repr__(self) -> str:
        try:
            key = "none" if resolve_key(self._api_key) is None else "set"
        except BadKeyError:
            key = "refused"
        timeout, retries = self._setting("request_timeout"), self._setting("max_retries")
        names = sorted(setting("api_headers") if self._headers is None else self._headers)
        return (
            f"OpenAIClient(model={self.model!r}, api={self.api!r}, base_url={self.base_url!r}, "
            f"key={key}, headers={names}, embedding_model={self.embedding_model!r}, "
            f"timeout={timeout}, max_retries={retries}, cache={self.cache is not None})"
        )

    # --- what is said: generators that yield attempts and pauses --------------------------------

    def _talk(self, request: Request, on_text: OnText | None) -> _Talk[Reply]:
        model, api = request.model or self.model, self.api
        build, path = (chat_body, "chat/completions") if api == "chat" else (responses_body, api)
        body = build(request, model, self.extra_body)
        if on_text is not None:
            body["stream"] = True
            if api == "chat":
                body["stream_options"] = {"include_usage": True}
        attempt = self._attempt(path, body, on_text and events_of(api, on_text))
        landed, made = yield from attempts(attempt, self._patience())
        known: dict[str, Any] = {"model": model, "label": request.label, "attempts": made}
        if not landed.ok:
            return Reply.failed(**self._failure(landed, attempt), **known)
        return read_reply(landed.body, status=landed.status, **known)

    def _vectors(self, request: Texts) -> _Talk[Embeddings]:
        model = request.model or self.embedding_model
        attempt = self._attempt("embeddings", {"model": model, "input": list(request.texts)}, None)
        landed, made = yield from attempts(attempt, self._patience())
        known: dict[str, Any] = {"model": model, "label": request.label, "attempts": made}
        if not landed.ok:
            return Embeddings(ok=False, **self._failure(landed, attempt), **known)
        return read_embeddings(landed.body, len(request.texts), status=landed.status, **known)

    def _attempt(
        self, path: str, body: dict[str, Any], stream: Callable[[], Joiner] | None
    ) -> Attempt:
        return Attempt(
            url=f"{self.base_url}/{path}",
            headers=self._sent_headers(),
            body=body,
            timeout=float(self._setting("request_timeout")),
            stream=stream,
        )

    def _failure(self, landed: Landed, attempt: Attempt) -> dict[str, Any]:
        fields = failure(landed)
        return {**fields, "error": redacted(fields["error"], attempt.headers)}

    def _setting(self, name: str) -> Any:
        return self._given[name] if name in self._given else setting(name)

    def _patience(self) -> Patience:
        return Patience(
            retries=self._setting("max_retries"), base=self._setting("retry_pause_base")
        )

    def _own_headers(self) -> Headers:
        if self._headers is not None:
            return self._headers
        return checked_headers(setting("api_headers"), whose="the setting api_headers")

    def _sent_headers(self) -> Headers:
        return sent_headers(resolve_key(self._api_key), self._own_headers())

    # --- who says it ----------------------------------------------------------------------------

    def _drive(self, talk: _Talk[T]) -> T:
        landed: Landed | None = None
        while True:
            try:
                todo = talk.send(landed)
            except StopIteration as stop:
                return cast("T", stop.value)
            landed = None
            if isinstance(todo, Pause):
                self.pause(todo.seconds)
            else:
                landed = self._post(todo)

    async def _adrive(self, talk: _Talk[T]) -> T:
        landed: Landed | None = None
        while True:
            try:
                todo = talk.send(landed)
            except StopIteration as stop:
                return cast("T", stop.value)
            landed = None
            if isinstance(todo, Pause):
                await self.apause(todo.seconds)
            else:
                landed = await self._apost(todo)

    def _post(self, attempt: Attempt) -> Landed:
        if self._sync_sdk is None:
            self._sync_sdk = _sdk().OpenAI(**_SDK, http_client=self._http_client)
        sdk, joiner = self._sync_sdk, attempt.stream and attempt.stream()
        try:
            if joiner is None:
                response = sdk.post(attempt.url, **_plain(attempt, sdk))
                return arrived(response.status_code, response.text)
            response = sdk.post(attempt.url, **_streamed(attempt, sdk, _sdk().Stream))
            with closing(response), closing(response.iter_lines()) as lines:
                for line in lines:
                    joiner.add(line)
            return joined(joiner)
        except _failures() as error:
            return _lost(error, joiner)

    async def _apost(self, attempt: Attempt) -> Landed:
        sdk, joiner = await self._async_sdk(), attempt.stream and attempt.stream()
        try:
            if joiner is None:
                response = await sdk.post(attempt.url, **_plain(attempt, sdk))
                return arrived(response.status_code, response.text)
            response = await sdk.post(attempt.url, **_streamed(attempt, sdk, _sdk().AsyncStream))
            async with aclosing(response), aclosing(response.aiter_lines()) as lines:
                async for line in lines:
                    joiner.add(line)
            return joined(joiner)
        except _failures() as error:
            return _lost(error, joiner)

    async def _async_sdk(self) -> "openai.AsyncOpenAI":
        """The SDK client of the running event loop: connections cannot be shared between loops."""
        token = anyio.lowlevel.current_token()
        loop = getattr(token, "native_token", token)  # older anyio gives the loop itself
        if loop not in self._async_sdks:
            opened = self._open()
            self._async_sdks[loop] = opened, await anext(opened)
        return self._async_sdks[loop][1]

    async def _open(self) -> _Opened:
        # a generator, because a loop that ends closes those still open: no connection outlives it
        sdk = _sdk().AsyncOpenAI(**_SDK, http_client=self._async_http_client)
        try:
            yield sdk
        finally:
            if self._async_http_client is None:
                await sdk.close()


def _sdk() -> ModuleType:
    try:
        import openai
    except ImportError as error:
        raise MissingDepError(
            "OpenAIClient needs the openai package: pip install 'harness-integrations[openai]'"
        ) from error
    return openai


def _plain(attempt: Attempt, sdk: Any) -> dict[str, Any]:
    import httpx
    from openai import omit

    # the SDK's own spelling of a name: two spellings would be sent as two headers
    spelling = {name.lower(): name for name in ("Authorization", *sdk.default_headers)}
    headers = {
        spelling.get(name.lower(), name): omit if value is None else value
        for name, value in attempt.headers.items()
    }
    # a redirect would carry the caller's headers to another host
    options = {"headers": headers, "timeout": attempt.timeout, "follow_redirects": False}
    return {"body": attempt.body, "options": options, "cast_to": httpx.Response}


def _streamed(attempt: Attempt, sdk: Any, stream: Any) -> dict[str, Any]:
    # the lines are read here: the SDK's own reader drops the connection after the last event
    return {**_plain(attempt, sdk), "stream": True, "stream_cls": stream}


def _failures() -> tuple[type[Exception], ...]:
    import httpx

    return (_sdk().APIError, httpx.TransportError, JSONDecodeError)


def _lost(error: Exception, joiner: Joiner | None) -> Landed:
    import httpx

    sdk, begun = _sdk(), joiner is not None and joiner.begun
    if isinstance(error, sdk.APIStatusError):
        response = error.response
        after = response.headers.get("retry-after")
        return Landed(
            status=response.status_code, text=response.text, retry_after=after, cause=error
        )
    if isinstance(error, (sdk.APIConnectionError, httpx.TransportError)):
        why = error.__cause__ or error
        sent = not isinstance(why, (httpx.ConnectError, httpx.ConnectTimeout))
        return Landed(text=f"{type(why).__name__}: {why}", begun=begun, sent=sent, cause=error)
    return Landed(status=200, text=str(error), begun=begun, cause=error)  # said inside a stream
