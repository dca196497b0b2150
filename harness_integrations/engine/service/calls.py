"""One request on its way to what answers it: the checks that come first, in their fixed order."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from harness_core.collections.contract import OTHER_BODY_BYTES, Asked
from harness_core.collections.faults import ForbiddenError, InvalidRequestError, NotFoundError
from harness_integrations.engine.faults import MethodNotAllowedError
from harness_integrations.engine.service.bodies import json_body
from harness_integrations.engine.service.credentials import token_of
from harness_integrations.engine.service.once import Once, key_of
from harness_integrations.engine.service.running import Slots
from harness_integrations.engine.service.settings import ServiceSettings

if TYPE_CHECKING:
    from harness_core.collections import Collection, Collections, Key, Namespace

T = TypeVar("T")
Body = TypeVar("Body", bound=Asked)
Permission = Literal["open", "key", "cluster", "query", "read", "write"]
ABSENT: Final = "it is absent, deleted, or outside what this key sees"


def _nothing() -> None:
    """No worker is to be woken."""


@dataclass(slots=True, kw_only=True)
class Service:
    """What all requests share. ``wake`` tells the worker that a file was added.

    ``writes`` and ``lookups`` are the threads of what may take long: whoever waits for the one
    writer, or for an embedder, takes none of those that all requests need.
    """

    engine: "Collections"
    settings: ServiceSettings
    slots: Slots
    writes: CapacityLimiter
    lookups: CapacityLimiter
    stopping: bool = False
    wake: Callable[[], None] = _nothing


@dataclass(slots=True, kw_only=True)
class Call:
    """A request that passed its checks, with what it is about."""

    request: Request
    service: Service
    request_id: str
    key: "Key | None" = None
    space: "Namespace | None" = None
    target: "Collection | None" = None
    once: Once | None = None

    @property
    def engine(self) -> "Collections":
        """The library."""
        return self.service.engine

    @property
    def namespace(self) -> "Namespace":
        """The namespace of the path."""
        if self.space is None:
            raise AssertionError("unreachable: the path names no namespace")
        return self.space

    @property
    def collection(self) -> "Collection":
        """The collection of the path."""
        if self.target is None:
            raise AssertionError("unreachable: the path names no collection")
        return self.target

    async def body(self, kind: type[Body], limit: int = OTHER_BODY_BYTES) -> Body:
        """The JSON body as ``kind`` reads it."""
        given = await json_body(
            self.request.headers, self.request.receive, limit, self.service.settings
        )
        return kind.parse(given)

    async def write(self, change: Callable[[], Any], status: int = 200) -> Response:
        """Make a change of the store in a thread, and tell the JSON data it gives (None: nothing).

        It is done once where the request asks for that; the body has been read by then.
        """

        async def done() -> Response:
            value = await self.written(change)
            return Response(status_code=204) if value is None else reply(value, status)

        return await self.done_once(done)

    async def done_once(self, work: Callable[[], Awaitable[Response]]) -> Response:
        """What ``work`` replies, as ``write`` does it."""
        once = self.once
        return await (work() if once is None else once.reply(self.engine.store, work, self.written))

    async def written(self, change: Callable[[], T]) -> T:
        """What a change of the store gives, made in a thread."""
        return await run_sync(change, limiter=self.service.writes)

    def identify(self) -> None:
        """Take the key of the request; again where a reply outlives what the key was.

        Raises:
            UnauthenticatedError: there is no live one.
        """
        self.key = self.engine.keys.check(token_of(self.request.headers))

    def require(self, permission: Permission) -> None:
        """Raise ``ForbiddenError`` where the key does not permit this."""
        if not _allowed(self, permission):
            raise ForbiddenError("the key does not permit this")

    def sees(self, namespace_id: str, collection_id: str | None = None) -> bool:
        """Whether the key sees a collection, or anything of a namespace."""
        return self.key is not None and self.key.sees(namespace_id, collection_id)


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What one method of one path does, and who may have it done.

    ``parameters`` are the query parameters it takes; any other is refused. ``once`` says that it
    may be done once by an idempotency key. The rest is for the OpenAPI document; ``ours`` marks
    what the contract does not fix.
    """

    handler: Handler
    permission: Permission
    summary: str
    parameters: frozenset[str] = frozenset()
    once: bool = False
    body: type[Asked] | None = None
    reply: str | None = None
    status: int = 200
    faults: tuple[str, ...] = ()
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Resource:
    """The operations of one path, by method, as an ASGI application.

    With ``verbs`` the path is one that ``:verb`` is put behind: a POST without one is nowhere.
    """

    service: Service
    operations: Mapping[str, Operation]
    verbs: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        operation = self.operations.get(request.method)
        verb = self.verbs and request.method == "POST"
        if verb or any(":" in str(name) for name in request.path_params.values()):
            raise NotFoundError("there is nothing at this path")
        if operation is None:
            raise MethodNotAllowedError(", ".join(sorted(self.operations)))
        call = Call(request=request, service=self.service, request_id=scope["state"]["request_id"])
        handler = await _admitted(call, operation)
        unknown = set(request.query_params) - operation.parameters
        if unknown or len(request.query_params) != len(request.query_params.multi_items()):
            raise InvalidRequestError("a query parameter is unknown or repeated")
        if operation.once and call.key is not None and (key := key_of(request)) is not None:
            call.once = Once(call.key.id, key, request)
            call.request = Request(scope, call.once.receive, send)
        response = await handler(call)
        await response(scope, receive, send)


async def _admitted(call: Call, operation: Operation) -> Handler:
    """What answers a request that may be made.

    Of a deletion that was done, and took its target with it, the reply may still be told.
    """
    try:
        if operation.permission != "open":
            await run_sync(_admit, call, operation.permission)
    except NotFoundError:
        if not operation.once or call.request.method != "DELETE":
            raise
        return _gone
    return operation.handler


async def _gone(call: Call) -> Response:
    def absent() -> None:
        raise NotFoundError(ABSENT)

    return await call.write(absent)


def _admit(call: Call, permission: Permission) -> None:
    """Key, then visibility, then permission: nothing is told to a key that may not know it."""
    call.identify()
    names = call.request.path_params
    if "namespace" in names:
        _find(call, names["namespace"], names.get("collection"))
    call.require(permission)


def _find(call: Call, namespace: str, collection: str | None) -> None:
    try:
        call.space = call.engine.namespace(namespace)
        seen = call.sees(call.space.id)  # first: a hidden namespace takes no longer than none
        if seen and collection is not None:
            call.target = call.space.collection(collection)
            seen = call.sees(call.space.id, call.target.id)
    except (NotFoundError, InvalidRequestError):
        seen = False
    if not seen:
        raise NotFoundError(ABSENT)


def _allowed(call: Call, permission: Permission) -> bool:
    if call.key is None or permission == "open" or permission == "key":  # noqa: PLR1714 - narrows
        return True
    if call.key.kind == "cluster":
        return True
    if permission == "cluster" or call.target is None:
        return False
    return call.key.may(call.namespace.id, call.target.id, permission)


def reply(value: Any, status: int = 200) -> JSONResponse:
    """A JSON response."""
    return JSONResponse(value, status)
