"""LangChain's messages: as snapshots for a trace, and as JSON for caches and recordings."""

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatResult

from harness_core.messages import Message, Reply
from harness_integrations.shared.snapshots import Said, as_json, plain, snapshots

_ROLES = {"ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CHAT_ROLES = ("system", "developer", "assistant", "tool")
_OURS: dict[str, type[BaseMessage]] = {
    "assistant": AIMessage, "system": SystemMessage, "developer": SystemMessage,
}  # fmt: skip


def snapshots_of(messages: Iterable[BaseMessage]) -> tuple[Message, ...]:
    """What the trace of a request keeps of its messages, and by which a replay finds it."""
    return snapshots(map(_said, messages))


def _said(message: BaseMessage) -> Said:
    role = _ROLES.get(message.type.removesuffix("MessageChunk").lower(), "user")
    if isinstance(message, ChatMessage):
        role = message.role if message.role in _CHAT_ROLES else "user"
    calls: list[tuple[str | None, str, Any]] = []
    if isinstance(message, AIMessage):
        calls = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
        calls += [(c["id"], c["name"] or "", c["args"]) for c in message.invalid_tool_calls]
    tool = message if isinstance(message, ToolMessage) else None
    return Said(
        role=role,
        content=message.content,
        name=message.name,
        tool_calls=calls,
        tool_call_id=None if tool is None else tool.tool_call_id,
        more={"status": "error"} if tool is not None and tool.status == "error" else {},
    )


def from_ours(messages: Iterable[Message]) -> list[BaseMessage]:
    """A reader's messages as LangChain's."""
    return [_OURS.get(one.role, HumanMessage)(content=one.content) for one in messages]


def whole(message: BaseMessage) -> AIMessage:
    """A message, or the sum of a stream's chunks, as one whole AIMessage."""
    if isinstance(message, AIMessageChunk):
        message = message_chunk_to_message(message)
    if isinstance(message, AIMessage):
        return message
    return AIMessage(content=message.content, response_metadata=message.response_metadata)


class MessageCodec:
    """A ``ChatResult`` as JSON and back: validated data, nothing is executed."""

    def pack(self, reply: Reply) -> Any:
        """The generations of ``reply.raw``; ids made anew in every run are left out."""
        if not isinstance(reply.raw, ChatResult):
            return reply.raw  # a recording's own: JSON already
        generations = [
            {"message": packed(one.message), "info": one.generation_info}
            for one in reply.raw.generations
        ]
        return as_json({"generations": generations, "llm_output": reply.raw.llm_output})

    def unpack(self, stored: Any) -> ChatResult | None:
        """A fresh ``ChatResult``: no two share a message. None for what another client stored."""
        if not isinstance(stored, dict) or "generations" not in stored:
            return None
        return ChatResult(
            generations=[
                ChatGeneration(
                    message=AIMessage.model_validate(one["message"]), generation_info=one["info"]
                )
                for one in stored["generations"]
            ],
            llm_output=stored["llm_output"],
        )


def packed(message: BaseMessage) -> dict[str, Any]:
    """One reply message as JSON; a parsed object becomes the data it was parsed from."""
    dumped: dict[str, Any] = whole(message).model_dump(
        mode="json", exclude={"id"}, fallback=plain, warnings="none"
    )
    return dumped


def text_of(message: BaseMessage) -> str:
    """The text of a message, as plain ``str``."""
    return str(message.text)
