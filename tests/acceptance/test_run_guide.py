"""The guide to runs, statement by statement: records, limits, cache, draws, replay.

A stand-in model with a price: $2 and $8 per million tokens. The document is our own report.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core import (
    Answer,
    CallableClient,
    Chunks,
    Governor,
    MockClient,
    ReadSpec,
    ReplayClient,
    ResponseCache,
    Trace,
    answer_document,
    budget,
    call,
    call_json,
    configure,
    current_settings,
    estimate_cost,
    example_document,
    flush_caches,
    list_models,
    model_info,
    new_chunks,
    override,
    read,
    register_embedder,
    register_model,
)
from harness_core.errors import (
    BadSettingError,
    BudgetError,
    CallCapError,
    ReplayExhaustedError,
    ReplayMissError,
    ReplayNoEmbeddingsWarning,
    RequestRefused,
    UnknownEffortKeyError,
    UnpricedModelError,
)

QUESTION = "What was revenue?"
SAID = "Revenue was 45.2 million dollars."
REPORT = example_document("md")


@pytest.fixture(autouse=True)
def _guide() -> Iterator[None]:
    register_model(
        "priced-mock", context_window=128_000, max_output=4096, input_usd=2, output_usd=8
    )
    register_model("unpriced-model", context_window=128_000, max_output=4096)
    with override(embedder="lexical"):
        yield


@pytest.fixture
def client() -> MockClient:
    return MockClient(lambda messages: SAID)


@pytest.fixture
def five() -> Chunks:
    sentence = "The company sold instruments to universities and took back the old ones. "
    return new_chunks([f"Part {n}. {sentence * 9}" for n in range(1, 6)])


MAP = ReadSpec("map_reduce", model="priced-mock")


def drawing(start: int = 0) -> MockClient:
    count = start

    def answer(messages: Any) -> str:
        nonlocal count
        count += 1
        return f"draw {count}"

    return MockClient(answer)


# --- what a run records ---------------------------------------------------------------------------


@pytest.fixture
def answered(client: MockClient) -> Answer:
    return answer_document(
        REPORT, QUESTION, "thorough", client=client, model="priced-mock", max_tokens=150,
        overlap_tokens=0,
    )  # fmt: skip


def test_the_printed_answer_sums_the_run_up(answered: Answer) -> None:
    told = str(answered).splitlines()
    totals = answered.totals()
    assert told[0] == "<Answer> reader=map_reduce"
    assert told[2] == (
        f"  {totals.calls} model call(s), {totals.tokens_in} in / {totals.tokens_out} out tokens, "
        f"0 error(s), ${totals.usd:.4f} across priced-mock"
    )
    assert told[4] == SAID
    assert told[6].startswith("  Evidence: chunk 1")
    assert "more" in told[6]


def test_the_trace_has_the_totals_the_bill_and_a_row_per_request(answered: Answer) -> None:
    trace: Trace = answered.trace
    summary = trace.summary()
    assert (summary["calls"], summary["cached"], summary["errors"]) == (trace.calls, 0, 0)
    (bill,) = trace.cost()
    assert (bill["model"], bill["calls"], bill["paid_calls"]) == (
        "priced-mock", trace.calls, trace.calls,
    )  # fmt: skip
    rows = trace.rows()
    assert [row["stage"] for row in rows] == ["map.answer"] * (len(rows) - 1) + ["reduce"]
    assert rows[0]["step"] == "4"  # ingest, segment and preflight come first
    for row in rows:
        assert row["usd"] == pytest.approx(row["tokens_in"] * 2e-6 + row["tokens_out"] * 8e-6)
    assert sum(row["usd"] for row in rows) == pytest.approx(bill["usd"])
    assert bill["usd"] == pytest.approx(trace.spent_usd)


def test_a_cost_can_be_worked_out_beforehand() -> None:
    assert estimate_cost("priced-mock", 120_000, 4000) == pytest.approx(0.272)


def test_a_step_records_what_was_asked_sent_and_counted(answered: Answer) -> None:
    step = answered.trace.steps[-1]
    assert (step.label, step.attempts, step.model) == ("reduce", 1, "priced-mock")
    assert step.started_utc.endswith("Z")
    assert step.tokens.provenance == "estimated"
    assert answered.trace.summary()["usage_estimated"] == 1.0
    assert step.params_sent == {
        "model": "priced-mock", "api": "mock", "base_url": "mock://", "max_output": 1500,
        "temperature": None, "effort": None, "schema_name": None, "schema_hash": None,
        "extra_body_hash": None,
    }  # fmt: skip
    assert step.params["max_output_asked"] == 1500


def test_a_reasoning_model_s_small_cap_goes_out_raised(client: MockClient) -> None:
    register_model(
        "priced-reasoner", context_window=128_000, max_output=16_000, input_usd=2, output_usd=8,
        reasoning=True,
    )  # fmt: skip
    trace = Trace()
    call(client, QUESTION, model="priced-reasoner", max_output=90, trace=trace)
    (step,) = trace.steps
    assert step.params_sent["max_output"] == 2048
    assert step.params["max_output_asked"] == 90


def test_what_a_provider_tells_is_on_the_step() -> None:
    from harness_core import Reply, Usage

    told = Reply(
        ok=True, text="Yes.", served_model="priced-mock-2026", response_id="r-1", fingerprint="f",
        usage=Usage(input=10, output=5, reasoning=3, cached_input=4),
    )  # fmt: skip
    trace = Trace()
    call(MockClient(lambda messages: told), QUESTION, model="priced-mock", trace=trace)
    (step,) = trace.steps
    assert (step.served_model, step.response_id, step.fingerprint) == (
        "priced-mock-2026",
        "r-1",
        "f",
    )
    assert (step.model, step.tokens.reasoning, step.tokens.cached_input) == ("priced-mock", 3, 4)
    assert step.tokens.provenance == "reported"
    assert trace.spent_usd == pytest.approx(10 * 2e-6 + 5 * 8e-6)


@pytest.mark.filterwarnings("ignore::harness_core.errors.OverrunWarning")  # a mock keeps no cap
def test_cuts_to_fit_are_steps_and_notes() -> None:
    register_model("small-window", context_window=1000, max_output=500, input_usd=2, output_usd=8)
    long_draft = " ".join(["Revenue was 45.2 million dollars, and the draft says so."] * 30)
    answer = answer_document(
        REPORT, QUESTION, "fast", client=MockClient(lambda messages: long_draft), reader="refine",
        model="small-window", max_tokens=120, max_answer_tokens=200,
    )  # fmt: skip
    cuts = [dict(s.detail or {}) for s in answer.trace.steps if s.label == "truncate"]
    first = cuts[0]
    assert set(first) == {
        "where",
        "limit",
        "tokens_before",
        "tokens_kept",
        "tokens_dropped",
        "chunk_id",
    }
    assert (first["where"], first["chunk_id"]) == ("refine.draft", 2)
    assert first["tokens_kept"] <= first["limit"] < first["tokens_before"]
    assert answer.notes["tokens_truncated"] == sum(cut["tokens_dropped"] for cut in cuts)
    assert f"{answer.notes['tokens_truncated']} token(s) were cut to fit" in str(answer)
    drafts = [s.state for s in answer.trace.requests]
    assert all(set(state or {}) == {"tokens_in", "tokens_out"} for state in drafts)


def test_a_trace_says_who_runs_and_under_what() -> None:
    trace = Trace(owner="finance team", run_by="ana", purpose="Q3 check")
    assert "owner = finance team, run_by = ana, purpose = Q3 check" in str(trace)
    assert "no cost recorded" in str(trace)
    assert (trace.actor["owner"], trace.actor["system"]) == ("finance team", None)
    with override(actor={"owner": "audit"}, api_headers={"X-Key": "hush"}):
        other = Trace(run_by="ben")
    assert (other.actor["owner"], other.actor["run_by"]) == ("audit", "ben")
    assert "hush" not in json.dumps(other.export())
    assert other.config["settings"]["max_calls"] == 400


def test_an_answer_s_json_has_this_run_s_prompts_and_replies(answered: Answer) -> None:
    stored = json.loads(answered.to_json())
    assert stored["answer"] == SAID
    assert SAID in {step.get("response") for step in stored["trace"]["steps"]}


# --- limits ---------------------------------------------------------------------------------------


def test_two_limits_are_on_by_default() -> None:
    assert current_settings()["max_cost_usd"] == 5
    assert current_settings()["max_calls"] == 400


def test_five_chunks_under_three_calls_are_refused_before_the_first(
    client: MockClient, five: Chunks
) -> None:  # core 74
    with pytest.raises(CallCapError, match=r"5 chunks .* about 6 more requests \(0 already made"):
        read(five, QUESTION, client, MAP, trace=Trace(Governor(max_calls=3)))
    assert client.calls() == []


@pytest.mark.parametrize("width", [1, 8])
def test_under_one_cent_five_requests_go_out_and_the_merge_does_not(
    client: MockClient, five: Chunks, width: int
) -> None:
    trace = Trace(Governor(max_cost_usd=0.01))
    capped = read(five, QUESTION, client, MAP.having(max_concurrency=width), trace=trace)
    assert capped.partial
    assert (trace.calls, trace.stop_reason, trace.budget_stop) == (5, "cost", True)
    assert trace.spent_usd < 0.01
    (refusal,) = trace.refusals
    assert (refusal.label, refusal.reason) == ("reduce", "cost")
    assert refusal.message.startswith(
        "spending limit reached: the 'reduce' request could cost up to $0.01"
    )
    assert "1500 reply tokens at its cap" in refusal.message
    assert capped.notes["cost_cap_reached"] == 0.01
    assert capped.notes["failed_calls"] == 0
    assert SAID in capped.answer
    assert [step.label for step in trace.requests] == ["map.answer"] * 5


def test_with_a_smaller_cap_all_six_fit(client: MockClient, five: Chunks) -> None:
    trace = Trace(Governor(max_cost_usd=0.01))
    fits = read(five, QUESTION, client, MAP.having(max_answer_tokens=500), trace=trace)
    assert not fits.partial
    assert trace.calls == 6
    assert trace.spent_usd <= 0.01


def test_a_refused_request_is_not_a_call(client: MockClient) -> None:
    trace = Trace(Governor(allowed_models="gpt-4o"))
    reply = call(client, QUESTION, model="priced-mock", trace=trace)
    assert (reply.ok, reply.refused, reply.reason) == (False, True, "model")
    assert (trace.calls, trace.steps, trace.spent_usd) == (0, [], 0)
    assert trace.stop_reason == "model"
    with pytest.raises(RequestRefused) as caught:
        reply.unwrap()
    assert (caught.value.reason, caught.value.code) == ("model", "budget_refused")


def test_a_refusal_may_be_raised_instead(client: MockClient) -> None:
    trace = Trace(Governor(max_calls=0, on_refusal="raise"))
    with pytest.raises(RequestRefused, match="call cap"):
        call(client, QUESTION, trace=trace)
    assert client.calls() == []


def test_the_tokens_and_the_output_cap_are_limits_too(client: MockClient) -> None:
    trace = Trace(Governor(max_tokens_total=100, max_output_tokens=400))
    assert call(client, QUESTION, max_output=500, trace=trace).reason == "output"
    assert call(client, QUESTION, max_output=400, trace=trace).reason == "tokens"
    assert call(client, QUESTION, max_output=20, trace=trace).ok


def test_each_limit_is_a_setting_of_the_same_name(client: MockClient) -> None:
    with override(max_tokens_total=50):
        trace = Trace()
        assert trace.config["settings"]["max_tokens_total"] == 50
        assert call(client, QUESTION, trace=trace).reason == "tokens"
    assert call(client, QUESTION, trace=trace).ok  # read at each check


def test_a_limit_that_cannot_be_compared_is_refused_where_it_is_set() -> None:
    for value in (float("nan"), "5", [1, 2]):
        with pytest.raises(BadSettingError, match="would be ignored later"):
            configure(max_cost_usd=value)
    for nothing in (None, float("inf")):
        former = configure(max_cost_usd=nothing)
        assert current_settings()["max_cost_usd"] is None
        configure(**former)
    assert current_settings()["max_cost_usd"] == 5


# --- models with no price -------------------------------------------------------------------------


def test_a_model_without_a_price_is_refused_under_a_spending_limit() -> None:
    backend = CallableClient(lambda messages: SAID, model="unpriced-model")
    reply = call(backend, QUESTION)
    assert (reply.refused, reply.reason) == (True, "unpriced")
    assert (reply.error or "").startswith(
        "unpriced model: 'unpriced-model' has no registered price, so what the 'call' request costs"
        " cannot be held to the $5 spending limit"
    )


def test_a_read_with_an_unpriced_model_stops_before_its_first_request(five: Chunks) -> None:
    asked: list[Any] = []

    def answer(messages: Any) -> str:
        asked.append(messages)
        return SAID

    backend = CallableClient(answer, model="unpriced-model")
    with pytest.raises(UnpricedModelError):
        read(five, QUESTION, backend, "map_reduce")
    assert asked == []


def test_an_unpriced_model_may_be_allowed_and_is_still_counted() -> None:
    backend = CallableClient(lambda messages: SAID, model="unpriced-model")
    trace = Trace(Governor(allow_unpriced=True, max_calls=1))
    assert call(backend, QUESTION, trace=trace).ok
    assert trace.cost()[0]["usd"] is None
    assert call(backend, QUESTION, trace=trace).reason == "calls"


def test_mocks_and_replays_are_never_refused_for_want_of_a_price(client: MockClient) -> None:
    trace = Trace()
    assert call(client, QUESTION, model="unpriced-model", trace=trace).ok
    assert call(ReplayClient(trace), QUESTION, model="unpriced-model").ok


def test_an_effort_that_reaches_no_stage_stops_with_the_stems() -> None:
    with pytest.raises(UnknownEffortKeyError, match=r"extract\.chunk"):
        ReadSpec("extract", effort={"extrac": "low"})
    ReadSpec("extract", effort={"extract": "low", "default": "high"})


# --- paying once ----------------------------------------------------------------------------------


def test_a_repeat_is_free_and_identical(client: MockClient, tmp_path: Path) -> None:
    cached = client.with_cache(ResponseCache(tmp_path / "cache.sqlite"))
    first, second = (
        answer_document(REPORT, QUESTION, "thorough", client=cached, model="priced-mock")
        for _ in range(2)
    )
    assert second.answer == first.answer
    summary, bill = second.trace.summary(), second.trace.cost()[0]
    assert summary["calls"] == summary["cached"] == first.trace.calls
    assert summary["tokens_in"] == first.trace.summary()["tokens_in"]
    assert (bill["paid_calls"], bill["usd"]) == (0, 0)
    assert len(client.calls()) == first.trace.calls


def test_failures_and_cut_replies_are_asked_again(tmp_path: Path) -> None:
    from harness_core import Reply

    replies = iter([
        Reply.failed("rate limit", status=429),
        Reply(ok=True, text="Half", finish_reason="length"),
        Reply(ok=True, text="not json"),
        Reply(ok=True, text='{"figure": 45.2}'),
    ])  # fmt: skip
    inner = MockClient(lambda messages: next(replies))
    cache = ResponseCache(tmp_path / "cache.sqlite")
    schema = {
        "type": "object",
        "properties": {"figure": {"type": "number"}},
        "required": ["figure"],
    }
    values = [call_json(inner.with_cache(cache), QUESTION, schema).value for _ in range(5)]
    assert values == [None, None, None, {"figure": 45.2}, {"figure": 45.2}]
    assert len(inner.calls()) == 4
    stats = cache.stats()
    assert (stats.entries, stats.hits, stats.writes) == (1, 1, 1)
    cache.clear()
    assert cache.stats().entries == 0


def test_a_cache_can_be_frozen_or_refreshed(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    frozen = drawing().with_cache(ResponseCache(path, write=False))
    assert call(frozen, "Pick one.").text == "draw 1"
    assert call(frozen, "Pick one.").text == "draw 2"
    fresh = drawing().with_cache(ResponseCache(path, read=False))
    assert [call(fresh, "Pick one.").text for _ in range(2)] == ["draw 1", "draw 2"]
    kept = drawing(10).with_cache(ResponseCache(path))
    assert call(kept, "Pick one.").text == "draw 2"


def test_draws_are_entries_of_their_own(tmp_path: Path) -> None:
    sampler = drawing().with_cache(ResponseCache(tmp_path / "cache.sqlite"))
    for _ in range(2):
        drawn = [call(sampler, "Pick one.", draw_index=k).text for k in (1, 2, 3)]
        assert drawn == ["draw 1", "draw 2", "draw 3"]
    assert call(sampler, "Pick one.").text == "draw 4"
    assert call(sampler, "Pick one.").text == "draw 4"


# --- replaying a run ------------------------------------------------------------------------------


def test_a_saved_trace_gives_the_answer_again(client: MockClient, tmp_path: Path) -> None:
    first = answer_document(REPORT, QUESTION, "thorough", client=client, model="priced-mock")
    file = first.trace.save(tmp_path / "run.json")
    asked = len(client.calls())
    replayed = answer_document(
        REPORT, QUESTION, "thorough", client=ReplayClient(file), model="priced-mock"
    )
    assert replayed.answer == first.answer
    assert replayed.evidence == first.evidence
    assert (replayed.trace.spent_usd, replayed.trace.cached) == (0, replayed.trace.calls)
    assert {step.attempts for step in replayed.trace.requests} == {0}
    assert len(client.calls()) == asked


def test_another_prompt_is_a_miss_not_a_guess(client: MockClient) -> None:
    trace = Trace()
    call(client, QUESTION, model="priced-mock", max_output=50, temperature=0.2, trace=trace)
    replay = ReplayClient(trace)
    with pytest.raises(ReplayMissError):
        call(replay, "What were costs?", model="priced-mock", max_output=50, temperature=0.2)
    with pytest.raises(ReplayMissError, match=r"temperature 0\.2 was recorded, 0\.9 is asked"):
        call(replay, QUESTION, model="priced-mock", max_output=50, temperature=0.9)
    with pytest.raises(ReplayMissError, match="max_output 50 was recorded, 60 is asked"):
        call(replay, QUESTION, model="priced-mock", max_output=60, temperature=0.2)
    lenient = ReplayClient(trace, strict=False)
    assert not call(lenient, "What were costs?").ok
    assert len(lenient.missed()) == 1


def test_a_draw_that_was_not_recorded_is_an_error() -> None:
    trace, sampler = Trace(), drawing()
    for k in (1, 2, 3):
        call(sampler, "Pick one.", draw_index=k, trace=trace)
    replay = ReplayClient(trace)
    drawn = [call(replay, "Pick one.", draw_index=k).text for k in (1, 2, 3)]
    assert drawn == ["draw 1", "draw 2", "draw 3"]
    with pytest.raises(ReplayExhaustedError, match=r"no reply for draw 4 .* holds 3 draw"):
        call(replay, "Pick one.", draw_index=4)
    flagging = ReplayClient(trace, on_exhausted="flag")
    assert call(flagging, "Pick one.", draw_index=4).text == "draw 3"
    assert flagging.stats()["repeats"] == 1


def test_a_deterministic_embedder_ranks_again_as_it_did(client: MockClient) -> None:  # core 123
    run = answer_document(REPORT, QUESTION, "needle", client=client, model="priced-mock")
    again = answer_document(
        REPORT, QUESTION, "needle", client=ReplayClient(run.trace), model="priced-mock"
    )
    assert again.chunks_used == run.chunks_used
    assert again.warnings == run.warnings == []


@pytest.mark.parametrize("embedder", [None, "lexical"])
def test_vectors_that_cannot_be_made_again_are_told_and_cause_the_miss(
    five: Chunks, embedder: str | None
) -> None:  # core 124
    def to_the_last(texts: list[str]) -> list[list[float]]:
        return [[1, 0] if text == QUESTION or "Part 5" in text else [0, 1] for text in texts]

    spec = ReadSpec("retrieve", model="priced-mock", top_k=1)
    with override(embedder=None):
        run = read(five, QUESTION, MockClient(lambda messages: SAID, to_the_last), spec)
    assert run.chunks_used == [5]
    replay = ReplayClient(run.trace)
    with (
        override(embedder=embedder),
        pytest.warns(ReplayNoEmbeddingsWarning),
        pytest.raises(ReplayMissError, match="embeddings that cannot be reproduced"),
    ):
        read(five, QUESTION, replay, spec)


def test_vectors_may_be_recorded_with_the_run(client: MockClient, tmp_path: Path) -> None:
    with override(embedder=None):
        trace = Trace(record_embeddings=True)
        run = answer_document(
            REPORT, QUESTION, "needle", client=client, model="priced-mock", trace=trace
        )
        file = trace.save(tmp_path / "run.json")
        again = answer_document(
            REPORT, QUESTION, "needle", client=ReplayClient(file), model="priced-mock"
        )
    assert (again.answer, again.chunks_used) == (run.answer, run.chunks_used)
    assert again.warnings == []
    assert again.trace.calls == run.trace.calls


def test_vectors_that_this_process_remembers_are_recorded_all_the_same(
    client: MockClient, five: Chunks
) -> None:
    spec = ReadSpec("retrieve", model="priced-mock", top_k=2)
    with override(embedder="api"):
        read(five, QUESTION, client, spec)  # now every vector is remembered
        trace = Trace(record_embeddings=True)
        run = read(five, QUESTION, client, spec, trace=trace)
        assert any(step.vectors for step in trace.requests)
        flush_caches()
        again = read(five, QUESTION, ReplayClient(trace), spec)
    assert again.chunks_used == run.chunks_used


def test_an_embedder_of_one_s_own_serves_a_replay_when_it_is_deterministic(
    client: MockClient, five: Chunks
) -> None:
    register_embedder(
        "guide-lengths", lambda texts, params: [[len(text), 1.0] for text in texts],
        deterministic=True,
    )  # fmt: skip
    spec = ReadSpec("retrieve", model="priced-mock", top_k=2)
    with override(embedder="guide-lengths"):
        run = read(five, QUESTION, client, spec)
        again = read(five, QUESTION, ReplayClient(run.trace), spec)
    assert again.chunks_used == run.chunks_used


# --- limits in a replay ---------------------------------------------------------------------------


@pytest.fixture
def stopped(client: MockClient, five: Chunks, tmp_path: Path) -> Path:
    trace = Trace(Governor(max_cost_usd=0.01))
    read(five, QUESTION, client, MAP, trace=trace)
    return trace.save(tmp_path / "stopped.json")


def test_a_replay_under_the_recorded_limit_stops_where_the_run_stopped(
    stopped: Path, five: Chunks
) -> None:
    recorded = Trace.load(stopped)
    assert (recorded.budget_stop, recorded.stop_reason) == (True, "cost")
    trace = Trace(Governor(max_cost_usd=0.01))
    again = read(five, QUESTION, ReplayClient(stopped), MAP, trace=trace)
    assert (again.partial, trace.calls, trace.stop_reason) == (True, 5, "cost")
    assert trace.spent_usd == 0
    assert trace.replayed_usd == pytest.approx(recorded.spent_usd)
    (refusal,) = trace.refusals
    assert refusal.label == "reduce"


def test_a_replay_under_a_higher_limit_says_that_the_recording_was_cut_short(
    stopped: Path, five: Chunks
) -> None:
    with pytest.raises(ReplayMissError, match="cut short by its spending limit"):
        read(five, QUESTION, ReplayClient(stopped), MAP, trace=Trace(Governor(max_cost_usd=1)))


def test_a_replay_of_an_expensive_run_is_not_stopped_by_this_session_s_limit(
    client: MockClient, five: Chunks
) -> None:
    run = read(five, QUESTION, client, MAP)
    trace = Trace(Governor(max_cost_usd=0.000001))
    again = read(five, QUESTION, ReplayClient(run.trace), MAP, trace=trace)
    assert (again.answer, again.partial) == (run.answer, False)
    assert (trace.spent_usd, trace.replayed_usd) == (0, 0)


def test_replayed_requests_count_as_calls(client: MockClient, five: Chunks) -> None:
    run = read(five, QUESTION, client, MAP)
    with pytest.raises(CallCapError):
        read(five, QUESTION, ReplayClient(run.trace), MAP, trace=Trace(Governor(max_calls=3)))


# --- models and budgets ---------------------------------------------------------------------------


def test_models_are_listed_with_windows_and_prices() -> None:
    rows = {row["id"]: row for row in list_models()}
    assert rows["priced-mock"]["context_window"] == 128_000
    assert model_info("priced-mock").input_usd == 2
    assert model_info("unpriced-model").input_usd is None


def test_a_budget_is_never_empty() -> None:
    register_model("tiny-window", context_window=200, max_output=100)
    with pytest.raises(BudgetError, match="window 200"):
        budget("tiny-window", 100, 400)
    assert budget("priced-mock", 1500).input > 0


def test_a_cached_rate_prices_what_the_provider_served_from_its_cache() -> None:
    from harness_core import Reply, Usage

    register_model(
        "cached-rate", context_window=9000, max_output=400, input_usd=2, output_usd=8,
        cached_input_usd=0.5,
    )  # fmt: skip
    told = Reply(ok=True, text="Yes.", usage=Usage(input=1000, output=10, cached_input=600))
    trace = Trace()
    call(MockClient(lambda messages: told), QUESTION * 300, model="cached-rate", trace=trace)
    assert trace.spent_usd == pytest.approx(400 * 2e-6 + 600 * 0.5e-6 + 10 * 8e-6)
