"""Replay: a recorded run answers again, with no key, no network and no spend.

A reply is found by its replay key (messages, model, cap and temperature asked for, schema, ...). A
request that the recording does not hold is an error, not a guess: a result that looks like the
original and is not is worse than none.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness_core.calls import keys
from harness_core.calls.governor import Limits, Refusal
from harness_core.calls.prepare import Call
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.errors import (
    ReplayEmptyError,
    ReplayExhaustedError,
    ReplayMissError,
    ReplayUnreadableError,
    SourceNotFoundError,
    TraceError,
)
from harness_core.messages import BaseClient, Embeddings, Reply, Request, normalised_finish


@dataclass(slots=True)
class _Drawer:
    """The recorded replies to one request: index-0 ones in order, the others by their draw."""

    ordered: list[Step] = field(default_factory=list)
    draws: dict[int, Step] = field(default_factory=dict)
    taken: int = 0

    def __len__(self) -> int:
        return len(self.ordered) + len(self.draws)


class Recording:
    """The requests of a saved trace, found by what they asked."""

    def __init__(self, trace: Trace, *, strict: bool, on_exhausted: str) -> None:
        self.trace = trace
        self.strict = strict
        self.on_exhausted = on_exhausted
        self.vectors_lost = False
        steps = [step for step in trace.requests if step.kind == "chat" and step.prompt]
        if not steps:
            raise ReplayEmptyError("the recording holds no model request; there is nothing to replay")
        self.steps = steps
        self._drawers: dict[str, _Drawer] = defaultdict(_Drawer)
        for step in steps:
            drawer = self._drawers[step.replay_key]
            if step.draw_index:
                drawer.draws[step.draw_index] = step
            else:
                drawer.ordered.append(step)
        self._texts = {s.replay_key: s for s in trace.requests if s.kind == "embedding"}
        self._refused: dict[tuple[str, int], list[Refusal]] = defaultdict(list)
        for refusal in trace.refusals:
            self._refused[refusal.replay_key, refusal.draw_index].append(refusal)
        self._missed: list[dict[str, Any]] = []
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

    def refused(self, call: Call, limits: Limits) -> Refusal | None:
        """The recorded refusal of this request, when the limits are no higher than they were."""
        waiting = self._refused.get((call.replay_key, call.demand.draw_index))
        recorded = self.trace.recorded_limits or {}
        if not waiting or call.replay_key in self._drawers and not self._used_up(call):
            return None
        if not limits.at_most(waiting[0].reason, recorded):
            return None
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def find(self, call: Call) -> Step | None:
        """The recorded step that answers this request.

        Raises:
            ReplayMissError: nothing is recorded for it and the replay is strict.
            ReplayExhaustedError: more replies are asked for than were recorded.
        """
        drawer = self._drawers.get(call.replay_key)
        if drawer is None:
            return self._miss(call)
        draw = call.demand.draw_index
        step = drawer.draws.get(draw) if draw else self._next(drawer)
        if step is None:
            return self._exhausted(call, drawer)
        self.hits += 1
        return step

    def embeddings(self, call: Call) -> Step | None:
        """The recorded embedding request with its vectors, if they were kept."""
        step = self._texts.get(call.replay_key)
        return step if step is not None and step.vectors is not None else None

    def _used_up(self, call: Call) -> bool:
        drawer, draw = self._drawers[call.replay_key], call.demand.draw_index
        return draw not in drawer.draws if draw else drawer.taken >= len(drawer.ordered)

    def _next(self, drawer: _Drawer) -> Step | None:
        if drawer.taken >= len(drawer.ordered):
            return None
        drawer.taken += 1
        return drawer.ordered[drawer.taken - 1]

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
            f"the recording holds no reply for draw {draw} of this {call.label!r} request; it holds "
            f"{len(drawer)} draw(s) of it. The replay makes more requests than the recorded run "
            'did, so it does not reproduce that run. on_exhausted="flag" repeats the last '
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
            f"{self._nearest(call)}the document, the question, the recipe or the segmentation differs"
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


class ReplayClient(BaseClient):
    """A client that answers from a recorded trace and never sends.

    ``source`` is a ``Trace``, the path of a saved one, its JSON text, or its parsed form (an answer
    that carries its trace as well). ``strict=False`` turns a miss into a failed reply;
    ``on_exhausted="flag"`` repeats the last recorded reply instead of raising.

    Raises:
        SourceNotFoundError: the path names no file.
        ReplayUnreadableError: what was given is no trace.
        ReplayEmptyError: the trace holds no model request.
    """

    api = "replay"
    base_url = "replay://"
    embedding_model = "replay-embed"
    unpriced_ok = True
    in_order = True

    def __init__(
        self,
        source: Any,
        *,
        strict: bool = True,
        on_exhausted: Literal["error", "flag"] = "error",
    ) -> None:
        trace = _trace_of(source)
        self.recording = Recording(trace, strict=strict, on_exhausted=on_exhausted)
        self.model, self.alternatives = _client_model(trace, self.recording.steps)
        replies = [[s.replay_key, s.response, s.error] for s in self.recording.steps]
        self.identity = f"replay-{keys.content_hash(replies)[:16]}"

    def stats(self) -> dict[str, int]:
        """recorded, distinct, hits, repeats, misses (counts of replies)."""
        return self.recording.stats()

    def missed(self) -> list[dict[str, Any]]:
        """What was asked for and not recorded."""
        return self.recording.missed()

    def recorded_choice(self, key: str) -> dict[str, Any] | None:
        """The recipe that ``auto`` chose under ``key`` in the recorded run."""
        for step in self.recording.trace.steps:
            if step.label == "auto_recipe" and (step.detail or {}).get("key") == key:
                return dict(step.detail or {})
        return None

    def vectors_may_be_used(self, source: str) -> bool:
        """Whether an embedder of that name ranks here as it did in the recorded run."""
        recorded = {
            (step.detail or {}).get("source")
            for step in self.recording.trace.steps
            if step.label == "embed"
        }
        same = recorded == {source}
        if not same:
            self.recording.vectors_lost = True
        return same

    def __repr__(self) -> str:
        return f"<ReplayClient {len(self.recording.steps)} recorded request(s)>"


def replayed_reply(step: Step, *, label: str) -> Reply:
    """The recorded reply, as one that a recording answered."""
    return Reply(
        ok=step.ok,
        text=step.response,
        error=step.error,
        status=step.status,
        usage=step.tokens,
        model=step.model or "",
        finish_reason=normalised_finish(step.finish_reason),
        cached=True,
        label=label,
        served_model=step.served_model,
        response_id=step.response_id,
        fingerprint=step.fingerprint,
        attempts=0,
        raw=step.raw,
    )


def replayed_vectors(step: Step) -> Embeddings:
    """The recorded vectors."""
    import numpy as np

    return Embeddings(
        ok=True,
        vectors=np.asarray(step.vectors, dtype=np.float64),
        usage=step.tokens,
        model=step.model or "",
        cached=True,
        label=step.label,
        attempts=0,
    )


def _trace_of(source: Any) -> Trace:
    if isinstance(source, Trace):
        return source
    if hasattr(source, "trace") and isinstance(source.trace, Trace):
        return source.trace
    try:
        return Trace.load(source)
    except TraceError as error:
        if "there is no trace file" in str(error):
            raise SourceNotFoundError(str(error)) from None
        raise ReplayUnreadableError(str(error)) from error


def _client_model(trace: Trace, steps: Sequence[Step]) -> tuple[str, tuple[str, ...]]:
    """The model of a read that names none: what the recorded reads followed."""
    notes = [dict(s.detail or {}) for s in trace.steps if s.label == "preflight"]
    named = {
        str(note["settings"][name])
        for note in notes
        for name in ("model", "skim_model", "summary_model")
        if note.get("settings", {}).get(name)
    }
    followed = Counter(str(n["model"]) for n in notes if not n.get("settings", {}).get("model"))
    asked = Counter(step.model or "" for step in steps)
    candidates = list(followed) or [model for model in asked if model not in named] or list(asked)
    ranked = sorted(candidates, key=lambda model: (-asked[model], model))
    others = tuple(model for model in ranked[1:] if model not in named)
    return ranked[0], others


def with_alternative(call: Call, client: ReplayClient) -> Call:
    """The request under the one other recorded client model that holds its prompt, if one does."""
    if not client.alternatives or not isinstance(call.asked, Request) or call.model != client.model:
        return call
    if call.replay_key in client.recording._drawers:  # noqa: SLF001 - same module
        return call
    messages = keys.message_bytes(call.asked)
    held = [
        key
        for model in client.alternatives
        if (
            key := keys.replay_key(
                messages, call.asked, model=model, temperature=call.temperature_asked
            )
        )
        in client.recording._drawers  # noqa: SLF001 - same module
    ]
    return replace(call, replay_key=held[0]) if len(held) == 1 else call


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
