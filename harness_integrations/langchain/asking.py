"""What a LangChain model is about to send, read as a ``Request``: one reading for all its doors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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

_MODELS = ("model", "model_name", "model_id", "deployment_name")
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


def model_name(model: Any, kwargs: Mapping[str, Any] | None = None) -> str:
    """The id of the model a chat model asks for; its class's name when it has none."""
    for source in (kwargs or {}).get("model"), *(getattr(model, name, None) for name in _MODELS):
        if isinstance(source, str) and source:
            return source.removeprefix("models/")
    return type(model).__name__


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
    settings = {**own, **model._get_invocation_params(stop=stop, **kwargs)}  # noqa: SLF001 - a wrapper's way in
    settings["model"] = model_name(model, settings)
    cap = next((cap for given in (kwargs, settings, own) if (cap := read_cap(given))), None)
    settings = {name: value for name, value in settings.items() if name not in CAPS}
    request = read_request(messages, {**settings, "max_tokens": cap}, label=label, given=kwargs)
    payload = Payload(
        messages=messages, stop=stop, kwargs=kwargs, run_manager=run_manager, cap=cap
    )
    return replace(request, payload=payload)


def own_settings(model: Any) -> dict[str, Any]:
    """The settings a model object holds that its invocation parameters may leave out."""
    names = (*CAPS, "n", "temperature", "stop", "reasoning_effort", "extra_body")
    found = {name: getattr(model, name, None) for name in names}
    return {name: value for name, value in found.items() if _is_setting(value)}


def read_request(
    messages: Sequence[BaseMessage],
    settings: Mapping[str, Any],
    *,
    label: str = "chat",
    given: Mapping[str, Any] | None = None,
) -> Request:
    """A request from messages and invocation parameters, as also a callback sees them.

    ``given`` are the settings of the call itself, which all belong to the body; of the others only
    plain ones do.
    """
    shown = snapshots_of(messages)
    known = {name: value for name, value in settings.items() if value is not None}
    schema, name = read_schema(known.get("response_format"))
    body = {k: plain(v) for k, v in known.items() if _in_body(k, v, given or {})}
    if schema is None and "response_format" in known:
        body["response_format"] = plain(known["response_format"])
    effort = known.get("reasoning_effort") or dict(known.get("reasoning") or {}).get("effort")
    return Request(
        messages=shown,
        model=model_name(None, known),
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
    )


def _in_body(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    if name in _READ or name in _PLUMBING:
        return False
    return name in given or isinstance(value, (bool, int, float, str, Mapping))


def _is_setting(value: Any) -> bool:
    return value is not None and isinstance(value, (bool, int, float, str, list, tuple, dict))
