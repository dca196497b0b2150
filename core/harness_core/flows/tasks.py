"""The async driver: the same window over tasks, on asyncio or trio through anyio."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, TypeVar, assert_never

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint_if_cancelled

from harness_core.client import OnText
from harness_core.flows.sync import being_inside, told
from harness_core.flows.types import (
    Admitted,
    Batch,
    Drive,
    Pause,
    Say,
    Send,
    Ticket,
    Wait,
    Work,
    inside,
)
from harness_core.flows.window import Window
from harness_core.messages import Outcome, Texts

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

    async def perform(self, todo: Batch | Send | Say | Work | Wait | Pause | Admitted) -> Any:
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
            case Say() | Admitted():
                return told(todo, self.on_text)
        assert_never(todo)

    async def send(self, todo: Send) -> Outcome:
        """Give a request to its client."""
        with being_inside(todo.inside):
            if isinstance(todo.request, Texts):
                return await todo.client.aembed(todo.request)
            on_text = self.on_text if todo.request.final else None
            return await todo.client.asend(todo.request, on_text=on_text)

    async def batch(self, batch: Batch) -> list[Outcome | None]:
        """Let the window move over a batch; the outcomes of placed requests, in order."""
        landed = _Bell()

        async def serve(number: int, flow: Drive[Outcome]) -> None:
            await checkpoint_if_cancelled()  # what was not begun is not sent
            try:
                await self.finish(window, number, flow)
            finally:
                landed.ring()

        with closing(Window(batch, self.width)) as window:
            try:
                async with anyio.create_task_group() as group:
                    while True:
                        answer: bool | None = None
                        while (item := window.pull(answer)) is not None:
                            answer = None
                            if isinstance(item, Wait):
                                answer = await self.wait(item.ticket)
                            elif item.in_order or batch.size == 1:
                                await self.finish(window, window.place(item), item.flow)
                            else:
                                group.start_soon(serve, window.place(item), item.flow)
                        if not window.going:
                            break
                        await landed.wait()
            finally:
                for flow in window.going.values():
                    flow.close()  # cancelled before its task began: never sent
            return window.result()

    async def finish(self, window: Window, number: int, flow: Drive[Outcome]) -> None:
        """Run an exchange to its end; what it raises is the batch's to raise, in request order."""
        outcome, error = None, None
        try:
            outcome = await self.drive(flow)
        except BaseException as what:  # noqa: BLE001 - see above
            error = what
        window.land(number, outcome, error)
        if isinstance(error, anyio.get_cancelled_exc_class()):
            raise error

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
    schedule: Callable[[Callable[[], None]], object]
    try:
        schedule = asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        schedule = sys.modules["trio"].lowlevel.current_trio_token().run_sync_soon

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
            schedule(function)

    return wake
