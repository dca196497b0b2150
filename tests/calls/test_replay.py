"""A recording answers again, or says loudly why it cannot."""

import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness_core.calls.api import call
from harness_core.calls.exchange import governed
from harness_core.calls.governor import Governor
from harness_core.calls.replay import ReplayClient
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.clients.callable import CallableClient
from harness_core.clients.mock import MockClient
from harness_core.config import override
from harness_core.errors import (
    ReplayEmptyError,
    ReplayExhaustedError,
    ReplayMissError,
    ReplayUnreadableError,
    SourceNotFoundError,
)
from harness_core.flows import sync
from harness_core.flows.ask import ask_all, ask_vectors
from harness_core.messages import Message, Reply, Request, Texts, Usage
from harness_core.models import register_model

TEXTS = ["Was Umsatz über Plan? 📈", "b", "c", "d"]


def shouted(messages: Any) -> Reply:
    usage = Usage(input=8, output=100)  # 0.001524 USD, held at about as much
    return Reply(ok=True, text=messages[0]["content"].upper(), usage=usage)


def record(*texts: str, governor: Governor | None = None, fn: Any = None, **more: Any) -> Trace:
    trace = Trace(governor)
    client = CallableClient(fn or shouted, model="priced")
    for text in texts:
        call(client, text, max_output=100, trace=trace, **more)
    return trace


def replay(
    client: ReplayClient, *texts: str, trace: Trace | None = None, **more: Any
) -> list[Reply]:
    run = trace or Trace()
    return [call(client, text, max_output=100, trace=run, **more) for text in texts]


def test_a_recorded_run_answers_again_for_nothing(tmp_path: Path) -> None:  # core 110, 111
    recorded = record(*TEXTS)
    client = ReplayClient(recorded.save(tmp_path / "run.json"))
    trace = Trace()
    replies = replay(client, *TEXTS, trace=trace)
    assert [r.text for r in replies] == [text.upper() for text in TEXTS]
    assert all(r.cached and r.attempts == 0 for r in replies)
    assert [s.tokens for s in trace.steps] == [s.tokens for s in recorded.steps]
    assert (trace.calls, trace.cached, trace.spent_usd) == (4, 4, 0)
    assert client.stats() == {
        "recorded": 4, "distinct": 4, "hits": 4, "repeats": 0, "misses": 0,
    }  # fmt: skip


@pytest.mark.parametrize("width", [1, 4])
def test_identical_requests_are_answered_in_recorded_order(width: int) -> None:  # core 112
    numbers = iter("123")
    recorded = record(*["same"] * 3, fn=lambda _m: next(numbers))
    request = Request(messages=(Message("user", "same"),), max_output=100)
    client = ReplayClient(recorded)
    replies = sync.run(governed(ask_all([request] * 3), Run(client, Trace())), width=width)
    assert [r.text for r in replies] == ["1", "2", "3"]
    with pytest.raises(ReplayExhaustedError, match="on_exhausted"):
        replay(client, "same")
    flagging = ReplayClient(recorded, on_exhausted="flag")
    assert [r.text for r in replay(flagging, *["same"] * 4)] == ["1", "2", "3", "3"]
    assert (flagging.stats()["repeats"], flagging.stats()["hits"]) == (1, 4)


def test_draws_are_found_by_their_own_index() -> None:
    trace, numbers = Trace(), iter("01234")
    client = MockClient(lambda _m: next(numbers))
    for draw in (0, 2, 1, 0, 3):
        call(client, "same", draw_index=draw, trace=trace)
    again = ReplayClient(trace)
    found = [call(again, "same", draw_index=draw).text for draw in (3, 1, 2, 0, 0)]
    assert found == ["4", "2", "1", "0", "3"]
    with pytest.raises(ReplayExhaustedError, match=r"draw 4 .*holds 5 draw"):
        call(again, "same", draw_index=4)


def test_an_unrecorded_prompt_is_a_miss_and_not_strictly_a_failed_reply() -> None:  # core 113
    recorded = record("a")
    client = ReplayClient(recorded)
    with pytest.raises(ReplayMissError, match="document, the question"):
        replay(client, "z")
    assert len(client.missed()) == client.stats()["misses"] == 1
    (reply,) = replay(ReplayClient(recorded, strict=False), "z")
    assert (reply.ok, reply.cached, reply.status) == (False, True, 0)


def test_a_miss_says_where_the_prompt_first_differs() -> None:
    with pytest.raises(ReplayMissError, match=r"differs at character 5: 'what else' .*'what now'"):
        replay(ReplayClient(record("what else")), "what now")


def test_a_miss_names_the_model_or_the_settings_it_was_recorded_under() -> None:  # core 114
    client = ReplayClient(record("a", temperature=0.5))
    with pytest.raises(ReplayMissError, match="IS recorded under model priced"):
        replay(client, "a", model="other")
    with pytest.raises(ReplayMissError, match=r"temperature 0\.5 was recorded, None is asked"):
        replay(client, "a")
    with pytest.raises(ReplayMissError, match="max_output 100 was recorded, 7 is asked"):
        call(client, "a", temperature=0.5, max_output=7)
    with pytest.raises(ReplayMissError, match="schema"):
        replay(client, "a", temperature=0.5, schema={"type": "object"})
    with override(temperature=0.5):
        assert replay(client, "a")[0].ok


def test_what_is_no_recording_says_so(tmp_path: Path) -> None:  # core 115
    with pytest.raises(ReplayEmptyError):
        ReplayClient(Trace())
    with pytest.raises(SourceNotFoundError):
        ReplayClient(tmp_path / "missing.json")
    for text in ("{broken", "7"):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(ReplayUnreadableError):
            ReplayClient(tmp_path / "odd.json")
    with pytest.raises(ReplayUnreadableError, match="table"):
        ReplayClient({"steps": {"step": [1], "label": ["a"]}})


def test_the_text_of_a_trace_or_of_an_answer_replays() -> None:  # core 117
    document = record("a").export()
    for form in (document, {"answer": "A", "trace": document}):
        assert replay(ReplayClient(orjson.dumps(form).decode()), "a")[0].text == "A"


def test_the_providers_own_model_name_is_kept_beside_the_one_asked_for() -> None:  # core 118
    served = Reply(ok=True, text="x", model="ignored", served_model="priced-0613")
    (reply,) = replay(ReplayClient(record("a", fn=lambda _m: served)), "a")
    assert (reply.ok, reply.model, reply.served_model) == (True, "priced", "priced-0613")


def noted(**settings: Any) -> Trace:
    """A recorded read of "a" by the followed model and of "b" by a cheap one."""
    trace = record("a")
    client = CallableClient(lambda _m: "cheap", model="other")
    call(client, "b", max_output=100, trace=trace)
    call(client, "c", max_output=100, trace=trace)
    trace.note("preflight", model="priced", settings=settings)
    return trace


def test_the_model_of_a_replay_is_the_reads_and_not_the_cheap_one() -> None:  # core 119, 120
    client = ReplayClient(noted(skim_model="other"))
    assert (client.model, client.alternatives) == ("priced", ())
    assert replay(client, "b", model="other")[0].ok
    with pytest.raises(ReplayMissError):
        replay(client, "b")


def test_a_recording_of_two_client_models_answers_both() -> None:  # core 121
    trace = noted()
    trace.note("preflight", model="other", settings={})
    assert [r.text for r in replay(ReplayClient(trace), "a", "b")] == ["A", "cheap"]
    call(CallableClient(lambda _m: "x", model="thinker"), "a", max_output=100, trace=trace)
    trace.note("preflight", model="thinker", settings={})
    with pytest.raises(ReplayMissError):
        replay(ReplayClient(trace), "a")


def test_a_recorded_failure_fails_again() -> None:
    failing = Reply.failed("bad request", status=400)
    (reply,) = replay(ReplayClient(record("a", fn=lambda _m: failing)), "a")
    assert (reply.ok, reply.status, reply.error) == (False, 400, "bad request")


# --- limits ---------------------------------------------------------------------------------------

COST = Governor(max_cost_usd=0.004)  # two of these requests, not a third


def stopped() -> Trace:
    trace = record(*TEXTS, governor=COST)
    assert (trace.calls, trace.stop_reason) == (2, "cost")
    return Trace.load(orjson.loads(orjson.dumps(trace.export())))


def test_a_run_that_cost_stopped_stops_there_again() -> None:  # core 94
    recorded, trace = stopped(), Trace(COST)
    client = ReplayClient(recorded)
    replies = replay(client, *TEXTS, trace=trace)
    assert [r.ok for r in replies] == [True, True, False, False]
    assert (trace.calls, trace.spent_usd, trace.replayed_usd) == (2, 0, recorded.spent_usd)
    assert client.stats()["misses"] == 0
    assert [r.reason for r in trace.refusals] == ["cost", "cost"]
    assert [r.message for r in trace.refusals] == [r.message for r in recorded.refusals]


@pytest.mark.parametrize("limits", [{"max_cost_usd": None}, {"max_cost_usd": 1.0}])
def test_under_a_higher_limit_the_next_request_is_a_miss_that_says_so(limits: Any) -> None:
    """core 95"""
    with pytest.raises(ReplayMissError, match="cut short by its spending limit after 2"):
        replay(ReplayClient(stopped()), *TEXTS, trace=Trace(Governor(**limits)))


def test_under_a_lower_limit_it_stops_earlier() -> None:
    trace, client = Trace(Governor(max_cost_usd=0.002)), ReplayClient(stopped())
    replies = replay(client, *TEXTS[:2], trace=trace)
    assert [r.ok for r in replies] == [True, False]
    assert client.stats()["hits"] == 1


@pytest.mark.parametrize("price", [None, 100.0])
def test_it_stops_there_whatever_this_process_knows_of_prices(price: float | None) -> None:
    recorded = stopped()
    register_model(
        "priced", context_window=128_000, max_output=4096, input_usd=price, output_usd=price
    )
    replies = replay(ReplayClient(recorded), *TEXTS, trace=Trace(COST))
    assert [r.ok for r in replies] == [True, True, False, False]


def test_a_request_that_was_answered_and_later_refused_replays_both() -> None:
    recorded = record(*["same"] * 4, governor=COST)
    replies = replay(ReplayClient(recorded), *["same"] * 4, trace=Trace(COST))
    assert [r.ok for r in replies] == [True, True, False, False]
    client = ReplayClient(recorded)
    with pytest.raises(ReplayMissError, match="spending limit"):
        replay(client, *["same"] * 4)


def test_calls_and_tokens_stop_a_replay_where_they_stopped_the_run() -> None:
    for governor in (Governor(max_calls=2), Governor(max_tokens_total=130)):
        recorded = record(*TEXTS, governor=governor)
        again = Trace(governor)
        replies = replay(ReplayClient(recorded), *TEXTS, trace=again)
        assert 0 < recorded.calls < 4
        assert sum(r.ok for r in replies) == again.calls == recorded.calls
        assert [r.reason for r in again.refusals] == [r.reason for r in recorded.refusals]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    # reason: what the second request asks, the limits that refuse it, limits that would not
    "model": ({"model": "other"}, {"allowed_models": ["priced"]}, [
        {"allowed_models": None}, {"allowed_models": ["priced", "other"]},
    ]),
    "output": ({"max_output": 200}, {"max_output_tokens": 150}, [
        {"max_output_tokens": None}, {"max_output_tokens": 200},
    ]),
    "unpriced": ({"model": "no-price"}, {"max_cost_usd": 1}, [
        {"max_cost_usd": None}, {"max_cost_usd": 1, "allow_unpriced": True},
    ]),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_a_limit_of_any_kind_refused_is_refused_again_and_a_miss_without_it(
    reason: str,
) -> None:
    asks, limits, looser = REFUSED[reason]

    def two(client: Any, governor: Governor) -> tuple[Trace, list[Reply]]:
        trace = Trace(governor)
        more = {"max_output": 100, **asks}
        return trace, [
            call(client, "a", max_output=100, trace=trace), call(client, "b", trace=trace, **more),
        ]  # fmt: skip

    recorded, _ = two(CallableClient(shouted, model="priced"), Governor(**limits))
    assert [refusal.reason for refusal in recorded.refusals] == [reason]
    again, replies = two(ReplayClient(recorded), Governor(**limits))
    assert [(reply.ok, reply.reason) for reply in replies] == [(True, None), (False, reason)]
    assert [refusal.message for refusal in again.refusals] == [
        refusal.message for refusal in recorded.refusals
    ]
    for other in looser:
        with pytest.raises(ReplayMissError, match="cut short"):
            two(ReplayClient(recorded), Governor(**other))


def test_an_expensive_run_that_was_not_stopped_replays_under_any_limit() -> None:  # core 96
    trace = Trace(Governor(max_cost_usd=0.0001))
    recorded = record(*TEXTS)
    assert recorded.spent_usd > 0.0001
    assert all(r.ok for r in replay(ReplayClient(recorded), *TEXTS, trace=trace))
    assert (trace.replayed_usd, trace.budget_stop) == (0, False)


def test_steps_without_their_figures_are_priced_from_their_tokens() -> None:  # core 97
    document = stopped().export()
    for step in document["steps"]:
        del step["budget_usd"], step["bound_usd"]
    recorded = Trace.load(document)
    assert recorded.spent_usd == stopped().spent_usd
    trace = Trace(COST)
    assert [r.ok for r in replay(ReplayClient(recorded), *TEXTS, trace=trace)] == [
        True, True, False, False,
    ]  # fmt: skip


def test_what_a_replay_counted_is_there_when_its_own_trace_is_loaded() -> None:
    trace = Trace(COST)
    replay(ReplayClient(stopped()), *TEXTS, trace=trace)
    loaded = Trace.load(orjson.loads(orjson.dumps(trace.export())))
    assert (loaded.replayed_usd, loaded.spent_usd) == (trace.replayed_usd, 0)


# --- embeddings, codecs, threads ------------------------------------------------------------------


def test_recorded_vectors_are_given_again_and_missing_ones_are_a_failure() -> None:
    for kept in (True, False):
        trace = Trace(record_embeddings=kept)
        call(MockClient(), "a", trace=trace)
        request = Texts(texts=("a", "b"))
        (first,) = sync.run(governed(ask_vectors([request]), Run(MockClient(), trace)))
        client = ReplayClient(orjson.dumps(trace.export()).decode())
        wanted = Texts(texts=("a", "b"), model="mock-embed")
        (again,) = sync.run(governed(ask_vectors([wanted]), Run(client, Trace())))
        assert again.ok is kept
        if kept:
            assert again.vectors is not None
            assert first.vectors is not None
            assert again.vectors.tolist() == first.vectors.tolist()


def test_an_embedder_ranks_as_recorded_only_when_it_is_the_recorded_one() -> None:
    recorded = record("a")
    recorded.note("embed", source="lexical", n=1)
    client = ReplayClient(recorded)
    assert client.vectors_may_be_used("lexical")
    assert not client.vectors_may_be_used("api")
    with pytest.raises(ReplayMissError, match="embeddings"):  # core 125
        replay(client, "z")


def test_a_codec_gives_a_recorded_raw_reply_its_form_back() -> None:
    class Codec:
        def pack(self, reply: Reply) -> Any:
            return {"packed": reply.raw}

        def unpack(self, stored: Any) -> Any:
            return stored["packed"]

    client = MockClient(lambda _m: Reply(ok=True, text="x", raw="theirs", usage=Usage()))
    client.codec = Codec()
    trace = Trace()
    call(client, "a", trace=trace)
    again = ReplayClient(orjson.loads(orjson.dumps(trace.export())))
    again.codec = Codec()
    assert call(again, "a").raw == "theirs"


def test_one_recording_serves_several_threads() -> None:
    numbers = iter(range(64))
    client = ReplayClient(record(*["same"] * 64, fn=lambda _m: str(next(numbers))))
    found: list[str] = []

    def some() -> None:
        found.extend(reply.text for reply in replay(client, *["same"] * 16))

    threads = [threading.Thread(target=some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=int) == [str(n) for n in range(64)]
