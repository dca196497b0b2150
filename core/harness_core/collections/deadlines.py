"""Time as a limit: a request whose time does not fit is not sent, one that takes too long is left.

A thread cannot be ended, so a request that is given up goes on by itself; its reply is not used.
"""

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from harness_core.client import BaseClient, Client, OnText
from harness_core.collections.images import Picture
from harness_core.messages import Embeddings, Reply, Request, Texts

T = TypeVar("T")

REASON: Final = "deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Seconds: of one answer, added by an image, kept free at the end, of one request at most."""

    answer: float = 45.0
    image: float = 45.0
    soft: float = 5.0
    call: float = 20.0
    margin: float = 1.0
    clock: Callable[[], float] = time.monotonic

    def deadline(self, *, image: bool, waited: float = 0.0) -> "Deadline":
        """The deadline of a run that begins now, and was asked for ``waited`` seconds ago."""
        whole = self.answer + (self.image if image else 0.0)
        return Deadline(self, self.clock() + whole - waited)


@dataclass(slots=True, eq=False)
class Deadline:
    """When a run must be over. ``passed`` says that it kept a request back or gave one up."""

    budgets: Budgets
    end: float
    passed: bool = False

    def seconds(self) -> float:
        """How long a request that starts now may take; 0 when none may start."""
        left = self.end - self.budgets.clock()
        if left <= self.budgets.soft:
            return 0.0
        return max(0.0, min(self.budgets.call, left - self.budgets.margin))


class TimedClient(BaseClient):
    """A client under a deadline; pictures go to the one that sees, texts to the one that embeds."""

    def __init__(
        self,
        client: Client,
        deadline: Deadline,
        vision: Client | None = None,
        embedder: Client | None = None,
    ) -> None:
        self.model = client.model
        self.embedding_model = client.embedding_model
        self.api = client.api
        self.base_url = client.base_url
        self.identity = client.identity
        self.extra_body = client.extra_body
        self.unpriced_ok = client.unpriced_ok
        self.in_order = client.in_order
        self.provider = client.provider
        self.can_embed = client.can_embed
        self.embedder = client.embedder
        self.codec = client.codec
        self.cache = client.cache
        self._client = client
        self._vision = vision
        self._embedder = embedder or client
        self._deadline = deadline

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Send, and wait for no longer than there is time."""
        client, seconds = self._for(request), self._deadline.seconds()
        if not seconds:
            return self._kept_back(request)
        reply = _within(seconds, lambda: client.send(request, on_text=on_text))
        return self._given_up(request) if reply is None else reply

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """``send``, awaited."""
        from anyio import move_on_after

        client, seconds = self._for(request), self._deadline.seconds()
        if not seconds:
            return self._kept_back(request)
        with move_on_after(seconds):
            return await client.asend(request, on_text=on_text)
        return self._given_up(request)

    def embed(self, request: Texts, /) -> Embeddings:
        """Embed, and wait for no longer than there is time."""
        seconds = self._deadline.seconds()
        found = _within(seconds, lambda: self._embedder.embed(request)) if seconds else None
        return self._not_embedded(sent=seconds > 0) if found is None else found

    async def aembed(self, request: Texts, /) -> Embeddings:
        """``embed``, awaited."""
        from anyio import move_on_after

        seconds = self._deadline.seconds()
        with move_on_after(seconds):
            if seconds:
                return await self._embedder.aembed(request)
        return self._not_embedded(sent=seconds > 0)

    def adapted(self, request: Request) -> Request:
        """The request as its client can send it; an effort is asked of those that take one."""
        client = self._for(request)
        takes: Callable[[str], bool] = getattr(client, "takes_effort", _any)
        if request.effort is not None and not takes(request.effort):
            request = replace(request, effort=None)
        adapt: Callable[[Request], Request] = getattr(client, "adapted", _as_it_is)
        return adapt(request)

    def check(self) -> None:
        """What the client itself checks."""
        self._client.check()

    def _for(self, request: Request) -> Client:
        seen = isinstance(request.payload, Picture) and self._vision is not None
        return self._vision if seen and self._vision is not None else self._client

    def _kept_back(self, request: Request) -> Reply:
        self._deadline.passed = True
        return Reply.failed(
            "no time is left to send it", reason=REASON, status=0, sent=False, attempts=0,
            label=request.label, model=request.model or self.model,
        )  # fmt: skip

    def _given_up(self, request: Request) -> Reply:
        self._deadline.passed = True
        return Reply.failed(
            "it took too long and was given up", reason=REASON, status=0,
            label=request.label, model=request.model or self.model,
        )  # fmt: skip

    def _not_embedded(self, *, sent: bool) -> Embeddings:
        self._deadline.passed = True
        why = "it took too long and was given up" if sent else "no time is left to send it"
        return Embeddings(
            ok=False, error=why, reason=REASON, status=0, sent=sent, attempts=int(sent)
        )


def _within(seconds: float, function: Callable[[], T]) -> T | None:
    """What ``function`` gives within that time; None when it takes longer."""
    done: SimpleQueue[T | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            done.put(function())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            done.put(error)

    threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()
    try:
        found = done.get(timeout=seconds)
    except Empty:
        return None
    if isinstance(found, BaseException):
        raise found
    return found


def _any(_effort: str) -> bool:
    return True


def _as_it_is(request: Request) -> Request:
    return request
