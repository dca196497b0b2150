"""What a LangChain model gave back, read as a ``Reply``; and pieces of a stream joined to one."""

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from harness_core.messages import Reply, clean_text
from harness_integrations.langchain.messages import text_of, whole
from harness_integrations.shared.failures import of_stream
from harness_integrations.shared.finishes import read_finish, read_word
from harness_integrations.shared.usage import read_usage


def read_result(result: ChatResult) -> Reply:
    """The reply in a chat result: text and usage of the first generation, which all share."""
    if not result.generations:
        return Reply.failed("the model gave no generation", raw=result)
    first = result.generations[0]
    metadata = {
        **(result.llm_output or {}),
        **(first.generation_info or {}),
        **first.message.response_metadata,
    }
    return read_message(first.message, metadata, raw=result)


def read_message(
    message: BaseMessage, metadata: dict[str, Any] | None = None, **more: Any
) -> Reply:
    """The reply that one message is; ``metadata`` defaults to the message's own."""
    known = message.response_metadata if metadata is None else metadata
    usage = getattr(message, "usage_metadata", None) or known.get("token_usage")
    return Reply(
        ok=True,
        text=clean_text(text_of(message)),
        usage=read_usage(usage or known.get("usage")),
        finish_reason=read_finish(known),
        served_model=read_word(known.get("model_name") or known.get("model")),
        response_id=read_word(known.get("id")) or _provider_id(message.id),
        fingerprint=read_word(known.get("system_fingerprint")),
        **more,
    )


def from_cache(message: BaseMessage) -> bool:
    """Whether LangChain's cache answered: the one mark it leaves is a cost of zero."""
    usage = getattr(message, "usage_metadata", None) or {}
    return "total_cost" in usage and usage["total_cost"] == 0


def result_of(reply: Reply) -> ChatResult:
    """The chat result behind a reply; one made of its text where another client recorded it."""
    if isinstance(reply.raw, ChatResult):
        return reply.raw
    usage = reply.usage
    metadata = {
        "finish_reason": reply.finish_reason,
        "model_name": reply.served_model or reply.model,
    }
    message = AIMessage(
        content=reply.text,
        response_metadata=metadata,
        usage_metadata={
            "input_tokens": usage.input or 0,
            "output_tokens": usage.output or 0,
            "total_tokens": (usage.input or 0) + (usage.output or 0),
        },
    )
    return ChatResult(generations=[ChatGeneration(message=message)])


def joined(pieces: Sequence[Any], _whole: bool) -> Reply:
    """One reply from the chunks of a stream, also of one that broke or was closed early."""
    chunks = [piece for piece in pieces if isinstance(piece, ChatGenerationChunk)]
    result = joined_result(chunks)
    return of_stream(read_result(result) if chunks else Reply(ok=True, raw=result), pieces)


def joined_result(chunks: Sequence[ChatGenerationChunk]) -> ChatResult:
    """The chunks of a stream as one result; without chunks, one without generations."""
    if not chunks:
        return ChatResult(generations=[])
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    message = whole(total.message)
    return ChatResult(
        generations=[ChatGeneration(message=message, generation_info=total.generation_info)]
    )


def chunks_of(result: ChatResult, *, words: bool = False) -> Iterator[ChatGenerationChunk]:
    """A whole result as the chunks of a stream: its text (by words if wanted), then the rest.

    Their sum is the result's first message. Tool calls come name first, their arguments after.
    """
    generation = result.generations[0]
    message = generation.message
    said = message if isinstance(message, AIMessage) else whole(message)
    for piece in _pieces(said, words=words):
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    for number, call in enumerate(said.tool_calls):
        arguments = _arguments(call["args"])
        for piece in (
            tool_call_chunk(name=call["name"], args="", id=call["id"], index=number),
            tool_call_chunk(args=arguments, index=number),
        ):
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="" if isinstance(said.content, str) else [],
            additional_kwargs=said.additional_kwargs,
            response_metadata={**(result.llm_output or {}), **said.response_metadata},
            usage_metadata=said.usage_metadata,
            chunk_position="last",
        ),
        generation_info=generation.generation_info,
    )


def _pieces(message: AIMessage, *, words: bool) -> Iterator[Any]:
    import re

    if isinstance(message.content, str):
        if message.content:
            yield from re.findall(r"\S+\s*|\s+", message.content) if words else [message.content]
        return
    calls = ("tool_call", "tool_use", "function_call")
    for number, block in enumerate(message.content):
        if isinstance(block, str):
            yield [{"type": "text", "text": block, "index": number}]
        elif block.get("type") not in calls:
            yield [{**block, "index": block.get("index", number)}]


def _arguments(arguments: Any) -> str:
    import json

    return json.dumps(arguments, ensure_ascii=False)


def _provider_id(given: str | None) -> str | None:
    """A message's id when the provider made it: LangChain's own begin with ``lc_`` or ``run``."""
    return None if given is None or given.startswith(("lc_", "lc-", "run-", "run_")) else given
