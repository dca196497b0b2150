"""Flows decide without a driver, and drivers carry them out the same way."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from harness_core.calls.exchange import governed
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.clients.mock import MockClient
from harness_core.flows import sync, tasks
from harness_core.flows.ask import ask, ask_all, ask_vectors, together
from harness_core.flows.streaming import stream
from harness_core.flows.sync import being_inside, in_event_loop
from harness_core.flows.types import Batch, Flow, Inside, Pause, Place, Wait, Work, inside
from harness_core.flows.window import Window
from harness_core.messages import Embeddings, Message, Reply, Request, Texts

DRIVERS = ["threads", "asyncio", "trio"]


def request(text: str, **more: Any) -> Request:
    return Request(messages=(Message("user", text),), **more)


def reply(text: str) -> Reply:
    return Reply(ok=True, text=text)


def step(flow: Flow[Any], answer: Any = None) -> Any:
    """What a flow asks for next, or ("done", what it came to)."""
    try:
        return flow.send(answer)
    except StopIteration as end:
        return ("done", end.value)


def driven(flow: Flow[Any], driver: str, client: Any = None, width: int = 4) -> Any:
    drive = governed(flow, Run(client or MockClient(lambda m: m[0]["content"]), Trace()))
    if driver == "threads":
        return sync.run(drive, width=width)
    return anyio.run(functools.partial(tasks.arun, drive, width=width), backend=driver)


# --- no driver ------------------------------------------------------------------------------------


def windows() -> Flow[str]:
    notes = yield from ask_all(request(f"note {n}") for n in range(2))
    return (yield from ask(request("; ".join(note.text for note in notes)))).text


def test_a_flow_is_stepped_by_hand() -> None:
    flow = windows()
    assert step(flow) == (request("note 0"), request("note 1"))
    assert step(flow, [reply("a"), reply("b")]) == (request("a; b"),)
    assert step(flow, [reply("done")]) == ("done", "done")


def test_asking_nothing_yields_nothing() -> None:
    assert step(ask_all([])) == ("done", [])
    assert step(ask_vectors([])) == ("done", [])


def test_an_answer_of_the_wrong_kind_or_number_is_a_bug() -> None:
    for asking, answers in (
        (ask_all([request("a")]), [Embeddings(ok=True)]),
        (ask_vectors([Texts(texts=("a",))]), [reply("a")]),
    ):
        step(asking)
        with pytest.raises(TypeError):
            step(asking, answers)
    short = ask_all([request("a"), request("b")])
    step(short)
    with pytest.raises(ValueError, match="shorter"):
        step(short, [reply("a")])


def one_of(name: str, rounds: int) -> Flow[str]:
    said = ""
    for n in range(rounds):
        said += (yield from ask(request(f"{name}{n}"))).text
    return said


def test_the_rounds_of_several_flows_are_one_batch() -> None:
    flow = together([one_of("a", 1), one_of("b", 3), one_of("c", 0)])
    assert step(flow) == (request("a0"), request("b0"))
    assert step(flow, [reply("A"), reply("B")]) == (request("b1"),)
    assert step(flow, [reply("C")]) == (request("b2"),)
    assert step(flow, [reply("D")]) == ("done", ["A", "BCD", ""])


def test_work_of_one_among_several_is_done_in_its_round() -> None:
    def working() -> Flow[int]:
        number: int = yield Work(lambda: 7)
        yield Pause(0)
        return number

    flow = together([one_of("a", 1), working()])
    assert isinstance(step(flow), Work)
    assert isinstance(step(flow, 7), Pause)
    assert step(flow) == (request("a0"),)
    assert step(flow, [reply("A")]) == ("done", ["A", 7])


def test_closing_several_flows_closes_each() -> None:
    closed: list[str] = []

    def flow(name: str) -> Flow[None]:
        try:
            yield from ask(request(name))
        finally:
            closed.append(name)

    both = together([flow("a"), flow("b")])
    step(both)
    both.close()
    assert closed == ["a", "b"]


# --- drivers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", DRIVERS)
def test_drivers_agree(driver: str) -> None:
    def flow() -> Flow[tuple[list[str], int]]:
        said = yield from together([one_of("a", 2), one_of("b", 3)])
        yield Pause(0)
        return said, (yield Work(lambda: 7))

    assert driven(flow(), driver) == (["a0a1", "b0b1b2"], 7)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("what", [StopIteration, StopAsyncIteration, GeneratorExit, LookupError])
def test_a_bug_in_a_client_is_never_taken_for_an_answer(
    what: type[BaseException], width: int, driver: str
) -> None:
    class Broken(BaseClient):
        model = "mock-model"
        unpriced_ok = True

        def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
            raise what("a bug")

        async def asend(self, request: Request, /, *, on_text: Any = None) -> Reply:
            return self.send(request)

    MockClient()
    with pytest.raises((what, RuntimeError)):
        driven(ask_all([request("a"), request("b")]), driver, Broken(), width)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("work", [lambda: next(iter([])), lambda: 1 / 0])
def test_a_bug_in_work_is_raised_where_the_flow_asked(driver: str, work: Any) -> None:
    def flow() -> Flow[str]:
        try:
            yield Work(work)
        except (RuntimeError, ZeroDivisionError):
            return "raised here"
        return "nothing"

    assert driven(flow(), driver) == "raised here"


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_error_reaches_the_reader_and_its_cleanup(driver: str) -> None:
    seen: list[str] = []

    def flow() -> Flow[str]:
        try:
            yield from ask(request("a"))
        except LookupError:
            seen.append("caught")
        finally:
            seen.append("closed")
        return (yield from ask(request("b"))).text

    class Broken(MockClient):
        def send(self, asked: Request, /, *, on_text: Any = None) -> Reply:
            if asked.messages[0].content == "a":
                raise LookupError("a bug")
            return reply("went on")

        async def asend(self, asked: Request, /, *, on_text: Any = None) -> Reply:
            return self.send(asked)

    assert driven(flow(), driver, Broken()) == "went on"
    assert seen == ["caught", "closed"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_a_flow_may_not_yield_is_an_error_in_the_flow(driver: str) -> None:
    def flow() -> Flow[str]:
        try:
            yield [request("a")]  # type: ignore[misc]  # that is the point
        except TypeError as error:
            return str(error)
        return "nothing"

    assert "tuple of requests" in driven(flow(), driver)


@pytest.mark.parametrize("driver", DRIVERS)
def test_workers_run_in_a_copy_of_the_callers_context(driver: str) -> None:
    here = contextvars.ContextVar("here", default="nowhere")
    here.set("outside")
    client = MockClient(lambda m: f"{here.get()} {inside.get() is not None}", concurrent=True)
    replies = driven(ask_all([request("a"), request("b")]), driver, client)
    assert [r.text for r in replies] == ["outside True"] * 2
    assert inside.get() is None


def test_requests_of_a_wide_run_are_in_flight_together_and_of_a_narrow_one_never() -> None:
    barrier = threading.Barrier(3)
    client = MockClient(lambda _m: str(barrier.wait(20) >= 0), concurrent=True)
    three = [request(str(n)) for n in range(3)]
    assert [r.text for r in driven(ask_all(three), "threads", client, 3)] == ["True"] * 3


def test_a_client_that_asks_for_order_is_called_one_at_a_time() -> None:
    order: list[str] = []

    def noting(messages: Any) -> str:
        order.append(messages[0]["content"])
        return "x"

    client = MockClient(noting)
    for driver in DRIVERS:
        order.clear()
        driven(ask_all(request(str(n)) for n in range(9)), driver, client, 8)
        assert order == [str(n) for n in range(9)]


@pytest.mark.anyio
async def test_work_of_an_async_run_leaves_the_loop_free() -> None:
    running = threading.get_ident()

    def flow() -> Flow[bool]:
        elsewhere: bool = yield Work(
            lambda: threading.get_ident() != running and not in_event_loop()
        )
        return elsewhere

    assert in_event_loop()
    assert await tasks.arun(governed(flow(), Run(MockClient(), Trace())))
    assert not sync.run(governed(flow(), Run(MockClient(), Trace())))


def test_only_the_final_request_is_streamed() -> None:
    heard: list[str] = []
    flow = ask_all([request("a"), request("b", final=True)])
    client = MockClient(lambda m: m[0]["content"])
    sync.run(governed(flow, Run(client, Trace())), on_text=heard.append)
    assert heard == ["b"]


def test_being_inside_is_reset_by_value() -> None:
    first, second = Inside("t", "1", 1), Inside("t", "2", 2)
    with being_inside(first):
        with being_inside(second):
            assert inside.get() is second
        assert inside.get() is first
    assert inside.get() is None


def test_an_embedding_request_cannot_be_streamed() -> None:
    from harness_core.calls.exchange import exchange

    trace = Trace()
    flow = exchange(Texts(texts=("a",)), Run(MockClient(), trace), streamed=True)
    with pytest.raises(TypeError, match="text request"):
        next(stream(flow, lambda pieces, _whole: pieces[0]))
    assert trace.ledger.held == 0


# --- the window -----------------------------------------------------------------------------------


class Ticket:
    seconds = 0.0

    def join(self, wake: Any, /) -> bool:
        return False

    def leave(self) -> None:
        """Nothing to leave."""


def placing(items: Sequence[Any]) -> Any:
    """A batch's exchanges; an exception among them is raised there."""
    for item in items:
        if isinstance(item, Exception):
            raise item
        yield item


def place() -> Place:
    return Place((_ for _ in ()), in_order=False)  # type: ignore[arg-type]  # never driven


def test_the_window_places_in_order_and_waits_beside_what_is_on_its_way() -> None:
    window = Window(Batch(placing([place(), Wait(Ticket()), place()]), 3), width=2)
    first = window.pull(None)
    assert isinstance(first, Place)
    number = window.place(first)
    assert window.pull(None) is None, "a wait beside a request in flight means: not now"
    window.land(number, reply("a"), None)
    assert isinstance(window.pull(None), Place)
    assert window.pull(None) is None


def test_a_window_is_never_wider_than_it_is() -> None:
    window = Window(Batch(placing([place() for _ in range(3)]), 3), width=2)
    for _ in range(2):
        item = window.pull(None)
        assert isinstance(item, Place)
        window.place(item)
    assert window.pull(None) is None


def test_the_first_failure_in_request_order_is_raised_and_stops_the_pulling() -> None:
    window = Window(Batch(placing([place(), place(), KeyError("third"), place()]), 4), width=4)
    while isinstance(item := window.pull(None), Place):
        window.place(item)
    window.land(1, None, ValueError("second"))
    window.land(0, reply("a"), None)
    with pytest.raises(ValueError, match="second"):
        window.result()
    assert window.pull(None) is None


def test_a_wake_for_a_loop_that_has_ended_is_harmless() -> None:
    async def made() -> Any:
        return tasks.soon(lambda: None)

    for wake in (asyncio.run(made()), anyio.run(made, backend="trio")):
        wake()
