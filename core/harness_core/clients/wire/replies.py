"""What a provider sent, read as a ``Reply``: both API shapes, field by exact field."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness_core.clients._numbers import token_count
from harness_core.clients.wire.retries import Landed
from harness_core.messages import Reply, Usage, clean_text, normalised_finish

SHOWN = 800
"""Characters of a provider's error body that an error quotes."""


def read_reply(body: Any, **known: Any) -> Reply:
    """The reply in a 2xx body; a failed one when it holds an error, a refusal or no text.

    ``known`` are the fields the caller knows: model, label, status, attempts.
    """
    try:
        return _read(body, known)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError) as error:
        return Reply.failed(
            f"could not read the reply: {type(error).__name__}: {error}", cause=error, **known
        )


def failure(landed: Landed) -> dict[str, Any]:
    """The fields that a failed reply and failed embeddings share."""
    said = clean_text(landed.text[:SHOWN])
    if landed.quota:
        error = f"the account's quota is used up (status 429): {said}"
    elif landed.status == 0:
        error = f"Transport error: {said}"
    else:
        error = f"status {landed.status}: {said}"
    return {
        "error": error,
        "status": landed.status,
        "retryable": landed.retryable,
        "sent": landed.sent,
        "cause": landed.cause,
    }


def error_in(body: Mapping[str, Any]) -> str | None:
    """The message of an ``error`` that came with a successful status."""
    error = body.get("error")
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("code") or "unnamed error"
    return clean_text(str(error))[:SHOWN] if error else None


def read_usage(body: Mapping[str, Any]) -> Usage:
    """The counts a provider reported; what is missing or no count is None."""
    usage = _mapping(body.get("usage"))
    of_input = usage.get("input_tokens_details", usage.get("prompt_tokens_details"))
    of_output = usage.get("output_tokens_details", usage.get("completion_tokens_details"))
    return Usage(
        input=token_count(usage.get("input_tokens", usage.get("prompt_tokens"))),
        output=token_count(usage.get("output_tokens", usage.get("completion_tokens"))),
        cached_input=token_count(_mapping(of_input).get("cached_tokens")),
        reasoning=token_count(_mapping(of_output).get("reasoning_tokens")),
    )


def _read(body: Any, known: dict[str, Any]) -> Reply:
    if not isinstance(body, Mapping):
        raise TypeError(f"a reply is a JSON object, not {type(body).__name__}")
    fields = {
        **known,
        "raw": body,
        "usage": read_usage(body),
        "finish_reason": _finish(body),
        "served_model": _text_or_none(body.get("model")),
        "response_id": _text_or_none(body.get("id")),
        "fingerprint": _text_or_none(body.get("system_fingerprint")),
    }
    if (error := error_in(body)) is not None:
        return Reply.failed(error, **fields)
    texts, refusals = _said(body)
    if refusals:
        said = clean_text(" ".join(refusals))[:200]
        return Reply.failed(f"the model refused: {said}", **fields | {"finish_reason": "refusal"})
    text = clean_text("".join(texts)).strip()
    if not text:
        return Reply.failed(
            f"empty completion (finish reason: {fields['finish_reason'] or 'none'})", **fields
        )
    return Reply(ok=True, text=text, **fields)


def _finish(body: Mapping[str, Any]) -> str | None:
    reason = body.get("status")
    if reason == "incomplete":
        reason = _mapping(body.get("incomplete_details")).get("reason") or reason
    if not isinstance(reason, str):
        reason = _choice(body).get("finish_reason")
    return normalised_finish(_text_or_none(reason))


def _said(body: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The first place that holds something: its texts and its refusals."""
    for place in (_output_text(body), _output(body), _message(body)):
        parts = list(place)
        if parts:
            texts = [text for kind, text in parts if kind == "text"]
            return texts, [text for kind, text in parts if kind == "refusal"]
    return [], []


Parts = Iterator[tuple[str, str]]


def _output_text(body: Mapping[str, Any]) -> Parts:
    text = body.get("output_text")
    for one in text if isinstance(text, list) else [text]:
        if isinstance(one, str) and one:
            yield "text", one


def _output(body: Mapping[str, Any]) -> Parts:
    items = body.get("output")
    for item in items if isinstance(items, list) else []:
        if _mapping(item).get("type", "message") == "message":
            yield from _content(_mapping(item).get("content"))


def _message(body: Mapping[str, Any]) -> Parts:
    message = _choice(body).get("message")
    if isinstance(message, str):
        yield "text", message
    if refusal := _mapping(message).get("refusal"):
        yield "refusal", str(refusal)
    yield from _content(_mapping(message).get("content"))


def _content(content: Any) -> Parts:
    if isinstance(content, str):
        yield "text", content
    for part in content if isinstance(content, list) else []:
        kind = _mapping(part).get("type")
        if kind == "refusal":
            yield "refusal", str(part.get("refusal") or "no reason given")
        elif kind in {"text", "output_text"} and isinstance(part.get("text"), str):
            yield "text", part["text"]


def _choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = body.get("choices")
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
