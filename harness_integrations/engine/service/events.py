"""What happens in a collection, as server-sent events that can be resumed."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from starlette.responses import Response, StreamingResponse

from harness_core.collections.faults import (
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    UnauthenticatedError,
)
from harness_integrations.engine.service.calls import Call

AT_ONCE: Final = 100
_NUMBER = re.compile(r"[0-9]{1,18}")
_ENDED: Final = (NotFoundError, UnauthenticatedError, ForbiddenError)


async def stream_events(call: Call) -> Response:
    """A ``snapshot``, then events as they happen; ``Last-Event-ID`` resumes after that one."""
    given = call.request.headers.get("last-event-id")
    if given is not None and not _NUMBER.fullmatch(given):
        raise InvalidRequestError("Last-Event-ID is the id of an event")
    after = await run_sync(call.collection.last_event) if given is None else int(given)
    return StreamingResponse(_stream(call, after), media_type="text/event-stream")


async def _stream(call: Call, after: int) -> AsyncIterator[str]:
    service = call.service
    yield _event("snapshot", (await run_sync(call.collection.info)).wire(), after)
    quiet = 0.0
    while not service.stopping:
        try:
            found = await run_sync(_next, call, after)
        except _ENDED:  # the collection is gone, or what the key permits
            return
        for one in found:
            after = one.seq
            yield _event(one.type, {**one.payload, "at": one.at}, after)
        quiet = 0.0 if found else quiet + service.settings.poll_seconds
        if quiet >= service.settings.heartbeat_seconds:
            quiet = 0.0
            yield ": still here\n\n"
        if len(found) < AT_ONCE:
            await anyio.sleep(service.settings.poll_seconds)


def _next(call: Call, after: int) -> Any:
    call.identify()
    call.require("read")
    return call.collection.events(after, AT_ONCE)


def _event(kind: str, data: Any, seq: int) -> str:
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(data, default=dict)}\n\n"
