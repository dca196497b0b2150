"""One run: a client, the trace it is recorded in, and what an exchange does to both."""

import itertools
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Self

from harness_core.calls.cache import fits_schema, worth_keeping
from harness_core.calls.governor import Limits, Refusal
from harness_core.calls.ledger import Hold
from harness_core.calls.prepare import Call
from harness_core.calls.progress import OnProgress, Reporter
from harness_core.calls.replay import replayed_reply, replayed_vectors
from harness_core.calls.settle import NOTHING, bound_usage
from harness_core.calls.steps import Step, now
from harness_core.calls.trace import Slot, Trace
from harness_core.client import Client
from harness_core.errors import AuthError, RequestRefused
from harness_core.flows.streaming import ABANDONED
from harness_core.flows.types import Inside, inside
from harness_core.messages import Embeddings, Outcome, Reply, Request, normalised_finish

_issues = itertools.count()


class Sent:
    """A request on its way: its number and when it left.

    As a context it notes the intent to send first, and gives the number of what never left back.
    """

    __slots__ = ("_call", "_trace", "clock", "inside", "slot", "started")

    def __init__(self, call: Call, trace: Trace, slot: Slot) -> None:
        self._call = call
        self._trace = trace
        self.slot = slot
        self.inside = Inside(trace, slot.number, next(_issues))
        self.started = now()
        self.clock = perf_counter()

    def __enter__(self) -> Self:
        try:
            self._trace.intend(self.slot, self._call.demand)
        except BaseException:
            self._trace.void(self.slot)
            raise
        return self

    def __exit__(self, *_what: object) -> None:
        self._trace.void(self.slot)  # does nothing to one whose step is kept


@dataclass(slots=True, eq=False)
class Run:
    """What an exchange needs: who sends, where it is recorded, who hears of progress.

    ``width`` is how many requests may be in flight at once where the driver would let more.
    """

    client: Client
    trace: Trace
    on_progress: OnProgress | None = None
    width: int | None = None
    reporter: Reporter = field(init=False)

    def __post_init__(self) -> None:
        self.reporter = Reporter(self.on_progress, self.trace.ledger)

    def limits(self) -> Limits:
        """The limits in force now."""
        return self.trace.governor.limits()

    # --- before it is sent --------------------------------------------------------------------

    def refuse(self, call: Call, refusal: Refusal) -> Outcome:
        """Record a refusal; its outcome is a failed one that was never sent."""
        self.trace.refuse(refusal)
        self.reporter.landed()
        if self.trace.governor.on_refusal == "raise":
            error = RequestRefused(refusal.message, refusal.reason, refusal.label, refusal.model)
            self.trace.raised.append(error)
            raise error
        facts: dict[str, Any] = {
            "ok": False,
            "error": refusal.message,
            "refused": True,
            "reason": refusal.reason,
            "label": call.label,
            "model": call.model,
            "sent": False,
            "attempts": 0,
            "usage": NOTHING,
        }
        return Embeddings(**facts) if call.embedding else Reply(**facts)

    def unsendable(self, call: Call) -> Outcome:
        """Record a request whose prompt leaves no room for a reply."""
        self.trace.ledger.add(calls=1)
        reply = Reply.failed(
            call.failure or "", status=0, sent=False, attempts=0, usage=NOTHING,
            model=call.model, label=call.label,
        )  # fmt: skip
        outcome = self.hit(call, reply, pico=0)
        self.reporter.landed()
        return outcome

    def hit(self, call: Call, outcome: Outcome, *, pico: int | None) -> Outcome:
        """Record a request that was answered without sending: by a cache, a recording, or not."""
        slot = self._slot()
        outcome = replace(
            outcome, model=outcome.model or call.model, label=call.label, step=slot.number
        )
        step = _step(call, outcome, pico)
        self._pack(step, outcome)
        self.trace.keep(step)
        return outcome

    def resumed(self, step: Step) -> Outcome:
        """The outcome of a request that this run had made before it was interrupted."""
        self.reporter.landed()
        if step.kind == "embedding":
            return replace(replayed_vectors(step), step=step.step, cached=step.cached)
        reply = replayed_reply(step, label=step.label, codec=self.client.codec)
        return replace(reply, step=step.step, cached=step.cached)

    def depart(self, call: Call) -> Sent:
        """Give an admitted request its number."""
        return Sent(call, self.trace, self._slot())

    # --- after it was sent --------------------------------------------------------------------

    def keep(self, call: Call, sent: Sent, outcome: Outcome, pico: int | None) -> None:
        """Keep a settled outcome: the cache entry, then the step."""
        step = _step(call, outcome, pico, sent)
        try:
            self._pack(step, outcome)
            self._store(call, outcome)
        finally:
            self.trace.keep(step)  # it is paid for: neither a codec nor a cache may lose it

    def lost(self, call: Call, hold: Hold, sent: Sent, what: BaseException) -> None:
        """Charge and record a request whose reply never came: an error, a cancellation."""
        free = isinstance(what, AuthError)
        if free:
            hold.settle(tokens=0, pico=0)
        else:
            hold.lose()
        facts: dict[str, Any] = {
            "ok": False,
            "error": f"{type(what).__name__}: {what}" if str(what) else type(what).__name__,
            "status": 0,
            "usage": NOTHING if free else bound_usage(call),
            "model": call.model,
            "step": sent.slot.number,
        }
        outcome = Embeddings(**facts) if call.embedding else Reply(**facts)
        step = _step(call, outcome, 0 if free else call.demand.pico, sent)
        step.cancelled = not isinstance(what, Exception)
        self.trace.keep(step)

    # --- steps --------------------------------------------------------------------------------

    def _slot(self) -> Slot:
        here = inside.get()
        mine = here is not None and here.trace is self.trace
        parent = self.trace.open_slot(here.number) if here is not None and mine else None
        return self.trace.slot(parent)

    def _store(self, call: Call, outcome: Outcome) -> None:
        if call.cache_key is None or not isinstance(outcome, Reply):
            return
        schema = call.asked.schema if isinstance(call.asked, Request) else None
        if worth_keeping(outcome, fits_schema(schema)):
            self.client.cache.put(call.cache_key, outcome, self.client.codec)

    def _pack(self, step: Step, outcome: Outcome) -> None:
        codec = self.client.codec
        if isinstance(outcome, Reply) and codec is not None and outcome.raw is not None:
            step.raw = codec.pack(outcome)
        if isinstance(outcome, Embeddings) and self.trace.record_embeddings:
            step.vectors = None if outcome.vectors is None else outcome.vectors.tolist()


def _step(call: Call, outcome: Outcome, pico: int | None, sent: Sent | None = None) -> Step:
    ended = now()
    step = Step(
        step=outcome.step or "",
        label=call.label,
        kind="embedding" if call.embedding else "chat",
        started_utc=sent.started if sent else ended,
        ended_utc=ended,
        seconds=round(perf_counter() - sent.clock, 3) if sent else 0.0,
        model=outcome.model if outcome.cached else call.model,
        ok=outcome.ok,
        cached=outcome.cached,
        error=outcome.error,
        status=outcome.status,
        tokens=outcome.usage,
        params=call.params,
        params_sent=call.params_sent,
        attempts=outcome.attempts,
        replay_key=call.replay_key,
        draw_index=call.demand.draw_index,
        budget_pico=pico,
        bound_pico=call.demand.pico if sent else None,
    )
    if isinstance(outcome, Reply) and isinstance(call.asked, Request):
        step.prompt = call.asked.messages
        step.response = outcome.text
        step.finish_reason = normalised_finish(outcome.finish_reason)
        step.cancelled = outcome.finish_reason == ABANDONED
        step.served_model = outcome.served_model
        step.response_id = outcome.response_id
        step.fingerprint = outcome.fingerprint
    return step
