"""What carries a request: the protocol of clients, and defaults for those who write one."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from harness_core.messages import Embeddings, Reply, Request, Texts

OnText: TypeAlias = Callable[[str], None]


class Codec(Protocol):
    """How a framework's own reply object survives cache, journal and replay."""

    def pack(self, reply: Reply) -> Any:
        """``reply.raw`` as JSON data."""

    def unpack(self, stored: Any) -> Any:
        """The raw object again."""


@runtime_checkable
class Client(Protocol):
    """What sends. Never raises for a request that failed; raises ``AuthError`` and bugs.

    ``model`` is the model of requests that name none. ``identity`` tells clients with equal
    settings apart in the cache key; None for those a URL describes. ``unpriced_ok`` exempts a
    client that never bills from the unpriced rule. ``in_order`` asks for one request at a time, in
    request order. ``provider`` says that a reply without usage may have been billed. ``embedder``
    names the one that ranks best with this client; None is the client's own embeddings.
    """

    @property
    def model(self) -> str: ...
    @property
    def embedding_model(self) -> str: ...
    @property
    def api(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def identity(self) -> str | None: ...
    @property
    def extra_body(self) -> Mapping[str, Any]: ...
    @property
    def unpriced_ok(self) -> bool: ...
    @property
    def in_order(self) -> bool: ...
    @property
    def provider(self) -> bool: ...
    @property
    def can_embed(self) -> bool: ...
    @property
    def embedder(self) -> str | None: ...
    @property
    def codec(self) -> Codec | None: ...
    @property
    def cache(self) -> Any: ...

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply: ...
    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply: ...
    def embed(self, request: Texts, /) -> Embeddings: ...
    async def aembed(self, request: Texts, /) -> Embeddings: ...
    def check(self) -> None:
        """Raise ``AuthError`` when no request could be sent for want of a credential."""


class BaseClient:
    """Defaults for clients: subclass it and write ``send`` (and ``asend`` where it can await)."""

    model: str = ""
    embedding_model: str = ""
    api: str = "callable"
    base_url: str = ""
    identity: str | None = None
    extra_body: Mapping[str, Any] = {}
    unpriced_ok: bool = False
    in_order: bool = False
    provider: bool = False
    can_embed: bool = False
    embedder: str | None = None
    codec: Codec | None = None
    cache: Any = None

    def with_cache(self, cache: Any) -> Self:
        """The client with ``cache`` (a ``ResponseCache``) attached; None detaches."""
        import copy

        twin = copy.copy(self)
        twin.cache = cache
        return twin

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Send one request and wait for its reply."""
        raise NotImplementedError  # pragma: no cover - every client defines it

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """``send`` in a worker thread, for clients that cannot await."""
        from anyio.to_thread import run_sync

        return await run_sync(lambda: self.send(request, on_text=on_text), abandon_on_cancel=True)

    def stream(self, request: Request, /) -> Iterator[Any]:
        """Pieces of the reply as they come; a client that cannot stream gives its one reply."""
        yield self.send(request)

    async def astream(self, request: Request, /) -> AsyncIterator[Any]:
        """The async twin of ``stream``."""
        yield await self.asend(request)

    def embed(self, request: Texts, /) -> Embeddings:
        """Vectors for texts; a client that has none says so."""
        return Embeddings(ok=False, error="this client cannot embed", sent=False, attempts=0)

    async def aembed(self, request: Texts, /) -> Embeddings:
        """``embed`` in a worker thread, for clients that cannot await."""
        from anyio.to_thread import run_sync

        return await run_sync(lambda: self.embed(request), abandon_on_cancel=True)

    def adapted(self, request: Request) -> Request:
        """The request as this client can send it: one whose model is fixed says so here."""
        return request

    def check(self) -> None:
        """Nothing to check: a client without credentials can always send."""
