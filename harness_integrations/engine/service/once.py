"""Writes that are done once: a request sent again with its key is told what it was told before."""

import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from harness_core.collections.faults import InvalidRequestError, TemporarilyUnavailableError

if TYPE_CHECKING:
    from harness_core.collections.store import Store

log = logging.getLogger("harness_integrations.engine")

HEADER: Final = "idempotency-key"
REPLAYED: Final = "idempotency-replayed"
PATTERN: Final = "[!-~]{1,255}"
LEASE_SECONDS: Final = 120.0  # longer than a write takes once its body is there

_KEY = re.compile(PATTERN)


class Once:
    """A request with an idempotency key of the API key ``owner``; it hears the body as it comes."""

    def __init__(self, owner: str, key: str, request: Request) -> None:
        self._owner, self._key = owner, key
        self._receive = request.receive
        url, kind = request.url, request.headers.get("content-type", "")
        asked = f"{request.method} {url.path}?{url.query}\n{kind}\n"
        self._said = hashlib.sha256(asked.encode("utf-8", "surrogatepass"))

    async def receive(self) -> Message:
        """The next message of the request."""
        message = await self._receive()
        self._said.update(message.get("body", b""))
        return message

    async def reply(
        self,
        store: "Store",
        work: Callable[[], Awaitable[Response]],
        written: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> Response:
        """What ``work`` replies, or what it replied to this request before; a failure is not kept.

        ``written`` makes a change of the store.

        Raises:
            IdempotencyConflictError: the key stands for another request, or for one still at work.
        """
        name = self._owner, self._key
        digest = self._said.hexdigest()
        kept = await written(lambda: store.begin_once(*name, digest, LEASE_SECONDS))
        if kept is not None:
            headers = {REPLAYED: "true"}
            return Response(kept["body"], kept["status"], headers, kept["media_type"])
        told = None
        try:
            response = await work()
            told = {
                "status": response.status_code, "body": bytes(response.body).decode(),
                "media_type": response.media_type,
            }  # fmt: skip
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await written(lambda: store.end_once(*name, told))
                except TemporarilyUnavailableError:  # what was done is told all the same
                    log.warning("a reply could not be kept under its idempotency key")
        return response


def key_of(request: Request) -> str | None:
    """The idempotency key of a request.

    Raises:
        InvalidRequestError: it is given twice, or is not 1 to 255 visible ASCII characters.
    """
    given = request.headers.getlist(HEADER)
    if len(given) > 1 or not all(_KEY.fullmatch(one) for one in given):
        raise InvalidRequestError("Idempotency-Key is 1 to 255 visible ASCII characters, once")
    return given[0] if given else None
