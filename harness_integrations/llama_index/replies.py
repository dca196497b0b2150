"""What a LlamaIndex LLM gave back, read as a ``Reply``; the pieces of a stream joined to one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)

from harness_core.messages import Reply, Usage, clean_text
from harness_integrations.shared.failures import Broken, of_stream
from harness_integrations.shared.finishes import read_finish, read_word
from harness_integrations.shared.usage import read_usage

Response = ChatResponse | CompletionResponse
_FINISHES = (
    "finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason", "status",
    "incomplete_details",
)  # fmt: skip


def read_response(response: Response, **more: Any) -> Reply:
    """The reply in a response: its text, and the facts its provider reports."""
    return Reply(ok=True, text=text_of(response), raw=response, **{**_facts([response]), **more})


def joined(pieces: Sequence[Any], _whole: bool) -> Reply:
    """One reply from the pieces of a stream, also of one that broke or was closed early."""
    said = [piece for piece in pieces if not isinstance(piece, Broken)]
    whole = joined_response(said)
    return of_stream(Reply(ok=True, text=text_of(whole), raw=whole, **_facts(said)), pieces)


def text_of(response: Response) -> str:
    """The text of a response."""
    if isinstance(response, CompletionResponse):
        return clean_text(response.text)
    return clean_text(response.message.content or "")


def joined_response(pieces: Sequence[Response]) -> Response:
    """The pieces of a stream as one response; their deltas make the text."""
    text = "".join(piece.delta or "" for piece in pieces)
    if not pieces:
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, blocks=[]))
    last = pieces[-1]
    more = next((p.additional_kwargs for p in reversed(pieces) if p.additional_kwargs), {})
    if isinstance(last, CompletionResponse):
        return CompletionResponse(text=text or last.text, raw=last.raw, additional_kwargs=more)
    chats = [piece for piece in pieces if isinstance(piece, ChatResponse)]
    text = text or last.message.content or ""
    blocks = [*([TextBlock(text=text)] if text else []), *_other_blocks(chats)]
    kept = [c.message.additional_kwargs for c in chats if c.message.additional_kwargs]
    message = ChatMessage(
        role=last.message.role, blocks=blocks, additional_kwargs=kept[-1] if kept else {}
    )
    return ChatResponse(message=message, raw=last.raw, additional_kwargs=more)


def _other_blocks(pieces: Iterable[ChatResponse]) -> list[Any]:
    """The newest state of every block that is not text: calls by their id, others by their kind."""
    newest: dict[object, Any] = {}
    for piece in pieces:
        for number, block in enumerate(piece.message.blocks):
            if isinstance(block, ToolCallBlock):
                newest[block.tool_call_id or ("call", number)] = block
            elif not isinstance(block, TextBlock):
                newest[block.block_type] = block
    return list(newest.values())


def _facts(pieces: Sequence[Response]) -> dict[str, Any]:
    """Usage, finish reason, model and ids, each from the last piece that tells it."""
    facts: dict[str, Any] = {"usage": Usage()}
    for piece in pieces[-8:]:  # a finish comes before the usage, both at the end
        facts |= {name: value for name, value in _told(piece).items() if value is not None}
    return facts


def _told(response: Response) -> dict[str, Any]:
    raw = response.raw
    raw = _get(raw, "response") or raw  # an event of a stream of the Responses API
    usage = next(
        (
            found
            for one in _usages(response, raw)
            if one is not None and (found := read_usage(one)).input is not None
        ),
        None,
    )
    return {
        "usage": usage,
        "finish_reason": _finish(response, raw),
        "served_model": read_word(_get(raw, "model") or _get(raw, "model_version")),
        "response_id": read_word(_get(raw, "id")),
        "fingerprint": read_word(_get(raw, "system_fingerprint")),
    }


def _usages(response: Response, raw: Any) -> Iterable[Any]:
    yield _get(raw, "usage")
    yield _get(raw, "usage_metadata")
    yield response.additional_kwargs.get("usage")
    if isinstance(response, ChatResponse):
        yield response.message.additional_kwargs.get("usage")
    counts = response.additional_kwargs
    if counts.get("prompt_tokens") or counts.get("completion_tokens"):
        yield counts


def _finish(response: Response, raw: Any) -> str | None:
    choices = _get(raw, "choices")
    source = choices[0] if isinstance(choices, Sequence) and choices else raw
    found = {name: _get(source, name) for name in _FINISHES}
    if isinstance(response, ChatResponse):
        found["stop_reason"] = found["stop_reason"] or response.message.additional_kwargs.get(
            "stop_reason"
        )
    reason = read_finish(found)
    return {"completed": "stop", "in_progress": None}.get(reason or "", reason)


def _get(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
