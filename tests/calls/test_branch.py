"""A branch counts its own requests; tokens, money, numbers and files are its parent's."""

import functools
import threading
from contextvars import copy_context
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.calls.api import call, run_flow
from harness_core.calls.branches import Branch
from harness_core.calls.exchange import exchange, governed
from harness_core.calls.governor import Governor
from harness_core.calls.ledger import Demand, Hold, Ledger
from harness_core.calls.progress import Progress
from harness_core.calls.replay import ReplayClient
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, OnText
from harness_core.clients.mock import MockClient
from harness_core.flows import sync
from harness_core.flows.ask import ask_all
from harness_core.flows.types import Flow, Wait
from harness_core.messages import Message, Reply, Request, Usage
from tests.support.programs import (
    Program,
    ProgramClient,
    governor,
    known_models,
    left_behind,
    programs,
    reading,
)


class Spending(BaseClient):
    """Every reply takes 100 tokens in and 10 out."""

    model, api, base_url, identity, provider = "priced", "spending", "spending://", "s", True

    def __init__(self) -> None:
        self.most = self.going = 0
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.gate.set()

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        with self.lock:
            self.going += 1
            self.most = max(self.most, self.going)
        self.gate.wait(10)
        with self.lock:
            self.going -= 1
        return Reply(ok=True, text="said", usage=Usage(input=100, output=10))


def asking(label: str) -> Request:
    return Request(messages=(Message("user", "word " * 90),), max_output=10, label=label)


def asked(*labels: str) -> Flow[list[Reply]]:
    return (yield from ask_all(asking(label) for label in labels))


def labels(trace: Trace) -> list[tuple[str, str]]:
    return [(step.step, step.label) for step in trace.steps]


PRICE = 100 * 3 + 10 * 15
"""Of one such reply, in USD per million."""


def test_requests_are_counted_apart_and_money_together() -> None:
    parent = Trace(Governor(max_calls=2, max_cost_usd=1))
    call(Spending(), "before", trace=parent)
    first, second = Branch(parent), Branch(parent)
    replies = run_flow(asked("a", "b", "c"), Spending(), first)
    assert [reply.reason for reply in replies] == [None, None, "calls"]
    assert all(reply.ok for reply in run_flow(asked("a", "b"), Spending(), second))
    assert (first.calls, second.calls, parent.calls) == (2, 2, 5)
    assert (first.spent_usd, parent.spent_usd) == (2 * PRICE / 1e6, 5 * PRICE / 1e6)
    assert (first.stop_reason, second.stop_reason, parent.stop_reason) == ("calls", None, "calls")
    assert len(parent.refusals) == len(first.refusals) == 1


def test_what_a_branch_spends_leaves_less_for_the_others() -> None:
    parent = Trace(Governor(max_cost_usd=2.5 * PRICE / 1e6, max_tokens_total=10_000))
    first, second = Branch(parent), Branch(parent)
    assert all(reply.ok for reply in run_flow(asked("a", "b"), Spending(), first))
    late = run_flow(asked("c"), Spending(), second)[0]
    assert (late.reason, second.calls, second.spent_usd) == ("cost", 0, 0)
    assert "has spent $0.0009" in (late.error or "")
    assert not call(Spending(), "word " * 90, max_output=10, trace=parent).ok


def test_tokens_are_held_together() -> None:
    parent = Trace(Governor(max_tokens_total=300))
    assert run_flow(asked("a", "b"), Spending(), Branch(parent))[1].ok
    assert run_flow(asked("c"), Spending(), Branch(parent))[0].reason == "tokens"


def test_steps_stand_in_both_under_each_ones_numbers() -> None:
    parent = Trace()
    parent.note("ingest", pages=3)
    branch = Branch(parent, meta={"recipe": "fast"})
    branch.note("segment", n=2)
    replies = run_flow(asked("a", "b"), Spending(), branch)
    assert [reply.step for reply in replies] == ["2", "3"]
    assert labels(branch) == [("1", "segment"), ("2", "a"), ("3", "b")]
    assert labels(parent) == [("1", "ingest"), ("2", "segment"), ("3", "a"), ("4", "b")]
    branch.stamp(2, source="report.pdf", recipe="fast")
    assert [step.recipe for step in parent.steps] == [None, None, "fast", "fast"]
    assert [step.recipe for step in branch.steps] == [None, "fast", "fast"]


def test_a_request_made_inside_another_one_stands_under_it_in_both() -> None:
    parent = Trace()
    parent.note("ingest")
    branch = Branch(parent)

    def answer(messages: Any, params: dict[str, Any]) -> str:
        if params["label"] == "outer":
            call(inner, "deeper", label="inner", trace=branch)
        return "said"

    inner, outer = MockClient(answer), MockClient(answer)
    call(outer, "hello", label="outer", trace=branch)
    assert labels(branch) == [("1", "outer"), ("1.1", "inner")]
    assert labels(parent) == [("1", "ingest"), ("2", "outer"), ("2.1", "inner")]


def test_the_file_of_the_parent_has_every_step_at_once_and_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    parent = Trace(path=path)
    first = Branch(parent)
    first.note("segment", n=2)
    run_flow(asked("a", "b"), Spending(), first)
    flow = exchange(asking("c"), Run(Spending(), first))
    assert type(next(flow)).__name__ == "Admitted"
    parent.close()  # as if it had been killed with "c" on its way
    loaded = Trace.load(path)
    assert labels(loaded) == [("1", "segment"), ("2", "a"), ("3", "b")]
    assert (loaded.lost_holds, loaded.calls) == (1, 3)

    resumed, client = Trace(path=path, resume=True), Spending()
    again = Branch(resumed)
    again.note("segment", n=2)
    assert all(reply.ok for reply in run_flow(asked("a", "b", "c"), client, again))
    assert (client.most, again.calls, resumed.calls) == (1, 3, 4)
    assert labels(again) == [("1", "segment"), ("2", "a"), ("3", "b"), ("4", "c")]
    assert labels(resumed) == [("1", "segment"), ("2", "a"), ("3", "b"), ("5", "c")]
    resumed.close()
    flow.close()


def test_the_numbers_of_a_request_that_never_left_are_given_back() -> None:
    parent = Trace()
    branch = Branch(parent)
    flow = exchange(asking("a"), Run(Spending(), branch))
    next(flow)
    assert (parent.ledger.held, branch.ledger.held) == (1, 1)
    flow.close()
    assert (parent.ledger.held, parent.issued, branch.issued, parent.calls) == (0, 0, 0, 0)


def test_borrowed_steps_count_here_and_not_again_in_the_parent() -> None:
    parent = Trace(Governor(max_calls=3))
    first, second = Branch(parent), Branch(parent)
    first.note("segment", n=2)
    run_flow(asked("a", "b"), Spending(), first)
    second.borrow(first.steps)
    replies = run_flow(asked("c", "d"), Spending(), second)
    assert [reply.reason for reply in replies] == [None, "calls"]
    assert (second.calls, parent.calls, second.totals().calls) == (3, 3, 3)
    assert labels(second) == [("1", "segment"), ("2", "a"), ("3", "b"), ("4", "c")]
    assert parent.spent_usd == 3 * PRICE / 1e6


def test_progress_tells_what_the_whole_run_has_spent() -> None:
    parent = Trace()
    run_flow(asked("a"), Spending(), Branch(parent))
    heard: list[Progress] = []
    run_flow(asked("b"), Spending(), Branch(parent), on_progress=heard.append)
    assert heard[-1].spent == 2 * PRICE / 1e6


def test_a_run_may_have_fewer_in_flight_than_its_driver_would_let() -> None:
    client, trace = Spending(), Trace()
    drive = governed(asked("a", "b", "c", "d"), Run(client, trace, width=1))
    assert all(reply.ok for reply in sync.run(drive, width=4))
    assert client.most == 1


def looked(flow: Any, answer: bool | None = None) -> Any:
    try:
        return flow.send(answer)
    except StopIteration as end:
        return end.value


def test_holds_of_a_sibling_are_waited_for_but_not_its_requests() -> None:
    parent = Ledger()
    one, other = Ledger(parent), Ledger(parent)
    limits = Governor(max_calls=1, max_cost_usd=10e-12).limits()

    def demand(pico: int) -> Demand:
        return Demand(label="r", model="m", tokens=1, pico=pico)

    flying = looked(one.hold(demand(6), limits, "one"))
    assert isinstance(flying, Hold)
    assert isinstance(looked(other.hold(demand(4), limits, "two")), Hold), "its own first request"
    waits = Ledger(parent).hold(demand(5), limits, "three")
    assert isinstance(looked(waits), Wait), "10 of 10 are held"
    flying.settle(tokens=1, pico=1)
    assert isinstance(looked(waits, True), Hold)
    assert (one.calls, other.calls, parent.calls, parent.spent) == (1, 0, 1, 1)


@settings(max_examples=30)
@given(programs(), st.sampled_from([1, 4]))
def test_a_branch_decides_as_a_run_of_its_own(program: Program, width: int) -> None:
    alone = Trace(governor(program.limits))
    branch = Branch(Trace(governor(program.limits)))
    with known_models():
        for trace in (alone, branch):
            client = ProgramClient(program)
            sync.run(governed(reading(program), Run(client, trace)), width=width)
            assert left_behind(trace, client) == left_behind(branch.parent, client) == []
    assert labels(branch) == labels(branch.parent) == labels(alone)
    refusals = [[(r.reason, r.label) for r in trace.refusals] for trace in (alone, branch)]
    assert refusals[0] == refusals[1]


@settings(max_examples=30)
@given(st.tuples(programs(), programs(), programs()))
def test_the_limits_hold_whatever_runs_on_the_parent_meanwhile(
    three: tuple[Program, Program, Program],
) -> None:
    limits = three[0].limits
    parent = Trace(governor(limits))
    traces = [Branch(parent), Branch(parent), parent]
    with known_models():
        threads = [
            threading.Thread(
                target=copy_context().run,
                args=(
                    functools.partial(
                        sync.run,
                        governed(reading(program), Run(ProgramClient(program), trace)),
                        width=program.width,
                    ),
                ),
                daemon=True,
            )
            for program, trace in zip(three, traces, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    ledger = parent.ledger
    assert limits.max_tokens_total is None or ledger.tokens <= limits.max_tokens_total
    assert limits.max_cost_usd is None or ledger.spent <= round(limits.max_cost_usd * 10**12)
    if limits.max_calls is not None:
        assert all(branch.calls <= limits.max_calls for branch in traces[:2])
    assert parent.calls == len(parent.requests)
    assert ledger.spent == sum(step.budget_pico or 0 for step in parent.requests)
    assert (ledger.held, len(parent._slots)) == (0, 0)


def test_a_branch_alone_can_be_saved_and_replayed(tmp_path: Path) -> None:
    parent = Trace()
    run_flow(asked("a"), Spending(), Branch(parent))
    branch = Branch(parent)
    run_flow(asked("b", "c"), Spending(), branch)
    client = ReplayClient(branch.save(tmp_path / "part.json"))
    assert [r.text for r in run_flow(asked("b", "c"), client, Trace())] == ["said", "said"]
    assert client.stats()["recorded"] == 2
