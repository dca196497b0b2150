"""At most so many requests in flight at once, over all threads and tasks that share a reader."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

_within: ContextVar[bool] = ContextVar("within_gate", default=False)


class Gate:
    """A bound on requests in flight. One made inside another passes: it would wait for itself."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._threads = threading.BoundedSemaphore(width)
        self._loops: WeakKeyDictionary[object, asyncio.Semaphore] = WeakKeyDictionary()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold one of the places."""
        if _within.get():
            yield
            return
        with self._threads:
            token = _within.set(True)
            try:
                yield
            finally:
                _within.reset(token)

    @asynccontextmanager
    async def aone(self) -> AsyncIterator[None]:
        """Hold one of this event loop's places."""
        if _within.get():
            yield
            return
        loop = asyncio.get_running_loop()
        async with self._loops.setdefault(loop, asyncio.Semaphore(self._width)):
            token = _within.set(True)
            try:
                yield
            finally:
                _within.reset(token)


class Gates:
    """The gates of one reader, by width."""

    def __init__(self) -> None:
        self._gates: dict[int, Gate] = {}

    def __getitem__(self, width: int) -> Gate:
        return self._gates.setdefault(width, Gate(width))
