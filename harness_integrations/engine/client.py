"""A client of any server of the contract, ours or another."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, Self, TypeVar
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
T = TypeVar("T", bound=BaseModel)


class UnlistedSourceWarning(HarnessWarning, code="unlisted_source"):
    """An answer has a marker whose source the server did not list."""


class EngineClient:
    """Asks the collections of the service at ``base_url``, within its limits, sync or async.

    Of a server that is not ours only ``answer`` is known; ``capabilities`` says what else may be
    asked of this one. A failed request is repeated up to ``attempts`` times, where the failure
    says that this can help. ``strict`` makes an answer whose marker has no source an error instead
    of a warning. ``transport`` and ``async_transport`` are httpx's, for tests.

    Raises:
        BadSettingError: ``base_url`` is no http(s) address.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | SecretStr,
        *,
        capabilities: Iterable[Capability] = ANSWER_ALONE,
        attempts: int = ATTEMPTS,
        strict: bool = False,
        transport: httpx.BaseTransport | None = None,
        async_transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise BadSettingError("the base URL of a service begins with http:// or https://")
        self.base_url = base_url.rstrip("/")
        self.capabilities = frozenset(capabilities)
        self.attempts = attempts
        self.strict = strict
        self._key: SecretStr | None = (
            api_key if isinstance(api_key, SecretStr) else SecretStr(api_key)
        )
        self._transport = transport
        self._async_transport = async_transport
        self._sleep = sleep
        self._http: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"EngineClient({self.base_url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the key: a copy that was pickled is given one by ``with_key``."""
        more = {"capabilities": self.capabilities, "attempts": self.attempts, "strict": self.strict}
        return _unkeyed, (self.base_url, more)

    def with_key(self, api_key: str | SecretStr) -> "EngineClient":
        """The client with another key."""
        return EngineClient(
            self.base_url, api_key, capabilities=self.capabilities, attempts=self.attempts,
            strict=self.strict, transport=self._transport, async_transport=self._async_transport,
            sleep=self._sleep,
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
        if self._http is not None:
            self._http.close()
            self._http = None

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
        async with httpx.AsyncClient(transport=self._async_transport) as http:
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
        self._http = self._http or httpx.Client(transport=self._transport)
        try:
            return _read(self._http.request(**self._request(call)))
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


def _unkeyed(base_url: str, more: dict[str, Any]) -> EngineClient:
    client = EngineClient(base_url, "", **more)
    client._key = None  # noqa: SLF001 - our own
    return client


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
        return _parsed(SearchResult, self.client.run(self._searching(request)))

    async def asearch(self, request: SearchRequest | Mapping[str, Any]) -> SearchResult:
        """The async twin of ``search``."""
        return _parsed(SearchResult, await self.client.arun(self._searching(request)))

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
        body = asked.model_dump(mode="json", exclude_unset=True)
        call = Call(
            path=f"{place}:{verb.replace('_', '-')}", body=encoded(body, limit), seconds=seconds
        )
        return exchange(call, attempts=self.client.attempts)

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


def _parsed(kind: type[T], told: Told) -> T:
    """A response as ``kind``; members that are not known are kept in ``model_extra``."""
    hidden = {name for name, one in kind.model_fields.items() if one.exclude}
    try:
        return kind.model_validate({k: v for k, v in told.body.items() if k not in hidden})
    except ValidationError:
        raise ProtocolError(f"the response is no {kind.__name__} of the contract") from None
