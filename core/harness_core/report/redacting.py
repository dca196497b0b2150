"""A trace without what was said in it."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from harness_core.calls.trace import Trace

Redact: TypeAlias = Callable[[str], str]

# What names the parts of a framework's message, and where such parts stand: the same names inside
# the arguments of a tool, or in a structured reply, are content.
_STRUCTURE = frozenset({"type", "role", "name", "id", "tool_call_id", "call_id"})
_PARTS = frozenset({
    "additional_kwargs", "blocks", "content", "data", "function", "message", "messages",
    "tool_calls", "invalid_tool_calls",
})  # fmt: skip


def marker(text: str) -> str:
    """What stands for a text: its length in characters and the beginning of its SHA-256.

    Equal texts have equal markers, so a short one can be guessed from it.
    """
    return f"[{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}]"


def redact_trace(
    trace: Trace, redact: Redact = marker, *, prompts: bool = True, replies: bool = True
) -> Trace:
    """A copy of ``trace`` whose prompts and replies went through ``redact``.

    ``prompts`` covers the messages of every request, what local steps record, and embedding
    vectors; ``replies`` what came back, errors included. Keys, models, counts, prices, limits and
    labels stay, so the copy replays: to the recorded answers with ``replies=False``. Names of
    sources, recipes, tools and speakers stay too, as do ``actor``, ``meta`` and the settings.
    """
    plain = trace.export()
    plain["steps"] = [
        _redacted(step, redact, prompts=prompts, replies=replies) for step in plain["steps"]
    ]
    copy = Trace.load(plain)
    copy.budget_stop, copy.stop_reason = trace.budget_stop, trace.stop_reason
    return copy


def _redacted(
    step: dict[str, Any], redact: Redact, *, prompts: bool, replies: bool
) -> dict[str, Any]:
    step = dict(step)
    if prompts:
        step["prompt"] = [_message(message, redact) for message in step.get("prompt", ())]
        if step.get("detail"):
            names = step["label"] in _NEEDED_TO_REPLAY
            step["detail"] = _every(step["detail"], _but_names(redact) if names else redact)
        step.pop("vectors", None)
    if replies:
        for name in ("response", "error"):
            if step.get(name):
                step[name] = redact(step[name])
        if step.get("raw") is not None:
            step["raw"] = _content(step["raw"], redact)
    return step


# Which recipe, model and ranking a run used: a replay reads the names.
_NEEDED_TO_REPLAY = frozenset({"auto_recipe", "embed", "ingest", "preflight", "segment"})


def _but_names(redact: Redact) -> Redact:
    return lambda text: redact(text) if any(map(str.isspace, text)) else text


def _message(message: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    kept = {**message, "content": redact(message["content"]) if message["content"] else ""}
    return {**kept, "more": _content(message["more"], redact)} if message.get("more") else kept


def _content(value: Any, redact: Redact) -> Any:
    """Every text in a framework's message but what names its parts."""
    if isinstance(value, Mapping):
        return {name: _field(name, one, redact) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_content(one, redact) for one in value]
    return _every(value, redact)


def _field(name: str, value: Any, redact: Redact) -> Any:
    if name in _STRUCTURE and isinstance(value, str):
        return value
    return _content(value, redact) if name in _PARTS else _every(value, redact)


def _every(value: Any, redact: Redact) -> Any:
    """Every text in a value; the names of its fields stay."""
    if isinstance(value, str):
        return redact(value) if value else value
    if isinstance(value, Mapping):
        return {name: _every(one, redact) for name, one in value.items()}
    return [_every(one, redact) for one in value] if isinstance(value, (list, tuple)) else value
