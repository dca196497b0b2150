"""What a request becomes before it is judged: model, counts, caps, settings, keys, its bound."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from harness_core.calls import keys
from harness_core.calls.governor import Limits
from harness_core.calls.ledger import Demand
from harness_core.config import read_number, setting
from harness_core.errors import (
    BadSettingError,
    BadSettingWarning,
    EffortUnknownWarning,
    warn,
)
from harness_core.messages import Client, Request, Texts
from harness_core.models.prices import bound
from harness_core.models.registry import ModelInfo, model_info
from harness_core.models.tokenizers import count_tokens, upper_bytes

FRAMING = 5
"""Tokens a provider adds around one message."""

WINDOW_SLACK = 32
REASONING_CAP = 2048
EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh"})
_CAP_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A prepared request: all that is decided before limits, recordings and caches are asked.

    ``asked`` is the request as it was asked (its model filled in), ``as_sent`` as it goes out.
    """

    asked: Request | Texts
    as_sent: Request | Texts
    model: str
    info: ModelInfo
    prompt_tokens: int
    demand: Demand
    replay_key: str
    cache_key: str | None = None
    params: Mapping[str, Any]
    params_sent: Mapping[str, Any]
    temperature_asked: float | None = None
    failure: str | None = None

    @property
    def embedding(self) -> bool:
        """Whether texts are to be embedded."""
        return isinstance(self.asked, Texts)

    @property
    def label(self) -> str:
        """The stage label."""
        return self.asked.label


def prepare(asked: Request | Texts, client: Client, limits: Limits) -> Call:
    """Resolve everything about a request that needs no ledger, recording or cache.

    Raises:
        BadSettingError: a body field and a setting (or two body fields) that disagree.
        UnknownModelError: an unregistered model under ``unknown_model_action="error"``.
    """
    if isinstance(asked, Texts):
        return _prepare_texts(asked, client, limits)
    request = with_body_settings(asked, client)
    model = request.model or client.model
    request = replace(request, model=model)
    info = model_info(model)
    prompt = sum(count_tokens(message.content, model) for message in request.messages)
    prompt += sum(count_tokens(_text(m.more), model) for m in request.messages if m.more)
    room = info.context_window - prompt - WINDOW_SLACK
    cap = _cap(request, info)
    asked_cap = min(cap, max(room, 0))
    sent_cap = _raised(asked_cap, info, room)
    temperature = _temperature(request)
    effort = _effort(request, info)
    sent_temperature = temperature if info.supports_temperature else None
    as_sent = replace(
        request,
        max_output=sent_cap,
        temperature=sent_temperature,
        effort=effort,
        payload=request.payload or {"max_output_asked": asked_cap, "prompt_tokens": prompt},
    )
    if effort != request.effort:
        request = replace(request, effort=effort)
    messages = keys.message_bytes(request)
    replay = keys.replay_key(messages, request, model=model, temperature=temperature)
    sent = _sent(as_sent, client, model)
    key = None
    if client.cache is not None:
        resolved = {**sent, "max_output": asked_cap}
        key = keys.cache_key(messages, request, client, resolved)
    return Call(
        asked=request,
        as_sent=as_sent,
        model=model,
        info=info,
        prompt_tokens=prompt,
        demand=_demand(as_sent, client, info, limits, prompt, replay),
        replay_key=replay,
        cache_key=key,
        params=_params(request, model, asked_cap, temperature, prompt),
        params_sent=sent,
        temperature_asked=temperature,
        failure=_no_room(prompt, info) if asked_cap <= 0 else None,
    )


def with_body_settings(request: Request, client: Client) -> Request:
    """Body fields that set the model, a cap or ``n``, read as the settings they are."""
    body = {**client.extra_body, **request.extra_body}
    found: dict[str, Any] = {}
    for name, value in body.items():
        target = "max_output" if name in _CAP_FIELDS else name
        if target not in ("max_output", "model", "n") or value is None:
            continue
        if found.setdefault(target, value) != value:
            raise BadSettingError(f"extra_body sets {target} twice: {found[target]!r}, {value!r}")
    for target, value in found.items():
        mine = getattr(request, target)
        default = 1 if target == "n" else None
        if mine not in (default, value):
            raise BadSettingError(
                f"extra_body sets {target} to {value!r} and the request to {mine!r}; set one"
            )
    return replace(request, **found) if found else request


def _prepare_texts(asked: Texts, client: Client, limits: Limits) -> Call:
    model = asked.model or client.embedding_model
    request = replace(asked, model=model)
    info = model_info(model)
    tokens = sum(count_tokens(text, model) for text in request.texts)
    most = _with_margin(tokens, limits, sum(map(upper_bytes, request.texts)))
    replay = keys.texts_key(request, model)
    demand = Demand(
        label=request.label,
        model=model,
        tokens=most,
        pico=bound(info, most, 0),
        prompt_tokens=most,
        replay_key=replay,
    )
    params = {"model": model, "texts": len(request.texts)}
    return Call(
        asked=request,
        as_sent=request,
        model=model,
        info=info,
        prompt_tokens=tokens,
        demand=demand,
        replay_key=replay,
        params=params,
        params_sent={**params, "api": client.api, "base_url": client.base_url},
    )


def _cap(request: Request, info: ModelInfo) -> int:
    most = max(info.max_output, 1)
    if request.max_output is None:
        return most
    number = read_number(request.max_output)
    if number is None:
        warn(BadSettingWarning(
            f"max_output is one number of tokens, not {request.max_output!r}; "
            f"the model's limit of {most} is used"
        ))  # fmt: skip
        return most
    return int(min(max(number, 1), most))


def _raised(cap: int, info: ModelInfo, room: int) -> int:
    """A reasoning model spends its cap on reasoning too: a small one goes out raised."""
    if not info.reasoning or cap <= 0 or cap >= REASONING_CAP:
        return cap
    return max(cap, min(REASONING_CAP, info.max_output, room))


def _temperature(request: Request) -> float | None:
    asked = request.temperature if request.temperature is not None else setting("temperature")
    return None if asked is None else float(asked)


def _effort(request: Request, info: ModelInfo) -> str | None:
    if request.effort is None or not info.reasoning:
        return None
    if request.effort not in EFFORTS:
        warn(EffortUnknownWarning(
            f"effort {request.effort!r} is none of {', '.join(sorted(EFFORTS))}; it is sent anyway"
        ))  # fmt: skip
    return request.effort


def _demand(
    request: Request, client: Client, info: ModelInfo, limits: Limits, prompt: int, replay: str
) -> Demand:
    """The most the request could take, as core's bound has it."""
    around = FRAMING * len(request.messages)
    extras = [request.schema, dict(client.extra_body), dict(request.extra_body)]
    extras += list(request.tools)
    texts = [_text(extra) for extra in extras if extra]
    tokens = prompt + around + sum(count_tokens(text, info.id) for text in texts)
    strict = 0
    if limits.strict:
        strict = around + sum(map(upper_bytes, texts))
        strict += sum(upper_bytes(m.content) + upper_bytes(_text(m.more or "")) for m in
                      request.messages)  # fmt: skip
    most = _with_margin(tokens, limits, strict)
    output = (request.max_output or 0) * request.n
    return Demand(
        label=request.label,
        model=request.model or info.id,
        tokens=most + output,
        pico=bound(info, most, output),
        prompt_tokens=most,
        output=output,
        priced=info.input_usd is not None or client.unpriced_ok,
        replay_key=replay,
        draw_index=request.draw_index,
    )


def _with_margin(tokens: int, limits: Limits, strict: int) -> int:
    return strict if limits.strict else math.ceil(tokens * (1 + float(setting("safety_margin"))))


def _sent(request: Request, client: Client, model: str) -> dict[str, Any]:
    schema = request.schema
    body = {**client.extra_body, **request.extra_body}
    return {
        "model": model,
        "api": client.api,
        "base_url": client.base_url,
        "max_output": request.max_output,
        "temperature": request.temperature,
        "effort": request.effort,
        "schema_name": request.schema_name if schema is not None else None,
        "schema_hash": keys.schema_hash(schema) if schema is not None else None,
        "extra_body_hash": keys.content_hash(body) if body else None,
    }


def _params(
    request: Request, model: str, cap: int, temperature: float | None, prompt: int
) -> dict[str, Any]:
    params: dict[str, Any] = {
        "model": model,
        "max_output": cap,
        "max_output_asked": request.max_output,
        "temperature": temperature,
        "prompt_tokens": prompt,
    }
    if request.schema is not None:
        params["schema_name"] = request.schema_name
        params["schema_hash"] = keys.schema_hash(request.schema)
    if request.effort is not None:
        params["effort"] = request.effort
    if request.draw_index:
        params["draw_index"] = request.draw_index
    if request.tools:
        params["tools"] = [tool.get("name") for tool in request.tools]
    return params


def _no_room(prompt: int, info: ModelInfo) -> str:
    return (
        f"the prompt of {prompt} tokens does not fit the context window of {info.context_window} "
        f"tokens of {info.id!r}, leaving no room for a reply"
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=dict).decode()
