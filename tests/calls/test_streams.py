"""A stream is one exchange: held while it is open, settled at what arrived when it ends early."""

import gc
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import exchange
from harness_core.calls.governor import Governor
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.flows import sync
from harness_core.flows.streaming import ABANDONED, HeldBack, astream, stream
from harness_core.flows.types import inside
from harness_core.messages import Message, Reply, Request
from tests.support.programs import known_models, left_behind


class Spelling(BaseClient):
    """Streams the words it was given."""

    model, api, base_url, identity, provider = "cheap", "spelling", "spelling://", "s", True

    def __init__(self, *words: str, fails_after: int | None = None) -> None:
        self.words = words
        self.fails_after = fails_after
        self.closed = False
        self.sent = 0
        self.was_inside: list[bool] = []

    def stream(self, request: Request, /) -> Generator[str, None, None]:
        self.sent += 1
        try:
            for number, word in enumerate(self.words):
                if number == self.fails_after:
                    raise ConnectionError("broken")
                self.was_inside.append(inside.get() is not None)
                yield word
            if self.fails_after == len(self.words):
                raise ConnectionError("broken")
        finally:
            self.closed = True

    async def astream(self, request: Request, /) -> AsyncGenerator[str, None]:
        for word in self.stream(request):
            await anyio.lowlevel.checkpoint()
            yield word

    def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
        return joined(list(self.stream(request)), True)


def joined(pieces: Sequence[Any], whole: bool) -> Reply:
    return Reply(ok=True, text=" ".join(pieces), finish_reason="stop" if whole else None)


REQUEST = Request(messages=(Message("user", "a b c"),), max_output=10)
BOUND = (9 * 2 + 10 * 8) * 10**6


@pytest.fixture(autouse=True)
def _models() -> Any:
    with known_models():
        yield


def opened(client: BaseClient, trace: Trace) -> Generator[Any, None, Reply]:
    return stream(exchange(REQUEST, Run(client, trace), streamed=True), joined)


def exhausted(pieces: Generator[Any, None, Reply]) -> tuple[list[str], Reply]:
    heard = []
    while True:
        try:
            heard.append(next(pieces))
        except StopIteration as end:
            return heard, end.value


def test_a_stream_is_joined_into_the_reply_that_is_kept() -> None:
    trace, client = Trace(), Spelling("It", "rose.")
    heard, reply = exhausted(opened(client, trace))
    assert heard == ["It", "rose."]
    assert (reply.text, reply.step, reply.usage.provenance) == ("It rose.", "1", "bound")
    assert trace.steps[0].response == "It rose."
    assert trace.ledger.spent == BOUND, "a provider's reply without usage is charged at its bound"
    assert client.was_inside == [True, True]
    assert inside.get() is None
    assert left_behind(trace, client) == []


def test_a_stream_that_was_never_started_holds_nothing() -> None:
    trace, client = Trace(), Spelling("x")
    pieces = opened(client, trace)
    pieces.close()
    assert (trace.calls, client.sent, trace.ledger.held) == (0, 0, 0)


def test_a_stream_that_is_closed_early_is_settled_at_what_arrived() -> None:
    trace, client = Trace(), Spelling("It", "rose.")
    pieces = opened(client, trace)
    assert next(pieces) == "It"
    assert trace.ledger.held == 1
    pieces.close()
    (step,) = trace.steps
    assert (step.response, step.finish_reason, step.cancelled) == ("It", ABANDONED, True)
    assert (step.tokens.input, step.tokens.output, step.tokens.provenance) == (3, 1, "estimated")
    assert trace.ledger.spent == (3 * 2 + 8) * 10**6
    assert client.closed
    assert left_behind(trace, client) == []


def test_an_abandoned_stream_is_settled_when_it_is_collected() -> None:
    trace, client = Trace(), Spelling("It", "rose.")
    pieces = opened(client, trace)
    next(pieces)
    del pieces
    gc.collect()
    assert trace.steps[0].finish_reason == ABANDONED
    assert left_behind(trace, client) == []


@pytest.mark.parametrize(("after", "spent"), [(0, BOUND), (1, (3 * 2 + 8) * 10**6)])
def test_a_stream_that_breaks_is_settled_and_its_error_raised(after: int, spent: int) -> None:
    trace, client = Trace(), Spelling("It", "rose.", fails_after=after)
    with pytest.raises(ConnectionError):
        exhausted(opened(client, trace))
    assert trace.ledger.spent == spent
    assert len(trace.steps) == 1
    assert left_behind(trace, client) == []


def test_an_open_stream_is_waited_for_by_nobody() -> None:
    trace, client = Trace(Governor(max_cost_usd=1.5 * BOUND / 10**12)), Spelling("It", "rose.")
    pieces = opened(client, trace)
    next(pieces)
    assert sync.run(exchange(REQUEST, Run(client, trace))).reason == "cost"
    exhausted(pieces)


def test_an_open_stream_neither_leads_nor_joins_a_flight(tmp_path: Path) -> None:
    client = Spelling("It", "rose.").with_cache(ResponseCache(tmp_path / "c.sqlite3"))
    trace = Trace()
    pieces = opened(client, trace)
    next(pieces)
    assert not sync.run(exchange(REQUEST, Run(client, trace))).cached
    exhausted(pieces)
    heard, reply = exhausted(opened(client, trace))
    assert (heard, reply.cached, reply.text) == ([], True, "It rose.")
    assert left_behind(trace, client) == []


def test_a_cut_stream_is_never_cached_whatever_its_client_says(tmp_path: Path) -> None:
    client = Spelling("It", "rose.").with_cache(ResponseCache(tmp_path / "c.sqlite3"))
    pieces = opened(client, Trace())
    next(pieces)
    pieces.close()
    assert client.cache.stats().entries == 0


def test_a_refused_stream_gives_its_refusal_without_pieces() -> None:
    heard, reply = exhausted(opened(Spelling("x"), Trace(Governor(max_calls=0))))
    assert (heard, reply.reason) == ([], "calls")


def test_a_client_that_cannot_stream_gives_its_one_reply() -> None:
    class Whole(BaseClient):
        model = "cheap"

        def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
            return Reply(ok=True, text="whole")

    pieces = stream(
        exchange(REQUEST, Run(Whole(), Trace()), streamed=True), lambda given, _whole: given[0]
    )
    assert exhausted(pieces)[1].text == "whole"


@pytest.mark.anyio
async def test_an_async_stream_ends_with_its_reply() -> None:
    trace, client = Trace(), Spelling("It", "rose.")
    pieces = [
        p async for p in astream(exchange(REQUEST, Run(client, trace), streamed=True), joined)
    ]
    assert pieces[:2] == ["It", "rose."]
    assert pieces[2].text == "It rose."
    assert client.was_inside == [True, True]
    assert left_behind(trace, client) == []


@pytest.mark.anyio
async def test_an_async_stream_that_is_closed_early_is_settled_at_what_arrived() -> None:
    trace, client = Trace(), Spelling("It", "rose.")
    pieces = astream(exchange(REQUEST, Run(client, trace), streamed=True), joined)
    assert await anext(pieces) == "It"
    await pieces.aclose()
    assert trace.steps[0].finish_reason == ABANDONED
    assert left_behind(trace, client) == []


@pytest.mark.anyio
async def test_a_cancelled_async_stream_is_settled() -> None:
    trace, client = Trace(), Spelling("It", "rose.")
    with anyio.CancelScope() as scope:
        async for _ in astream(exchange(REQUEST, Run(client, trace), streamed=True), joined):
            scope.cancel()
    assert trace.steps[0].response == "It"
    assert left_behind(trace, client) == []


@pytest.mark.parametrize(
    ("pieces", "heard"),
    [
        (["NOT_IN", "_DOCUMENT"], ""),
        (["**not in ", "document**"], ""),
        (["NOT_IN_DOCUMENT", ": no such figure"], ""),
        (["No"], "No"),
        (["Not in", "variably."], "Not invariably."),
        (["It ", "rose."], "It rose."),
    ],
)
def test_a_sentinel_is_never_streamed_and_everything_else_is(pieces: list[str], heard: str) -> None:
    said: list[str] = []
    on_text = HeldBack(said.append)
    for piece in pieces:
        on_text(piece)
    on_text.end()
    assert "".join(said) == heard
