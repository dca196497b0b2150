"""What a LangChain model is about to send, read as a ``Request``: one reading for all its doors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from harness_core.messages import Request
from harness_integrations.langchain.messages import snapshots_of
from harness_integrations.shared.settings import (
    CAPS,
    number,
    read_cap,
    read_schema,
    read_tool_choice,
    read_tools,
    stops,
)
from harness_integrations.shared.snapshots import plain, tokens_of_data
from harness_integrations.shared.usage import as_mapping

_MODELS = ("model", "model_name", "model_id", "deployment_name")
_OWN = (*CAPS, "n", "temperature", "stop", "reasoning_effort", "extra_body")
_READ = frozenset({
    *CAPS, *_MODELS, "n", "temperature", "stop", "tools", "tool_choice", "response_format",
    "reasoning_effort", "extra_body",
})  # fmt: skip
_PLUMBING = frozenset({
    "_type", "stream", "streaming", "stream_usage", "stream_options", "max_retries", "timeout",
    "request_timeout", "ls_structured_output_format", "structured_output_format",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A request in LangChain's own form: what the wrapped model's methods are called with."""

    messages: list[BaseMessage]
    stop: list[str] | None
    kwargs: Mapping[str, Any]
    run_manager: Any = None
    cap: int | None = None


def model_name(model: Any, settings: Mapping[str, Any] | None = None) -> str:
    """The id of the model a chat model asks for; its class's name when it has none."""
    if (named := _named(settings or {})) is not None:
        return named
    for name in _MODELS:
        source = getattr(model, name, None)
        if isinstance(source, str) and source:
            return source.removeprefix("models/")
    return type(model).__name__


def _named(settings: Mapping[str, Any]) -> str | None:
    source = settings.get("model")
    return source.removeprefix("models/") if isinstance(source, str) and source else None


def asked_of(
    model: BaseChatModel,
    messages: list[BaseMessage],
    stop: list[str] | None,
    kwargs: Mapping[str, Any],
    *,
    run_manager: Any = None,
    label: str = "chat",
) -> Request:
    """The request of one ``_generate`` or ``_stream``, settings of call, binding and model read.

    What a body field (``extra_body``, ``model_kwargs``) sets is read as the setting it is.
    """
    own = own_settings(model)
    params = model._get_invocation_params(stop=stop, **kwargs)  # noqa: SLF001 - a wrapper's way in
    settings = {**own, **{name: value for name, value in params.items() if value is not None}}
    settings["model"] = model_name(model, settings)
    cap = next((cap for given in (kwargs, settings, own) if (cap := read_cap(given))), None)
    for name in CAPS:
        settings.pop(name, None)
    settings["max_tokens"] = cap
    payload = Payload(messages=messages, stop=stop, kwargs=kwargs, run_manager=run_manager, cap=cap)
    return read_request(messages, settings, label=label, payload=payload)


def own_settings(model: Any) -> dict[str, Any]:
    """The settings a model object holds that its invocation parameters may leave out."""
    state = vars(model)
    return {name: state[name] for name in _OWN if name in state and _is_setting(state[name])}


def read_request(
    messages: Sequence[BaseMessage],
    settings: Mapping[str, Any],
    *,
    label: str = "chat",
    payload: Payload | None = None,
) -> Request:
    """A request from messages and invocation parameters, as also a callback sees them.

    The keywords of the call itself (in ``payload``) all belong to the body; of the other settings
    only plain ones do.
    """
    shown = snapshots_of(messages)
    given = {} if payload is None else payload.kwargs
    known = {name: value for name, value in settings.items() if value is not None}
    schema, name = read_schema(known.get("response_format"))
    body = {k: plain(v) for k, v in known.items() if _in_body(k, v, given)}
    if schema is None and "response_format" in known:
        body["response_format"] = plain(known["response_format"])
    effort = known.get("reasoning_effort") or as_mapping(known.get("reasoning")).get("effort")
    return Request(
        messages=shown,
        model=_named(known) or str(known.get("model_name") or known.get("_type") or "unknown"),
        max_output=read_cap(known),
        temperature=number(known.get("temperature")),
        schema=schema,
        schema_name=name,
        effort=effort if isinstance(effort, str) else None,
        label=label,
        extra_body={**body, **plain(dict(known.get("extra_body") or {}))},
        tools=tuple(read_tools(known.get("tools") or ())),
        tool_choice=read_tool_choice(known.get("tool_choice")),
        stop=stops(known.get("stop")),
        n=int(known.get("n") or 1),
        aside_tokens=tokens_of_data(shown),
        payload=payload,
    )


def _in_body(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    if name in _READ or name in _PLUMBING:
        return False
    return name in given or isinstance(value, (bool, int, float, str, Mapping))


def _is_setting(value: Any) -> bool:
    return value is not None and isinstance(value, (bool, int, float, str, list, tuple, dict))
