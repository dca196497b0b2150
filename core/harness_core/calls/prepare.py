"""What a request becomes before it is judged: model, counts, caps, settings, keys, its bound."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from harness_core.calls import keys
from harness_core.calls.governor import Limits
from harness_core.calls.ledger import Demand
from harness_core.calls.steps import public_url
from harness_core.client import Client
from harness_core.config import read_number, setting
from harness_core.errors import (
    BadSettingError,
    BadSettingWarning,
    EffortUnknownWarning,
    warn,
)
from harness_core.messages import Request, Texts
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

    ``asked`` is the request as it was asked, ``as_sent`` as it goes out.
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
    adapted = getattr(client, "adapted", None)  # most clients take what is asked
    request = with_body_settings(asked if adapted is None else adapted(asked), client)
    model = request.model or client.model
    info = model_info(model)
    request = _readable(request, info)
    prompt = sum(count_tokens(message.content, model) for message in request.messages)
    prompt += sum(count_tokens(_text(m.more), model) for m in request.messages if m.more)
    prompt += request.aside_tokens
    room = info.context_window - prompt - WINDOW_SLACK
    most = max(info.max_output, 1)
    cap = min(most if request.max_output is None else request.max_output, most, max(room, 0))
    temperature = _temperature(request)
    as_sent = replace(
        request,
        model=model,
        max_output=_raised(cap, info, room),
        temperature=temperature if info.supports_temperature else None,
        payload=request.payload
        or {
            "max_output_asked": None if request.max_output is None else cap,
            "prompt_tokens": prompt,
        },
    )
    messages = keys.message_bytes(request)
    replay = keys.replay_key(messages, request, model=model, temperature=temperature)
    sent = _sent(as_sent, client, model)
    key = None
    if client.cache is not None:
        resolved = {**sent, "base_url": client.base_url, "max_output": request.max_output}
        key = keys.cache_key(messages, request, client, resolved)
    return Call(
        asked=request,
        as_sent=as_sent,
        model=model,
        info=info,
        prompt_tokens=prompt,
        demand=_demand(as_sent, client, info, limits, counts=(prompt, replay)),
        replay_key=replay,
        cache_key=key,
        params=_params(request, model, cap, temperature, prompt),
        params_sent=sent,
        temperature_asked=temperature,
        failure=_no_room(prompt, info) if cap <= 0 else None,
    )


def with_body_settings(request: Request, client: Client) -> Request:
    """Body fields that set the model, a cap or ``n``, read as the settings they are."""
    if not client.extra_body and not request.extra_body:
        return request
    found: dict[str, Any] = {}
    for name, value in (*client.extra_body.items(), *request.extra_body.items()):
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
    strict = sum(map(upper_bytes, request.texts))
    most = strict if limits.strict else _with_margin(tokens)
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
        params_sent={**params, "api": client.api, "base_url": public_url(client.base_url)},
    )


def _readable(request: Request, info: ModelInfo) -> Request:
    """The request with its cap as a number of tokens, and no effort where the model takes none."""
    if type(request.n) is not int or request.n < 1:
        raise BadSettingError(f"n is a whole number of replies, not {request.n!r}")
    cap, effort = _cap(request, info), _effort(request, info)
    same = cap == request.max_output and effort == request.effort
    return request if same else replace(request, max_output=cap, effort=effort)


def _cap(request: Request, info: ModelInfo) -> int | None:
    asked = request.max_output
    if asked is None or (type(asked) is int and asked >= 1):
        return asked
    number = read_number(asked)
    if number is None:
        warn(BadSettingWarning(
            f"max_output is one number of tokens, not {asked!r}; "
            f"the model's limit of {info.max_output} is used"
        ))  # fmt: skip
        return info.max_output
    return int(min(max(number, 1), info.max_output))


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
    request: Request, client: Client, info: ModelInfo, limits: Limits, *, counts: tuple[int, str]
) -> Demand:
    """The most the request could take; ``counts`` are its prompt tokens and its replay key."""
    prompt, replay = counts
    extras = (request.schema, client.extra_body, request.extra_body, *request.tools)
    texts = [_text(extra) for extra in extras if extra]
    around = FRAMING * len(request.messages)
    if limits.strict:
        texts += [_text(m.more) for m in request.messages if m.more]
        texts += [message.content for message in request.messages]
        most = around + request.aside_tokens + sum(map(upper_bytes, texts))
    else:
        most = _with_margin(prompt + around + sum(count_tokens(text, info.id) for text in texts))
    output = (request.max_output or 0) * request.n
    pico = bound(info, most, output)
    return Demand(
        label=request.label,
        model=request.model or info.id,
        tokens=most + output,
        pico=pico,
        prompt_tokens=most,
        output=output,
        priced=pico is not None or client.unpriced_ok,
        replay_key=replay,
        draw_index=request.draw_index,
    )


def _with_margin(tokens: int) -> int:
    return math.ceil(tokens * (1 + float(setting("safety_margin"))))


def _sent(request: Request, client: Client, model: str) -> dict[str, Any]:
    schema = request.schema
    body = {**client.extra_body, **request.extra_body}
    return {
        "model": model,
        "api": client.api,
        "base_url": public_url(client.base_url),
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
    if request.stop:
        params["stop"] = list(request.stop)
    if request.tools:
        params["tools"] = [tool.get("name") for tool in request.tools]
        params["tool_hashes"] = keys.tool_hashes(request)
        if request.tool_choice is not None:
            params["tool_choice"] = request.tool_choice
    if request.n != 1:
        params["n"] = request.n
    return params


def _no_room(prompt: int, info: ModelInfo) -> str:
    return (
        f"the prompt of {prompt} tokens does not fit the context window of {info.context_window} "
        f"tokens of {info.id!r}, leaving no room for a reply"
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=dict).decode()
