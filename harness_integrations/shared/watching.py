"""Requests that are watched, not sent by us: each becomes a step of a trace, priced and charged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Self

from harness_core.calls.prepare import Call, prepare
from harness_core.calls.settle import priced, settled, size
from harness_core.calls.steps import Step, now
from harness_core.calls.trace import Slot, Trace
from harness_core.client import BaseClient, Codec
from harness_core.messages import Embeddings, Message, Reply, Request, Texts

Redact = Callable[[str], str]


class Watched(BaseClient):
    """What stands for a model that is only watched: nothing is sent through it."""

    unpriced_ok = True

    def __init__(self, api: str, model: str, codec: Codec) -> None:
        self.api = api
        self.model = self.embedding_model = model
        self.codec = codec


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A request that has started: as our own call path would have prepared it, and when."""

    call: Call
    client: Watched
    started: str = field(default_factory=now)
    clock: float = field(default_factory=perf_counter)

    @classmethod
    def of(cls, asked: Request | Texts, client: Watched, trace: Trace) -> Self:
        """A request that starts now."""
        return cls(call=prepare(asked, client, trace.governor.limits()), client=client)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which texts a trace keeps: none without ``content``, else as ``redact`` gives them."""

    content: bool = True
    redact: Redact | None = None

    def fill(self, step: Step, begun: Begun, reply: Reply) -> None:
        """Put what is wanted of prompt and reply on a step."""
        asked, redact, codec = begun.call.asked, self.redact, begun.client.codec
        messages = asked.messages if isinstance(asked, Request) else ()
        if not self.content:
            step.prompt = tuple(Message(one.role, "") for one in messages)
        elif redact is not None:
            step.prompt = tuple(Message(one.role, redact(one.content)) for one in messages)
            step.response = redact(reply.text)
        else:
            step.prompt, step.response = messages, reply.text
            if reply.ok and reply.raw is not None and codec is not None:
                step.raw = codec.pack(reply)


def write(
    begun: Begun,
    reply: Reply | Embeddings,
    slot: Slot,
    trace: Trace,
    shown: Shown,
    *,
    cancelled: bool = False,
) -> None:
    """Write the step of a request that has ended, and charge what it cost."""
    call = begun.call
    outcome = settled(call, reply, begun.client, slot.number)
    pico = 0 if outcome.cached else priced(call, outcome)
    step = Step(
        step=slot.number, label=call.label, kind="embedding" if call.embedding else "chat",
        started_utc=begun.started, ended_utc=now(),
        seconds=round(perf_counter() - begun.clock, 3), model=call.model, ok=outcome.ok,
        cached=outcome.cached, cancelled=cancelled, error=outcome.error, status=outcome.status,
        tokens=outcome.usage, params=call.params, params_sent=call.params_sent,
        attempts=0 if outcome.cached else 1, replay_key=call.replay_key, budget_pico=pico,
    )  # fmt: skip
    if isinstance(outcome, Reply):
        step.finish_reason = outcome.finish_reason
        step.served_model = outcome.served_model
        step.response_id = outcome.response_id
        step.fingerprint = outcome.fingerprint
        shown.fill(step, begun, outcome)
    trace.ledger.add(calls=1, tokens=0 if outcome.cached else size(outcome), spent=pico or 0)
    trace.keep(step)
