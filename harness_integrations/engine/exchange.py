"""One request of the client, decided without sending: what goes out, what a response means.

``exchange`` is a generator of what to do next (a ``Call``, or seconds to wait), so that the sync
and the async client differ in nothing else.
"""

import json
import math
import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from harness_core.collections.contract import Asked
from harness_core.collections.faults import CollectionFault, InvalidRequestError
from harness_integrations.engine.faults import (
    ProtocolError,
    RequestTooLargeError,
    TransportError,
    fault_of,
)

ATTEMPTS: Final = 3
_PASSING: Final = (502, 503, 504)
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_LEAST: Final = 0.001  # a socket takes no timeout of none left


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to send. ``seconds`` is how long its response may take."""

    path: str
    body: bytes | None
    seconds: float
    method: str = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What came back: a response, or the name of what went wrong on the way (``failed``)."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    failed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A success: the JSON object, and why it is partial, in the words of the header."""

    body: dict[str, Any]
    partial: tuple[str, ...] = ()


Exchange: TypeAlias = Generator[Call | float, Landed | None, Told]


def encoded(asked: Asked, limit: int) -> bytes:
    """A body as it is sent: UTF-8 and no escapes, which would double its size.

    Raises:
        InvalidRequestError: it holds a lone surrogate, a value that JSON has no form for, or too
            many levels.
        RequestTooLargeError: it is over ``limit`` bytes.
    """
    try:
        body = asked.model_dump(exclude_unset=True)  # as it is: mode="json" makes null of NaN
        written = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        sent = written.encode("utf-8")
    except (ValueError, TypeError, RecursionError):  # UnicodeEncodeError is a ValueError
        raise InvalidRequestError("the request holds what JSON in UTF-8 cannot say", "") from None
    if len(sent) > limit:
        raise RequestTooLargeError(limit)
    return sent


def exchange(
    call: Call, *, attempts: int, max_seconds: float | None, clock: Callable[[], float]
) -> Exchange:
    """Send ``call``, again where the failure permits it, and give what came back.

    All of it takes at most ``max_seconds``: a pause that would not fit is not begun, nor one of
    over a minute, whoever asks for it.

    Raises:
        CollectionFault: the class of the library for the fault; ``TransportError`` where no
            envelope came back, ``ProtocolError`` where a success is not JSON.
    """
    end = clock() + (math.inf if max_seconds is None else max_seconds)
    for attempt in range(1, attempts + 1):
        landed = yield replace(call, seconds=min(call.seconds, max(_LEAST, end - clock())))
        assert landed is not None  # noqa: S101 - a call is answered
        fault = _fault(landed)
        if fault is None:
            reasons = landed.headers.get("x-answer-partial", "").split(",")
            return Told(body=_object(landed.content), partial=tuple(filter(None, reasons)))
        pause = _pause(fault, landed, attempt)
        if (
            not fault.retryable
            or attempt == attempts
            or pause >= min(end - clock(), _LONGEST_PAUSE)
        ):
            raise fault
        yield pause
    raise AssertionError("unreachable: the last attempt returns or raises")


def _fault(landed: Landed) -> CollectionFault | None:
    if landed.failed is not None:
        return TransportError(f"the service was not reached: {landed.failed}", retryable=True)
    if 200 <= landed.status < 300:
        return None
    error = _error(landed.content)
    if error is not None:
        return fault_of(landed.status, error)
    fault = TransportError(
        f"something before the service answered with status {landed.status}",
        retryable=landed.status in _PASSING,
    )
    vars(fault)["status"] = landed.status
    return fault


def _error(content: bytes) -> Mapping[str, Any] | None:
    """The error of an envelope; None where the body is none."""
    try:
        error = json.loads(content).get("error")
    except (ValueError, AttributeError, RecursionError):
        return None
    return error if isinstance(error, dict) and isinstance(error.get("code"), str) else None


def _object(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        raise ProtocolError("the response is not JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("the response is not a JSON object")
    return value


def _pause(fault: CollectionFault, landed: Landed, attempt: int) -> float:
    """Seconds to wait: what the service asks for, and never less than the backoff."""
    backoff: float = _FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
    asked = [landed.headers.get("retry-after"), fault.details.get("retry_after_seconds")]
    return max(backoff, *map(_seconds, asked))


def _seconds(value: Any) -> float:
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return 0.0
