"""Messages as a question with its history, and an answer as a message with citations."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import PromptValue

from harness_core.collections.contract import AnswerRequest, AnswerResult, Source
from harness_core.errors import BadSettingError
from harness_core.ranking.sentences import sentence_spans
from harness_integrations.langchain.collection_filters import collection_filter

CollectionInput: TypeAlias = str | Mapping[str, Any] | Sequence[BaseMessage] | PromptValue

_MARKER = re.compile(r" ?\[\[(SRC:[0-9]{4,})\]\]")
_SAID = re.compile(r"[^\s.,;:!?\u2026\u3002\uff01\uff1f]")
_UNSAID = ("reasoning",)  # blocks of a reply that are no part of what it says


def asked(given: CollectionInput) -> dict[str, Any]:
    """The members of a request, as far as the question, the mapping or the messages say them.

    Raises:
        BadSettingError: it is none of these, or they have no place in a request.
    """
    if isinstance(given, str):
        return {"query": given}
    if isinstance(given, Mapping):
        return _of_mapping(given)
    messages = given.to_messages() if isinstance(given, PromptValue) else given
    if not isinstance(messages, (list, tuple)) or not all(
        isinstance(one, BaseMessage) for one in messages
    ):
        raise BadSettingError("ask with a question, a mapping, or messages")
    return _of_messages(messages)


def _of_mapping(given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [str(name) for name in given if name not in AnswerRequest.model_fields]
    if unknown:
        raise BadSettingError(f"a question has no {', '.join(sorted(unknown))}")
    said = dict(given)
    return said | ({"filter": collection_filter(said["filter"])} if "filter" in said else {})


def _of_messages(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    system = [_text(one) for one in messages if isinstance(one, SystemMessage)]
    turns = [one for one in messages if not isinstance(one, SystemMessage)]
    if not turns or not isinstance(turns[-1], HumanMessage):
        raise BadSettingError("the last message is the question: a human one")
    image = _image(turns[-1])
    told: dict[str, Any] = {
        "query": _text(turns[-1], but="image"),
        "history": [{"role": _role(one), "content": _text(one)} for one in turns[:-1]],
        "instructions": "\n\n".join(system),
        "query_image": image,
    }
    return {name: value for name, value in told.items() if value or name == "query"}


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage) and not message.tool_calls:
        return "assistant"
    raise BadSettingError(f"a {message.type} message or a tool call has no place in a history")


def _text(message: BaseMessage, *, but: str | None = None) -> str:
    other = {block["type"] for block in message.content_blocks} - {"text", but, *_UNSAID}
    if other:
        raise BadSettingError(f"a collection is asked with text, not with {', '.join(other)}")
    return str(message.text)


def _image(message: BaseMessage) -> dict[str, Any] | None:
    """The one image of a question, whose bytes the message holds."""
    images: list[Any] = [block for block in message.content_blocks if block["type"] == "image"]
    if not images:
        return None
    if len(images) > 1 or not images[0].get("base64"):
        raise BadSettingError("a question has at most one image, as base64 and not as an address")
    return {"data": images[0]["base64"], "media_type": images[0].get("mime_type")}


def answer_message(result: AnswerResult) -> AIMessage:
    """An answer as a message: markers become citations of the text before them."""
    text, begin, end = "", 0, 0
    citations: list[dict[str, Any]] = []
    by_ref = {one.ref: one for one in result.sources}
    for found in _MARKER.finditer(result.answer):
        before = result.answer[end : found.start()]
        last = sentence_spans(before)[-1][0] if before.strip() else 0
        if said := _SAID.search(before, last):
            begin = len(text) + said.start()
        text, end = text + before, found.end()
        if (source := by_ref.get(found[1])) is not None:
            citations.append(_citation(source, begin, len(text)))
    block: dict[str, Any] = {
        "type": "text", "text": text + result.answer[end:], "annotations": citations
    }  # fmt: skip
    return AIMessage(
        content=[block],
        response_metadata={
            "request_id": result.request_id,
            "effort": result.effort,
            "credits": result.usage.credits,
            "partial_reasons": result.partial_reasons,
        },
    )


def _citation(source: Source, begin: int, end: int) -> dict[str, Any]:
    """The citation of a source by ``begin`` to ``end`` of the answer's own text."""
    known = [one.text for one in source.matches or () if one.text]
    return {
        "type": "citation", "start_index": begin, "end_index": end, "title": source.path,
        "extras": {"ref": source.ref, "span": source.span.wire(), "score": source.score},
        **({"cited_text": known[0]} if known else {}),
    }  # fmt: skip
