"""What a trace keeps of a framework's messages, and by which a recording finds them again.

A snapshot has role, text, content blocks, tool calls and names. Ids that are made anew in every
run are numbered by their place, data is kept as its hash, and paths of this machine are cut off:
the same conversation gives the same snapshot on any day, on any machine.
"""

import base64
import binascii
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson

from harness_core.messages import Message, clean_text

DATA_TOKENS = 2600
"""Tokens that one image is taken for: providers count pixels, which we do not read."""

_CALL_BLOCKS = frozenset({"tool_call", "tool_use", "function_call", "server_tool_call"})
_CALL_IDS = ("tool_call_id", "tool_use_id", "call_id", "id")
_DROPPED = frozenset({"id", "index", "extras", "annotations", "cache_control", "encrypted_content"})
_DATA_NAMES = ("data", "base64", "image_url", "url", "file_data", "image", "audio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a framework, before it becomes a snapshot.

    ``content`` is text or a list of blocks; ``tool_calls`` are (id, name, arguments).
    """

    role: str
    content: str | Sequence[Any] = ""
    name: str | None = None
    tool_calls: Sequence[tuple[str | None, str, Any]] = ()
    tool_call_id: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def snapshots(conversation: Iterable[Said]) -> tuple[Message, ...]:
    """The messages of a request as its trace keeps them."""
    ids: dict[str, str] = {}
    return tuple(_snapshot(one, ids) for one in conversation)


def tokens_of_data(messages: Iterable[Message]) -> int:
    """Tokens that the images, sounds and files of messages are taken for."""
    total = 0
    for message in messages:
        for block in (message.more or {}).get("blocks", ()):
            if (size := block.get("bytes")) is not None:
                total += (
                    DATA_TOKENS if block.get("media") == "image" else max(int(size), DATA_TOKENS)
                )
    return total


def portable(text: str) -> str:
    """``text`` without this machine's folders: working, temporary and home directory."""
    if os.sep not in text:
        return text
    for folder, mark in _folders():
        if folder in text:
            text = re.sub(rf"{re.escape(folder)}(?=[/\\]|$|\W)", mark, text)
    if "<tmp>" in text:
        text = re.sub(r"<tmp>/pytest-of-[^/\s]+/pytest-\d+", "<tmp>", text)
    return text


def _folders() -> Iterable[tuple[str, str]]:
    found = [(os.getcwd(), "<cwd>"), *_lasting_folders()]
    return sorted((one for one in found if len(one[0]) > 1), key=lambda one: -len(one[0]))


@cache
def _lasting_folders() -> tuple[tuple[str, str], ...]:
    return (
        (os.path.abspath(tempfile.gettempdir()), "<tmp>"),
        (os.path.expanduser("~"), "<home>"),
    )


def _snapshot(said: Said, ids: dict[str, str]) -> Message:
    more: dict[str, Any] = {k: v for k, v in said.more.items() if v is not None}
    if said.name:
        more["name"] = said.name
    if said.tool_calls:
        more["tool_calls"] = [
            {"id": _numbered(call, ids), "name": name, "args": arguments}
            for call, name, arguments in said.tool_calls
        ]
    if said.tool_call_id is not None:
        more["tool_call_id"] = _numbered(said.tool_call_id, ids)
    text, blocks = _content(said.content, ids)
    if blocks:
        more["blocks"] = blocks
    return Message(said.role, portable(clean_text(text)), plain(more) or None)


def _numbered(call: str | None, ids: dict[str, str]) -> str | None:
    return None if call is None else ids.setdefault(call, f"call_{len(ids) + 1}")


def _content(content: Any, ids: dict[str, str]) -> tuple[str, list[dict[str, Any]]]:
    """The text of a message, and its blocks when some are more than text."""
    if isinstance(content, str):
        return content, []
    texts: list[str] = []
    blocks: list[dict[str, Any]] = []
    for block in content or ():
        if isinstance(block, str) or (text := _block_text(block)) is not None:
            said = block if isinstance(block, str) else text or ""
            texts.append(said)
            blocks.append({"type": "text", "characters": len(said)})
        elif block.get("type") not in _CALL_BLOCKS:  # those are among the tool calls already
            blocks.append(_block(block, ids))
    only_text = all(block["type"] == "text" for block in blocks)
    return "".join(texts), [] if only_text else blocks


def _block_text(block: Any) -> str | None:
    if not isinstance(block, Mapping) or block.get("type") not in (
        "text",
        "input_text",
        "output_text",
    ):
        return None
    return str(block.get("text", ""))


def _block(block: Mapping[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    if (data := _data(block)) is not None:
        return {"type": str(block.get("type", "data")), **data}
    kept = {k: v for k, v in block.items() if k not in _DROPPED and k not in _CALL_IDS}
    for name in _CALL_IDS:
        if isinstance(block.get(name), str) and block[name] in ids:
            kept[name] = ids[block[name]]
    return {"type": str(block.get("type", "block")), **kept}


def _data(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """A block of an image, a sound or a file: what it is, how large, and its hash."""
    for place in (block, *(v for v in block.values() if isinstance(v, Mapping))):
        for name in _DATA_NAMES:
            value = place.get(name)
            value = value.get("url") if isinstance(value, Mapping) else value
            if isinstance(value, (str, bytes)) and value:
                kind = str(place.get("mime_type") or place.get("media_type") or block.get("type"))
                media = "image" if "image" in kind or "image" in str(block.get("type")) else "file"
                raw = _bytes(value)
                digest = hashlib.sha256(raw).hexdigest()
                return {"media": media, "kind": kind, "bytes": len(raw), "sha256": digest}
    return None


def _bytes(value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    text = value.partition(";base64,")[2] or value
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return clean_text(value).encode()  # an address


def as_json(value: Any) -> Any:
    """``value`` as JSON data with nothing cut off; what has no form in JSON as ``plain`` has it."""
    try:
        return orjson.loads(orjson.dumps(value, default=plain, option=orjson.OPT_NON_STR_KEYS))
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return json.loads(clean_text(json.dumps(value, default=plain, ensure_ascii=False)))


def plain(value: Any) -> Any:
    """``value`` as JSON data: classes by their JSON schema or name, never by address."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return portable(clean_text(value))
    if isinstance(value, Mapping):
        return {clean_text(str(name)): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        listed = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [plain(one) for one in listed]
    return _plain_object(value)


def _plain_object(value: Any) -> Any:
    if isinstance(value, type):
        schema = getattr(value, "model_json_schema", None)
        return plain(schema()) if schema is not None else f"<{value.__name__}>"
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"))
    return f"<{type(value).__name__}>"
