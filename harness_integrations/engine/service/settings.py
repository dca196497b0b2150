"""How much the service takes on, and how long it waits."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from harness_integrations.engine.service.sources import Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """What the service waits by; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Limits of the service. Times are seconds, sizes bytes.

    An answer has ``answer_seconds`` from the end of its body, ``image_seconds`` with an image.
    ``running`` answers run at once and ``waiting`` more wait for their turn; the next is told to
    come back. With ``matches`` a cited source says which passage of it supports the answer; the
    contract's own server says so of none. A body may pause ``body_pause_seconds`` and take
    ``body_seconds``. ``sources`` are from where files may be fetched. A link to a text works for
    ``link_seconds`` and begins with ``public_url`` (None: as the request that asked for it).
    """

    answer_seconds: float = 45.0
    image_seconds: float = 90.0
    body_pause_seconds: float = 30.0
    body_seconds: float = 60.0
    running: int = 16
    waiting: int = 64
    matches: bool = False
    upload_bytes: int = 100 * 1024 * 1024
    sources: Sources = field(default_factory=Sources)
    link_seconds: float = 900.0
    public_url: str | None = None
    heartbeat_seconds: float = 15.0
    poll_seconds: float = 0.25
    clock: Clock = field(default_factory=Clock)
