"""The outermost layer: a request id for everything, one form for every failure."""

import errno
import logging
import re
import time
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness_core.collections.faults import (
    CollectionFault,
    NotFoundError,
    TemporarilyUnavailableError,
    UnauthenticatedError,
)
from harness_core.collections.ids import new_request_id
from harness_integrations.engine.faults import MethodNotAllowedError, RequestTooLargeError
from harness_integrations.engine.service.bodies import (
    GoneError,
    SlowBodyError,
    UnsureBodyError,
    check_one_length,
)

log = logging.getLogger("harness_integrations.engine")

_CLIENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk: it may have room later
_SLASHES = re.compile(rb"%(?:2f|00)", re.IGNORECASE)


class Envelope:
    """Ids, headers and errors around ``app``; nothing a request does escapes it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sending = _Sending(scope, send)
        try:
            if _SLASHES.search(scope.get("raw_path", b"")):
                raise NotFoundError("there is nothing at this path")
            check_one_length(Headers(scope=scope))
            await self.app(scope, receive, sending)
        except GoneError:
            sending.status = sending.status or 499
        except Exception as error:  # the one place where a bug becomes a response
            fault = _as_fault(error)
            if fault.status == CollectionFault.status or fault is not error:
                log.exception("request %s failed", sending.request_id)
            elif isinstance(fault.__cause__, Exception):  # what it says may hold a secret
                log.warning(
                    "request %s: %s (%s)", sending.request_id, fault, type(fault.__cause__).__name__
                )
            if not sending.status:
                await error_response(fault, sending.request_id)(scope, receive, sending)
        finally:
            sending.report()


class _Sending:
    """The way out of one request: adds the headers every response has, keeps the status."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.request_id = new_request_id()
        self.status = 0
        self._scope, self._send, self._began = scope, send, time.monotonic()
        given = Headers(scope=scope).getlist("x-request-id")
        valid = len(given) == 1 and _CLIENT_ID.fullmatch(given[0])
        self._echoed = given[0] if valid else self.request_id
        scope.setdefault("state", {})["request_id"] = self.request_id

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-engine-request-id"] = self.request_id
            headers["x-request-id"] = self._echoed
            headers.setdefault("cache-control", "no-store")
            headers.setdefault("x-content-type-options", "nosniff")
        elif self._scope["method"] == "HEAD" and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)

    def report(self) -> None:
        """One line in the log; no header value but the checked id is in it."""
        log.info(
            "%s %s %s -> %s in %.0f ms", self.request_id, self._echoed, self._scope["method"],
            self.status, 1000 * (time.monotonic() - self._began),
        )  # fmt: skip


def error_response(fault: CollectionFault, request_id: str) -> JSONResponse:
    """A fault as a response."""
    return JSONResponse(fault.envelope(request_id), fault.status, headers_of(fault))


def headers_of(fault: CollectionFault) -> dict[str, str]:
    """The headers that a fault calls for."""
    headers: dict[str, str] = {}
    later: Any = fault.details.get("retry_after_seconds")
    if fault.retryable and isinstance(later, int):
        headers["retry-after"] = str(later)
    if isinstance(fault, UnauthenticatedError):
        headers["www-authenticate"] = "Bearer"
    if isinstance(fault, MethodNotAllowedError):
        headers["allow"] = fault.allow
    if isinstance(fault, (RequestTooLargeError, SlowBodyError, UnsureBodyError)):
        headers["connection"] = "close"
    return headers


def _as_fault(error: Exception) -> CollectionFault:
    if isinstance(error, CollectionFault):
        return error
    if isinstance(error, OSError) and error.errno in _FULL:
        return TemporarilyUnavailableError("store", retryable=True)
    return CollectionFault("an unexpected failure; keep the request id")
