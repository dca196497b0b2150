"""Streams: one exchange driven alone, its pieces handed on as the client gives them.

The reply is still whole when it is settled and kept, so nothing but this module knows of pieces.
"""

import re
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

from harness_core.answer import is_not_found
from harness_core.client import OnText
from harness_core.flows.interrupts import interrupts
from harness_core.flows.sync import Driver, being_inside
from harness_core.flows.tasks import AsyncDriver
from harness_core.flows.types import Drive, Send
from harness_core.messages import SENTINEL, Outcome, Reply, Request

ABANDONED: Final = "abandoned"
"""Finish reason of a stream that ended early: settled at what is known by then, never cached."""

Join = Callable[[Sequence[Any], bool], Reply]
"""``join(pieces, whole)`` makes one reply; ``whole`` is False for a stream that ended early."""

_END = object()


@runtime_checkable
class Streaming(Protocol):
    """A client that gives its reply in pieces; the generators are closed when a stream ends."""

    def stream(self, request: Request, /) -> Generator[Any, None, None]:
        """Pieces of the reply as they come."""

    def astream(self, request: Request, /) -> AsyncGenerator[Any, None]:
        """The async twin of ``stream``."""


def stream(flow: Drive[Outcome], join: Join) -> Generator[Any, None, Reply]:
    """Drive one exchange, yielding its pieces; returns the reply.

    Nothing is held before the first ``next``. A reply that needed no sending (a cache, a
    recording, a refusal) comes without pieces. Closed early, the exchange is settled at what is
    known by then.
    """
    driver = Driver(1, None)
    with closing(flow):
        with interrupts(driver.wake) as driver.interrupts:
            todo: Any = advance(flow)
            while not isinstance(todo, (Send, Reply)):
                todo = advance(flow, driver.perform(todo))
        if isinstance(todo, Reply):
            return todo
        pieces: list[Any] = []
        try:
            with closing(_streaming(todo).stream(_text(todo))) as source:
                while True:
                    with being_inside(todo.inside):
                        piece = next(source, _END)
                    if piece is _END:
                        break
                    pieces.append(piece)
                    yield piece
        except BaseException as what:
            ended_early(flow, join, pieces, what)
            raise
        return _reply(advance(flow, join(pieces, True)))


async def astream(flow: Drive[Outcome], join: Join) -> AsyncGenerator[Any, None]:
    """The async twin of ``stream``; the last thing it yields is the ``Reply``."""
    driver = AsyncDriver(1, None)
    with closing(flow):
        todo: Any = advance(flow)
        while not isinstance(todo, (Send, Reply)):
            todo = advance(flow, await driver.perform(todo))
        if isinstance(todo, Reply):
            yield todo
            return
        pieces: list[Any] = []
        async with aclosing(_streaming(todo).astream(_text(todo))) as source:
            try:
                while True:
                    with being_inside(todo.inside):
                        piece = await anext(source, _END)
                    if piece is _END:
                        break
                    pieces.append(piece)
                    yield piece
            except BaseException as what:  # settled before anything is awaited
                ended_early(flow, join, pieces, what)
                raise
        yield _reply(advance(flow, join(pieces, True)))


def advance(flow: Drive[Outcome], answer: Any = None) -> Any:
    """What the exchange asks for next, or its outcome."""
    try:
        return flow.send(answer)
    except StopIteration as end:
        return end.value


def ended_early(
    flow: Drive[Outcome], join: Join, pieces: Sequence[Any], what: BaseException
) -> None:
    """Settle an exchange whose stream broke: at what arrived, or as lost when it failed at once."""
    if pieces or not isinstance(what, Exception):
        advance(flow, replace(join(pieces, False), finish_reason=ABANDONED))
    else:
        flow.throw(what)


def _streaming(todo: Send) -> Streaming:
    if not isinstance(todo.client, Streaming):
        raise TypeError(f"{type(todo.client).__name__} cannot stream")
    return todo.client


def _text(todo: Send) -> Request:
    if not isinstance(todo.request, Request):
        raise TypeError("only a text request can be streamed")
    return todo.request


def _reply(outcome: Any) -> Reply:
    if not isinstance(outcome, Reply):
        raise TypeError(f"an exchange ended in {type(outcome).__name__}")
    return outcome


class HeldBack:
    """``on_text`` that hears nothing while the text may still turn out to be the sentinel."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._waiting: list[str] | None = []

    def __call__(self, piece: str) -> None:
        """Hear a piece, or keep it until the text differs from the sentinel."""
        if self._waiting is None:
            self._on_text(piece)
            return
        self._waiting.append(piece)
        text = "".join(self._waiting)
        opening = re.sub(r"^[\W_]+", "", text).upper().replace(" ", "_")
        if not SENTINEL.startswith(opening) and not is_not_found(text):
            self._waiting = None
            self._on_text(text)

    def end(self) -> None:
        """The text is whole: a short one that only began like the sentinel is heard now."""
        text = "".join(self._waiting or ())
        self._waiting = []
        if not is_not_found(text):
            self._on_text(text)
