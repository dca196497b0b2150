"""Streams: one exchange driven alone, its pieces handed on as the client gives them.

The reply is still whole when it is settled and kept, so nothing but this module knows of pieces.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import closing
from typing import Any

from harness_core.flows.interrupts import interrupts
from harness_core.flows.sync import Driver, being_inside
from harness_core.flows.tasks import AsyncDriver
from harness_core.flows.types import Drive, Send
from harness_core.messages import SENTINEL, OnText, Outcome, Reply, Request

Join = Callable[[Sequence[Any], bool], Reply]
"""``join(pieces, whole)`` makes one reply; ``whole`` is False for a stream that ended early."""

_END = object()


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
        with closing(_source(todo)) as source:
            try:
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
        source = todo.client.astream(todo.request)
        try:
            while True:
                with being_inside(todo.inside):
                    piece = await anext(source, _END)
                if piece is _END:
                    break
                pieces.append(piece)
                yield piece
        except BaseException as what:
            ended_early(flow, join, pieces, what)
            raise
        finally:
            await source.aclose()
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
        advance(flow, join(pieces, False))
    else:
        flow.throw(what)


def _source(todo: Send) -> Generator[Any, None, None]:
    if not isinstance(todo.request, Request):
        raise TypeError("only a text request can be streamed")
    yield from todo.client.stream(todo.request)


def _reply(outcome: Any) -> Reply:
    if not isinstance(outcome, Reply):
        raise TypeError(f"an exchange ended in {type(outcome).__name__}")
    return outcome


def held_back(on_text: OnText) -> OnText:
    """``on_text`` that hears nothing while the text may still turn out to be the sentinel."""
    waiting: list[str] | None = []

    def heard(piece: str) -> None:
        nonlocal waiting
        if waiting is None:
            on_text(piece)
            return
        waiting.append(piece)
        text = "".join(waiting)
        if not SENTINEL.startswith(text.lstrip()[: len(SENTINEL)]):
            waiting = None
            on_text(text)

    return heard
