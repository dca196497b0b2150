"""The async driver: the same window over tasks, on asyncio or trio through anyio."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from harness_core.flows.sync import being_inside
from harness_core.flows.types import (
    Admitted,
    Batch,
    Drive,
    Pause,
    Place,
    Send,
    Ticket,
    Wait,
    Work,
    inside,
)
from harness_core.messages import OnText, Outcome, Texts

T = TypeVar("T")


async def arun(flow: Drive[T], *, width: int = 1, on_text: OnText | None = None) -> T:
    """Run a flow to its end in this task, with at most ``width`` requests in flight.

    Cancelling it sends nothing further; what was in flight is settled before it returns.
    """
    with closing(flow):
        return await AsyncDriver(width, on_text).drive(flow)


class AsyncDriver:
    """Performs what a flow asks for, in tasks."""

    def __init__(self, width: int, on_text: OnText | None) -> None:
        self.width = width
        self.on_text = on_text
        self.threads: anyio.CapacityLimiter | None = None

    async def drive(self, flow: Drive[T]) -> T:
        """Run ``flow`` to its end."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                todo = flow.send(answer) if error is None else flow.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            answer, error = None, None  # cleared first: what is thrown next must not find the last
            try:
                answer = await self.perform(todo)
            except BaseException as what:  # noqa: BLE001 - the flow decides what it means
                error = what

    async def perform(self, todo: Batch | Send | Work | Wait | Pause | Admitted) -> Any:
        """Do one thing a flow asked for."""
        match todo:
            case Send():
                return await self.send(todo)
            case Batch():
                return await self.batch(todo)
            case Work():
                self.threads = self.threads or anyio.CapacityLimiter(self.width)
                return await to_thread.run_sync(
                    todo.function, limiter=self.threads, abandon_on_cancel=True
                )
            case Wait():
                return await self.wait(todo.ticket)
            case Pause():
                return await anyio.sleep(todo.seconds)
        return None

    async def send(self, todo: Send) -> Outcome:
        """Give a request to its client."""
        with being_inside(todo.inside):
            if isinstance(todo.request, Texts):
                return await todo.client.aembed(todo.request)
            on_text = self.on_text if todo.request.final else None
            return await todo.client.asend(todo.request, on_text=on_text)

    async def batch(self, batch: Batch) -> list[Outcome | None]:
        """Let the window move over the batch; the outcomes of placed requests, in order."""
        results: list[Outcome | None] = []
        errors: dict[int, BaseException] = {}
        landed: deque[int] = deque()
        land = _Bell()

        async def finish(number: int, flow: Drive[Outcome]) -> None:
            try:
                results[number] = await self.drive(flow)
            except Exception as what:  # noqa: BLE001 - raised by the batch, in request order
                errors[number] = what

        async def serve(number: int, flow: Drive[Outcome]) -> None:
            await finish(number, flow)
            landed.append(number)
            land.ring()

        async def place(item: Place) -> int:
            number = len(results)
            results.append(None)
            if item.in_order or batch.size == 1:
                await finish(number, item.flow)
                return 0
            group.start_soon(serve, number, item.flow)
            return 1

        with closing(batch.places):
            async with anyio.create_task_group() as group:
                going, more, answer = 0, True, None
                while True:
                    while more and going < self.width and not errors:
                        try:
                            item = batch.places.send(answer)
                            answer = None
                            if isinstance(item, Wait):
                                if going:
                                    break
                                answer = await self.wait(item.ticket)
                                continue
                        except StopIteration:
                            more = False
                            break
                        except Exception as what:  # noqa: BLE001 - raised below, in request order
                            errors[len(results)] = what
                            break
                        going += await place(item)
                    if not going:
                        break
                    await land.wait()
                    going -= len(landed)
                    landed.clear()
        if errors:
            raise errors[min(errors)]
        return results

    async def wait(self, ticket: Ticket) -> bool:
        """Wait for a ticket, unless this task is inside a request itself."""
        if inside.get() is not None:
            return False
        bell = _Bell()
        if ticket.join(soon(bell.ring)):
            with anyio.move_on_after(ticket.seconds):
                await bell.wait()
        return True


class _Bell:
    """An event that can ring again and again."""

    def __init__(self) -> None:
        self.event = anyio.Event()

    def ring(self) -> None:
        self.event.set()

    async def wait(self) -> None:
        await self.event.wait()
        self.event = anyio.Event()


def soon(function: Callable[[], None]) -> Callable[[], None]:
    """``function`` as something that any thread may call: it runs soon, in this event loop."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        run_sync_soon = sys.modules["trio"].lowlevel.current_trio_token().run_sync_soon
        return lambda: run_sync_soon(function)

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(function)

    return wake
