"""What a LlamaIndex LLM is about to send, read as a ``Request``; and the LLM's copy that sends it.

A per-call cap does not hold on every LLM (OpenAI's constructor wins over it, others ignore it), so
a cap is set on a copy of the LLM, which shares its connections and callback manager.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from harness_core.calls.keys import content_hash
from harness_core.messages import Request
from harness_integrations.llama_index.errors import OutputCapUnenforceable
from harness_integrations.llama_index.messages import snapshots_of
from harness_integrations.shared.retries import quiet_client
from harness_integrations.shared.settings import (
    CAPS,
    is_count,
    number,
    read_cap,
    read_schema,
    read_tool_choice,
    read_tools,
    stops,
)
from harness_integrations.shared.snapshots import plain, tokens_of_data

L = TypeVar("L", bound=LLM)
Kind = Literal["chat", "complete"]
_FIELDS = ("max_tokens", "max_output_tokens")
_READ = frozenset({
    *CAPS, "model", "n", "temperature", "stop", "tools", "tool_choice", "response_format", "text",
    "reasoning_effort", "reasoning",
})  # fmt: skip
_PLUMBING = frozenset({"stream", "stream_options", "formatted", "timeout", "max_retries"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A request in LlamaIndex's own form; ``cap`` is the cap that was asked for."""

    kind: Kind = "chat"
    messages: Sequence[ChatMessage] = ()
    prompt: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    cap: int | None = None


def model_name(llm: Any, kwargs: Mapping[str, Any] | None = None) -> str:
    """The id of the model an LLM or embedding asks for; its class's name when it has none.

    ``additional_kwargs`` beat a call's keywords in the OpenAI class, and lose in others.
    """
    called = (kwargs or {}).get("model")
    fixed = (getattr(llm, "additional_kwargs", None) or {}).get("model")
    first = (fixed, called) if _constructor_wins(llm) else (called, fixed)
    names = (*first, getattr(llm, "model", None), getattr(llm, "model_name", None))
    found = next((name for name in names if isinstance(name, str) and name), None)
    if found is None and isinstance(llm, LLM):
        found = llm.metadata.model_name
    return found.removeprefix("models/") if found not in (None, "unknown") else type(llm).__name__


def asked_of(
    llm: LLM,
    given: Sequence[ChatMessage] | str,
    kwargs: Mapping[str, Any],
    *,
    label: str = "chat",
    defaults: Mapping[str, Any] | None = None,
) -> Request:
    """The request of one call, settings of call and constructor read.

    ``defaults`` are the settings a replayed LLM had; none: those that ``llm`` has.
    """
    kind: Kind = "complete" if isinstance(given, str) else "chat"
    messages = (
        [ChatMessage(role=MessageRole.USER, content=given)] if isinstance(given, str) else given
    )
    own = own_settings(llm) if defaults is None else dict(defaults)
    called = {name: value for name, value in kwargs.items() if value is not None}
    settings = {**own, **called, **_additional(llm)} if _constructor_wins(llm) else {
        **own, **_additional(llm), **called
    }  # fmt: skip
    settings["max_output"] = _cap(llm, own, called)
    request = read_request(messages, settings, model=model_name(llm, kwargs), label=label)
    payload = Payload(
        kind=kind,
        messages=list(given) if not isinstance(given, str) else (),
        prompt=given if isinstance(given, str) else "",
        kwargs=dict(kwargs),
        cap=request.max_output,
    )
    return replace(request, payload=payload)


def read_request(
    messages: Sequence[ChatMessage], settings: Mapping[str, Any], *, model: str, label: str = "chat"
) -> Request:
    """A request from messages and settings, as also an event handler sees them."""
    shown = snapshots_of(messages)
    known = {name: value for name, value in settings.items() if value is not None}
    wanted = known.get("response_format") or (known.get("text") or {}).get("format")
    schema, name = read_schema(wanted)
    body = {
        name: plain(value)
        for name, value in known.items()
        if name not in _READ and name not in _PLUMBING and name != "max_output"
    }
    effort = known.get("reasoning_effort") or dict(known.get("reasoning") or {}).get("effort")
    cap = known.get("max_output")
    return Request(
        messages=shown,
        model=model,
        max_output=cap if cap is not None else read_cap(known),
        temperature=number(known.get("temperature")),
        schema=schema,
        schema_name=name,
        effort=effort if isinstance(effort, str) else None,
        label=label,
        extra_body=body,
        tools=tuple(read_tools(known.get("tools") or ())),
        tool_choice=read_tool_choice(known.get("tool_choice")),
        stop=stops(known.get("stop")),
        n=int(known.get("n") or 1),
        aside_tokens=tokens_of_data(shown),
    )


def own_settings(llm: Any) -> dict[str, Any]:
    """The settings that an LLM object holds: temperature, cap, effort."""
    effort = getattr(llm, "reasoning_effort", None)
    options = getattr(llm, "reasoning_options", None)
    found = {
        "temperature": number(getattr(llm, "temperature", None)),
        "max_output": next((v for n in _FIELDS if is_count(v := getattr(llm, n, None))), None),
        "reasoning_effort": effort if isinstance(effort, str) else None,
        "reasoning": options if isinstance(options, Mapping) else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _cap(llm: Any, own: Mapping[str, Any], called: Mapping[str, Any]) -> int | None:
    """The cap that goes out: the newest word, or the smaller one where a constructor wins."""
    fixed, asked, mine = read_cap(_additional(llm)), read_cap(called), own.get("max_output")
    if fixed is not None:
        return fixed if asked is None else min(fixed, asked)
    if asked is None or mine is None:
        return asked if asked is not None else mine
    return min(asked, mine) if _constructor_wins(llm) else asked


def _additional(llm: Any) -> dict[str, Any]:
    more = getattr(llm, "additional_kwargs", None)
    return {k: v for k, v in more.items() if v is not None} if isinstance(more, Mapping) else {}


# --- copies -------------------------------------------------------------------------------------


def tried_once(llm: L) -> L:
    """A copy whose provider client tries each request once; ``llm`` itself stays as it is."""
    changes = {"max_retries": 0} if "max_retries" in type(llm).model_fields else {}
    twin: L = llm.model_copy(update=changes)
    if changes and twin.__pydantic_private__:
        for name, value in twin.__pydantic_private__.items():
            twin.__pydantic_private__[name] = quiet_client(value)
    return twin


def changed(llm: L, **fields: Any) -> L:
    """A copy with some fields changed, sharing everything else: connections, state, callbacks."""
    twin: L = llm.model_copy(update=fields)
    object.__setattr__(twin, "__pydantic_private__", llm.__pydantic_private__)
    return twin


_cap_fields: WeakKeyDictionary[type, str | None] = WeakKeyDictionary()


def cap_field(llm: Any) -> str | None:
    """The field that holds an LLM's output cap and is known to reach its provider."""
    kind = type(llm)
    if kind not in _cap_fields:
        _cap_fields[kind] = _tried_cap_field(llm)
    return _cap_fields[kind]


def _tried_cap_field(llm: Any) -> str | None:
    name = next((name for name in _FIELDS if name in type(llm).model_fields), None)
    if name is None:
        return None
    more = {"additional_kwargs": _uncapped(llm)} if _additional(llm) else {}
    probe = changed(llm, **{name: 7}, **more)
    return name if probe.metadata.num_output == 7 else None


def capped(llm: L, cap: int) -> L:
    """A copy that sends at most ``cap`` as its output cap."""
    if llm.class_name() in _BY_OPTION:
        options = {**_uncapped(llm), _BY_OPTION[llm.class_name()]: cap}
        return changed(llm, additional_kwargs=options)
    name = cap_field(llm)
    if name is None:
        return llm
    if read_cap(_additional(llm)) is None:
        return changed(llm, **{name: cap})
    return changed(llm, **{name: cap, "additional_kwargs": _uncapped(llm)})


_BY_OPTION = {"Ollama_llm": "num_predict"}
"""LLM classes whose cap is an option of the constructor's ``additional_kwargs``."""


def need_cap(llm: Any) -> None:
    """Raise where an LLM's output cannot be capped.

    Raises:
        OutputCapUnenforceable: it has no field for a cap, or one that does not arrive.
    """
    if llm.class_name() in _BY_OPTION or cap_field(llm) is not None:
        return
    raise OutputCapUnenforceable(
        f"the output cap cannot be enforced on {llm.class_name()}: its class has no max_tokens or "
        "max_output_tokens that reaches the provider, so a request's cost has no bound. "
        "allow_uncapped=True sends to it all the same",
        "output",
        model=model_name(llm),
    )


def without_caps(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords without any that sets an output cap."""
    return {name: value for name, value in kwargs.items() if name not in CAPS}


def _uncapped(llm: Any) -> dict[str, Any]:
    return without_caps(_additional(llm))


def speaks_openai(llm: Any) -> bool:
    """Whether an LLM is LlamaIndex's ``OpenAI`` class or made from it."""
    return any(
        kind.__name__ == "OpenAI" and kind.__module__.startswith("llama_index.llms.openai")
        for kind in type(llm).__mro__
    )


def speaks_responses(llm: Any) -> bool:
    """Whether an LLM is LlamaIndex's ``OpenAIResponses`` class or made from it."""
    return any(kind.__name__ == "OpenAIResponses" for kind in type(llm).__mro__)


def _constructor_wins(llm: Any) -> bool:
    return speaks_openai(llm)


def identity_of(llm: Any) -> str:
    """What tells LLMs with equal names apart in a cache: class, address, options; no credential."""
    kind = type(llm)
    names = (
        "api_base",
        "base_url",
        "system_prompt",
        "top_p",
        "context_window",
        "additional_kwargs",
    )
    settings = {name: plain(getattr(llm, name, None)) for name in names}
    return f"{kind.__module__}.{kind.__qualname__}:{content_hash(settings)[:16]}"
