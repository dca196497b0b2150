"""Replay: a recorded run answers again, with no key, no network and no spend.

A reply is found by its replay key: messages, model, cap and temperature asked for, schema, ...
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from harness_core.calls import keys
from harness_core.calls.prepare import Call
from harness_core.calls.recording import Recording
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, Codec
from harness_core.errors import (
    ReplayEmptyError,
    ReplayUnreadableError,
    SourceNotFoundError,
    TraceError,
)
from harness_core.messages import Embeddings, Reply, Request, normalised_finish
from harness_core.ranking.embedders import is_deterministic


class ReplayClient(BaseClient):
    """A client that answers from a recorded trace and never sends.

    ``source`` is a ``Trace``, the path of a saved one, its JSON text, or its parsed form (an answer
    that carries its trace as well); a ``Recording``, which may be empty and shared, is taken as it
    is. ``strict=False`` turns a miss into a failed reply;
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
        if isinstance(source, Recording):
            self.recording = source
        else:
            self.recording = _not_empty(
                Recording(_trace_of(source), strict=strict, on_exhausted=on_exhausted)
            )
        trace = self.recording.trace
        self.model, self.alternatives = _client_model(trace, self.recording.steps)
        replies = [[s.replay_key, s.response, s.error] for s in self.recording.steps]
        self.identity = f"replay-{keys.content_hash(replies)[:16]}"
        self.can_embed = self.recording.tells_of_vectors
        asked = [step.model for step in trace.requests if step.kind == "embedding" and step.model]
        self.embedding_model = asked[0] if asked else type(self).embedding_model
        used = self.recording.embedders()
        self.embedder = min(used) if len(used) == 1 and is_deterministic(min(used)) else None

    def answers(self, call: Call) -> bool:
        """Whether the recording is what answers a request; a client that can send may say no."""
        return True

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
        known = self.can_embed if source == "api" else is_deterministic(source)
        same = known and self.recording.embedders() == {source}
        if not same:
            self.recording.vectors_lost = True
        return same

    def __repr__(self) -> str:
        return f"<ReplayClient {len(self.recording.steps)} recorded request(s)>"


def replayed_reply(step: Step, *, label: str, codec: Codec | None = None) -> Reply:
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
        raw=codec.unpack(step.raw) if codec is not None and step.raw is not None else step.raw,
    )


def replayed_vectors(step: Step) -> Embeddings:
    """The recorded vectors, or the recorded failure."""
    import numpy as np

    return Embeddings(
        ok=step.ok,
        vectors=None if step.vectors is None else np.asarray(step.vectors, dtype=np.float64),
        error=step.error,
        status=step.status,
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


def _not_empty(recording: Recording) -> Recording:
    if not recording.steps:
        raise ReplayEmptyError("the recording holds no model request; there is nothing to replay")
    return recording


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
    ranked = ranked or ["mock-model"]  # of an empty recording: any that needs no price
    others = tuple(model for model in ranked[1:] if model not in named)
    return ranked[0], others


def with_alternative(call: Call, client: ReplayClient) -> Call:
    """The request under the one other recorded client model that holds its prompt, if one does."""
    if not client.alternatives or not isinstance(call.asked, Request) or call.model != client.model:
        return call
    if client.recording.holds(call.replay_key):
        return call
    messages = keys.message_bytes(call.asked)
    asked, temperature = call.asked, call.temperature_asked
    others = (
        keys.replay_key(messages, asked, model=model, temperature=temperature)
        for model in client.alternatives
    )
    held = [key for key in others if client.recording.holds(key)]
    return replace(call, replay_key=held[0]) if len(held) == 1 else call
