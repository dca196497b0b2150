"""Runs that share a ledger, requests made inside others, and sync runs inside coroutines."""

import functools
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import exchange, governed
from harness_core.calls.governor import Governor
from harness_core.calls.ledger import Blocked, Demand, Hold, Ledger
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, OnText
from harness_core.config import override
from harness_core.flows import sync, tasks
from harness_core.flows.ask import ask, ask_all
from harness_core.flows.types import Flow, Wait
from harness_core.messages import Message, Reply, Request, Usage
from tests.support.programs import (
    SURVIVABLE,
    Program,
    ProgramClient,
    governor,
    known_models,
    left_behind,
    programs,
    reading,
)


class Calling(BaseClient):
    """Replies with what ``fn`` gives for the request; every reply costs its whole bound."""

    model, api, base_url, identity, provider = "cheap", "calling", "calling://", "calling", True

    def __init__(self, fn: Callable[[Request], str]) -> None:
        self.fn = fn

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        return Reply(ok=True, text=self.fn(request), usage=Usage())


def asking(label: str, text: str = "a b c", cap: int = 10) -> Request:
    return Request(messages=(Message("user", text),), model="cheap", max_output=cap, label=label)


def asked(*labels: str) -> Flow[list[Reply]]:
    return (yield from ask_all(asking(label) for label in labels))


ONE = (9 * 2 + 10 * 8) * 10**6
"""What one of these requests is held at: ceil(1.1 x (3 + 5)) tokens in, 10 out."""


def usd(requests: float) -> float:
    return requests * ONE / 10**12


def at_once(functions: Sequence[Callable[[], object]]) -> None:
    """Each in a thread of its own, under this thread's settings."""
    threads = [
        threading.Thread(target=copy_context().run, args=(function,), daemon=True)
        for function in functions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


# --- several runs on one ledger -------------------------------------------------------------------


@given(
    pair=st.tuples(programs(fates=SURVIVABLE), programs(fates=SURVIVABLE)),
    drivers=st.tuples(*[st.sampled_from(["threads", "asyncio", "trio"])] * 2),
)
def test_runs_that_share_a_ledger_keep_its_limits_and_end(
    pair: tuple[Program, Program], drivers: tuple[str, str]
) -> None:
    first = pair[0]
    trace = Trace(governor(first.limits))
    clients = [ProgramClient(program) for program in pair]

    def one(program: Program, client: ProgramClient, driver: str) -> None:
        drive = governed(reading(program), Run(client, trace))
        if driver == "threads":
            sync.run(drive, width=program.width)
        else:
            anyio.run(functools.partial(tasks.arun, drive, width=program.width), backend=driver)

    with known_models():
        at_once([
            functools.partial(one, *each) for each in zip(pair, clients, drivers, strict=True)
        ])  # fmt: skip
    limits = first.limits
    assert all(left_behind(trace, client) == [] for client in clients)
    assert limits.max_calls is None or trace.calls <= limits.max_calls
    assert limits.max_tokens_total is None or trace.ledger.tokens <= limits.max_tokens_total
    most = limits.max_cost_usd
    assert most is None or trace.ledger.spent <= round(most * 10**12)
    wanted = sum(len(batch) for program in pair for batch in program.batches)
    assert trace.calls + len(trace.refusals) == wanted


def demand(pico: int = 0, label: str = "r") -> Demand:
    return Demand(label=label, model="m", tokens=1, pico=pico)


def looked(flow: Any, answer: bool | None = None) -> Any:
    """What a hold comes to, or what it waits for."""
    try:
        return flow.send(answer)
    except StopIteration as end:
        return end.value


def test_runs_wait_first_in_first_out_and_a_small_request_does_not_overtake() -> None:
    ledger, limits = Ledger(), Governor(max_calls=None, max_cost_usd=10e-12).limits()
    flying = looked(ledger.hold(demand(8), limits, "one"))
    assert isinstance(flying, Hold)
    woken: list[str] = []
    big, small = ledger.hold(demand(5), limits, "two"), ledger.hold(demand(1), limits, "three")
    waits = looked(big)
    assert isinstance(waits, Wait)
    assert waits.ticket.join(lambda: woken.append("two"))
    behind = looked(small)
    assert isinstance(behind, Wait), "it would fit, but it is not its turn"
    assert behind.ticket.join(lambda: woken.append("three"))
    flying.settle(tokens=1, pico=5)
    assert woken == ["two"]
    assert isinstance(looked(big, True), Hold)
    assert woken == ["two", "three"]
    assert isinstance(looked(small, True), Wait), "5 are spent and 5 held: it must wait for those"


def test_whoever_leaves_the_queue_wakes_the_next_even_when_nothing_is_in_flight() -> None:
    ledger, limits = Ledger(), Governor(max_calls=None, max_cost_usd=10e-12).limits()
    flying = looked(ledger.hold(demand(8), limits, "one"))
    first, second = (ledger.hold(demand(5), limits, run) for run in ("two", "three"))
    head = looked(first)
    head.ticket.join(lambda: None)
    flying.settle(tokens=1, pico=1)
    behind = looked(second)
    first.close()
    assert not behind.ticket.join(lambda: None), "it must look again, for nobody would wake it"
    assert isinstance(looked(second, True), Hold)


def test_a_run_with_requests_in_flight_takes_what_fits_past_the_queue() -> None:
    ledger, limits = Ledger(), Governor(max_calls=None, max_cost_usd=10e-12).limits()
    assert isinstance(looked(ledger.hold(demand(6), limits, "one")), Hold)
    waits = looked(ledger.hold(demand(8), limits, "two"))
    waits.ticket.join(lambda: None)
    assert isinstance(looked(ledger.hold(demand(2), limits, "one")), Hold)
    assert isinstance(looked(ledger.hold(demand(1), limits, "three")), Wait)


def test_a_wait_ends_with_a_refusal_that_says_the_budget_is_busy() -> None:
    ledger, limits = Ledger(), Governor(max_cost_usd=10e-12).limits()
    assert isinstance(looked(ledger.hold(demand(8), limits, "one")), Hold)
    with override(wait_seconds=0):
        flow = ledger.hold(demand(8), limits, "two")
        waits = looked(flow)
        assert isinstance(waits.ticket, Blocked)
        waits.ticket.join(lambda: None)
        assert waits.ticket.seconds == 0
        assert looked(flow, True).reason == "ledger_busy"
    assert not ledger._queue


def test_a_run_that_waits_for_its_own_requests_is_never_busy() -> None:
    with known_models(), override(wait_seconds=0):
        trace = Trace(Governor(max_cost_usd=usd(1.5)))
        replies = sync.run(governed(asked("a", "b"), Run(Calling(lambda _: "x"), trace)), width=4)
    assert [(r.ok, r.reason) for r in replies] == [(True, None), (False, "cost")]


# --- requests made inside others ------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 3])
def test_a_request_made_inside_another_is_numbered_under_it(width: int) -> None:
    with known_models():
        trace = Trace()

        def inner(request: Request) -> str:
            if request.label.startswith("outer"):
                run = Run(client, trace)
                sync.run(governed(asked(f"in {request.label}", "again"), run))
            return "x"

        client = Calling(inner)
        sync.run(governed(asked("outer a", "outer b"), Run(client, trace)), width=width)
    assert [(s.step, s.label) for s in trace.steps] == [
        ("1", "outer a"),
        ("1.1", "in outer a"),
        ("1.2", "again"),
        ("2", "outer b"),
        ("2.1", "in outer b"),
        ("2.2", "again"),
    ]
    assert left_behind(trace, client) == []


@pytest.mark.anyio
async def test_an_async_client_that_calls_back_is_numbered_too() -> None:
    class Nested(Calling):
        async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
            if request.label == "outer":
                await tasks.arun(governed(asked("inner"), Run(self, trace)))
            return self.send(request)

    with known_models():
        trace = Trace()
        await tasks.arun(governed(asked("outer", "other"), Run(Nested(lambda _: "x"), trace)))
    assert [(s.step, s.label) for s in trace.steps] == [
        ("1", "outer"), ("1.1", "inner"), ("2", "other"),
    ]  # fmt: skip


@pytest.mark.parametrize("backend", ["threads", "asyncio", "trio"])
def test_a_request_made_inside_another_is_refused_rather_than_waited_for(backend: str) -> None:
    with known_models():
        trace = Trace(Governor(max_cost_usd=usd(1.5)))

        def inner(request: Request) -> str:
            if request.label != "outer":
                return "x"
            return sync.run(exchange(asking("inner"), Run(client, trace))).reason or ""

        client = Calling(inner)
        drive = governed(ask(asking("outer")), Run(client, trace))
        if backend == "threads":
            reply = sync.run(drive)
        else:
            reply = anyio.run(tasks.arun, drive, backend=backend)
    assert reply.text == "cost"
    assert [r.label for r in trace.refusals] == ["inner"]


def test_an_identical_request_made_inside_another_is_sent_by_itself(tmp_path: Any) -> None:
    depth = [0]
    with known_models():
        trace = Trace()

        def inner(_request: Request) -> str:
            depth[0] += 1
            if depth[0] == 1:
                sync.run(exchange(asking("same"), Run(client, trace)))
            return "x"

        client = Calling(inner).with_cache(ResponseCache(tmp_path / "c.sqlite3"))
        sync.run(governed(asked("same"), Run(client, trace)), width=2)
    assert [(s.step, s.cached) for s in trace.steps] == [("1", False), ("1.1", False)]
    assert left_behind(trace, client) == []


@pytest.mark.anyio
async def test_a_sync_run_inside_a_coroutine_never_waits_for_its_own_loop() -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    class Slow(Calling):
        async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
            begun.set()
            await go_on.wait()
            return self.send(request)

    with known_models():
        trace, client = Trace(Governor(max_cost_usd=usd(1.5))), Slow(lambda _: "x")
        async with anyio.create_task_group() as group:
            group.start_soon(tasks.arun, governed(asked("slow"), Run(client, trace)))
            await begun.wait()
            (reply,) = sync.run(governed(asked("at once"), Run(client, trace)))
            assert reply.reason == "cost"
            go_on.set()
    assert left_behind(trace, client) == []


@pytest.mark.anyio
async def test_tasks_on_one_ledger_wait_for_each_other() -> None:
    class Yielding(Calling):
        async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
            await anyio.lowlevel.checkpoint()
            return Reply(ok=True, text="x", usage=Usage(input=1, output=1))

    with known_models():
        trace, client = Trace(Governor(max_cost_usd=usd(1.5))), Yielding(lambda _: "x")
        async with anyio.create_task_group() as group:
            for label in "abcd":
                drive = governed(asked(label), Run(client, trace))
                group.start_soon(tasks.arun, drive)
    assert trace.calls == 4
    assert trace.refusals == []


# --- the table of the peers -----------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["threads", "asyncio", "trio"])
@pytest.mark.parametrize("shape", ["one after another", "one batch", "twenty runs"])
def test_twenty_calls_under_ten_cents_are_two_calls(driver: str, shape: str) -> None:
    """1,000 tokens in and 4,000 out at 2.50 and 10.00 USD per million: 0.0425 USD a call."""
    from harness_core.models import register_model, unregister_model

    register_model(
        "priced", context_window=128_000, max_output=16_384, input_usd=2.5, output_usd=10
    )
    client = Calling(lambda _: "x")
    trace = Trace(Governor(max_cost_usd=0.10, bound="margin"))
    text = " ".join(["word"] * 995)  # with its framing 1,000 tokens
    requests = [
        Request(messages=(Message("user", text),), model="priced", max_output=4000, label=str(n))
        for n in range(20)
    ]
    with override(tokenizer="words", safety_margin=0.0):
        if shape == "twenty runs":
            run_all([ask_all([one]) for one in requests], client, trace, driver)
        else:
            width = 20 if shape == "one batch" else 1
            run_all([ask_all(requests)], client, trace, driver, width)
    unregister_model("priced")
    assert trace.calls == 2
    assert trace.spent_usd == 0.085
    assert [r.reason for r in trace.refusals] == ["cost"] * 18


def run_all(
    flows: list[Flow[list[Reply]]], client: BaseClient, trace: Trace, driver: str, width: int = 20
) -> None:
    drives = [governed(flow, Run(client, trace)) for flow in flows]

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for drive in drives:
                group.start_soon(functools.partial(tasks.arun, drive, width=width))

    if driver != "threads":
        anyio.run(main, backend=driver)
        return
    at_once([functools.partial(sync.run, drive, width=width) for drive in drives])


def test_an_unknown_price_is_refused_before_it_is_sent() -> None:
    sent: list[str] = []

    def sending(request: Request) -> str:
        sent.append(request.label)
        return "x"

    client = Calling(sending)
    with known_models():
        trace = Trace(Governor(max_cost_usd=0.10))
        one = Request(messages=(Message("user", "x"),), model="unpriced", max_output=5)
        reply = sync.run(exchange(one, Run(client, trace)))
    assert reply.reason == "unpriced"
    assert sent == []
