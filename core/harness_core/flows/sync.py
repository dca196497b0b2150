"""The sync driver: runs a flow here, its requests here or in up to ``width`` worker threads."""

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar, assert_never

from harness_core.client import OnText
from harness_core.flows.interrupts import Interrupts, interrupts
from harness_core.flows.types import (
    Admitted,
    Batch,
    Drive,
    Inside,
    Pause,
    Place,
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


class _Landed(NamedTuple):
    number: int
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


def told(todo: Say | Admitted, on_text: OnText | None) -> None:
    """Pass on what is said; an admission is for the window alone."""
    if isinstance(todo, Say) and on_text is not None:
        on_text(todo.text)


class Driver:
    """Performs what a flow asks for, in threads."""

    def __init__(self, width: int, on_text: OnText | None) -> None:
        self.width = width
        self.on_text = on_text
        self.interrupts = Interrupts()
        self.done: SimpleQueue[_Landed | None] = SimpleQueue()  # None: look around
        self.pool: ThreadPoolExecutor | None = None

    def wake(self) -> None:
        """Have the waiting thread look around; safe in signal handlers and under locks."""
        self.done.put(None)

    def close(self) -> None:
        """Start no further thread."""
        if self.pool is not None:
            self.pool.shutdown(wait=False)

    def drive(self, flow: Drive[T]) -> T:
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
                answer = self.perform(todo)
            except BaseException as what:  # noqa: BLE001 - the flow decides what it means
                error = what

    def perform(self, todo: Batch | Send | Say | Work | Wait | Pause | Admitted) -> Any:
        """Do one thing a flow asked for."""
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
            case Say() | Admitted():
                return told(todo, self.on_text)
        assert_never(todo)

    def send(self, todo: Send) -> Outcome:
        """Give a request to its client."""
        with being_inside(todo.inside):
            if isinstance(todo.request, Texts):
                return todo.client.embed(todo.request)
            on_text = self.on_text if todo.request.final else None
            return todo.client.send(todo.request, on_text=on_text)

    def batch(self, batch: Batch) -> list[Outcome | None]:
        """Let the window move over a batch; the outcomes of placed requests, in order."""
        inline = self.width == 1 or batch.size == 1
        with closing(Window(batch, self.width)) as window:
            while True:
                self.fill(window, inline=inline)
                if not window.going:
                    break
                if landed := self.done.get():  # the one place where a sync run waits for replies
                    window.land(*landed)
            outcomes = window.result()
            self.interrupts.check()
            return outcomes

    def fill(self, window: Window, *, inline: bool) -> None:
        """Place what may be placed now."""
        answer: bool | None = None
        while not self.interrupts.pending and (item := window.pull(answer)) is not None:
            answer = None
            if isinstance(item, Wait):
                answer = self.wait(item.ticket)
            else:
                self.place(window, item, inline=inline or item.in_order)

    def place(self, window: Window, item: Place, *, inline: bool) -> None:
        """Have an admitted exchange finished, here or by a worker."""
        number = window.place(item)
        if inline:
            window.land(*self.finished(number, item.flow))
            return
        self.pool = self.pool or ThreadPoolExecutor(self.width, thread_name_prefix="harness")
        self.pool.submit(copy_context().run, self.serve, number, item.flow)

    def serve(self, number: int, flow: Drive[Outcome]) -> None:
        """Finish an exchange in a worker thread."""
        self.done.put(self.finished(number, flow))

    def finished(self, number: int, flow: Drive[Outcome]) -> _Landed:
        """Run an exchange to its end; what it raises is the batch's to raise, in request order."""
        try:
            return _Landed(number, self.drive(flow), None)
        except BaseException as what:  # noqa: BLE001 - see above
            return _Landed(number, None, what)

    def wait(self, ticket: Ticket) -> bool:
        """Wait for a ticket, unless that would block what is being waited for."""
        if inside.get() is not None or in_event_loop():
            return False
        if ticket.join(self.wake):
            self.sleep(ticket.seconds)
        return True

    def pause(self, seconds: float) -> None:
        """Let time pass, until the first Ctrl-C."""
        until = time.monotonic() + seconds
        while not self.interrupts.pending and (left := until - time.monotonic()) > 0:
            self.sleep(left)
        self.interrupts.check()

    def sleep(self, seconds: float) -> None:
        """Wait until somebody wakes this thread, ``seconds`` at the most."""
        try:
            self.done.get(timeout=seconds)
        except Empty:
            return


class being_inside:  # noqa: N801 - reads as the context manager it is
    """Mark what runs in this context as made inside a request; reset by value."""

    __slots__ = ("_before", "_here")

    def __init__(self, here: Inside) -> None:
        self._here = here

    def __enter__(self) -> None:
        self._before = inside.get()
        inside.set(self._here)

    def __exit__(self, *_what: object) -> None:
        inside.set(self._before)


def in_event_loop() -> bool:
    """Whether this thread is running an event loop, which a wait would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        trio = sys.modules.get("trio")
        return trio is not None and bool(trio.lowlevel.in_trio_run())
    return True
