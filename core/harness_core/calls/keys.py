"""Keys: SHA-256 over canonical JSON under versioned tags.

The *replay key* says what was asked: it finds a recorded reply. The *cache key* says everything
that was sent and can change the reply. Line ends are folded, so text that differs only in them
shares a key; API keys, headers, timeouts, traces and labels are in neither.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from harness_core.client import Client
from harness_core.messages import Request, Texts

REPLAY_TAG = b"harness-replay-1\n"
CACHE_TAG = b"harness-cache-1\n"
TEXTS_TAG = b"harness-texts-1\n"


def canonical(value: Any) -> bytes:
    """JSON with sorted names: equal data gives equal bytes, names at every depth count."""
    return orjson.dumps(
        value, default=_plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    )


def digest(tag: bytes, *parts: bytes) -> str:
    """SHA-256 of canonical parts under a tag, in hex."""
    found = hashlib.sha256(tag)
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()


def content_hash(value: Any) -> str:
    """SHA-256 of any JSON-like value."""
    return digest(b"harness-content-1\n", canonical(value))


def message_bytes(request: Request) -> bytes:
    """The messages of a request, canonical and with folded line ends."""
    return canonical([_message(message.as_json()) for message in request.messages])


def replay_key(messages: bytes, request: Request, *, model: str, temperature: float | None) -> str:
    """What was asked: messages, model, cap and temperature asked for, and what else is set."""
    schema = None if request.schema is None else schema_hash(request.schema)
    return asked_key(messages, {
        "model": model,
        "max_output": request.max_output,
        "temperature": temperature,
        "effort": request.effort,
        "schema": schema,
        "stop": list(request.stop),
        "tools": tool_hashes(request),
        "tool_choice": request.tool_choice,
        "n": request.n,
    })  # fmt: skip


def tool_hashes(request: Request) -> list[list[str]]:
    """Name and SHA-256 of each tool that a request offers."""
    return [[str(tool.get("name")), content_hash(tool)] for tool in request.tools]


def key_of_params(messages: bytes, params: Mapping[str, Any]) -> str:
    """The replay key of other messages, asked with the settings that a recorded step keeps."""
    asked = {**params, "max_output": params.get("max_output_asked")}
    return asked_key(messages, {
        **asked, "schema": params.get("schema_hash"), "tools": params.get("tool_hashes"),
    })  # fmt: skip


def asked_key(messages: bytes, settings: Mapping[str, Any]) -> str:
    """The replay key of canonical messages asked with ``settings``."""
    asked = {name: settings.get(name) for name in ("model", "max_output", "temperature")}
    for name in ("effort", "schema", "stop"):
        if settings.get(name):
            asked[name] = settings[name]
    if settings.get("tools"):
        asked["tools"] = settings["tools"]
        asked["tool_choice"] = settings.get("tool_choice") or "auto"
    if settings.get("n") not in (None, 1):
        asked["n"] = settings["n"]
    return digest(REPLAY_TAG, messages, canonical(asked))


def cache_key(messages: bytes, request: Request, client: Client, sent: Mapping[str, Any]) -> str:
    """Everything that was sent: the replay key's parts as resolved, the client and its API."""
    parts: dict[str, Any] = {
        "api": client.api,
        "base_url": client.base_url,
        "identity": client.identity,
        "schema_name": request.schema_name if request.schema is not None else None,
        "body": content_hash([client.extra_body, request.extra_body]),
        "stop": list(request.stop),
        "tools": content_hash([list(request.tools), request.tool_choice]),
        "n": request.n,
        **sent,
    }
    if request.draw_index > 0:
        parts["draw_index"] = request.draw_index
    return digest(CACHE_TAG, messages, canonical(parts))


def texts_key(request: Texts, model: str) -> str:
    """What was asked of an embedding model."""
    return digest(TEXTS_TAG, canonical([model, *request.texts]))


def schema_hash(schema: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON schema."""
    return content_hash(schema)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if "\r" in content:
        message["content"] = content.replace("\r\n", "\n").replace("\r", "\n")
    return message


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no canonical form")
