"""Reading a body: its headers first, never more than its limit, never for longer than its time."""

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
from starlette.datastructures import Headers
from starlette.types import Receive

from harness_core.collections.faults import CollectionFault, InvalidRequestError
from harness_integrations.engine.faults import RequestTooLargeError
from harness_integrations.engine.service.settings import ServiceSettings
from harness_integrations.engine.service.strict_json import parse_body

_JSON = re.compile(r'application/json *(; *charset="?utf-8"? *)?', re.IGNORECASE)
_LENGTH = re.compile(r"[0-9]{1,18}")
_INLINE: Final = 65_536


class SlowBodyError(InvalidRequestError, code="invalid_request"):
    """The body took too long to arrive; the connection is closed."""


class UnsureBodyError(InvalidRequestError, code="invalid_request"):
    """The body has two lengths: what stands before this service may read the other one."""


class GoneError(CollectionFault, code="gone"):
    """The client has left; nothing can be told to it."""


async def json_body(
    headers: Headers, receive: Receive, limit: int, settings: ServiceSettings
) -> Any:
    """The JSON value of a body of at most ``limit`` bytes.

    Raises:
        InvalidRequestError: another content type or encoding, no strict JSON, too slow.
        RequestTooLargeError: over the limit; nothing is read when its length is declared.
    """
    if not _JSON.fullmatch(_only(headers, "content-type")):
        raise InvalidRequestError("send the body as Content-Type: application/json")
    check_plain(headers)
    body = bytearray()
    async for piece in body_pieces(headers, receive, limit, settings):
        body += piece
    if len(body) <= _INLINE:
        return parse_body(bytes(body))
    return await anyio.to_thread.run_sync(parse_body, bytes(body))


def check_one_length(headers: Headers) -> None:
    """Raise where a body is declared both by its length and by its chunks."""
    if "content-length" in headers and "transfer-encoding" in headers:
        raise UnsureBodyError("a body has a length or a transfer encoding, not both")


def check_plain(headers: Headers) -> None:
    """Raise where the body is compressed: a small one could unfold to anything."""
    if _only(headers, "content-encoding").strip().lower() not in ("", "identity"):
        raise InvalidRequestError("the body is sent without a content encoding")


async def body_pieces(
    headers: Headers, receive: Receive, limit: int, settings: ServiceSettings
) -> AsyncIterator[bytes]:
    """The pieces of a body as they arrive.

    Raises:
        RequestTooLargeError: over ``limit`` bytes, declared or counted.
        SlowBodyError: a pause or the whole took too long.
        GoneError: the client left.
    """
    _check_length(headers, limit)
    clock = settings.clock
    seen, ends = 0, clock.now() + settings.body_seconds
    more = True
    while more:
        seconds = min(settings.body_pause_seconds, ends - clock.now())
        message = await _next(receive, seconds, settings)
        if message["type"] == "http.disconnect":
            raise GoneError("the client left before its body was read")
        piece: bytes = message.get("body", b"")
        seen += len(piece)
        if seen > limit:
            raise RequestTooLargeError(limit)
        more = message.get("more_body", False)
        yield piece


def _check_length(headers: Headers, limit: int) -> None:
    declared = headers.get("content-length")
    if declared is not None and (not _LENGTH.fullmatch(declared) or int(declared) > limit):
        raise RequestTooLargeError(limit)


def _only(headers: Headers, name: str) -> str:
    given = headers.getlist(name)
    if len(given) > 1:
        raise InvalidRequestError(f"the header {name} is given once")
    return given[0] if given else ""


async def _next(receive: Receive, seconds: float, settings: ServiceSettings) -> Any:
    """The next message, unless the clock runs out first."""
    if seconds <= 0:
        raise SlowBodyError("the body took too long to arrive")
    found: list[Any] = []
    async with anyio.create_task_group() as group:

        async def give_up() -> None:
            await settings.clock.sleep(seconds)
            group.cancel_scope.cancel()

        group.start_soon(give_up)
        found.append(await receive())
        group.cancel_scope.cancel()
    if not found:
        raise SlowBodyError("the body took too long to arrive")
    return found[0]
