"""The one retry loop: which attempts are made, and how long it waits between them.

It decides and does no I/O: it yields an ``Attempt`` and is sent what ``Landed``, yields a ``Pause``
and is sent nothing.
"""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from itertools import count
from random import SystemRandom
from typing import Any, Protocol

from harness_core.clients.wire.credentials import Headers
from harness_core.flows.types import Pause

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
LONGEST_PAUSE = 60.0
"""Seconds; also the most that a server's Retry-After is obeyed for."""

_dice = SystemRandom()  # the operating system's: equal in no two processes, forked ones included


class Joiner(Protocol):
    """Takes the lines of a stream and gives the body that a plain reply would have had."""

    begun: bool

    def add(self, line: str, /) -> None: ...
    def whole(self) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One HTTP request to make; ``stream`` makes the joiner of its events."""

    url: str
    headers: Headers
    body: dict[str, Any]
    timeout: float
    stream: Callable[[], Joiner] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What became of an attempt. ``status`` is 0 without a response; ``text`` is an error's body.

    ``begun`` says that a part of the reply was already shown, so that it cannot be asked again;
    ``sent`` is False when no connection was made, so that nothing can have been billed.
    """

    status: int = 0
    body: Any = None
    text: str = ""
    retry_after: str | None = None
    begun: bool = False
    sent: bool = True
    cause: Exception | None = None

    @property
    def ok(self) -> bool:
        """Whether a whole reply is there."""
        return self.cause is None

    @property
    def quota(self) -> bool:
        """Whether the account is out of money: no wait helps."""
        return self.status == 429 and "insufficient_quota" in _error_words(self.text)

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        lost = self.status == 0 or self.status in RETRIED
        return not self.ok and lost and not self.quota


def arrived(status: int, text: str) -> Landed:
    """A successful response; one whose body is no JSON landed without a reply."""
    try:
        return Landed(status=status, body=json.loads(text))
    except (ValueError, RecursionError) as error:
        said = f"could not read the reply, it is no JSON: {text}"
        return Landed(status=status, text=said, cause=error)


def joined(joiner: Joiner) -> Landed:
    """A stream that was read to its end; one that ended early landed without a reply."""
    try:
        return Landed(status=200, body=joiner.whole(), begun=joiner.begun)
    except ValueError as error:
        return Landed(status=200, text=str(error), begun=joiner.begun, cause=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often a request is tried again, and the seconds its first pause is drawn around."""

    retries: int
    base: float


def attempts(
    attempt: Attempt, patience: Patience
) -> Generator[Attempt | Pause, Landed | None, tuple[Landed, int]]:
    """Try until one lands, is hopeless, or patience ends: the last one, and how many were made."""
    sent = False
    for made in count(1):
        landed = yield attempt
        if not isinstance(landed, Landed):
            raise TypeError("an attempt is answered with what landed")
        sent = sent or landed.sent
        if landed.begun or not landed.retryable or made > patience.retries:
            return replace(landed, sent=sent), made
        yield Pause(pause_after(made, landed.retry_after, patience.base))
    raise AssertionError("unreachable")


def pause_after(
    made: int, retry_after: str | None, base: float, draw: Callable[[], float] = _dice.random
) -> float:
    """Seconds before attempt ``made`` + 1: what the server asks, else by backoff with jitter.

    The backoff lies between half and all of a bound that doubles with each attempt.
    """
    try:
        asked = float(retry_after or "")
    except ValueError:
        asked = -1.0
    if asked >= 0:
        return min(asked, LONGEST_PAUSE)
    bound = min(base * 2.0 ** (made - 1), LONGEST_PAUSE)
    return bound * (0.5 + 0.5 * draw())


def _error_words(text: str) -> tuple[Any, ...]:
    try:
        error = json.loads(text)["error"]
        return error.get("code"), error.get("type")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()
