"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.to_thread import run_sync
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from harness_core.collections.faults import NotFoundError
from harness_integrations.engine.service.calls import Resource, Service
from harness_integrations.engine.service.envelope import Envelope
from harness_integrations.engine.service.openapi import OWN_PATH
from harness_integrations.engine.service.routes import API, COLLECTION, PAGE
from harness_integrations.engine.service.running import Slots
from harness_integrations.engine.service.settings import ServiceSettings

if TYPE_CHECKING:
    from harness_core.collections import Collections

WRITERS: Final = 8
"""Changes of the store that are under way at once; each may hold a whole file in memory."""


class ServiceApp:
    """The service over ``engine`` as an ASGI application; ``engine`` stays the caller's to close.

    With ``work`` the files that are added are processed by a thread of this process while the
    application runs; without it another process does that.
    """

    def __init__(
        self, engine: "Collections", settings: ServiceSettings | None = None, *, work: bool = True
    ) -> None:
        given = settings or ServiceSettings()
        self.service = Service(
            engine=engine,
            settings=given,
            slots=Slots(given.running, given.waiting),
            writes=anyio.CapacityLimiter(WRITERS),
            lookups=anyio.CapacityLimiter(given.running),
        )
        self._work = work
        routes = [
            Route(path, Resource(self.service, operations, verbs=path == COLLECTION))
            for path, operations in {**API, **OWN_PATH, **PAGE}.items()
        ]
        router = Router(routes, redirect_slashes=False, default=_nowhere, lifespan=self._lifespan)
        self._app = Envelope(router)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def stop(self) -> None:
        """End the streams of events, so that a server that waits for its connections can stop."""
        self.service.stopping = True

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        with ExitStack() as stack:
            if self._work:
                worker = self.service.engine.worker()
                self.service.wake = worker.wake
                stack.callback(worker.close)
            yield
            self.stop()
            with anyio.CancelScope(shield=True):
                await run_sync(stack.close)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFoundError("there is nothing at this path")
