"""LlamaIndex's messages and responses: as snapshots for a trace, as JSON for recordings."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)

from harness_core.messages import Message, Reply
from harness_integrations.shared.snapshots import Said, as_json, plain, snapshots

_ROLES = {"function": "tool", "chatbot": "assistant", "model": "assistant"}
_FOLDERS = re.compile(r"(?m)^(file_path: ?)\S.*[\\/](?=[^\\/\n]+$)")


def snapshots_of(messages: Iterable[ChatMessage]) -> tuple[Message, ...]:
    """What the trace of a request keeps of its messages, and by which a replay finds it."""
    return snapshots(map(_said, messages))


def without_folders(text: str) -> str:
    """``text`` whose ``file_path`` header lines name the file alone, as on any other machine."""
    return _FOLDERS.sub(r"\1", text) if "file_path:" in text else text


def from_ours(messages: Iterable[Message]) -> list[ChatMessage]:
    """A reader's messages as LlamaIndex's."""
    return [ChatMessage(role=MessageRole(one.role), content=one.content) for one in messages]


def _said(message: ChatMessage) -> Said:
    role = str(MessageRole(message.role).value)
    more = message.additional_kwargs
    return Said(
        role=_ROLES.get(role, role),
        content=_content(message),
        name=more.get("name"),
        tool_calls=list(tool_calls_of(message)),
        tool_call_id=more.get("tool_call_id"),
    )


def _content(message: ChatMessage) -> str | list[Any]:
    blocks = [block for block in message.blocks if not isinstance(block, ToolCallBlock)]
    if all(isinstance(block, TextBlock) for block in blocks):
        return without_folders(message.content or "")
    return [_block(block) for block in blocks]


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": without_folders(block.text)}
    told = block.model_dump(exclude={"block_type", "path"}, exclude_none=True)
    if (path := getattr(block, "path", None)) is not None and Path(path).is_file():
        told["data"] = Path(path).read_bytes()  # by what it shows, not by where it lies
    return {"type": block.block_type, **told}


def tool_calls_of(message: ChatMessage) -> Iterator[tuple[str | None, str, Any]]:
    """The tool calls of a message: id, name and arguments."""
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    for block in blocks:
        yield block.tool_call_id, block.tool_name, _arguments(block.tool_kwargs)
    if blocks:
        return
    for call in message.additional_kwargs.get("tool_calls") or ():
        told = call if isinstance(call, Mapping) else plain(call)
        if isinstance(told, Mapping) and isinstance(told.get("function"), Mapping):
            function = told["function"]
            yield told.get("id"), function.get("name") or "", _arguments(function.get("arguments"))


def _arguments(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return given


class ResponseCodec:
    """A ``ChatResponse`` or ``CompletionResponse`` as JSON and back: data, nothing is executed."""

    def pack(self, reply: Reply) -> Any:
        """``reply.raw`` as JSON."""
        raw = reply.raw
        if not isinstance(raw, (ChatResponse, CompletionResponse)):
            return raw  # a recording's own: JSON already
        kind = "chat" if isinstance(raw, ChatResponse) else "completion"
        dumped = raw.model_dump(mode="json", warnings=False, fallback=plain, exclude={"delta"})
        return as_json({"llama_index": kind, "response": dumped})

    def unpack(self, stored: Any) -> ChatResponse | CompletionResponse | None:
        """A fresh response; None for what holds none, whose text is then all there is."""
        if not isinstance(stored, Mapping):
            return None
        if stored.get("llama_index") == "chat":
            return ChatResponse.model_validate(stored["response"])
        if stored.get("llama_index") == "completion":
            return CompletionResponse.model_validate(stored["response"])
        return _from_generations(stored)


def _from_generations(stored: Mapping[str, Any]) -> ChatResponse | None:
    """The response in a recording that LangChain's adapter made: its text and tool calls."""
    generations = stored.get("generations") or ()
    message = next((one["message"] for one in generations if one.get("message")), None)
    if message is None:
        return None
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "".join(
            part if isinstance(part, str) else str(part.get("text", "")) for part in content
        )
    calls = [(c.get("id"), c["name"], c["args"]) for c in message.get("tool_calls") or ()]
    return ChatResponse(message=spoken(content, calls))


def spoken(
    text: str, calls: Iterable[tuple[str | None, str, Any]] = (), **more: Any
) -> ChatMessage:
    """An assistant's message of a text and tool calls."""
    blocks: list[Any] = [TextBlock(text=text)] if text else []
    blocks += [
        ToolCallBlock(tool_call_id=call, tool_name=name, tool_kwargs=arguments)
        for call, name, arguments in calls
    ]
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks, additional_kwargs=more)


def as_chat(reply: Reply) -> ChatResponse:
    """A reply as a chat response, whichever way it was asked for first."""
    raw = reply.raw
    if isinstance(raw, ChatResponse):
        return raw
    if isinstance(raw, CompletionResponse):
        return ChatResponse(
            message=spoken(raw.text), raw=raw.raw, additional_kwargs=raw.additional_kwargs
        )
    return ChatResponse(message=spoken(reply.text), additional_kwargs=_counts(reply))


def as_completion(reply: Reply) -> CompletionResponse:
    """A reply as a completion response."""
    raw = reply.raw
    if isinstance(raw, CompletionResponse):
        return raw
    if isinstance(raw, ChatResponse):
        return CompletionResponse(
            text=reply.text, raw=raw.raw, additional_kwargs=raw.additional_kwargs
        )
    return CompletionResponse(text=reply.text, additional_kwargs=_counts(reply))


def _counts(reply: Reply) -> dict[str, Any]:
    read, written = reply.usage.input or 0, reply.usage.output or 0
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
