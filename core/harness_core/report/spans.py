"""Steps and refusals as spans, by the OpenTelemetry semantic conventions for generative AI, 1.37.0.

What the conventions have no name for stands under ``harness.``. Prompts, replies, error texts and
the names of documents are content: they are left out unless asked for.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import orjson

from harness_core.calls.governor import Refusal
from harness_core.calls.steps import PICO, Step
from harness_core.messages import Message

SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"
SCOPE = "harness_core"
REFUSED = "harness.governor.refused"
ADMITTED = "harness.governor.admitted"

Value: TypeAlias = str | bool | int | float | list[str]
_PROVIDERS = {"responses": "openai", "chat": "openai"}
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something at one moment of a span; nanoseconds since 1970."""

    name: str
    at: int
    attributes: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A step as a span. ``error`` is why it failed, ``""`` when that is content; times in ns."""

    name: str
    start: int
    end: int
    client: bool = False
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    error: str | None = None


def step_span(step: Step, *, content: bool = False) -> Span:
    """The span of a request or a local step. ``content`` adds what was said and read."""
    start = nanoseconds(step.started_utc)
    end = max(nanoseconds(step.ended_utc), start)
    known = {"harness.step": step.step, "harness.label": step.label, "harness.recipe": step.recipe}
    if content:
        known["harness.document"] = step.source
    if step.local:
        detail = {"harness.detail": _json(step.detail or {})} if content else {}
        return Span(name=step.label, start=start, end=end, attributes=_present({**known, **detail}))
    operation = "embeddings" if step.kind == "embedding" else "chat"
    return Span(
        name=f"{operation} {step.model}" if step.model else operation,
        start=start,
        end=end,
        client=True,
        attributes=_present({
            "gen_ai.operation.name": operation, **known, **_request(step), **_response(step),
            **_account(step), **(_content(step) if content else {}),
        }),
        events=_admitted(step, start),
        error=None if step.ok else (step.error or "") if content else "",
    )  # fmt: skip


def refusal_event(refusal: Refusal, at: int) -> Event:
    """A request that a limit kept from being sent, as an event."""
    return Event(
        name=REFUSED,
        at=at,
        attributes=_present({
            "harness.refusal.reason": refusal.reason,
            "harness.label": refusal.label,
            "gen_ai.request.model": refusal.model,
            "harness.bound_tokens": refusal.bound_tokens,
            "harness.bound_usd": _usd(refusal.bound_pico),
        }),
    )  # fmt: skip


def nanoseconds(moment: str) -> int:
    """An ISO 8601 time in nanoseconds since 1970; 0 when there is none."""
    return round(datetime.fromisoformat(moment).timestamp() * 1000) * 10**6 if moment else 0


def _request(step: Step) -> dict[str, Value | None]:
    params, sent = step.params, step.params_sent
    address = urlsplit(str(sent.get("base_url") or ""))
    api = str(sent.get("api") or "unknown")
    known: dict[str, Value | None] = {
        "gen_ai.provider.name": _PROVIDERS.get(api, api),
        "gen_ai.request.model": step.model,
        "gen_ai.request.max_tokens": sent.get("max_output"),
        "gen_ai.request.temperature": sent.get("temperature"),
        "gen_ai.request.stop_sequences": list(params.get("stop") or ()) or None,
        "gen_ai.request.choice.count": params.get("n"),
        "gen_ai.output.type": "json" if params.get("schema_hash") else None,
    }
    if address.scheme in _PORTS and address.hostname:
        known["server.address"] = address.hostname
        known["server.port"] = address.port or _PORTS[address.scheme]
    return known


def _response(step: Step) -> dict[str, Value | None]:
    return {
        "gen_ai.response.id": step.response_id,
        "gen_ai.response.model": step.served_model,
        "gen_ai.response.finish_reasons": [step.finish_reason] if step.finish_reason else None,
        "gen_ai.usage.input_tokens": step.tokens.input,
        "gen_ai.usage.output_tokens": step.tokens.output,
        "error.type": None if step.ok else _error_type(step),
    }


def _account(step: Step) -> dict[str, Value | None]:
    return {
        "harness.cost_usd": 0.0 if step.cached else _usd(step.budget_pico),
        "harness.cached": step.cached,
        "harness.attempts": step.attempts,
        "harness.cancelled": step.cancelled or None,
        "harness.recovered": step.recovered or None,
        "harness.usage.provenance": step.tokens.provenance,
        "harness.usage.reasoning_tokens": step.tokens.reasoning,
        "harness.usage.cached_input_tokens": step.tokens.cached_input,
    }


def _admitted(step: Step, start: int) -> tuple[Event, ...]:
    if step.bound_pico is None:
        return ()
    held: dict[str, Value] = {"harness.bound_usd": step.bound_pico / PICO}
    return (Event(name=ADMITTED, at=start, attributes=held),)


def _content(step: Step) -> dict[str, Value | None]:
    first = [message for message in step.prompt if message.role in ("system", "developer")]
    rest = [message for message in step.prompt if message not in first]
    answer = {
        "role": "assistant",
        "parts": [_text(step.response)],
        "finish_reason": step.finish_reason or ("stop" if step.ok else "error"),
    }
    return {
        "gen_ai.system_instructions": _json([_text(m.content) for m in first]) if first else None,
        "gen_ai.input.messages": _json(list(_messages(rest))) if rest else None,
        "gen_ai.output.messages": _json([answer]) if step.kind == "chat" else None,
    }


def _messages(messages: Iterable[Message]) -> Iterable[dict[str, Any]]:
    for message in messages:
        yield {"role": message.role, "parts": [_text(message.content)]}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _error_type(step: Step) -> str:
    """The status, or the class the error names itself by: few values, no content."""
    if step.status:
        return str(step.status)
    if step.cancelled:
        return "cancelled"
    named = re.match(r"([A-Za-z_]\w*(?:Error|Exception|Timeout))\b", step.error or "")
    return named[1] if named else "_OTHER"


def _usd(pico: int | None) -> float | None:
    return None if pico is None else pico / PICO


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _present(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value is not None}
