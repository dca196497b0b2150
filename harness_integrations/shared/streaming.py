"""A reader's answer as a stream of text, in sync and async code, whose reading ends with it."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from harness_core.client import OnText

T = TypeVar("T")


class StreamClosed(BaseException):
    """Raised by ``on_text`` once nobody reads the stream: the request it belongs to is given up."""


class _Listener:
    """``on_text`` of a stream: passes pieces on until it is closed."""

    def __init__(self, put: Callable[[Any], object]) -> None:
        self.closed = False
        self._put = put

    def __call__(self, piece: str) -> None:
        if self.closed:
            raise StreamClosed
        self._put(piece)


class _Ended:
    """The end of a stream: what the reading returned, or what it raised."""

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self.result = result
        self.error = error


def text_stream(
    read: Callable[[OnText], T], done: Callable[[T], str], *, whole: bool = False
) -> Generator[str, None, None]:
    """An answer's text in pieces, as ``read`` says them from a thread.

    ``done`` is given what ``read`` returns, and gives the whole text; what of it was not said yet
    is the last piece. ``whole``: the answer is put together after the model spoke, so nothing is
    said before. Nothing is read before the first ``next``. Closed early, the request on its way is
    given up and the reading ends; the thread is waited for.
    """
    spoken = _Spoken(whole=whole)
    queue: SimpleQueue[Any] = SimpleQueue()
    listener = _Listener(queue.put)

    def run() -> None:
        try:
            queue.put(_Ended(read(listener)))
        except BaseException as error:  # noqa: BLE001 - raised again where the stream is read
            queue.put(_Ended(error=error))

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    try:
        while not isinstance(piece := queue.get(), _Ended):
            if text := spoken.heard(piece):
                yield text
        if piece.error is not None:
            raise piece.error
        yield from spoken.rest(done(piece.result))
    finally:
        listener.closed = True
        thread.join()


async def atext_stream(
    read: Callable[[OnText], Awaitable[T]], done: Callable[[T], str], *, whole: bool = False
) -> AsyncGenerator[str, None]:
    """The async twin of ``text_stream``, in a task of asyncio's."""
    spoken = _Spoken(whole=whole)
    queue: asyncio.Queue[Any] = asyncio.Queue()
    listener = _Listener(queue.put_nowait)

    async def run() -> None:
        try:
            queue.put_nowait(_Ended(await read(listener)))
        except BaseException as error:
            queue.put_nowait(_Ended(error=error))
            raise

    task = asyncio.create_task(run())
    try:
        while not isinstance(piece := await queue.get(), _Ended):
            if text := spoken.heard(piece):
                yield text
        if piece.error is not None:
            raise piece.error
        for text in spoken.rest(done(piece.result)):
            yield text
    finally:
        listener.closed = True
        await _over(task)


async def _over(task: asyncio.Task[None]) -> None:
    """Wait for a reading that nobody reads any more; its error was raised, or nobody hears it."""
    if not task.done():
        await asyncio.wait({task}, timeout=1)  # it ends at its next piece of text
        task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


class _Spoken:
    """What was streamed of an answer; white space waits for what comes after it."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self.text = self._waiting = ""

    def heard(self, piece: str) -> str:
        """What of a piece may be said now."""
        if self._whole:
            return ""
        waiting = self._waiting + piece
        ready = waiting.rstrip() if self.text else waiting.strip()
        self._waiting = waiting[len(waiting.rstrip()) :]
        self.text += ready
        return ready

    def rest(self, text: str) -> list[str]:
        """The piece of the whole answer that was not said yet; a stream says at least one."""
        rest = text[len(self.text) :] if text.startswith(self.text) else ""
        return [rest] if rest or not self.text else []
