"""A client of any server of the contract, ours or another."""

import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal, Self, TypeVar, get_args
from urllib.parse import quote

import anyio
import httpx
from pydantic import BaseModel, SecretStr, ValidationError

from harness_core.collections.contract import (
    BODY_BYTES,
    SEARCH_BODY_BYTES,
    AnswerRequest,
    AnswerResult,
    Asked,
    ReadSpansRequest,
    ReadSpansResult,
    SearchRequest,
    SearchResult,
)
from harness_core.errors import AuthError, BadSettingError, HarnessWarning, warn
from harness_integrations.engine.exchange import (
    ATTEMPTS,
    Call,
    Exchange,
    Landed,
    Told,
    encoded,
    exchange,
)
from harness_integrations.engine.faults import ProtocolError

Capability = Literal["answer", "search", "read_spans"]
ANSWER_SECONDS: Final = 50.0
IMAGE_SECONDS: Final = 95.0
CONNECT_SECONDS: Final = 5.0
ANSWER_ALONE: Final[tuple[Capability, ...]] = ("answer",)

_MARKER = re.compile(r"\[\[(SRC:[0-9]{4,})\]\]")
_SENDABLE = re.compile(r"[!-~]+")
T = TypeVar("T", bound=BaseModel)


class UnlistedSourceWarning(HarnessWarning, code="unlisted_source"):
    """An answer has a marker whose source the server did not list."""


class EngineClient:
    """Asks the collections of the service at ``base_url``, within its limits, sync or async.

    Of a server that is not ours only ``answer`` is known; ``capabilities`` says what else may be
    asked of this one. A failed request is repeated up to ``attempts`` times, where the failure
    says that this can help; all of them and the pauses between take at most ``max_seconds``.
    ``strict`` makes an answer whose marker has no source an error instead of a warning.
    ``transport`` and ``async_transport`` are httpx's (``httpx.ASGITransport`` asks an app in this
    process); ``sleep`` and ``clock`` are for tests.

    Raises:
        BadSettingError: ``base_url`` is no plain http(s) address, the key cannot be sent in a
            header, or a number or a capability is none.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | SecretStr,
        *,
        capabilities: Iterable[Capability] = ANSWER_ALONE,
        attempts: int = ATTEMPTS,
        max_seconds: float | None = None,
        strict: bool = False,
        transport: httpx.BaseTransport | None = None,
        async_transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if attempts < 1 or (max_seconds is not None and max_seconds <= 0):
            raise BadSettingError("a client makes at least one attempt, within some seconds")
        self.base_url = _address(base_url)
        self.capabilities = frozenset(capabilities)
        if unknown := self.capabilities - set(get_args(Capability)):
            raise BadSettingError(f"a service has no capability {', '.join(sorted(unknown))}")
        self.attempts = attempts
        self.max_seconds = max_seconds
        self.strict = strict
        self._key: SecretStr | None = _secret(api_key)
        self._transport = transport
        self._async_transport = async_transport
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._http: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"EngineClient({self.base_url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the key: a copy that was pickled is given one by ``with_key``."""
        return _unkeyed, (self.base_url, self._settings())

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself: nothing in it changes, and a copy would have no key."""
        return self

    def _settings(self) -> dict[str, Any]:
        names = ("capabilities", "attempts", "max_seconds", "strict")
        return {name: getattr(self, name) for name in names}

    def with_key(self, api_key: str | SecretStr) -> "EngineClient":
        """The client with another key."""
        return EngineClient(
            self.base_url, api_key, **self._settings(), transport=self._transport,
            async_transport=self._async_transport, sleep=self._sleep, clock=self._clock,
        )  # fmt: skip

    def collection(self, namespace: str, collection: str) -> "RemoteCollection":
        """A collection, by names or ids; nothing is asked yet."""
        return RemoteCollection(self, namespace, collection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            if self._http is not None:
                self._http.close()
            self._http = None

    def exchange(self, call: Call) -> Exchange:
        """The steps of one request, within the limits of this client."""
        return exchange(
            call, attempts=self.attempts, max_seconds=self.max_seconds, clock=self._clock
        )

    def run(self, steps: Exchange) -> Told:
        """Do what an exchange says."""
        landed: Landed | None = None
        while True:
            try:
                step = steps.send(landed)
            except StopIteration as done:
                told: Told = done.value
                return told
            if isinstance(step, Call):
                landed = self._landed(step)
            else:
                self._sleep(step)
                landed = None

    async def arun(self, steps: Exchange) -> Told:
        """Do what an exchange says, awaiting."""
        landed: Landed | None = None
        async with httpx.AsyncClient(transport=self._async_transport, verify=_tls()) as http:
            while True:
                try:
                    step = steps.send(landed)
                except StopIteration as done:
                    told: Told = done.value
                    return told
                if isinstance(step, Call):
                    landed = await self._alanded(http, step)
                else:
                    await anyio.sleep(step)
                    landed = None

    def _landed(self, call: Call) -> Landed:
        with self._lock:
            http = self._http = self._http or httpx.Client(transport=self._transport, verify=_tls())
        try:
            return _read(http.request(**self._request(call)))
        except httpx.HTTPError as error:
            return Landed(failed=type(error).__name__)

    async def _alanded(self, http: httpx.AsyncClient, call: Call) -> Landed:
        try:
            return _read(await http.request(**self._request(call)))
        except httpx.HTTPError as error:
            return Landed(failed=type(error).__name__)

    def _request(self, call: Call) -> dict[str, Any]:
        if self._key is None:
            raise AuthError("this client was copied without its key; give it one: with_key(key)")
        return {
            "method": call.method,
            "url": self.base_url + call.path,
            "content": call.body,
            "headers": {
                "authorization": f"Bearer {self._key.get_secret_value()}",
                "content-type": "application/json",
            },
            "timeout": httpx.Timeout(call.seconds, connect=CONNECT_SECONDS),
        }


def _read(response: httpx.Response) -> Landed:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Landed(status=response.status_code, headers=headers, content=response.content)


def _unkeyed(base_url: str, settings: dict[str, Any]) -> EngineClient:
    client = EngineClient(base_url, "none", **settings)
    client._key = None  # noqa: SLF001 - our own
    return client


@cache
def _tls() -> ssl.SSLContext:
    """Read once: reading the certificates takes longer than a request, and holds an event loop."""
    return httpx.create_ssl_context()


def _address(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise BadSettingError(
            "the base URL of a service is http:// or https://, a host and a path, no more"
        )
    if url.userinfo:
        raise BadSettingError("a base URL holds no password; the key is api_key=")
    return base_url.rstrip("/")


def _secret(api_key: str | SecretStr) -> SecretStr:
    secret = api_key if isinstance(api_key, SecretStr) else SecretStr(api_key)
    if not _SENDABLE.fullmatch(secret.get_secret_value()):
        raise BadSettingError("a key is ASCII characters in a row, with no blank or line break")
    return secret


class RemoteCollection:
    """A collection of a service, asked as one of the library is."""

    def __init__(self, client: EngineClient, namespace: str, name: str) -> None:
        self.client = client
        self.namespace = namespace
        self.name = name

    def __repr__(self) -> str:
        return f"RemoteCollection({self.client!r}, {self.namespace!r}, {self.name!r})"

    def can(self, capability: Capability) -> bool:
        """Whether the service may be asked for this."""
        return capability in self.client.capabilities

    def answer(self, request: AnswerRequest | Mapping[str, Any]) -> AnswerResult:
        """Answer from the collection.

        Raises:
            CollectionFault: as the library's ``answer``, and ``TransportError``.
        """
        asked = AnswerRequest.parse(request)
        return self._answered(self.client.run(self._asking(asked)), asked)

    async def aanswer(self, request: AnswerRequest | Mapping[str, Any]) -> AnswerResult:
        """The async twin of ``answer``."""
        asked = AnswerRequest.parse(request)
        return self._answered(await self.client.arun(self._asking(asked)), asked)

    def search(self, request: SearchRequest | Mapping[str, Any]) -> SearchResult:
        """The places that fit best."""
        return _searched(self.client.run(self._searching(request)))

    async def asearch(self, request: SearchRequest | Mapping[str, Any]) -> SearchResult:
        """The async twin of ``search``."""
        return _searched(await self.client.arun(self._searching(request)))

    def read_spans(self, request: ReadSpansRequest | Mapping[str, Any]) -> ReadSpansResult:
        """The text at given places."""
        return _parsed(ReadSpansResult, self.client.run(self._reading(request)))

    async def aread_spans(self, request: ReadSpansRequest | Mapping[str, Any]) -> ReadSpansResult:
        """The async twin of ``read_spans``."""
        return _parsed(ReadSpansResult, await self.client.arun(self._reading(request)))

    def _asking(self, asked: AnswerRequest) -> Exchange:
        seconds = ANSWER_SECONDS if asked.query_image is None else IMAGE_SECONDS
        return self._exchange("answer", asked, BODY_BYTES, seconds)

    def _searching(self, request: SearchRequest | Mapping[str, Any]) -> Exchange:
        return self._exchange("search", SearchRequest.parse(request), SEARCH_BODY_BYTES)

    def _reading(self, request: ReadSpansRequest | Mapping[str, Any]) -> Exchange:
        return self._exchange("read_spans", ReadSpansRequest.parse(request), SEARCH_BODY_BYTES)

    def _exchange(
        self, verb: Capability, asked: Asked, limit: int, seconds: float = ANSWER_SECONDS
    ) -> Exchange:
        if not self.can(verb):
            raise BadSettingError(
                f"{verb} is not known of this service; say capabilities=[{verb!r}, ...] if it is"
            )
        place = f"/namespaces/{quote(self.namespace, '')}/collections/{quote(self.name, '')}"
        call = Call(
            path=f"{place}:{verb.replace('_', '-')}", body=encoded(asked, limit), seconds=seconds
        )
        return self.client.exchange(call)

    def _answered(self, told: Told, asked: AnswerRequest) -> AnswerResult:
        result = _parsed(AnswerResult, told)
        refs = {one.ref for one in result.sources}
        unlisted = [one for one in dict.fromkeys(_MARKER.findall(result.answer)) if one not in refs]
        if unlisted:
            said = f"the answer cites {', '.join(unlisted)}, which the server did not list"
            if self.client.strict:
                raise ProtocolError(said)
            warn(UnlistedSourceWarning(said))
        known = {
            "found": asked.sources == "none" or any(one.cited for one in result.sources),
            "partial": bool(told.partial),
            "partial_reasons": list(told.partial),
        }
        return result.model_copy(update=known)


def _searched(told: Told) -> SearchResult:
    result = _parsed(SearchResult, told)
    return result.model_copy(update={"partial_reasons": list(told.partial)})


def _parsed(kind: type[T], told: Told) -> T:
    """A response as ``kind``; members that are not known are kept in ``model_extra``."""
    hidden = {name for name, one in kind.model_fields.items() if one.exclude}
    try:
        return kind.model_validate({k: v for k, v in told.body.items() if k not in hidden})
    except ValidationError:
        raise ProtocolError(f"the response is no {kind.__name__} of the contract") from None
