"""Progress is read off the trace."""

from typing import Any

import pytest

from harness_core.calls.api import call
from harness_core.calls.exchange import governed
from harness_core.calls.governor import Governor
from harness_core.calls.progress import Progress
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.flows import sync
from harness_core.flows.ask import ask_all
from harness_core.messages import Message, Request


def requests(n: int, **more: Any) -> list[Request]:
    return [
        Request(messages=(Message("user", f"q {k}"),), label="map.answer", **more) for k in range(n)
    ]


@pytest.mark.parametrize("width", [1, 3])
def test_progress_counts_what_has_landed_refused_or_could_not_be_sent(width: int) -> None:
    heard: list[Progress] = []
    trace = Trace(Governor(max_calls=3))
    run = Run(MockClient(concurrent=True), trace, heard.append)
    sync.run(governed(ask_all(requests(4, model="priced")), run), width=width)
    assert [(p.stage, p.done, p.total) for p in heard] == [
        ("map.answer", done, 4) for done in range(5)
    ]
    assert heard[0].spent == 0
    assert heard[-1].spent == trace.spent_usd > 0
    heard.clear()
    long = [Request(messages=(Message("user", "word " * 200),), model="tiny", label="map.answer")]
    sync.run(governed(ask_all(long), Run(MockClient(), Trace(), heard.append)))
    assert heard[-1].done == 1


def test_the_cost_is_unknown_once_tokens_went_to_a_model_without_a_price() -> None:  # core 155
    heard: list[Progress] = []
    mixed = [*requests(1, model="priced"), *requests(1, model="no-price")]
    sync.run(governed(ask_all(mixed), Run(MockClient(), Trace(), heard.append)))
    assert [p.spent is None for p in heard] == [False, False, True]


def test_whatever_a_callback_raises_nothing_is_lost() -> None:
    def broken(_progress: Progress) -> None:
        if _progress.done:
            raise LookupError("a bug in a callback")

    trace = Trace()
    with pytest.raises(LookupError):
        sync.run(governed(ask_all(requests(1)), Run(MockClient(), trace, broken)))
    assert (len(trace.steps), trace.ledger.held, trace.calls) == (1, 0, 1)


def test_a_callback_may_send_requests_itself() -> None:
    trace = Trace()

    def asking(progress: Progress) -> None:
        if progress.done == 1:
            assert call(MockClient(), "how far?", trace=trace).ok

    sync.run(governed(ask_all(requests(2)), Run(MockClient(), trace, asking)), width=2)
    assert trace.calls == 3
