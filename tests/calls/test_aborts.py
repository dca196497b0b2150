"""However a run ends, nothing is held, everything paid for is a step, and nothing more is sent."""

import asyncio
import functools
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import governed
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import OnText
from harness_core.errors import TraceError
from harness_core.flows import sync, tasks
from harness_core.flows.types import Drive
from harness_core.messages import Reply, Request
from tests.support.programs import (
    Kind,
    Limits,
    Program,
    ProgramClient,
    expected,
    governor,
    known_models,
    left_behind,
    programs,
    reading,
)

SIX = Program(kinds=(Kind(5, "cheap", 10, yields=2),), batches=((0,) * 6,), width=3)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def prepared(
    program: Program, client: ProgramClient, folder: Path | None = None
) -> tuple[Trace, Drive[int]]:
    trace = Trace(governor(program.limits))
    if program.cached and folder is not None:
        client.cache = ResponseCache(folder / "replies.sqlite3")
        client.cache.clear()
    return trace, governed(reading(program), Run(client, trace))


def kept(trace: Trace) -> Counter[int]:
    """The replies that are steps."""
    return Counter(int(s.label) for s in trace.requests if not s.cached and not s.cancelled)


def over(program: Program, trace: Trace) -> bool:
    limit = program.limits.max_cost_usd
    return limit is not None and trace.ledger.spent > round(limit * 10**12)


# --- cancellation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(program=programs(), after=st.integers(0, 12))
def test_a_cancelled_run_is_settled_and_sends_nothing_further(
    program: Program, after: int, backend: str, folder: Path
) -> None:
    client = ProgramClient(program)

    async def main(drive: Drive[int]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(functools.partial(tasks.arun, drive, width=program.width))
            for _ in range(after):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    with known_models():
        trace, drive = prepared(program, client, folder)
        anyio.run(main, drive, backend=backend)
    assert left_behind(trace, client) == []
    assert kept(trace) == client.arrived
    assert not over(program, trace)
    assert sum(client.arrived.values()) <= len(expected(program).steps)


def test_a_cancelled_request_is_charged_at_its_bound_and_marked() -> None:
    client = ProgramClient(SIX)

    async def main(drive: Drive[int]) -> None:
        task = asyncio.create_task(tasks.arun(drive, width=3))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with known_models():
        trace, drive = prepared(SIX, client)
        asyncio.run(main(drive))
    assert [(s.step, s.cancelled, s.ok) for s in trace.steps] == [
        ("1", True, False),
        ("2", True, False),
        ("3", True, False),
    ]
    assert {s.budget_pico for s in trace.steps} == {11 * 2 * 10**6 + 10 * 8 * 10**6}
    assert {s.tokens.provenance for s in trace.steps} == {"bound"}
    assert left_behind(trace, client) == []


def test_a_client_that_is_cancelled_by_itself_does_not_hang_the_run() -> None:
    class Cancelled(ProgramClient):
        async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
            raise asyncio.CancelledError

    client = Cancelled(SIX)
    with known_models():
        trace, drive = prepared(SIX, client)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(tasks.arun(drive, width=3))
    assert left_behind(trace, client) == []


@pytest.mark.anyio
async def test_what_a_thread_of_a_cancelled_run_still_brings_home_is_not_counted_twice() -> None:
    import threading

    begun, release = anyio.Event(), threading.Event()

    class Slow(ProgramClient):
        async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
            begun.set()
            return await anyio.to_thread.run_sync(
                functools.partial(self.waiting, request), abandon_on_cancel=True
            )

        def waiting(self, request: Request) -> Reply:
            release.wait(20)
            return self.send(request)

    client = Slow(SIX)
    with known_models():
        trace, drive = prepared(SIX, client)
        async with anyio.create_task_group() as group:
            group.start_soon(functools.partial(tasks.arun, drive, width=1))
            await begun.wait()
            group.cancel_scope.cancel()
        release.set()
    assert trace.calls == 1
    assert left_behind(trace, client) == []


# --- Ctrl-C ---------------------------------------------------------------------------------------


class Interrupting(ProgramClient):
    """Gives the first Ctrl-C while it serves its ``at``-th request."""

    def __init__(self, program: Program, at: int) -> None:
        super().__init__(program)
        self.at = at
        self.begun = 0

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        self.begun += 1
        if self.begun == self.at:
            signal.raise_signal(signal.SIGINT)
        return super().send(request, on_text=on_text)


@given(program=programs(), at=st.integers(1, 8))
def test_the_first_ctrl_c_lets_what_is_in_flight_land(
    program: Program, at: int, folder: Path
) -> None:
    client = Interrupting(program, at)
    with known_models():
        trace, drive = prepared(program, client, folder)
        try:
            sync.run(drive, width=program.width)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
    assert interrupted == (client.begun >= at)
    assert left_behind(trace, client) == []
    assert kept(trace) == client.arrived
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    account = expected(program)
    seen = [(int(s.label), "hit" if s.cached else "sent") for s in trace.requests]
    assert seen == account.steps[: len(seen)]
    if interrupted and program.width == 1:
        assert client.begun == at


def test_a_run_inside_a_run_is_interrupted_with_it() -> None:
    inner = Interrupting(SIX, 2)

    class Outer(ProgramClient):
        def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
            sync.run(governed(reading(SIX), Run(inner, trace)), width=2)
            return super().send(request)

    client = Outer(SIX)
    with known_models():
        trace, drive = prepared(SIX, client)
        with pytest.raises(KeyboardInterrupt):
            sync.run(drive, width=1)
    assert sum(client.arrived.values()) == 0
    assert sum(inner.arrived.values()) == inner.begun
    assert left_behind(trace, client) == []
    assert [s.step for s in trace.steps][:2] == ["1", "1.1"]


def test_a_ctrl_c_is_left_alone_away_from_the_main_thread_and_under_another_handler() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
    try:
        client = Interrupting(SIX, 2)
        with known_models():
            _, drive = prepared(SIX, client)
            assert sync.run(drive, width=2) == 6
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


SCRIPT = """
import os, sys, time
from harness_core.calls.exchange import governed
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.flows import interrupts, sync
from tests.support.programs import Kind, Program, ProgramClient, known_models, reading

class Waiting(ProgramClient):
    def send(self, request, /, *, on_text=None):
        print("in flight", flush=True)
        while not interrupts._installed.pending:
            time.sleep(0.005)
        print("interrupted", flush=True)
        if STUBBORN:
            time.sleep(60)
        return super().send(request)

program = Program(kinds=(Kind(5, "cheap", 10),), batches=((0,) * 6,))
client, trace = Waiting(program), Trace()
with known_models():
    try:
        sync.run(governed(reading(program), Run(client, trace)), width=2)
    except KeyboardInterrupt:
        print("stopped", trace.calls, trace.ledger.held, flush=True)
        os._exit(7)
"""


@pytest.mark.parametrize(
    ("stubborn", "said"), [(False, "stopped 2 0"), (True, "stopped 0 2")], ids=["once", "twice"]
)
def test_ctrl_c_at_a_process_lands_what_is_in_flight_and_the_second_is_pythons_own(
    stubborn: bool, said: str
) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", f"STUBBORN = {stubborn}\n{textwrap.dedent(SCRIPT)}"]
    with subprocess.Popen(
        command, cwd=root, env={"PYTHONPATH": f"{root / 'core'}:{root}"}, stdout=-1, text=True
    ) as child:
        assert child.stdout is not None
        lines: list[str] = []
        for line in child.stdout:
            lines.append(line.strip())
            both = Counter(lines)
            if line == "in flight\n" and both["in flight"] == 2:
                child.send_signal(signal.SIGINT)
            if stubborn and line == "interrupted\n" and both["interrupted"] == 2:
                child.send_signal(signal.SIGINT)
    assert lines[-1] == said
    assert child.returncode == 7


# --- writes that fail -----------------------------------------------------------------------------


class FullDisk:
    """A journal that takes so many lines."""

    def __init__(self, room: int) -> None:
        self.room = room

    def append(self, line: Any) -> None:
        self.room -= 1
        if self.room < 0:
            raise TraceError("the disk is full")

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("driver", ["threads", "asyncio", "trio"])
@given(program=programs(), room=st.integers(0, 20))
def test_a_failed_write_stops_the_run_after_what_is_in_flight_has_landed(
    program: Program, room: int, driver: str, folder: Path
) -> None:
    client = ProgramClient(program)
    with known_models():
        trace, drive = prepared(program, client, folder)
        trace.journal = FullDisk(room)  # type: ignore[assignment]  # a fake of the file
        failed = False
        try:
            if driver == "threads":
                sync.run(drive, width=program.width)
            else:
                anyio.run(functools.partial(tasks.arun, drive, width=program.width), backend=driver)
        except TraceError:
            failed = True
    account = expected(program)
    lines = len(account.refusals) + sum(2 if how == "sent" else 1 for _, how in account.steps)
    assert failed == (lines > room)
    assert left_behind(trace, client) == []
    assert kept(trace) == client.arrived


def test_the_limit_of_a_run_that_was_cancelled_still_holds_afterwards() -> None:
    program = Program(
        kinds=(Kind(5, "cheap", 10, yields=50),),
        batches=((0,) * 4,),
        limits=Limits(max_cost_usd=0.000204),
        width=2,
    )  # two requests at their bound of 0.000102

    async def main(drive: Drive[int]) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(functools.partial(tasks.arun, drive, width=2))
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

    client = ProgramClient(program)
    with known_models():
        trace, drive = prepared(program, client)
        anyio.run(main, drive)
        assert trace.spent_usd == 0.000204
        sync.run(governed(reading(program), Run(client, trace)), width=2)
    assert [r.reason for r in trace.refusals] == ["cost"] * 4
    assert trace.calls == 2
