"""A recording as it is kept: a trace file that is the same for the same run, and read in a diff.

One step a line, in an order of names made for reading; no times, no ids of a run, no addresses.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness_core.calls import keys
from harness_core.calls.governor import Refusal
from harness_core.calls.journal import FORMAT
from harness_core.calls.steps import Step
from harness_core.errors import TraceError
from harness_core.messages import Request
from harness_integrations.pytest_plugin.scrubbing import Scrubber

_ORDER = (
    "trace", "step", "label", "kind", "model", "ok", "cached", "cancelled", "prompt", "response",
    "error", "status", "finish_reason", "params", "tokens", "budget_usd", "bound_usd", "draw_index",
)  # fmt: skip
_DROPPED = frozenset({
    "started_utc", "ended_utc", "seconds", "response_id", "fingerprint", "params_sent", "attempts",
})  # fmt: skip
_EXACT = frozenset({"step", "label", "kind", "model", "params", "replay_key", "vectors", "tokens"})
_MADE_ANEW = frozenset({
    "created", "created_at", "completed_at", "system_fingerprint", "request_id", "headers",
    "x_request_id", "_request_id", "timings", "total_duration", "load_duration",
    "prompt_eval_duration", "eval_duration",
})  # fmt: skip
_RUN_ID = re.compile(
    r"(?:chatcmpl|cmpl|msg|resp|run|lc|lc_run|fc|req|gen|rs|call)[-_][\w\-]+"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
)
_MAY_BE_EMPTY = frozenset({"cached", "prompt", "response", "params"})
_CALL_SIGNS = frozenset({"function", "args", "arguments", "tool_name", "tool_kwargs", "input"})
_CALL_IDS = ("id", "call_id", "tool_call_id", "tool_id")


def write(
    path: Path,
    steps: Iterable[Step],
    refusals: Iterable[Refusal],
    limits: Mapping[str, Any],
    scrubber: Scrubber,
) -> None:
    """Put a recording in its place, whole or not at all.

    Raises:
        TraceError: the folder or the file cannot be written.
    """
    lines = [_line({"trace": FORMAT, "limits": dict(limits)})]
    calls: dict[str, str] = {}
    lines += [_line(kept(step, scrubber, calls)) for step in steps]
    lines += [_line({"refusal": scrubber.data(one.as_json())}) for one in refusals]
    beside = path.with_name(f".{path.stem[:80]}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text("".join(lines), encoding="utf-8", newline="\n")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True) if beside.parent.is_dir() else None
        raise unwritable(path, error) from error


def check_writable(path: Path) -> None:
    """Find out that a recording cannot be written before anything is paid for.

    Raises:
        TraceError: it cannot.
    """
    probe = path.with_name(f".{path.stem[:80]}.{os.getpid()}.tmp")
    made = [one for one in (path.parent, path.parent.parent) if not one.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise unwritable(path, error) from error
    for folder in made:
        with contextlib.suppress(OSError):  # another worker writes there already
            folder.rmdir()


def unwritable(path: Path, error: OSError) -> TraceError:
    """What to say of a recording that cannot be written."""
    return TraceError(
        f"the recording {path} cannot be written: {error.strerror or error}. Make its folder "
        "writable, or replay only, with --harness-record=none"
    )


def kept(step: Step, scrubber: Scrubber, calls: dict[str, str]) -> dict[str, Any]:
    """A step as a recording keeps it; ``calls`` numbers the tool calls of all its steps by id."""
    if step.kind == "chat":
        step = _redacted(step, scrubber)
    plain = {k: v for k, v in step.as_json().items() if k not in _DROPPED}
    plain = {k: v for k, v in plain.items() if v or k not in _MAY_BE_EMPTY}
    if "raw" in plain:
        _find_calls(plain["raw"], calls)
        plain["raw"] = _without_run_ids(plain["raw"], calls)
    if plain.get("source") is not None:
        plain["source"] = os.path.basename(str(plain["source"]))
    return {k: v if k in _EXACT else scrubber.data(v) for k, v in plain.items() if v is not None}


def _redacted(step: Step, scrubber: Scrubber) -> Step:
    """The step with its prompt as kept, found by that prompt."""
    messages = scrubber.messages(step.prompt)
    if messages is step.prompt:
        return step
    key = keys.key_of_params(keys.message_bytes(Request(messages=messages)), step.params)
    return replace(step, prompt=messages, replay_key=key)


def _find_calls(value: Any, calls: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        if _CALL_SIGNS & value.keys():
            for name in _CALL_IDS:
                if isinstance(value.get(name), str) and value[name]:
                    calls.setdefault(value[name], f"call_{len(calls) + 1}")
        for one in value.values():
            _find_calls(one, calls)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _find_calls(one, calls)


def _without_run_ids(value: Any, calls: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without_run_ids(one, calls)
            for name, one in value.items()
            if not _made_anew(name, one, calls)
        }
    if isinstance(value, (list, tuple)):
        return [_without_run_ids(one, calls) for one in value]
    return calls.get(value, value) if isinstance(value, str) else value


def _made_anew(name: str, value: Any, calls: Mapping[str, str]) -> bool:
    if name in _MADE_ANEW:
        return True
    if name != "id" or not isinstance(value, str) or value in calls:
        return False
    return _RUN_ID.fullmatch(value) is not None


def _line(data: Mapping[str, Any]) -> str:
    rest = sorted(data.keys() - set(_ORDER))
    ordered = {name: data[name] for name in (*_ORDER, *rest) if name in data}
    inner = {name: _sorted(value) for name, value in ordered.items()}
    return json.dumps(inner, ensure_ascii=False) + "\n"


def _sorted(value: Any) -> Any:
    """Names in alphabetical order at every depth; a message's as it is read."""
    if isinstance(value, Mapping):
        names = sorted(value, key=str)
        if "role" in value and "content" in value:
            first = [name for name in ("role", "content") if name in value]
            names = [*first, *(name for name in names if name not in first)]
        return {str(name): _sorted(value[name]) for name in names}
    if isinstance(value, (list, tuple)):
        return [_sorted(one) for one in value]
    return value
