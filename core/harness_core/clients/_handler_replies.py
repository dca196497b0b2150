"""What a function returned, read as a ``Reply`` or as ``Embeddings``."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from harness_core.clients._numbers import token_count, unit_rows
from harness_core.messages import (
    Embeddings,
    Reply,
    Request,
    Texts,
    Usage,
    clean_text,
    normalised_finish,
)

_COUNTS: tuple[Any, ...] = ("input", "output", "reasoning", "cached_input")
_NOT_GIVEN_BY_HANDLERS = {"refused", "reason", "cached", "step", "label", "attempts", "sent"}
_REPLY_FIELDS = {one.name for one in fields(Reply)} - _NOT_GIVEN_BY_HANDLERS


def as_reply(result: Any, request: Request, model: str) -> Reply:
    """What a handler returned, as a reply: text, a ``Reply``, a mapping, or the error it raised.

    A mapping of reply fields is a reply, any other mapping is the JSON that a schema asked for.
    """
    known: dict[str, Any] = {"label": request.label, "attempts": 1, "sent": True}
    if isinstance(result, Exception):
        return Reply.failed(
            f"{type(result).__name__}: {result}",
            model=model, usage=Usage(output=0), cause=result, **known,
        )  # fmt: skip
    if isinstance(result, Mapping):
        result = _from_mapping(result, request)
    if isinstance(result, Sequence) and all(isinstance(part, str) for part in result):
        result = Reply(ok=True, text=result if isinstance(result, str) else "\n".join(result))
    if not isinstance(result, Reply):
        said = f"a handler returns text, a Reply or a mapping, not {type(result).__name__}"
        return Reply.failed(said, model=model, usage=Usage(output=0), **known)
    return _settled(replace(result, model=result.model or model, **known))


def as_embeddings(result: Any, request: Texts, model: str) -> Embeddings:
    """What an embedding function returned, as embeddings: rows of numbers, or its error."""
    known: dict[str, Any] = {"model": model, "label": request.label}
    if isinstance(result, Exception):
        said = f"{type(result).__name__}: {result}"
        return Embeddings(ok=False, error=said, cause=result, **known)
    try:
        return Embeddings(ok=True, vectors=unit_rows(result, len(request.texts)), **known)
    except ValueError as error:
        return Embeddings(ok=False, error=f"unusable embeddings: {error}", **known)


def _from_mapping(given: Mapping[Any, Any], request: Request) -> Reply | str:
    asked = (request.schema or {}).get("properties") or {}
    is_reply = set(given) <= _REPLY_FIELDS and not given.keys().isdisjoint({"text", "error"})
    if not is_reply or (asked and set(given) <= set(asked)):
        return json.dumps(given, ensure_ascii=False)
    usage = given.get("usage")
    if isinstance(usage, Mapping):
        counts: dict[str, Any] = {name: usage.get(name) for name in _COUNTS}
        usage = Usage(**counts)
    if not isinstance(usage, Usage):
        usage = Usage()
    return Reply(**{"ok": not given.get("error"), **given, "usage": usage})


def _settled(reply: Reply) -> Reply:
    """``reply`` with valid text, believable counts, a normalised finish; no text is a failure."""
    text = clean_text(str(reply.text))
    counts: dict[str, Any] = {name: token_count(getattr(reply.usage, name)) for name in _COUNTS}
    reply = replace(
        reply,
        text=text if reply.ok else "",
        usage=replace(reply.usage, **counts),
        finish_reason=normalised_finish(reply.finish_reason),
    )
    if not reply.ok or text.strip():
        return reply
    spent = replace(reply.usage, output=reply.usage.output or 0)
    return replace(
        reply, ok=False, text="", error="empty completion",
        finish_reason=reply.finish_reason or "empty", usage=spent,
    )  # fmt: skip
