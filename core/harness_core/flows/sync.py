"""The sync driver: runs a flow here, its requests here or in up to ``width`` worker threads."""

import asyncio
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from harness_core.flows.interrupts import Interrupts, interrupts
from harness_core.flows.types import (
    Admitted,
    Batch,
    Drive,
    Inside,
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


class _Landed(NamedTuple):
    place: int
    outcome: Outcome | None
    error: BaseException | None


def run(flow: Drive[T], *, width: int = 1, on_text: OnText | None = None) -> T:
    """Run a flow to its end in this thread, with at most ``width`` requests in flight.

    Whatever stops the run is thrown into the flow where it waits, and raised from here bare. On
    the main thread the first Ctrl-C starts nothing new and lets what is in flight land.
    """
    driver = Driver(width, on_text)
    with closing(flow), interrupts(driver.wake) as driver.interrupts, closing(driver):
        return driver.drive(flow)


class Driver:
    """Performs what a flow asks for, in threads."""

    def __init__(self, width: int, on_text: OnText | None) -> None:
        self.width = width
        self.on_text = on_text
        self.interrupts = Interrupts()
        self.done: SimpleQueue[_Landed | None] = SimpleQueue()  # None: look around
        self.pool: ThreadPoolExecutor | None = None

    def wake(self) -> None:
        self.done.put(None)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=False)

    def drive(self, flow: Drive[T]) -> T:
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
                answer = self.perform(todo)
            except BaseException as what:  # noqa: BLE001 - the flow decides what it means
                error = what

    def perform(self, todo: Batch | Send | Work | Wait | Pause | Admitted) -> Any:
        if isinstance(todo, Send):
            return self.send(todo)
        self.interrupts.check()
        match todo:
            case Batch():
                return self.batch(todo)
            case Work():
                return todo.function()
            case Wait():
                return self.wait(todo.ticket)
            case Pause():
                return self.pause(todo.seconds)
        return None

    def send(self, todo: Send) -> Outcome:
        with being_inside(todo.inside):
            if isinstance(todo.request, Texts):
                return todo.client.embed(todo.request)
            on_text = self.on_text if todo.request.final else None
            return todo.client.send(todo.request, on_text=on_text)

    def batch(self, batch: Batch) -> list[Outcome | None]:
        """Let the window move over the batch; the outcomes of placed requests, in order."""
        results: list[Outcome | None] = []
        errors: dict[int, BaseException] = {}
        inline = self.width == 1 or batch.size == 1
        with closing(batch.places):
            going, more, answer = 0, True, None
            while True:
                while more and going < self.width and not errors and not self.interrupts.pending:
                    try:
                        item = batch.places.send(answer)
                        answer = None
                        if isinstance(item, Wait):
                            if going:
                                break
                            answer = self.perform(item)
                            continue
                    except StopIteration:
                        more = False
                        break
                    except BaseException as what:  # noqa: BLE001 - raised below, in request order
                        errors[len(results)] = what
                        break
                    going += self.place(item, results, errors, inline=inline)
                if not going:
                    break
                if landed := self.done.get():
                    going -= 1
                    results[landed.place] = landed.outcome
                    if landed.error is not None:
                        errors[landed.place] = landed.error
        if errors:
            raise errors[min(errors)]
        self.interrupts.check()
        return results

    def place(
        self,
        item: Place,
        results: list[Outcome | None],
        errors: dict[int, BaseException],
        *,
        inline: bool,
    ) -> int:
        """Have an admitted exchange finished, here or by a worker; how many workers that takes."""
        number = len(results)
        results.append(None)
        if inline or item.in_order:
            try:
                results[number] = self.drive(item.flow)
            except BaseException as what:  # noqa: BLE001 - raised by the batch, in request order
                errors[number] = what
            return 0
        self.pool = self.pool or ThreadPoolExecutor(self.width, thread_name_prefix="harness")
        self.pool.submit(copy_context().run, self.serve, number, item.flow)
        return 1

    def serve(self, number: int, flow: Drive[Outcome]) -> None:
        try:
            landed = _Landed(number, self.drive(flow), None)
        except BaseException as what:  # noqa: BLE001 - travels to the run's own thread
            landed = _Landed(number, None, what)
        self.done.put(landed)

    def wait(self, ticket: Ticket) -> bool:
        if inside.get() is not None or in_event_loop():
            return False
        if ticket.join(self.wake):
            self.sleep(ticket.seconds)
        return True

    def pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.interrupts.pending and (left := until - time.monotonic()) > 0:
            self.sleep(left)

    def sleep(self, seconds: float) -> None:
        try:
            self.done.get(timeout=seconds)
        except Empty:
            return


@contextmanager
def being_inside(here: Inside) -> Iterator[None]:
    """Mark what runs in this context as made inside a request; reset by value."""
    before = inside.get()
    inside.set(here)
    try:
        yield
    finally:
        inside.set(before)


def in_event_loop() -> bool:
    """Whether this thread is running an event loop, which a wait would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        trio = sys.modules.get("trio")
        return trio is not None and bool(trio.lowlevel.in_trio_run())
    return True
