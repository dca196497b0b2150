"""Answer, search and read spans."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections.contract import (
    BODY_BYTES,
    SEARCH_BODY_BYTES,
    AnswerRequest,
    ReadSpansRequest,
    SearchRequest,
)
from harness_core.collections.faults import ForbiddenError
from harness_integrations.engine.service.calls import Call, reply
from harness_integrations.engine.service.links import linked
from harness_integrations.engine.service.running import bounded, in_turn

T = TypeVar("T")


async def answer(call: Call) -> Response:
    """An answer with its sources."""
    asked = await call.body(AnswerRequest, BODY_BYTES)
    image = asked.query_image is not None
    if image and call.key is not None and call.key.kind != "cluster":
        raise ForbiddenError("an image needs a cluster key")
    settings = call.service.settings
    caller = "" if call.key is None else call.key.id
    result = await in_turn(
        lambda waited: call.collection.aanswer(
            asked,
            request_id=call.request_id,
            matches=settings.matches,
            caller=caller,
            waited=waited,
        ),
        slots=call.service.slots,
        seconds=settings.image_seconds if image else settings.answer_seconds,
        receive=call.request.receive,
        settings=settings,
    )
    return _with_reasons(reply(result.wire()), result.partial_reasons)


async def search(call: Call) -> Response:
    """The places that fit a question, without an answer."""
    asked = await call.body(SearchRequest, SEARCH_BODY_BYTES)
    result = await _looked_up(call, partial(call.collection.search, asked))
    return _with_reasons(reply(result.wire()), result.partial_reasons)


async def read_spans(call: Call) -> Response:
    """The text at given places."""
    asked = await call.body(ReadSpansRequest, SEARCH_BODY_BYTES)
    read = call.collection.read_spans if asked.delivery == "inline" else partial(linked, call)
    result = await _looked_up(call, partial(read, asked))
    return reply(result.wire())


def _with_reasons(response: Response, reasons: Sequence[str]) -> Response:
    if reasons:
        response.headers["x-answer-partial"] = ",".join(reasons)
    return response


async def _looked_up(call: Call, look_up: Callable[..., T]) -> T:
    settings = call.service.settings
    work = partial(look_up, request_id=call.request_id)
    return await bounded(
        partial(run_sync, work, limiter=call.service.lookups),
        seconds=settings.answer_seconds,
        receive=call.request.receive,
        clock=settings.clock,
    )
