"""A client for tests: it answers from a function, costs nothing and remembers what it was asked."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from harness_core.clients._handlers import HandlerClient
from harness_core.flows.types import inside
from harness_core.messages import Embeddings, Message, Reply, Request, Texts

T = TypeVar("T")

MODEL, EMBEDDING_MODEL = "mock-model", "mock-embed"
_BUCKETS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MockCall:
    """One request for text as the mock saw it."""

    label: str
    messages: tuple[Message, ...]
    params: dict[str, Any]
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class MockEmbed:
    """One request for vectors as the mock saw it."""

    label: str
    texts: tuple[str, ...]
    model: str
    embeddings: Embeddings


@dataclass(frozen=True, slots=True)
class _Place:
    arrival: int
    trace: object = None
    issue: int = 0


class MockClient(HandlerClient):
    """Answers ``fn(messages, params)``, or a fixed text; embeds with ``embed(texts, params)``.

    Either function may take its first argument alone. They are called one at a time, in request
    order, unless ``concurrent=True``. The models ``mock-model`` and ``mock-embed`` cost nothing,
    and no model is refused for want of a price. Without ``embed`` a text's vector counts its code
    points in 64 buckets. Safe to use from several threads.

    Raises:
        BadSettingError: ``fn`` or ``embed`` is no function.
    """

    model = MODEL
    embedding_model = EMBEDDING_MODEL
    api = "mock"
    base_url = "mock://"
    unpriced_ok = True

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        embed: Callable[..., Any] | None = None,
        *,
        concurrent: bool = False,
    ) -> None:
        super().__init__(fn or _fixed, embed or _buckets)
        self.in_order = not concurrent
        self._lock = threading.Lock()
        self._arrivals = 0
        self._calls: list[tuple[_Place, MockCall]] = []
        self._embeds: list[tuple[_Place, MockEmbed]] = []

    def calls(self) -> list[MockCall]:
        """The requests for text so far, in request order; what a cache answered is not there."""
        return _in_request_order(self._lock, self._calls)

    def embeds(self) -> list[MockEmbed]:
        """The requests for vectors so far, in request order."""
        return _in_request_order(self._lock, self._embeds)

    def reset(self) -> None:
        """Forget what was asked so far."""
        with self._lock:
            self._calls.clear()
            self._embeds.clear()

    def _place(self) -> _Place:
        where = inside.get()
        with self._lock:
            self._arrivals += 1
            if where is None:
                return _Place(self._arrivals)
            return _Place(self._arrivals, where.trace, where.issue)

    def _keep_call(
        self, place: _Place, request: Request, params: dict[str, Any], reply: Reply
    ) -> None:
        call = MockCall(label=request.label, messages=request.messages, params=params, reply=reply)
        with self._lock:
            self._calls.append((place, call))

    def _keep_embed(self, place: _Place, request: Texts, embeddings: Embeddings) -> None:
        embed = MockEmbed(
            label=request.label, texts=request.texts, model=embeddings.model, embeddings=embeddings
        )
        with self._lock:
            self._embeds.append((place, embed))


def _in_request_order(lock: threading.Lock, kept: Sequence[tuple[_Place, T]]) -> list[T]:
    """Runs by their first arrival, and the requests of one run by their number."""
    with lock:
        kept = list(kept)
    first: dict[int, int] = {}
    for place, _ in kept:
        if place.trace is not None:
            first[id(place.trace)] = min(place.arrival, first.get(id(place.trace), place.arrival))

    def order(pair: tuple[_Place, T]) -> tuple[int, int, int]:
        place = pair[0]
        return first.get(id(place.trace), place.arrival), place.issue, place.arrival

    return [record for _, record in sorted(kept, key=order)]


def _fixed(_messages: list[dict[str, Any]]) -> str:
    return "This is the mock client's reply."


def _buckets(texts: list[str]) -> list[list[float]]:
    rows = []
    for text in texts:
        row = [0.0] * _BUCKETS
        for character in text:
            row[ord(character) % _BUCKETS] += 1.0
        rows.append(row)
    return rows
