"""The one call path: every request goes through ``exchange``, which has one line of I/O in it.

The order is the guarantee, so it is written out once. Up to ``ADMITTED`` everything decides, in
request order; after it nothing does, and the worker that gets the reply settles and keeps it.
"""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from harness_core.calls.cache import fits_schema
from harness_core.calls.governor import Limits, Refusal
from harness_core.calls.prepare import Call, prepare
from harness_core.calls.replay import (
    ReplayClient,
    replayed_reply,
    replayed_vectors,
    with_alternative,
)
from harness_core.calls.run import Run
from harness_core.calls.settle import priced, settled, size
from harness_core.errors import OverrunWarning, warn
from harness_core.flows.types import (
    ADMITTED,
    Batch,
    Drive,
    Flow,
    Pause,
    Place,
    Say,
    Send,
    Wait,
    Work,
)
from harness_core.messages import Asked, Embeddings, Outcome, Reply, Request

T = TypeVar("T")


def exchange(asked: Asked, run: Run, *, streamed: bool = False) -> Drive[Outcome]:
    """One request, from what was asked to its recorded outcome.

    Raises:
        AuthError, ReplayMissError, ReplayExhaustedError, TraceError, and RequestRefused under
        ``on_refusal="raise"``: what must stop the run.
    """
    limits, ledger = run.limits(), run.trace.ledger
    call = with_recording(prepare(asked, run.client, limits), run)
    if (step := run.trace.takeover(call.replay_key, call.demand.draw_index)) is not None:
        return (yield from said(asked, run.resumed(step)))
    if call.failure is not None:
        return run.unsendable(call)
    if (refusal := ledger.permit(call.demand, limits)) is not None:
        return run.refuse(call, refusal)
    found, flight = yield from recall(call, run, limits, streamed=streamed)
    if found is not None:
        return (yield from said(asked, found))
    with flight:
        hold = yield from ledger.hold(call.demand, limits, run, streamed=streamed)
        if isinstance(hold, Refusal):
            return run.refuse(call, hold)
        with hold, run.depart(call) as sent:
            yield ADMITTED
            try:
                outcome = yield Send(run.client, call.as_sent, sent.inside)
                outcome = settled(call, outcome, run.client, sent.slot.number)
                pico = priced(call, outcome)
            except BaseException as what:
                run.lost(call, hold, sent, what)
                raise
            hold.settle(tokens=size(outcome), pico=pico)
            run.keep(call, sent, outcome, pico)
    told_of_overrun(call, outcome, pico)
    run.reporter.landed()
    return outcome


def said(asked: Asked, outcome: Outcome) -> Generator[Say, None, Outcome]:
    """An outcome that was at hand; a final reply among them is heard like one that was sent for."""
    if isinstance(asked, Request) and asked.final and outcome.ok and isinstance(outcome, Reply):
        yield Say(outcome.text)
    return outcome


def with_recording(call: Call, run: Run) -> Call:
    """The call, under another of the recording's models where only that one holds its prompt."""
    client = run.client
    return with_alternative(call, client) if isinstance(client, ReplayClient) else call


Recalled = tuple[Outcome | None, AbstractContextManager[Any]]
_ALONE = nullcontext()


def recall(
    call: Call, run: Run, limits: Limits, *, streamed: bool
) -> Generator[Wait, bool | None, Recalled]:
    """What a recording or the cache answers, counted and recorded; else the right to send."""
    client = run.client
    if isinstance(client, ReplayClient) and client.answers(call):
        return (yield from _replayed(call, run, client, limits)), _ALONE
    cache, key = client.cache, call.cache_key
    if cache is None or key is None or not isinstance(call.asked, Request):
        return None, _ALONE
    with ExitStack() as flight:
        if not streamed and cache.shares_flights:  # an open stream neither leads nor joins one
            yield from _joined(cache, key, flight)
        reply = cache.get(key, fits_schema(call.asked.schema), client.codec)
        if reply is None:
            return None, flight.pop_all()
    return (yield from _counted(call, run, reply, limits, pico=0)), _ALONE


def _joined(cache: Any, key: str, flight: ExitStack) -> Generator[Wait, bool | None, None]:
    """Wait while an identical request is on its way, then lead; go alone where waiting is vain."""
    while True:
        leader, mine = cache.flight(key)
        if mine:
            flight.callback(cache.land, key)
            return
        if (yield Wait(leader)) is False or leader.seconds <= 0:
            return


def _replayed(
    call: Call, run: Run, client: ReplayClient, limits: Limits
) -> Generator[Wait, bool | None, Outcome]:
    recording, codec = client.recording, client.codec
    if (refusal := recording.refused(call, limits, run.trace.ledger)) is not None:
        return run.refuse(call, refusal)
    if call.embedding:
        recorded = recording.embeddings(call)
        if recorded is None:
            return Embeddings(
                ok=False, error="no vectors are recorded", sent=False, attempts=0, cached=True
            )
        return (yield from _counted(call, run, replayed_vectors(recorded), limits, pico=0))
    step = recording.find(call)
    if step is None:
        missed = Reply.failed(
            recording.missed()[-1]["message"], status=0, cached=True, sent=False, attempts=0
        )
        return (yield from _counted(call, run, missed, limits, pico=0))
    pico = (step.budget_pico or 0) if recording.cost_stopped else 0
    reply = replayed_reply(step, label=call.label, codec=codec)
    return (yield from _counted(call, run, reply, limits, pico=pico, replayed=pico))


def _counted(
    call: Call, run: Run, outcome: Outcome, limits: Limits, *, pico: int, replayed: int = 0
) -> Generator[Wait, bool | None, Outcome]:
    """Count and record an outcome that needed no sending: never held to the spending limit."""
    demand = replace(call.demand, tokens=size(outcome), pico=None, priced=True)
    refusal = yield from run.trace.ledger.count(demand, limits, run, replayed=replayed)
    if refusal is not None:
        return run.refuse(call, refusal)
    unpriced = call.info.input_usd is None and not replayed
    outcome = run.hit(call, outcome, pico=None if unpriced else pico)
    run.reporter.landed()
    return outcome


def told_of_overrun(call: Call, outcome: Outcome, pico: int | None) -> None:
    """Say that a reply took more than its bound, which no limit can hold."""
    demand, tokens = call.demand, size(outcome)
    over_cost = pico is not None and demand.pico is not None and pico > demand.pico
    if tokens > demand.tokens or over_cost:
        warn(OverrunWarning(
            f"the {call.label!r} request took {tokens} tokens, more than the {demand.tokens} it "
            "was held at: the provider counts otherwise or did not keep the output cap"
        ))  # fmt: skip


def governed(flow: Flow[T], run: Run) -> Drive[T]:
    """A reader's flow with every request of it on the call path."""
    answer: Any = None
    error: Exception | None = None
    with closing(flow):
        while True:
            try:
                todo = flow.send(answer) if error is None else flow.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            answer, error = None, None  # cleared first: what is thrown next must not find the last
            try:
                answer = yield from _performed(todo, run)
            except Exception as what:  # noqa: BLE001 - raised in the reader, where it asked
                error = what


def _performed(todo: tuple[Asked, ...] | Work | Pause, run: Run) -> Drive[Any]:
    if isinstance(todo, tuple):
        return (yield from _batch(todo, run))
    if isinstance(todo, (Work, Pause)):
        return (yield todo)
    raise TypeError(f"a flow yields a tuple of requests, Work or Pause, not {type(todo).__name__}")


def _batch(asked: Sequence[Asked], run: Run) -> Drive[list[Outcome | None]]:
    outcomes: list[Outcome | None] = [None] * len(asked)
    placed, at_hand = list[int](), list[Say]()
    if asked:
        run.reporter.batch(asked[0].label, len(asked))
    admitted = admit(asked, run, outcomes, placed, at_hand)
    results = yield Batch(admitted, len(asked), run.width)
    for place, outcome in zip(placed, results, strict=True):
        outcomes[place] = outcome
    yield from at_hand
    return outcomes


def admit(
    asked: Sequence[Asked],
    run: Run,
    outcomes: list[Outcome | None],
    placed: list[int],
    at_hand: list[Say],
) -> Generator[Place | Wait, bool | None, None]:
    """Look at the requests of a batch, one by one, when the driver has a worker free."""
    for number, request in enumerate(asked):
        flow, answer = exchange(request, run), None
        while True:
            try:
                todo = flow.send(answer)
            except StopIteration as end:
                outcomes[number] = end.value
                break
            if todo is ADMITTED:
                placed.append(number)
                yield Place(flow, run.client.in_order)
                break
            if isinstance(todo, Say):
                at_hand.append(todo)
                answer = None
            elif isinstance(todo, Wait):
                answer = yield todo
            else:
                raise TypeError(f"an exchange asked for {todo!r} before it was admitted")
