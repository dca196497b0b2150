"""A request as the JSON body of one of the two API shapes."""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from harness_core.messages import Image, Message, Request

Body = dict[str, Any]
_Parts: TypeAlias = Callable[[str, str], list[Body]]

CAPS = ("max_output_tokens", "max_completion_tokens", "max_tokens")
"""The fields in which one API or the other takes the output cap."""


def chat_body(request: Request, model: str, extra: Mapping[str, Any]) -> Body:
    """The body of a Chat Completions request; ``extra`` is the client's own addition."""
    body: Body = {"model": model, "messages": _said(request, request.messages, _chat_parts)}
    if request.schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": _format(request)}
    if request.stop:
        body["stop"] = list(request.stop)
    return _completed(body, request, extra, chat=True)


def responses_body(request: Request, model: str, extra: Mapping[str, Any]) -> Body:
    """The body of a Responses request; system messages become the instructions."""
    rules = [one.content for one in request.messages if one.role in {"system", "developer"}]
    rest = [one for one in request.messages if one.role not in {"system", "developer"}]
    body: Body = {"model": model, "input": _said(request, rest, _response_parts)}
    if rules:
        body["instructions"] = "\n\n".join(rules)
    if request.schema is not None:
        body["text"] = {"format": {"type": "json_schema", **_format(request)}}
    return _completed(body, request, extra, chat=False)


def merged(body: Mapping[str, Any], extra: Mapping[str, Any]) -> Body:
    """``extra`` laid over ``body``, mapping by mapping; a null takes the field away."""
    result = dict(body)
    for name, value in extra.items():
        below = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def _said(request: Request, messages: Sequence[Message], parts: _Parts) -> list[Body]:
    """The messages; an image of the request is beside the text of the last one."""
    said, image = [_plain(one) for one in messages], request.payload
    if said and isinstance(image, Image):
        url = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
        said[-1]["content"] = parts(said[-1]["content"], url)
    return said


def _chat_parts(text: str, url: str) -> list[Body]:
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]


def _response_parts(text: str, url: str) -> list[Body]:
    return [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": url}]


def _plain(message: Message) -> Body:
    return {**(message.more or {}), "role": message.role, "content": message.content}


def _format(request: Request) -> Body:
    return {"name": request.schema_name, "strict": True, "schema": request.schema}


def _completed(body: Body, request: Request, extra: Mapping[str, Any], *, chat: bool) -> Body:
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.n > 1:
        body["n"] = request.n
    whole = merged(merged(body, extra), request.extra_body)
    whole["model"] = body["model"]  # it was bound, and will be priced, as this one
    _set_cap(whole, request, chat=chat)
    if request.effort is not None and chat:
        whole["reasoning_effort"] = request.effort
    elif request.effort is not None:
        whole["reasoning"] = {**whole.get("reasoning", {}), "effort": request.effort}
    return whole


def _set_cap(whole: Body, request: Request, *, chat: bool) -> None:
    """One cap field alone: the one a caller named, else the API's own, at what was bound."""
    named = {name: whole.pop(name) for name in CAPS if name in whole}
    value = (
        request.max_output if request.max_output is not None else next(iter(named.values()), None)
    )
    if value is not None:
        whole[next(iter(named), None) or _cap_field(whole["model"], chat=chat)] = value


def _cap_field(model: str, *, chat: bool) -> str:
    from harness_core.models.registry import model_info

    if not chat:
        return "max_output_tokens"
    return "max_completion_tokens" if model_info(model).reasoning else "max_tokens"
