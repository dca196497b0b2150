"""The vocabulary of flows: what a reader yields, and what the call path yields to a driver.

A reader is a generator. It yields a batch of requests and is sent one outcome per request, in
order; it yields ``Work`` to have a slow function run, ``Pause`` to let time pass. It does no I/O.
"""

from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from harness_core.client import Client
from harness_core.messages import Asked, Outcome

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """Slow CPU or file work; inline in a sync run, a worker thread in an async one.

    The function must not send. The flow is resumed with what it returns.
    """

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Say:
    """The text of a final reply that needed no sending: whoever listens hears it in one piece."""

    text: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Let ``seconds`` pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Inside:
    """Where a request is being sent: its trace and number, and its place among all sent ones."""

    trace: object
    number: str
    issue: int


inside: ContextVar[Inside | None] = ContextVar("inside", default=None)
"""Set around a send alone: a request made meanwhile, in this context, is made inside that one."""


class Ticket(Protocol):
    """Something to wait for. ``join`` never blocks, so ledgers serve threads and loops alike."""

    def join(self, wake: Callable[[], None], /) -> bool:
        """Have ``wake`` called once, from any thread; False: nothing to wait for, look again."""

    def leave(self) -> None:
        """Stop waiting; harmless when not waiting."""

    @property
    def seconds(self) -> float:
        """How long to wait at the most."""


@dataclass(frozen=True, slots=True)
class Send:
    """The only I/O: give ``request`` to ``client``."""

    client: Client
    request: Asked
    inside: Inside


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a ticket. Answered False where waiting is impossible, else True: look again."""

    ticket: Ticket


class Admitted:
    """Said once by an exchange: all is decided, the rest may run in a worker."""


ADMITTED: Final = Admitted()


@dataclass(frozen=True, slots=True)
class Place:
    """An admitted exchange for a worker; ``in_order`` ones run where they are, one at a time."""

    flow: "Drive[Outcome]"
    in_order: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """Exchanges, pulled one by one as workers come free; a ``Wait`` among them means: not now.

    ``width`` lets fewer of them be in flight at once than the driver would.
    """

    places: Generator[Place | Wait, bool | None, None]
    size: int
    width: int | None = None


Flow: TypeAlias = Generator[tuple[Asked, ...] | Work | Pause, Any, T]
"""What a reader is."""

Drive: TypeAlias = Generator[Batch | Send | Say | Work | Wait | Pause | Admitted, Any, T]
"""What a driver runs."""
