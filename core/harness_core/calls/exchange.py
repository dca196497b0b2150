"""The one call path: every request goes through ``exchange``, which has one line of I/O in it.

The order is the guarantee, so it is written out once. Up to ``ADMITTED`` everything decides, in
request order; after it nothing does, and the worker that gets the reply settles and keeps it.
"""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from harness_core.calls.cache import fits_schema
from harness_core.calls.governor import Limits, Refusal
from harness_core.calls.ledger import over_cost
from harness_core.calls.prepare import Call, prepare
from harness_core.calls.replay import (
    ReplayClient,
    replayed_reply,
    replayed_vectors,
    with_alternative,
)
from harness_core.calls.run import Run, Sent
from harness_core.calls.settle import priced, settled
from harness_core.errors import OverrunWarning, warn
from harness_core.flows.types import ADMITTED, Batch, Drive, Flow, Place, Send, Wait
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
        return run.resumed(step)
    if call.failure is not None:
        return run.unsendable(call)
    if (refusal := ledger.permit(call.demand, limits)) is not None:
        return run.refuse(call, refusal)
    found, flight = yield from recall(call, run, limits, streamed=streamed)
    if found is not None:
        return found
    with flight:
        hold = yield from ledger.hold(call.demand, limits, run.in_flight, streamed=streamed)
        if isinstance(hold, Refusal):
            return run.refuse(call, hold)
        with hold, departing(call, run) as sent:
            yield ADMITTED
            hold.sent = True
            try:
                outcome = yield Send(run.client, call.as_sent, sent.inside)
            except BaseException as what:
                run.lost(call, hold, sent, what)
                raise
            outcome = settled(call, outcome, run.client)
            pico = priced(call, outcome)
            tokens = (outcome.usage.input or 0) + (outcome.usage.output or 0)
            hold.settle(tokens=tokens, pico=pico)
            outcome = run.keep(call, sent, outcome, pico)
    told_of_overrun(call, tokens, pico)
    run.reporter.landed()
    return outcome


@contextmanager
def departing(call: Call, run: Run) -> Generator[Sent, None, None]:
    """A request's number and its time in flight; one that never left gives its number back."""
    sent = run.depart(call)
    try:
        yield sent
    finally:
        run.landed()
        if run.trace.open_slot(sent.slot.number) is not None:
            run.trace.void(sent.slot)


def with_recording(call: Call, run: Run) -> Call:
    """The call, under another of the recording's models where only that one holds its prompt."""
    client = run.client
    return with_alternative(call, client) if isinstance(client, ReplayClient) else call


Recalled = tuple[Outcome | None, AbstractContextManager[Any]]


def recall(
    call: Call, run: Run, limits: Limits, *, streamed: bool
) -> Generator[Any, bool | None, Recalled]:
    """What a recording or the cache answers, counted and recorded; else the right to send."""
    if isinstance(run.client, ReplayClient):
        return (yield from _replayed(call, run, run.client, limits)), nullcontext()
    cache, key = run.client.cache, call.cache_key
    if cache is None or key is None or not isinstance(call.asked, Request):
        return None, nullcontext()
    accept = fits_schema(call.asked.schema)
    leading = False
    while not streamed and not leading:  # an open stream neither leads nor joins a flight
        flight, leading = cache.flight(key)
        if not leading and (yield Wait(flight)) is False:
            break
    reply = cache.get(key, accept, run.client.codec)
    if reply is None:
        return None, _leading(cache, key) if leading else nullcontext()
    if leading:
        cache.land(key)
    return (yield from _counted(call, run, reply, limits, pico=0)), nullcontext()


@contextmanager
def _leading(cache: Any, key: str) -> Generator[None, None, None]:
    try:
        yield
    finally:
        cache.land(key)


def _replayed(
    call: Call, run: Run, client: ReplayClient, limits: Limits
) -> Generator[Any, bool | None, Outcome]:
    recording = client.recording
    if call.embedding:
        recorded = recording.embeddings(call)
        if recorded is None:
            return Embeddings(
                ok=False, error="no vectors are recorded", sent=False, attempts=0, cached=True
            )
        return (yield from _counted(call, run, replayed_vectors(recorded), limits, pico=0))
    if (refusal := recording.refused(call, limits)) is not None:
        return run.refuse(call, refusal)
    step = recording.find(call)
    if step is None:
        missed = Reply.failed(
            recording.missed()[-1]["message"], status=0, cached=True, sent=False, attempts=0
        )
        return (yield from _counted(call, run, missed, limits, pico=0))
    pico = (step.budget_pico or 0) if recording.cost_stopped else 0
    if recording.cost_stopped and _past_limit(call, run, limits, step.budget_pico):
        return run.refuse(call, over_cost(call.demand, limits, run.trace.ledger))
    reply = replayed_reply(step, label=call.label)
    return (yield from _counted(call, run, reply, limits, pico=pico, replayed=pico))


def _past_limit(call: Call, run: Run, limits: Limits, recorded: int | None) -> bool:
    """Whether a recording that cost stopped would be stopped here, under this limit."""
    if limits.max_pico is None:
        return False
    ledger = run.trace.ledger
    bound = call.demand.pico if call.demand.pico is not None else recorded or 0
    return ledger.spent + ledger.replayed + bound > limits.max_pico


def _counted(
    call: Call, run: Run, outcome: Outcome, limits: Limits, *, pico: int | None, replayed: int = 0
) -> Generator[Any, bool | None, Outcome]:
    """Count and record an outcome that needed no sending."""
    real = (outcome.usage.input or 0) + (outcome.usage.output or 0)
    demand = replace(call.demand, tokens=real, pico=None, priced=True)
    refusal = yield from run.trace.ledger.count(demand, limits, run.in_flight, replayed=replayed)
    if refusal is not None:
        return run.refuse(call, refusal)
    unpriced = call.info.input_usd is None and not replayed
    outcome = run.hit(call, outcome, pico=None if unpriced else pico)
    run.reporter.landed()
    return outcome


def told_of_overrun(call: Call, tokens: int, pico: int | None) -> None:
    """Say that a reply took more than its bound, which no limit can hold."""
    demand = call.demand
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
            answer, error = None, None
            try:
                answer = (yield from _batch(todo, run)) if isinstance(todo, tuple) else (yield todo)
            except Exception as what:  # noqa: BLE001 - raised in the reader, where it asked
                error = what


def _batch(asked: Sequence[Asked], run: Run) -> Drive[list[Outcome | None]]:
    outcomes: list[Outcome | None] = [None] * len(asked)
    placed: list[int] = []
    if asked:
        run.reporter.batch(asked[0].label, len(asked))
    results = yield Batch(admit(asked, run, outcomes, placed), len(asked))
    for place, outcome in zip(placed, results, strict=True):
        outcomes[place] = outcome
    return outcomes


def admit(
    asked: Sequence[Asked], run: Run, outcomes: list[Outcome | None], placed: list[int]
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
            if not isinstance(todo, Wait):
                raise TypeError(f"an exchange asked for {type(todo).__name__} before it was admitted")
            answer = yield todo
