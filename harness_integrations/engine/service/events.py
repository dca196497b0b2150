"""What happens in a collection, as server-sent events that can be resumed."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.responses import Response, StreamingResponse

from harness_core.collections.faults import InvalidRequestError
from harness_integrations.engine.service.calls import Call

_NUMBER = re.compile(r"[0-9]{1,18}")


async def stream_events(call: Call) -> Response:
    """A ``snapshot``, then events as they happen; ``Last-Event-ID`` resumes after that one."""
    given = call.request.headers.get("last-event-id")
    if given is not None and not _NUMBER.fullmatch(given):
        raise InvalidRequestError("Last-Event-ID is the id of an event")
    after = await _newest(call) if given is None else int(given)
    return StreamingResponse(_stream(call, after), media_type="text/event-stream")


async def _newest(call: Call) -> int:
    seq = 0
    while found := await run_sync(call.collection.events, seq, 1000):
        seq = found[-1].seq
    return seq


async def _stream(call: Call, after: int) -> AsyncIterator[str]:
    service = call.service
    yield _event("snapshot", (await run_sync(call.collection.info)).wire(), after)
    quiet = 0.0
    while not service.stopping:
        found = await run_sync(call.collection.events, after)
        for one in found:
            after = one.seq
            yield _event(one.type, {**one.payload, "at": one.at}, after)
        quiet = 0.0 if found else quiet + service.settings.poll_seconds
        if quiet >= service.settings.heartbeat_seconds:
            quiet = 0.0
            yield ": still here\n\n"
        await anyio.sleep(service.settings.poll_seconds)


def _event(kind: str, data: Any, seq: int) -> str:
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(data, default=dict)}\n\n"
