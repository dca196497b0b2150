"""Answer, search and read spans."""

from functools import partial
from typing import Any

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
from harness_integrations.engine.service.running import bounded, in_turn


async def answer(call: Call) -> Response:
    """An answer with its sources."""
    asked = await call.body(AnswerRequest, BODY_BYTES)
    image = asked.query_image is not None
    if image and call.key is not None and call.key.kind != "cluster":
        raise ForbiddenError("an image needs a cluster key")
    settings = call.service.settings
    result = await in_turn(
        partial(call.collection.aanswer, asked, request_id=call.request_id),
        slots=call.service.slots,
        seconds=settings.image_seconds if image else settings.answer_seconds,
        receive=call.request.receive,
        settings=settings,
    )
    response = reply(result.wire())
    if result.partial_reasons:
        response.headers["x-answer-partial"] = ",".join(result.partial_reasons)
    return response


async def search(call: Call) -> Response:
    """The places that fit a question, without an answer."""
    asked = await call.body(SearchRequest, SEARCH_BODY_BYTES)
    return await _looked_up(call, partial(call.collection.search, asked))


async def read_spans(call: Call) -> Response:
    """The text at given places."""
    asked = await call.body(ReadSpansRequest, SEARCH_BODY_BYTES)
    return await _looked_up(call, partial(call.collection.read_spans, asked))


async def _looked_up(call: Call, look_up: Any) -> Response:
    settings = call.service.settings
    work = partial(look_up, request_id=call.request_id)
    result = await bounded(
        partial(run_sync, work, abandon_on_cancel=True),
        seconds=settings.answer_seconds,
        receive=call.request.receive,
        clock=settings.clock,
    )
    return reply(result.wire())
