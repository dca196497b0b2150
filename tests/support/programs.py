"""Random programs of requests, an independent one-by-one account of each, and what compares them.

``expected`` knows nothing of the package: it is plain arithmetic over one request after another.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
from hypothesis import strategies as st

from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import governed
from harness_core.calls.governor import Governor
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, OnText
from harness_core.config import override
from harness_core.errors import AuthError
from harness_core.flows import sync, tasks
from harness_core.flows.ask import ask_all
from harness_core.flows.types import Flow
from harness_core.messages import Message, Reply, Request, Usage
from harness_core.models import register_model, unregister_model

# --- programs -----------------------------------------------------------------------------------

PRICES: dict[str, tuple[int, int] | None] = {  # USD per million tokens, input and output
    "cheap": (2, 8),
    "dear": (30, 60),
    "free": (0, 0),
    "unpriced": None,
}
Fate = Literal["ok", "cut", "answered 400", "lost", "auth", "bug"]
DriverName = Literal["threads", "asyncio", "trio"]


@dataclass(frozen=True)
class Kind:
    """One distinct request and what becomes of it. Sizes are shares of the bound, in percent."""

    words: int
    model: str
    cap: int
    read: int = 80
    written: int = 50
    fate: Fate = "ok"
    yields: int = 0

    @property
    def bound_in(self) -> int:
        return math.ceil((self.words + 5) * 1.1)

    @property
    def usage(self) -> tuple[int, int]:
        return self.bound_in * self.read // 100, self.cap * self.written // 100

    def price(self, read: int, written: int) -> int | None:
        rates = PRICES[self.model]
        return None if rates is None else 10**6 * (rates[0] * read + rates[1] * written)


@dataclass(frozen=True)
class Limits:
    max_calls: int | None = None
    max_cost_usd: float | None = None
    max_tokens_total: int | None = None
    max_output_tokens: int | None = None
    allowed_models: tuple[str, ...] | None = None
    allow_unpriced: bool = False


@dataclass(frozen=True)
class Program:
    kinds: tuple[Kind, ...]
    batches: tuple[tuple[int, ...], ...]
    limits: Limits = Limits()
    cached: bool = False
    width: int = 1


@dataclass
class Account:
    """What a run came to; a step is (kind, "sent" or "hit"), a refusal (kind, reason)."""

    calls: int = 0
    tokens: int = 0
    spent: int = 0
    steps: list[tuple[int, str]] = field(default_factory=list)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    stopped: str | None = None


# --- the one-by-one account -----------------------------------------------------------------------


def expected(program: Program) -> Account:
    """The program carried out one request after another."""
    account, stored = Account(), set[int]()
    for number in (number for batch in program.batches for number in batch):
        kind = program.kinds[number]
        hit = program.cached and number in stored
        if (reason := _refusal(kind, program.limits, account, hit=hit)) is not None:
            account.refusals.append((number, reason))
            continue
        account.steps.append((number, "hit" if hit else "sent"))
        account.calls += 1
        if hit:
            account.tokens += sum(kind.usage)
            continue
        _charge(kind, account)
        if kind.fate in ("auth", "bug"):
            account.stopped = kind.fate
            return account
        if kind.fate == "ok":
            stored.add(number)
    return account


def _refusal(  # noqa: PLR0911 - one line a limit
    kind: Kind, limits: Limits, account: Account, *, hit: bool
) -> str | None:
    if limits.allowed_models is not None and kind.model not in limits.allowed_models:
        return "model"
    if limits.max_output_tokens is not None and kind.cap > limits.max_output_tokens:
        return "output"
    if limits.max_calls is not None and account.calls + 1 > limits.max_calls:
        return "calls"
    tokens = sum(kind.usage) if hit else kind.bound_in + kind.cap
    cost = kind.price(kind.bound_in, kind.cap)
    if not hit and cost is None and limits.max_cost_usd is not None and not limits.allow_unpriced:
        return "unpriced"
    if limits.max_tokens_total is not None and account.tokens + tokens > limits.max_tokens_total:
        return "tokens"
    if hit or cost is None or limits.max_cost_usd is None:
        return None
    return "cost" if account.spent + cost > round(limits.max_cost_usd * 10**12) else None


def _charge(kind: Kind, account: Account) -> None:
    sizes = {
        "answered 400": (0, 0),
        "auth": (0, 0),
        "lost": (kind.bound_in, kind.cap),
        "bug": (kind.bound_in, kind.cap),
    }.get(kind.fate, kind.usage)
    account.tokens += sum(sizes)
    account.spent += kind.price(*sizes) or 0


# --- carrying it out for real ---------------------------------------------------------------------


class Bug(Exception):
    """What a broken client raises."""


class ProgramClient(BaseClient):
    """Replies as the program says, after a number of yield points; counts what it was sent."""

    api, base_url, identity, provider = "program", "program://", "program", True

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arrived: Counter[int] = Counter()
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        kind = self._begin(request)
        try:
            for _ in range(kind.yields):
                time.sleep(0)
            return self._reply(request, kind)
        finally:
            self._end()

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        kind = self._begin(request)
        try:
            for _ in range(kind.yields):
                await anyio.lowlevel.checkpoint()
            return self._reply(request, kind)
        finally:
            self._end()

    def _begin(self, request: Request) -> Kind:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        return self.program.kinds[int(request.label)]

    def _end(self) -> None:
        with self._lock:
            self._at_once -= 1

    def _reply(self, request: Request, kind: Kind) -> Reply:
        if kind.fate == "auth":
            raise AuthError("no key")
        if kind.fate == "bug":
            raise Bug("a bug")
        with self._lock:
            self.arrived[int(request.label)] += 1
        if kind.fate == "answered 400":
            return Reply.failed("bad request", status=400)
        if kind.fate == "lost":
            return Reply.failed("connection reset", status=0)
        read, written = kind.usage
        return Reply(
            ok=True,
            text=f"reply {request.label}",
            usage=Usage(input=read, output=written),
            finish_reason="length" if kind.fate == "cut" else "stop",
        )


def request(program: Program, number: int) -> Request:
    kind = program.kinds[number]
    words = " ".join([f"p{number}"] * kind.words)
    return Request(
        messages=(Message("user", words),),
        model=kind.model,
        max_output=kind.cap,
        label=str(number),
    )


def reading(program: Program) -> Flow[int]:
    done = 0
    for batch in program.batches:
        done += len((yield from ask_all(request(program, number) for number in batch)))
    return done


@contextmanager
def known_models() -> Iterator[None]:
    """The models of the programs, words for tokens, and no long wait."""
    for name, rates in PRICES.items():
        read, written = (None, None) if rates is None else rates
        register_model(
            name, context_window=10**6, max_output=10**5, input_usd=read, output_usd=written
        )
    try:
        with override(tokenizer="words", safety_margin=0.1, wait_seconds=60):
            yield
    finally:
        for name in PRICES:
            unregister_model(name)


@dataclass
class Outcome:
    trace: Trace
    client: ProgramClient
    error: BaseException | None


def governor(limits: Limits) -> Governor:
    return Governor(**vars(limits))


def drive(drive_: Any, driver: DriverName, width: int) -> Any:
    """One drive by the driver of that name."""
    if driver == "threads":
        return sync.run(drive_, width=width)
    return anyio.run(partial(tasks.arun, drive_, width=width), backend=driver)


def carry_out(program: Program, driver: DriverName, folder: Path) -> Outcome:
    """The program through the package."""
    trace, client = Trace(governor(program.limits)), ProgramClient(program)
    if program.cached:
        client.cache = ResponseCache(folder / "replies.sqlite3")
        client.cache.clear()
    error = None
    with known_models():
        try:
            drive(governed(reading(program), Run(client, trace)), driver, program.width)
        except (AuthError, Bug) as what:
            error = what
    if client.cache is not None:
        client.cache.close()
    return Outcome(trace, client, error)


# --- comparing ------------------------------------------------------------------------------------


def left_behind(trace: Trace, client: BaseClient) -> list[str]:
    """What must not be left when a run has ended, however it ended."""
    ledger = trace.ledger
    found = {
        "holds": len(ledger._holds),
        "tickets": len(ledger._queue),
        "open slots": len(trace._slots),
        "flights": len(client.cache._flights) if client.cache is not None else 0,
        "calls without a step": ledger.calls - len(trace.requests),
        "spent without a step": ledger.spent - sum(s.budget_pico or 0 for s in trace.requests),
    }
    return [f"{count} {what}" for what, count in found.items() if count]


def differences(program: Program, outcome: Outcome) -> list[str]:
    """How a run differs from the one-by-one account; none when it kept its promises."""
    trace, account = outcome.trace, expected(program)
    said = left_behind(trace, outcome.client)
    limit = program.limits.max_cost_usd
    if limit is not None and trace.ledger.spent > round(limit * 10**12):
        said.append(f"spent {trace.ledger.spent} over the limit")
    if outcome.client.most_at_once > program.width:
        said.append(f"{outcome.client.most_at_once} in flight at a width of {program.width}")
    steps = [(int(s.label), "hit" if s.cached else "sent") for s in trace.requests]
    stopped = {AuthError: "auth", Bug: "bug", type(None): None}[type(outcome.error)]
    if stopped != account.stopped:
        return [*said, f"stopped by {stopped}, not {account.stopped}"]
    if stopped is not None:  # what was in flight beside it landed and was kept
        if steps[: len(account.steps)] != account.steps:
            said.append(f"steps {steps} do not begin with {account.steps}")
        return said
    sent = Counter(number for number, how in account.steps if how == "sent")
    pairs = {
        "steps": (steps, account.steps),
        "numbers": ([s.step for s in trace.requests], [str(n + 1) for n in range(len(steps))]),
        "refusals": ([(int(r.label), r.reason) for r in trace.refusals], account.refusals),
        "calls": (trace.calls, account.calls),
        "tokens": (trace.ledger.tokens, account.tokens),
        "spent": (trace.ledger.spent, account.spent),
        "sent": (outcome.client.arrived, sent),
    }
    return said + [f"{what}: {is_} not {be}" for what, (is_, be) in pairs.items() if is_ != be]


# --- making them up -------------------------------------------------------------------------------


def kinds(fates: tuple[Fate, ...]) -> st.SearchStrategy[Kind]:
    return st.builds(
        Kind,
        words=st.integers(1, 40),
        model=st.sampled_from(["cheap", "cheap", "dear", "free", "unpriced"]),
        cap=st.integers(1, 60),
        read=st.integers(0, 100),
        written=st.integers(0, 100),
        fate=st.sampled_from(fates),
        yields=st.integers(0, 4),
    )


SURVIVABLE: tuple[Fate, ...] = ("ok", "ok", "ok", "cut", "answered 400", "lost")


@st.composite
def limits(draw: st.DrawFn, unlimited: Account) -> Limits:
    """Limits that bite: shares, in percent, of what the program takes without any."""

    def share(of: int) -> int | None:
        percent = draw(st.none() | st.integers(0, 130))
        return None if percent is None else of * percent // 100

    pico = share(unlimited.spent)
    return Limits(
        max_calls=draw(st.none() | st.just(share(unlimited.calls))),
        max_cost_usd=None if pico is None else pico / 10**12,
        max_tokens_total=share(unlimited.tokens),
        max_output_tokens=draw(st.none() | st.none() | st.just(45)),
        allowed_models=draw(st.none() | st.none() | st.just(("cheap", "free", "unpriced"))),
        allow_unpriced=draw(st.booleans()),
    )


@st.composite
def programs(draw: st.DrawFn, *, fates: tuple[Fate, ...] = SURVIVABLE) -> Program:
    made = tuple(draw(st.lists(kinds(fates), min_size=1, max_size=6)))
    batch = st.lists(st.integers(0, len(made) - 1), min_size=0, max_size=12).map(tuple)
    program = Program(
        kinds=made,
        batches=tuple(draw(st.lists(batch, min_size=1, max_size=3))),
        cached=draw(st.booleans()),
        width=draw(st.sampled_from([1, 2, 3, 4, 8, 16])),
    )
    return replace(program, limits=draw(limits(expected(program))))
