"""How an answer runs: in its turn, within its time, and only while someone waits for it."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

import anyio
from starlette.types import Receive

from harness_core.collections.faults import TemporarilyUnavailableError
from harness_integrations.engine.service.bodies import GoneError
from harness_integrations.engine.service.settings import Clock, ServiceSettings

T = TypeVar("T")
RETRY_SECONDS: Final = 2


class Slots:
    """As many runs at once as ``running``; ``waiting`` more stand in line, the next is refused."""

    def __init__(self, running: int, waiting: int) -> None:
        self._free = anyio.Semaphore(running)
        self._room = running + waiting
        self.taken = 0

    async def __aenter__(self) -> None:
        if self.taken >= self._room:
            raise TemporarilyUnavailableError("capacity", retryable=True, retry_after=RETRY_SECONDS)
        self.taken += 1
        try:
            await self._free.acquire()
        except BaseException:
            self.taken -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._free.release()
        self.taken -= 1


async def in_turn(
    work: Callable[[float], Awaitable[T]],
    *,
    slots: Slots,
    seconds: float,
    receive: Receive,
    settings: ServiceSettings,
) -> T:
    """What ``work`` gives, waiting for a slot first; it is told the seconds in line: they count.

    Raises:
        TemporarilyUnavailableError: no room in line, or the time is over.
        GoneError: the client left; the work was cancelled.
    """
    began = settings.clock.now()

    async def placed() -> T:
        async with slots:
            return await work(settings.clock.now() - began)

    return await bounded(placed, seconds=seconds, receive=receive, clock=settings.clock)


async def bounded(
    work: Callable[[], Awaitable[T]], *, seconds: float, receive: Receive, clock: Clock
) -> T:
    """What ``work`` gives, unless its time ends or the client leaves first."""
    ended: list[str] = []
    done: list[T] = []
    failed: list[Exception] = []
    async with anyio.create_task_group() as group:

        async def stop_after(what: str, wait: Callable[[], Awaitable[Any]]) -> None:
            await wait()
            ended.append(what)
            group.cancel_scope.cancel()

        group.start_soon(stop_after, "deadline", partial(clock.sleep, seconds))
        group.start_soon(stop_after, "gone", partial(_left, receive))
        try:
            done.append(await work())
        except Exception as error:  # noqa: BLE001 - raised again outside the group, as it is
            failed.append(error)
        group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    if done:
        return done[0]
    if "gone" in ended:
        raise GoneError("the client left")
    raise TemporarilyUnavailableError("deadline", retryable=True, retry_after=RETRY_SECONDS)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
