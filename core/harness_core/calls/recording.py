"""A recorded run as something to answer from: what it replied, and what it refused.

A request that the recording does not hold is an error, not a guess: a result that looks like the
original and is not is worse than none.
"""

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from harness_core.calls.governor import Limits, Refusal
from harness_core.calls.ledger import Ledger, over_cost
from harness_core.calls.prepare import Call
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.errors import ReplayExhaustedError, ReplayMissError
from harness_core.messages import Request


@dataclass(slots=True)
class _Drawer:
    """The recorded replies to one request: index-0 ones in order, the others by their draw."""

    ordered: list[Step] = field(default_factory=list)
    draws: dict[int, Step] = field(default_factory=dict)
    taken: int = 0

    def __len__(self) -> int:
        return len(self.ordered) + len(self.draws)

    def next(self, draw: int) -> Step | None:
        """The reply to be given next, None when none is left."""
        if draw:
            return self.draws.get(draw)
        return self.ordered[self.taken] if self.taken < len(self.ordered) else None


class Recording:
    """The requests of a saved trace, found by what they asked."""

    def __init__(self, trace: Trace, *, strict: bool, on_exhausted: str) -> None:
        self.trace = trace
        self.strict = strict
        self.on_exhausted = on_exhausted
        self.vectors_lost = False
        steps = [step for step in trace.requests if step.kind == "chat" and step.prompt]
        self.steps = steps
        self._drawers: dict[str, _Drawer] = defaultdict(_Drawer)
        for step in steps:
            drawer = self._drawers[step.replay_key]
            if step.draw_index:
                drawer.draws[step.draw_index] = step
            else:
                drawer.ordered.append(step)
        self._texts = {
            s.replay_key: s
            for s in trace.requests
            if s.kind == "embedding" and (s.vectors is not None or not s.ok)
        }
        self._refused: dict[tuple[str, int], list[Refusal]] = defaultdict(list)
        for refusal in trace.refusals:
            self._refused[refusal.replay_key, refusal.draw_index].append(refusal)
        self._missed: list[dict[str, Any]] = []
        self._lock = threading.RLock()  # several runs may share one recording
        self.hits = self.repeats = 0

    @property
    def cost_stopped(self) -> bool:
        """Whether the recorded run was stopped by its spending limit."""
        return self.trace.budget_stop and self.trace.stop_reason == "cost"

    def stats(self) -> dict[str, int]:
        """recorded, distinct, hits, repeats, misses."""
        return {
            "recorded": len(self.steps),
            "distinct": len(self._drawers),
            "hits": self.hits,
            "repeats": self.repeats,
            "misses": len(self._missed),
        }

    def missed(self) -> list[dict[str, Any]]:
        """What was asked for and not recorded: label, model and message of each."""
        return list(self._missed)

    def holds(self, replay_key: str) -> bool:
        """Whether a reply to such a request is recorded."""
        return replay_key in self._drawers

    def refused(self, call: Call, limits: Limits, ledger: Ledger) -> Refusal | None:
        """Why this request is refused, as it was when recorded or because this limit is lower."""
        with self._lock:
            step = self._next(call)
            if step is None:
                return self._recorded_refusal(call, limits)
            past = self.cost_stopped and _past_limit(call, step, limits, ledger)
            return over_cost(call.demand, limits, ledger) if past else None

    def find(self, call: Call) -> Step | None:
        """The recorded step that answers this request.

        Raises:
            ReplayMissError: nothing is recorded for it and the replay is strict.
            ReplayExhaustedError: more replies are asked for than were recorded.
        """
        with self._lock:
            if (drawer := self._drawers.get(call.replay_key)) is None:
                return self._miss(call)
            if (step := self._next(call)) is None:
                return self._exhausted(call, drawer)
            drawer.taken += not call.demand.draw_index
            self.hits += 1
            return step

    def embeddings(self, call: Call) -> Step | None:
        """The recorded embedding request with its vectors, if they were kept."""
        return self._texts.get(call.replay_key)

    @property
    def tells_of_vectors(self) -> bool:
        """Whether embedding requests have an outcome here: vectors, a failure, a refusal."""
        refused = any(one.label == "embed.request" for one in self.trace.refusals)
        return bool(self._texts) or refused

    def embedders(self) -> set[str]:
        """The embedders that the recorded run asked, whatever stepped in for them."""
        notes = [step.detail or {} for step in self.trace.steps if step.label == "embed"]
        return {"api" if note.get("fallback") else str(note.get("source")) for note in notes}

    def _next(self, call: Call) -> Step | None:
        drawer = self._drawers.get(call.replay_key)
        return drawer.next(call.demand.draw_index) if drawer is not None else None

    def _recorded_refusal(self, call: Call, limits: Limits) -> Refusal | None:
        """The recorded refusal, from its stored bound, when the limit is no higher than it was."""
        waiting = self._refused.get((call.replay_key, call.demand.draw_index))
        recorded = self.trace.recorded_limits or self.trace.governor.limits().as_json()
        if not waiting or not limits.at_most(waiting[0].reason, recorded):
            return None
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def _exhausted(self, call: Call, drawer: _Drawer) -> Step | None:
        if self._cut_short(call):
            return self._miss(call)
        if self.on_exhausted == "flag":
            self.repeats += 1
            self.hits += 1
            last: Step = drawer.ordered[-1] if drawer.ordered else drawer.draws[max(drawer.draws)]
            return last
        draw = call.demand.draw_index or drawer.taken + 1
        raise ReplayExhaustedError(
            f"the recording holds no reply for draw {draw} of this {call.label!r} request; it "
            f"holds {len(drawer)} draw(s) of it. The replay makes more requests than the recorded "
            'run did, so it does not reproduce that run. on_exhausted="flag" repeats the last '
            "recorded reply instead and counts it in stats()"
        )

    def _cut_short(self, call: Call) -> bool:
        return bool(self._refused.get((call.replay_key, call.demand.draw_index)))

    def _miss(self, call: Call) -> Step | None:
        message = self._why(call)
        self._missed.append({"label": call.label, "model": call.model, "message": message})
        if self.strict:
            raise ReplayMissError(message)
        return None

    def _why(self, call: Call) -> str:
        said = f"no recorded reply for this {call.label!r} request to {call.model!r}: "
        if isinstance(call.asked, Request):
            same = [s for s in self.steps if _same_messages(s, call.asked)]
            models = sorted({s.model or "" for s in same} - {call.model})
            if same and models and not any(s.model == call.model for s in same):
                return f"{said}the same prompt IS recorded under model {', '.join(models)}"
            if same and not self._cut_short(call):
                return said + _other_settings(same[-1], call)
        reason = self.trace.stop_reason
        if self.trace.budget_stop and self.trace.refusals:
            limit = "call cap" if reason == "calls" else _LIMIT_WORDS.get(reason or "", "limit")
            return (
                f"{said}the recording was cut short by its {limit} after {len(self.steps)} "
                "request(s); replay it under the limits it was recorded with"
            )
        if self.vectors_lost:
            return (
                f"{said}the recorded run ranked its chunks by embeddings that cannot be reproduced "
                "here, so other chunks were chosen; record with a deterministic embedder "
                "(embedder='lexical') or with record_embeddings=True"
            )
        return (
            f"{said}{len(self._drawers)} distinct prompt(s) are recorded, none of them this one; "
            f"{self._nearest(call)}the document, the question, the recipe or the segmentation "
            "differs"
        )

    def _nearest(self, call: Call) -> str:
        labelled = [s for s in self.steps if s.label == call.label]
        if not labelled or not isinstance(call.asked, Request):
            return ""
        mine, theirs = call.asked.messages, labelled[0].prompt
        for number, (one, other) in enumerate(zip(mine, theirs, strict=False), start=1):
            if one.content != other.content:
                place = _first_difference(one.content, other.content)
                return (
                    f"against the first recorded {call.label!r} request, message {number} "
                    f"({one.role}) differs at character {place}: "
                    f"{other.content[max(0, place - 20) : place + 20]!r} was recorded, "
                    f"{one.content[max(0, place - 20) : place + 20]!r} is asked; "
                )
        return ""


_LIMIT_WORDS = {"cost": "spending limit", "tokens": "token limit", "output": "output cap"}


def _past_limit(call: Call, step: Step, limits: Limits, ledger: Ledger) -> bool:
    """Whether a recording that cost stopped is stopped earlier here, by a lower limit.

    The bound is the recorded one, so that what was sent then passes under the same limit now,
    whatever prices this process knows.
    """
    if limits.max_pico is None:
        return False
    known = (step.bound_pico, call.demand.pico, step.budget_pico, 0)
    bound = next(pico for pico in known if pico is not None)
    account = ledger.account
    return account.spent + account.replayed + bound > limits.max_pico


def _same_messages(step: Step, request: Request) -> bool:
    return len(step.prompt) == len(request.messages) and all(
        a.role == b.role and a.content == b.content
        for a, b in zip(step.prompt, request.messages, strict=True)
    )


def _other_settings(step: Step, call: Call) -> str:
    asked = {**call.params, "temperature": call.temperature_asked}
    recorded = step.params
    named = ("max_output_asked", "temperature", "schema_hash", "schema_name", "effort", "tools")
    changed = [
        f"{name.removesuffix('_asked')} {recorded.get(name)!r} was recorded, "
        f"{asked.get(name)!r} is asked"
        for name in named
        if recorded.get(name) != asked.get(name)
    ]
    return "the same prompt is recorded under other settings: " + ("; ".join(changed) or "see keys")


def _first_difference(one: str, other: str) -> int:
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))
