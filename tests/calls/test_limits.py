"""Six limits, each checked before a request is sent."""

import math
from typing import Any

import pytest

from harness_core.calls.ambient import governed_run, trace_for
from harness_core.calls.api import call
from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import governed
from harness_core.calls.governor import Governor
from harness_core.calls.ledger import Demand
from harness_core.calls.prepare import prepare
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.clients.callable import CallableClient
from harness_core.clients.mock import MockClient
from harness_core.config import configure, override
from harness_core.errors import BadSettingError, RequestRefused, UnknownModelError
from harness_core.flows import sync
from harness_core.flows.ask import ask_all, ask_vectors
from harness_core.flows.types import Flow
from harness_core.messages import Message, Reply, Request, Texts
from harness_core.models import unregister_model

HELLO = "What was revenue?"


def spent(usd: float, limit: Any) -> Trace:
    trace = Trace(Governor(max_cost_usd=limit))
    trace.ledger.add(spent=round(usd * 10**12))
    return trace


def test_a_run_may_end_exactly_at_its_limit() -> None:  # core 78
    with override(tokenizer="words", safety_margin=0.0):
        # (3 words + 5) x 3 + 8 x 15 = 144 USD per million
        for before, ok in ((0.999856, True), (0.999857, False), (1.0, False)):
            trace = spent(before, 1)
            reply = call(
                MockClient(lambda _m: "x"), HELLO, model="priced", max_output=8, trace=trace
            )
            assert reply.ok is ok, before
            assert trace.stop_reason == (None if ok else "cost")
        for none in (None, math.inf):
            assert call(MockClient(), HELLO, model="priced", trace=spent(9, none)).ok


def test_a_run_at_its_call_cap_stops() -> None:  # core 79
    trace = Trace(Governor(max_calls=2))
    oks = [call(MockClient(), f"{HELLO} {n}", trace=trace).ok for n in range(4)]
    assert oks == [True, True, False, False]
    assert (trace.calls, trace.stop_reason, trace.budget_stop) == (2, "calls", True)
    assert [r.reason for r in trace.refusals] == ["calls", "calls"]
    assert not call(MockClient(), HELLO, trace=Trace(Governor(max_calls=0))).ok


@pytest.mark.parametrize("odd", [math.nan, "5", [1, 2], True, -1])
def test_a_limit_that_cannot_be_compared_is_refused_when_it_is_set(odd: Any) -> None:  # core 80
    with pytest.raises(BadSettingError):
        Governor(max_cost_usd=odd)
    with pytest.raises(BadSettingError):
        configure(max_cost_usd=odd)


def words(n: int) -> str:
    return " ".join(["word"] * n)


def read_five(trace: Trace, cap: int) -> list[Reply]:
    """Five small requests, then a merging one of three messages that counts 195."""

    def flow() -> Flow[list[Reply]]:
        small = [one(words(198 + n), 150, "map.answer") for n in range(5)]
        done = yield from ask_all(small)
        parts = tuple(Message(role, words(65)) for role in ("system", "user", "user"))
        merge = Request(messages=parts, model="seeded", max_output=cap, label="reduce")
        return done + (yield from ask_all([merge]))

    client = CallableClient(lambda _m: words(13), model="seeded")
    return sync.run(governed(flow(), Run(client, trace)), width=4)


def one(text: str, cap: int, label: str) -> Request:
    return Request(messages=(Message("user", text),), model="seeded", max_output=cap, label=label)


@pytest.fixture
def _seeded() -> Any:
    from harness_core.models import register_model

    register_model("seeded", context_window=128_000, max_output=4096, input_usd=2, output_usd=8)
    with override(tokenizer="words"):
        yield
    unregister_model("seeded")


@pytest.mark.usefixtures("_seeded")
def test_under_a_cent_five_requests_go_out_and_the_merge_does_not() -> None:  # core 81
    trace = Trace(Governor(max_cost_usd=0.01))
    replies = read_five(trace, 1500)
    assert [reply.ok for reply in replies] == [True] * 5 + [False]
    assert (trace.calls, trace.stop_reason) == (5, "cost")
    (refusal,) = trace.refusals
    assert (refusal.label, refusal.bound_tokens) == ("reduce", 232 + 1500)
    assert refusal.bound_pico == 232 * 2 * 10**6 + 1500 * 8 * 10**6
    assert trace.spent_usd == 0.00252
    for said in ("'reduce'", "up to $0.01 ", "232 prompt", "1500 reply", "$0.0025 of its $0.01"):
        assert said in refusal.message
    assert replies[5].error == refusal.message


@pytest.mark.usefixtures("_seeded")
def test_the_same_merge_with_a_smaller_cap_goes_out() -> None:  # core 82
    trace = Trace(Governor(max_cost_usd=0.01))
    assert all(reply.ok for reply in read_five(trace, 500))
    assert (trace.calls, trace.refusals, trace.budget_stop) == (6, [], False)


def test_a_model_outside_the_allowed_ones_is_refused() -> None:  # core 83
    trace = Trace(Governor(allowed_models="gpt-4o"))
    reply = call(MockClient(), HELLO, model="priced", trace=trace)
    assert (reply.refused, reply.reason, trace.stop_reason) == (True, "model", "model")
    assert "gpt-4o" in (reply.error or "")
    assert (trace.calls, trace.steps, trace.errors) == (0, [], [])


def test_the_cap_that_is_sent_is_held_to_max_output_tokens() -> None:
    trace = Trace(Governor(max_output_tokens=100))
    asked = [("priced", 100), ("priced", 101), ("thinker", 90)]
    reasons = [
        call(MockClient(), HELLO, model=model, max_output=cap, trace=trace).reason
        for model, cap in asked
    ]
    assert reasons == [None, "output", "output"]


def test_an_unpriced_model_is_refused_under_a_spending_limit_and_a_mock_is_not() -> None:
    """core 84"""
    sent: list[Any] = []

    def sending(messages: Any) -> str:
        sent.append(messages)
        return "x"

    client = CallableClient(sending, model="no-price")
    reply = call(client, HELLO)
    assert (reply.reason, sent) == ("unpriced", [])
    assert "register_model" in (reply.error or "")
    for governor in (Governor(allow_unpriced=True), Governor(max_cost_usd=None)):
        trace = Trace(governor)
        assert call(client, HELLO, max_output=50, trace=trace).ok
        assert trace.cost()[0]["usd"] is None
    trace = Trace()
    assert call(MockClient(), HELLO, model="no-price", trace=trace).ok
    assert trace.cost()[0]["usd"] is None


def test_a_trace_keeps_its_stop_when_a_later_request_fits() -> None:  # core 87, 88
    trace = Trace(Governor(max_calls=1))
    assert call(MockClient(), HELLO, trace=trace).ok
    assert not call(MockClient(), HELLO, trace=trace).ok
    trace.governor = Governor(max_calls=2)
    assert call(MockClient(), HELLO, trace=trace).ok
    assert (trace.budget_stop, trace.stop_reason) == (True, "calls")
    assert not call(MockClient(), HELLO, trace=trace).ok


def test_an_unregistered_model_stops_under_the_action_error() -> None:  # core 92
    with override(unknown_model_action="error"):
        for name in ("gpt-5-typo", "nobody-knows"):
            with pytest.raises(UnknownModelError):
                call(MockClient(), HELLO, model=name)


def test_tokens_are_held_to_prompt_bound_and_cap_and_hits_to_their_real_size(
    cache: ResponseCache,
) -> None:
    client = MockClient(lambda _m: "x").with_cache(cache)
    with override(tokenizer="words", safety_margin=0.0):
        small: dict[str, Any] = {
            "max_output": 12,
            "model": "priced",
        }  # 3 + 5 + 12 = 20 at the most, 4 taken
        assert call(client, HELLO, **small, trace=Trace(Governor(max_tokens_total=19))).reason == (
            "tokens"
        )
        assert call(client, HELLO, **small, trace=Trace(Governor(max_tokens_total=20))).ok
        assert call(client, HELLO, **small, trace=Trace(Governor(max_tokens_total=4))).cached
        hit = call(client, HELLO, **small, trace=Trace(Governor(max_tokens_total=3)))
        assert (hit.ok, hit.reason) == (False, "tokens")


def test_settings_are_followed_at_each_check_where_a_governor_says_nothing() -> None:
    trace = Trace(Governor(max_cost_usd=None))
    with override(max_calls=0):
        assert call(MockClient(), HELLO, trace=trace).reason == "calls"
    assert call(MockClient(), HELLO, trace=trace).ok


def demand(client: BaseClient, governor: Governor, text: str, **more: Any) -> Demand:
    request = Request(messages=(Message("user", text),), model="priced", max_output=10, **more)
    return prepare(request, client, governor.limits()).demand


def test_the_bound_counts_framing_schema_body_and_tools_then_the_margin() -> None:
    client, plain = MockClient(), Governor()
    with override(tokenizer="words"):
        assert demand(client, plain, "a b c").prompt_tokens == math.ceil(8 * 1.1)
        schema = {"a": 1}
        assert demand(client, plain, "a b c", schema=schema).prompt_tokens == math.ceil(9 * 1.1)
        more = demand(client, plain, "a b c", extra_body={"seed": 1}, tools=({"name": "t"},))
        assert more.prompt_tokens == math.ceil(10 * 1.1)
        assert demand(client, plain, "a b c", n=3).output == 30
        assert demand(client, plain, "a b c").pico == (9 * 3 + 10 * 15) * 10**6
    strict = demand(client, Governor(bound="strict"), "né", extra_body={"seed": 1})
    assert strict.prompt_tokens == 3 + 5 + len('{"seed":1}')


def test_embeddings_count_as_calls_and_tokens() -> None:  # core 109
    trace = Trace(Governor(max_calls=1))
    requests = [Texts(texts=("a", "b")), Texts(texts=("c",))]
    found = sync.run(governed(ask_vectors(requests), Run(MockClient(), trace)))
    assert [(one.ok, one.reason) for one in found] == [(True, None), (False, "calls")]
    assert (trace.calls, trace.tokens_in, trace.embed_tokens > 0) == (1, 0, True)
    assert trace.rows()[0]["stage"] == "embed.request"
    assert trace.steps[0].kind == "embedding"


# --- raising, and one budget for what runs inside -----------------------------------------------


def test_a_governor_may_raise_what_it_refuses() -> None:
    trace = Trace(Governor(max_calls=0, on_refusal="raise"))
    with pytest.raises(RequestRefused) as what:
        call(MockClient(), HELLO, trace=trace)
    assert (what.value.reason, what.value.label) == ("calls", "call")
    assert [r.reason for r in trace.refusals] == ["calls"]
    with pytest.raises(RequestRefused):
        call(MockClient(), HELLO, trace=Trace(Governor(max_calls=0))).unwrap()


def test_one_budget_serves_all_that_runs_inside_a_governed_run() -> None:
    with governed_run(governor=Governor(max_calls=2)) as trace:
        assert trace_for() is trace
        replies = [call(MockClient(), f"{HELLO} {n}") for n in range(3)]
        own = Trace()
        assert call(MockClient(), HELLO, trace=own).ok
    assert trace_for() is None
    assert [reply.ok for reply in replies] == [True, True, False]
    assert (trace.calls, own.calls) == (2, 1)


def test_a_refusal_that_was_swallowed_inside_is_raised_at_the_end() -> None:
    def careless() -> None:
        try:
            call(MockClient(), HELLO)
        except RuntimeError:
            return

    with (
        pytest.raises(RequestRefused),
        governed_run(governor=Governor(max_calls=0, on_refusal="raise")),
    ):
        careless()


def test_a_trace_is_the_objects_own_the_ambient_one_or_the_governors() -> None:
    governor, own = Governor(), Trace()
    assert trace_for(own) is own
    assert trace_for(None, governor) is trace_for(None, governor)
    assert trace_for() is None
    with governed_run() as ambient:
        assert trace_for(None, governor) is ambient
        assert trace_for(own) is own
    with pytest.raises(BadSettingError):
        trace_for(own, governor)
    with pytest.raises(BadSettingError):
        trace_for("trace.jsonl")  # type: ignore[arg-type]  # that is the point
