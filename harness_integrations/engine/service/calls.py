"""One request on its way to what answers it: the checks that come first, in their fixed order."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from harness_core.collections.contract import OTHER_BODY_BYTES, Asked
from harness_core.collections.faults import ForbiddenError, InvalidRequestError, NotFoundError
from harness_integrations.engine.faults import MethodNotAllowedError
from harness_integrations.engine.service.bodies import json_body
from harness_integrations.engine.service.credentials import token_of
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
    """What all requests share. ``wake`` tells the worker that a file was added."""

    engine: "Collections"
    settings: ServiceSettings
    slots: Slots
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

    def sees(self, namespace_id: str, collection_id: str | None = None) -> bool:
        """Whether the key sees a collection, or anything of a namespace."""
        return self.key is not None and self.key.sees(namespace_id, collection_id)


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What one method of one path does, and who may have it done.

    ``parameters`` are the query parameters it takes; any other is refused. The rest is for the
    OpenAPI document; ``ours`` marks what the contract does not fix.
    """

    handler: Handler
    permission: Permission
    summary: str
    parameters: frozenset[str] = frozenset()
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
        if operation.permission != "open":
            await _admit(call, operation.permission)
        unknown = set(request.query_params) - operation.parameters
        if unknown or len(request.query_params) != len(request.query_params.multi_items()):
            raise InvalidRequestError("a query parameter is unknown or repeated")
        response = await operation.handler(call)
        await response(scope, receive, send)


async def _admit(call: Call, permission: Permission) -> None:
    """Key, then visibility, then permission: nothing is told to a key that may not know it."""
    token = token_of(call.request.headers)
    call.key = await run_sync(call.engine.keys.check, token)
    names = call.request.path_params
    if "namespace" in names:
        await run_sync(_find, call, names["namespace"], names.get("collection"))
    if not _allowed(call, permission):
        raise ForbiddenError("the key does not permit this")


def _find(call: Call, namespace: str, collection: str | None) -> None:
    try:
        call.space = call.engine.namespace(namespace)
        if collection is not None:
            call.target = call.space.collection(collection)
    except (NotFoundError, InvalidRequestError):
        raise NotFoundError(ABSENT) from None
    if not call.sees(call.space.id, call.target.id if call.target else None):
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
