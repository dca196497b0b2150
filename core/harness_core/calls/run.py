"""One run: a client, the trace it is recorded in, and what an exchange does to both."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from harness_core.calls.cache import fits_schema, worth_keeping
from harness_core.calls.governor import Limits, Refusal
from harness_core.calls.ledger import Hold
from harness_core.calls.prepare import Call
from harness_core.calls.progress import OnProgress, Reporter
from harness_core.calls.settle import ABANDONED, NOTHING, bound_usage
from harness_core.calls.steps import PICO, Step, now
from harness_core.calls.trace import Slot, Trace
from harness_core.errors import AuthError, RequestRefused
from harness_core.flows.types import Inside, inside
from harness_core.messages import (
    Client,
    Embeddings,
    Outcome,
    Reply,
    Request,
    normalised_finish,
)

_issues = itertools.count()


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way: its place in the trace and when it left."""

    slot: Slot
    inside: Inside
    started: str
    clock: float


@dataclass(slots=True)
class Run:
    """What an exchange needs: who sends, where it is recorded, who hears of progress."""

    client: Client
    trace: Trace
    on_progress: OnProgress | None = None
    reporter: Reporter = field(init=False)
    flying: int = 0

    def __post_init__(self) -> None:
        self.reporter = Reporter(self.on_progress, self.trace.ledger)

    def limits(self) -> Limits:
        """The limits in force now."""
        return self.trace.governor.limits()

    def in_flight(self) -> bool:
        """Whether requests of this run are on their way."""
        return self.flying > 0

    # --- before it is sent --------------------------------------------------------------------

    def refuse(self, call: Call, refusal: Refusal) -> Outcome:
        """Record a refusal; its outcome is a failed one that was never sent."""
        self.trace.refuse(refusal)
        self.reporter.landed()
        if self.trace.governor.on_refusal == "raise":
            raise RequestRefused(refusal.message, refusal.reason, refusal.label, refusal.model)
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
        return self._place(call, reply, self._slot(call), pico=0)

    def hit(self, call: Call, outcome: Outcome, *, pico: int | None) -> Outcome:
        """Record a request that a cache or a recording answered."""
        kept = replace(outcome, model=outcome.model or call.model, label=call.label)
        return self._place(call, kept, self._slot(call), pico=pico)

    def resumed(self, step: Step) -> Outcome:
        """The outcome of a request that this run had made before it was interrupted."""
        self.reporter.landed()
        if step.kind == "embedding":
            from harness_core.calls.replay import replayed_vectors

            return replace(replayed_vectors(step), step=step.step, cached=step.cached)
        from harness_core.calls.replay import replayed_reply

        return replace(replayed_reply(step, label=step.label), step=step.step, cached=step.cached)

    def depart(self, call: Call) -> Sent:
        """Give an admitted request its number; with a journal, note the intent to send it."""
        demand = call.demand
        pico = demand.pico
        slot = self._slot(
            call,
            intent={
                "label": call.label,
                "bound_tokens": demand.tokens,
                "bound_usd": None if pico is None else pico / PICO,
            },
        )
        self.flying += 1
        issue = next(_issues)
        return Sent(slot, Inside(self.trace, slot.number, issue), now(), perf_counter())

    # --- after it was sent --------------------------------------------------------------------

    def keep(self, call: Call, sent: Sent, outcome: Outcome, pico: int | None) -> Outcome:
        """Keep a settled outcome: the cache entry, then the step."""
        client = self.client
        if isinstance(outcome, Reply) and call.cache_key is not None:
            schema = call.asked.schema if isinstance(call.asked, Request) else None
            if worth_keeping(outcome, fits_schema(schema)):
                client.cache.put(call.cache_key, outcome, client.codec)
        return self._place(call, outcome, sent.slot, pico=pico, sent=sent)

    def lost(self, call: Call, hold: Hold, sent: Sent, what: BaseException) -> None:
        """Charge and record a request whose reply never came: an error, a cancellation."""
        error = f"{type(what).__name__}: {what}" if str(what) else type(what).__name__
        free = isinstance(what, AuthError)
        usage = NOTHING if free else bound_usage(call)
        facts: dict[str, Any] = {
            "ok": False, "error": error, "status": 0, "usage": usage,
            "model": call.model, "label": call.label,
        }  # fmt: skip
        outcome = Embeddings(**facts) if call.embedding else Reply(**facts)
        if free:
            hold.settle(tokens=0, pico=0)
        else:
            hold.lose()
        cancelled = not isinstance(what, Exception)
        pico = 0 if free else call.demand.pico
        self._place(call, outcome, sent.slot, pico=pico, sent=sent, cancelled=cancelled)

    def landed(self) -> None:
        """A request of this run is no longer on its way."""
        self.flying -= 1

    # --- steps --------------------------------------------------------------------------------

    def _slot(self, call: Call, intent: Mapping[str, Any] | None = None) -> Slot:
        here = inside.get()
        mine = here is not None and here.trace is self.trace
        parent = self.trace.open_slot(here.number) if here is not None and mine else None
        return self.trace.slot(parent, intent=intent)

    def _place(
        self,
        call: Call,
        outcome: Outcome,
        slot: Slot,
        *,
        pico: int | None,
        sent: Sent | None = None,
        cancelled: bool = False,
    ) -> Outcome:
        outcome = replace(outcome, step=slot.number)
        step = _step(call, outcome, slot, pico, sent)
        step.cancelled = cancelled or step.finish_reason == ABANDONED
        self._pack(step, outcome)
        self.trace.keep(step)
        return outcome

    def _pack(self, step: Step, outcome: Outcome) -> None:
        codec = self.client.codec
        if isinstance(outcome, Reply) and codec is not None and outcome.raw is not None:
            step.raw = codec.pack(outcome)
        if isinstance(outcome, Embeddings) and self.trace.record_embeddings:
            step.vectors = None if outcome.vectors is None else outcome.vectors.tolist()


def _step(call: Call, outcome: Outcome, slot: Slot, pico: int | None, sent: Sent | None) -> Step:
    ended = now()
    step = Step(
        step=slot.number,
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
    )
    if isinstance(outcome, Reply) and isinstance(call.asked, Request):
        step.prompt = call.asked.messages
        step.response = outcome.text
        step.finish_reason = normalised_finish(outcome.finish_reason)
        step.served_model = outcome.served_model
        step.response_id = outcome.response_id
        step.fingerprint = outcome.fingerprint
    return step

