"""What a run has spent, and what its requests in flight may still cost.

A request's worst case is *held* before it is sent; when the reply is there the hold becomes its
price. A request goes out when it fits beside everything spent and held; it is refused when it does
not fit beside what is spent alone; between the two it waits until something has landed. So holds
never pass a limit, and a parallel run decides what a sequential one would.

Counts are integers: requests, tokens, pico-dollars.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Self

from harness_core.calls.governor import Limits, Reason, Refusal, dollars, plain
from harness_core.config import setting
from harness_core.flows.types import Wait, inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The most one request could take: tokens and pico-dollars (None: no price known)."""

    label: str
    model: str
    tokens: int
    pico: int | None
    prompt_tokens: int = 0
    output: int = 0
    priced: bool = True
    replay_key: str = ""
    draw_index: int = 0

    def refused(self, reason: Reason, message: str) -> Refusal:
        """The request, refused."""
        return Refusal(
            reason=reason,
            message=message,
            label=self.label,
            model=self.model,
            replay_key=self.replay_key,
            draw_index=self.draw_index,
            bound_tokens=self.tokens,
            bound_pico=self.pico,
        )


class Hold:
    """A request's worst case, held until it is settled. A context manager that never leaks."""

    __slots__ = ("demand", "ledger", "run", "streamed")

    def __init__(self, ledger: "Ledger", demand: Demand, run: object, *, streamed: bool) -> None:
        self.ledger = ledger
        self.demand = demand
        self.run = run
        self.streamed = streamed

    def settle(self, *, tokens: int, pico: int | None) -> None:
        """Replace the hold by what the request took; once."""
        self.ledger.settle(self, tokens=tokens, pico=pico)

    def lose(self) -> None:
        """Charge the whole bound: the request was sent and nothing is known of it."""
        self.settle(tokens=self.demand.tokens, pico=self.demand.pico)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.ledger.release(self)  # does nothing to a settled one


class Blocked:
    """A place in the ledger's queue; the head is woken when something has landed."""

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger
        self._until: float | None = None
        self.version = -1
        self.wake: Callable[[], None] | None = None

    def join(self, wake: Callable[[], None], /) -> bool:
        """Take a place and be woken; False when the ledger has moved meanwhile."""
        if self._until is None:
            self._until = time.monotonic() + float(setting("wait_seconds"))
        return self._ledger.join(self, wake)

    def leave(self) -> None:
        """Give the place up."""
        self._ledger.leave(self)

    @property
    def seconds(self) -> float:
        """How much longer to wait."""
        return math.inf if self._until is None else max(0.0, self._until - time.monotonic())


class _Obstacle(NamedTuple):
    """The first limit that a request is not certain to pass; ``certain``: it cannot pass it."""

    certain: bool
    refuse: "Callable[[Demand, Limits, Ledger], Refusal]"


@dataclass(slots=True, eq=False)
class _Traffic:
    """What is on its way on one account, and who waits for it; ``lock`` guards all its ledgers."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    holds: dict[int, Hold] = field(default_factory=dict)
    queue: deque[Blocked] = field(default_factory=deque)
    version: int = 0


class Ledger:
    """One account: requests made, tokens and money spent and held. Thread-safe, loop-free.

    One with a ``parent`` has a part in its account: tokens, money and holds count together, while
    its limit of requests sees its own alone.
    """

    def __init__(self, parent: "Ledger | None" = None) -> None:
        self.chain: tuple[Ledger, ...] = (self, *(parent.chain if parent is not None else ()))
        self.account = self.chain[-1]
        self.traffic: _Traffic = _Traffic() if parent is None else parent.traffic
        self._lock, self._holds = self.traffic.lock, self.traffic.holds
        self._queue = self.traffic.queue
        self.calls = 0
        self.tokens = 0
        self.spent = 0
        self.replayed = 0
        self.unpriced = False  # tokens went to a model without a price: ``spent`` is a floor

    @property
    def held(self) -> int:
        """How many requests are held."""
        return len(self._holds)

    @property
    def held_pico(self) -> int:
        """Pico-dollars held."""
        return sum(hold.demand.pico or 0 for hold in list(self._holds.values()))

    def add(self, *, calls: int = 0, tokens: int = 0, spent: int = 0, replayed: int = 0) -> None:
        """Count what happened elsewhere: a recording's steps, another trace's run."""
        with self._lock:
            for ledger in self.chain:
                ledger.calls += calls
                ledger.tokens += tokens
                ledger.spent += spent
                ledger.replayed += replayed
            self._moved()

    def charge(self, calls: int) -> None:
        """Count requests against this ledger's limit that its account has counted before."""
        with self._lock:
            self.calls += calls

    def permit(self, demand: Demand, limits: Limits) -> Refusal | None:
        """The limits that need no hold, looked at before a cache is asked."""
        allowed = limits.allowed_models
        if allowed is not None and demand.model not in allowed:
            return demand.refused(
                "model",
                f"model not allowed: {demand.model!r} is not one of {', '.join(sorted(allowed))}, "
                f"so the {demand.label!r} request was not sent; change allowed_models to send it",
            )
        most = limits.max_output_tokens
        if most is not None and demand.output > most:
            return demand.refused(
                "output",
                f"output cap too large: the {demand.label!r} request asks for up to "
                f"{demand.output} reply tokens and max_output_tokens is {most}, so it was not "
                "sent; ask for a smaller max_output or raise the limit",
            )
        if limits.max_calls is not None and self.calls + 1 > limits.max_calls:
            return _over_calls(demand, limits, self)
        return None

    def hopeless(self, demand: Demand, limits: Limits) -> Refusal | None:
        """Why a request could not be sent even if all in flight had cost nothing; holds nothing."""
        with self._lock:
            obstacle = self._obstacle(demand, limits)
            certain = obstacle is not None and obstacle.certain
            return obstacle.refuse(demand, limits, self) if obstacle and certain else None

    def hold(
        self, demand: Demand, limits: Limits, run: object, *, streamed: bool = False
    ) -> Generator[Wait, bool | None, Hold | Refusal]:
        """Hold a request's worst case, or say why not.

        Waits where only other holds are in the way, first in, first out. A ``run`` that has
        requests in flight takes what fits, past the queue; a request made inside another, and one
        that cannot wait, takes what fits or is refused at once.
        """
        ticket: Blocked | None = None
        patient = inside.get() is None
        try:
            while True:
                taken = self._try(demand, limits, run, ticket, patient=patient, streamed=streamed)
                if not isinstance(taken, Blocked):
                    return taken
                ticket = taken
                patient = (yield Wait(ticket)) is not False
        finally:
            if ticket is not None:
                self.leave(ticket)

    def count(
        self, demand: Demand, limits: Limits, run: object, *, replayed: int = 0
    ) -> Generator[Wait, bool | None, Refusal | None]:
        """Count a request that was answered without sending: its call and its tokens."""
        held = yield from self.hold(demand, limits, run)
        if isinstance(held, Refusal):
            return held
        self.settle(held, tokens=demand.tokens, pico=0, replayed=replayed)
        return None

    def _try(
        self,
        demand: Demand,
        limits: Limits,
        run: object,
        ticket: Blocked | None,
        *,
        patient: bool,
        streamed: bool,
    ) -> Hold | Refusal | Blocked:
        with self._lock:
            obstacle = self._obstacle(demand, limits)
            if obstacle is not None and (obstacle.certain or not patient):
                return obstacle.refuse(demand, limits, self)
            if obstacle is None and (not patient or self._next_in_line(ticket, run)):
                hold = Hold(self, demand, run, streamed=streamed)
                self._holds[id(hold)] = hold
                return hold
            ticket = ticket or Blocked(self)
            if ticket.seconds <= 0:
                return _busy(demand)
            ticket.version = self.traffic.version
            return ticket

    def _next_in_line(self, ticket: Blocked | None, run: object) -> bool:
        queue = self._queue
        return not queue or queue[0] is ticket or any(h.run is run for h in self._holds.values())

    def _obstacle(self, demand: Demand, limits: Limits) -> _Obstacle | None:
        """The limits in their order; open streams, which nobody waits for, count as spent."""
        account = self.account
        calls, tokens, pico = self.calls, account.tokens, account.spent + account.replayed
        cost = demand.pico
        more_calls = more_tokens = more_pico = 0
        for hold in self._holds.values():
            mine = self in hold.ledger.chain
            if hold.streamed:
                calls, tokens = calls + mine, tokens + hold.demand.tokens
                pico += hold.demand.pico or 0
            else:
                more_calls, more_tokens = more_calls + mine, more_tokens + hold.demand.tokens
                more_pico += hold.demand.pico or 0
        most_pico = limits.max_pico
        unpriced = not demand.priced and most_pico is not None and not limits.allow_unpriced
        for most, taken, held, refuse in (
            (limits.max_calls, calls + 1, more_calls, _over_calls),
            (-1 if unpriced else None, 0, 0, _unpriced),
            (limits.max_tokens_total, tokens + demand.tokens, more_tokens, _over_tokens),
            (None if cost is None else most_pico, pico + (cost or 0), more_pico, over_cost),
        ):
            if most is not None and taken + held > most:
                return _Obstacle(taken > most, refuse)
        return None

    def settle(self, hold: Hold, *, tokens: int, pico: int | None, replayed: int = 0) -> None:
        """Replace a hold by what it took; once. ``pico`` None: no price is known."""
        with self._lock:
            if self._holds.pop(id(hold), None) is None:
                return
            for ledger in self.chain:
                ledger.calls += 1
                ledger.tokens += tokens
                ledger.spent += pico or 0
                ledger.unpriced = ledger.unpriced or pico is None
                ledger.replayed += replayed
            self._moved()

    def release(self, hold: Hold) -> None:
        """Drop the hold of a request that was never sent."""
        with self._lock:
            if self._holds.pop(id(hold), None) is not None:
                self._moved()

    def join(self, ticket: Blocked, wake: Callable[[], None]) -> bool:
        """Queue a ticket; False when it is first and the ledger has moved since it looked."""
        with self._lock:
            if ticket not in self._queue:
                self._queue.append(ticket)
            ticket.wake = wake
            return not (self._queue[0] is ticket and ticket.version != self.traffic.version)

    def leave(self, ticket: Blocked) -> None:
        """Take a ticket out of the queue; the next one looks."""
        with self._lock:
            if ticket in self._queue:
                self._queue.remove(ticket)
                self._moved()

    def _moved(self) -> None:
        self.traffic.version += 1
        if self._queue and (wake := self._queue[0].wake) is not None:
            self._queue[0].wake = None
            wake()


def _over_calls(demand: Demand, limits: Limits, _ledger: Ledger) -> Refusal:
    return demand.refused(
        "calls",
        f"call cap reached: the run has made its {limits.max_calls} requests, so the "
        f"{demand.label!r} request was not sent; raise max_calls to send it",
    )


def _over_tokens(demand: Demand, limits: Limits, _ledger: Ledger) -> Refusal:
    return demand.refused(
        "tokens",
        f"token limit reached: the {demand.label!r} request could take up to {demand.tokens} "
        f"tokens, which the limit of {limits.max_tokens_total} tokens leaves no room for, so it "
        "was not sent; raise max_tokens_total or ask for a smaller max_output",
    )


def over_cost(demand: Demand, limits: Limits, ledger: Ledger) -> Refusal:
    """The refusal of a request that could pass the spending limit."""
    spent = (ledger.account.spent + ledger.account.replayed) / 1e12
    most = plain(limits.max_cost_usd or 0)
    held = ledger.held_pico / 1e12
    flight = f" and holds ${dollars(held)} for requests in flight," if held else ""
    return demand.refused(
        "cost",
        f"spending limit reached: the {demand.label!r} request could cost up to "
        f"${dollars((demand.pico or 0) / 1e12)} (up to {demand.prompt_tokens} prompt tokens, and "
        f"{demand.output} reply tokens at its cap), and the run has spent ${dollars(spent)} of its "
        f"${most} limit,{flight} so it was not sent; raise max_cost_usd or ask for a smaller "
        "max_output",
    )


def _unpriced(demand: Demand, limits: Limits, _ledger: Ledger) -> Refusal:
    return demand.refused(
        "unpriced",
        f"unpriced model: {demand.model!r} has no registered price, so what the {demand.label!r} "
        f"request costs cannot be held to the ${plain(limits.max_cost_usd or 0)} spending limit, "
        "and it was not sent; register its prices with register_model(), or send it unpriced with "
        "allow_unpriced=True (HARNESS_ALLOW_UNPRICED=yes)",
    )


def _busy(demand: Demand) -> Refusal:
    waited = float(setting("wait_seconds"))
    return demand.refused(
        "ledger_busy",
        f"budget busy: the {demand.label!r} request waited {waited:g} seconds for other runs on "
        "the same budget and was not sent; raise wait_seconds or the limit",
    )
