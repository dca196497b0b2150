"""What is refused before the first request, what is foreseen, what a limit does in between.

A parallel read is held to its limits as it goes, never refused for its worst case.
"""

from pathlib import Path
from typing import Any

import pytest

from harness_core import (
    CallableClient,
    Chunks,
    Governor,
    MockClient,
    ReadSpec,
    Trace,
    embed,
    list_readers,
    new_chunks,
    override,
    read,
    register_model,
    segment,
)
from harness_core.errors import (
    CallCapError,
    CostCapError,
    EmbedFallbackWarning,
    UnpricedModelError,
)
from harness_core.reading.flow import make_job
from harness_core.reading.preflight import estimated
from harness_core.reading.registry import find_reader
from tests.support.oracle import Oracle
from tests.support.reading import QUESTION, labels, saying, the_chunks

READERS = [row["name"] for row in list_readers()]


SENTENCES = " ".join(f"Mooring ring {n} was cast in the year {1800 + n}." for n in range(100))


class Posting(MockClient):
    """A mock that posts to a provider, as far as the checks before a read can tell."""

    provider = True


@pytest.fixture(autouse=True)
def _models() -> None:
    register_model("dear-1", context_window=64_000, max_output=4000, input_usd=2, output_usd=8)
    register_model(
        "thinker-1",
        context_window=64_000,
        max_output=9000,
        input_usd=2,
        output_usd=8,
        reasoning=True,
    )


def noted(trace: Trace) -> dict[str, Any]:
    return next(dict(s.detail or {}) for s in trace.steps if s.label == "preflight")


def test_a_read_that_needs_more_requests_than_allowed_is_refused() -> None:  # readers 170, core 73
    client, trace = saying(), Trace(Governor(max_calls=3))
    with pytest.raises(CallCapError, match=r"map_reduce.* 5 chunks .* 6 more .*cap of 3"):
        read(the_chunks(5), QUESTION, client, "map_reduce", trace=trace)
    assert client.calls() == []
    assert trace.calls == 0


def test_earlier_requests_of_the_run_count() -> None:
    trace = Trace(Governor(max_calls=8))
    read(the_chunks(2), QUESTION, saying(), "map_reduce", trace=trace)
    with pytest.raises(CallCapError, match="3 already made"):
        read(the_chunks(5), QUESTION, saying(), "map_reduce", trace=trace)


def test_requests_that_a_resumed_run_takes_over_do_not_count_twice(tmp_path: Path) -> None:
    limits = Governor(max_calls=8, max_cost_usd=0.03)
    spec, path = (
        ReadSpec("map_reduce", model="dear-1", max_answer_tokens=100),
        tmp_path / "run.jsonl",
    )
    first = Trace(limits, path=path)
    before = read(the_chunks(5), QUESTION, saying(), spec, trace=first)
    first.close()
    client, second = saying(), Trace(limits, path=path, resume=True)
    after = read(the_chunks(5), QUESTION, client, spec, trace=second)
    assert (after.answer, after.warnings, client.calls()) == (before.answer, [], [])
    assert (second.calls, second.spent_usd) == (first.calls, first.spent_usd)
    with pytest.raises(CallCapError, match="6 already made"):
        read(the_chunks(5), QUESTION, client, spec, trace=second)


def test_a_resumed_run_that_spent_its_limit_may_still_be_read_back(tmp_path: Path) -> None:
    spec, path = (
        ReadSpec("map_reduce", model="dear-1", max_answer_tokens=100),
        tmp_path / "run.jsonl",
    )
    first = Trace(path=path)
    read(the_chunks(5), QUESTION, saying(), spec, trace=first)
    first.close()
    spent = Governor(max_cost_usd=first.spent_usd)
    second = Trace(spent, path=path, resume=True)
    assert read(the_chunks(5), QUESTION, saying(), spec, trace=second).found
    with pytest.raises(CostCapError, match="already spent"):
        read(the_chunks(5), QUESTION, saying(), spec, trace=second)


def test_without_a_cap_reads_run() -> None:  # readers 171
    trace = Trace(Governor(max_calls=None))
    assert read(the_chunks(5), QUESTION, saying(), "map_reduce", trace=trace).found


def many(count: int) -> Chunks:
    return new_chunks([f"Revenue of unit {n} was {n} million." for n in range(count)])


def test_embedding_requests_are_foreseen() -> None:  # readers 172
    chunks, client = many(200), Posting()
    with pytest.raises(CallCapError, match=r"5 more requests \(4 of them for embeddings\)"):
        read(chunks, QUESTION, client, "retrieve", trace=Trace(Governor(max_calls=3)))
    assert client.embeds() == []
    trace = Trace(Governor(max_calls=5))
    read(chunks, QUESTION, client, "retrieve", trace=trace)
    assert (noted(trace)["est_calls"], noted(trace)["embed_calls"], trace.calls) == (5, 4, 5)


def test_vectors_that_are_known_need_no_request() -> None:  # readers 173
    chunks, client = many(20), Posting()
    embed(client, [QUESTION, *(chunk.text for chunk in chunks)])
    trace = Trace(Governor(max_calls=1))
    read(chunks, QUESTION, client, "retrieve", trace=trace)
    assert noted(trace)["embed_calls"] == 0


def foreseen(chunks: Chunks, question: str, client: MockClient, spec: ReadSpec) -> tuple[int, int]:
    job = make_job(chunks, question, spec, client, Trace())
    found = estimated(job, find_reader(spec.reader), client)
    return found.calls, found.embed_calls


def test_an_estimate_is_printed_in_words() -> None:
    spec = ReadSpec("map_reduce", model="dear-1")
    job = make_job(the_chunks(5), QUESTION, spec, saying(), Trace())
    said = str(estimated(job, find_reader("map_reduce"), saying()))
    assert said.startswith(
        "<Estimate> map_reduce over 5 chunk(s) with dear-1\n  expected  6 request(s)"
    )
    assert "at most" in said.splitlines()[2]


def test_embeddings_of_later_rounds_are_foreseen() -> None:  # readers 174
    spec = ReadSpec("iterative", max_rounds=3)
    assert foreseen(many(100), QUESTION, Posting(), spec) == (9, 5)
    with override(embedder="lexical"):
        assert foreseen(many(100), QUESTION, Posting(), spec) == (4, 0)


def test_candidates_are_embedded_only_when_no_word_is_shared() -> None:  # readers 175
    spec = ReadSpec("rerank", rerank_candidates=4)
    assert foreseen(many(20), "Wie hoch ist der Umsatz?", Posting(), spec) == (6, 1)
    assert foreseen(many(20), QUESTION, Posting(), spec) == (5, 0)


@pytest.mark.parametrize(
    ("reader", "calls"),
    [("stuff", 1), ("retrieve", 1), ("map_reduce", 12), ("refine", 10), ("skim", 11),
     ("hierarchical", 13), ("rerank", 5), ("iterative", 5), ("preview", 10), ("screen", 1),
     ("extract", 10), ("ensemble", 14)],
)  # fmt: skip
def test_expected_requests_over_ten_chunks(reader: str, calls: int) -> None:
    spec = ReadSpec(reader, rerank_candidates=4, include=("any",), fields=["topic"])
    assert foreseen(many(10), QUESTION, saying(), spec) == (calls, 0)


@pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")
@pytest.mark.parametrize("reader", READERS)
def test_the_worst_case_is_never_exceeded(reader: str) -> None:  # readers 176
    register_model("narrow-2", context_window=1500, max_output=300, input_usd=2, output_usd=8)
    chunks = new_chunks([
        f"The marker{n}x entry says that it is {n}. " + "Stone was laid on stone there. " * 12
        for n in range(1, 13)
    ])  # fmt: skip
    spec = ReadSpec(
        reader, model="narrow-2", include=("any",), fields=["topic"], resolve="model",
        max_answer_tokens=300, max_chunk_tokens=300, max_summary_tokens=300,
    )  # fmt: skip
    oracle, trace = Oracle(), Trace()

    def bulky(messages: Any, params: Any) -> Any:
        if params["schema"] is not None:
            return oracle(messages, params)
        return "stone quay " * 90

    read(chunks, QUESTION, MockClient(bulky), spec, trace=trace)
    asked = [step for step in trace.requests if step.kind == "chat"]
    found = noted(trace)
    assert len(asked) <= found["worst_calls"]
    assert trace.spent_usd <= found["est_cost_usd"]
    assert found["est_calls"] <= found["worst_calls"]


def test_sending_every_chunk_alone_may_pass_the_limit() -> None:  # core 75
    chunks = new_chunks(["Stone was laid on stone. " * 400] * 5)
    spec = ReadSpec("map_reduce", model="dear-1")
    client, trace = saying(), Trace(Governor(max_cost_usd=0.01))
    with pytest.raises(CostCapError, match=r"before any reply"):
        read(chunks, QUESTION, client, spec, trace=trace)
    assert client.calls() == []


def test_a_reader_of_a_few_chunks_is_never_refused_for_the_size_of_the_document() -> None:
    chunks = new_chunks([f"Stone {n} was laid on stone. " * 100 for n in range(40)])
    trace = Trace(Governor(max_cost_usd=0.05))
    with override(embedder="lexical"):
        spec = ReadSpec("retrieve", model="dear-1", top_k=1)
        assert read(chunks, QUESTION, saying(), spec, trace=trace).found


def test_an_ensemble_is_refused_on_the_known_floor() -> None:  # readers 179, core 75
    chunks = new_chunks(["Stone was laid on stone. " * 400] * 5)
    spec = ReadSpec(
        "ensemble", members=("skim", "map_reduce"), model="dear-1", skim_model="nobody-knows-1"
    )
    governor = Governor(max_cost_usd=0.01, allow_unpriced=True)
    with (
        pytest.warns(UserWarning, match="nobody-knows-1"),
        pytest.raises(CostCapError, match="before any reply"),
    ):
        read(chunks, QUESTION, saying(), spec, trace=Trace(governor))


@pytest.mark.parametrize("how", ["spent", "replayed"])
def test_money_that_is_gone_counts(how: str) -> None:  # readers 180, core 77
    trace = Trace(Governor(max_cost_usd=0.5))
    trace.ledger.add(**{how: 600_000_000_000})
    client = saying()
    with pytest.raises(CostCapError, match="already spent"):
        read(the_chunks(2), QUESTION, client, ReadSpec("stuff", model="dear-1"), trace=trace)
    assert client.calls() == []


def test_a_limit_of_nothing_lets_what_is_free_through() -> None:
    trace = Trace(Governor(max_cost_usd=0))
    assert read(the_chunks(2), QUESTION, saying(), "stuff", trace=trace).found
    with pytest.raises(CostCapError, match=r"\$0 "):
        read(the_chunks(2), QUESTION, saying(), ReadSpec("stuff", model="dear-1"), trace=trace)


@pytest.mark.parametrize(("cap", "sent"), [(90, 2048), (3000, 3000)])  # readers 181
def test_a_reasoning_model_s_small_cap_is_raised_and_priced(cap: int, sent: int) -> None:
    trace = Trace()
    spec = ReadSpec("stuff", model="thinker-1", max_answer_tokens=cap)
    read(the_chunks(2), QUESTION, saying(), spec, trace=trace)
    (step,) = trace.requests
    assert step.params_sent["max_output"] == sent
    assert (step.bound_pico or 0) >= sent * 8_000_000


def test_what_a_reasoning_model_may_write_is_foreseen_as_it_is_sent() -> None:
    spec = ReadSpec("stuff", model="thinker-1", max_answer_tokens=90, max_chunk_tokens=90,
                    max_summary_tokens=90)  # fmt: skip
    job = make_job(the_chunks(2), QUESTION, spec, saying(), Trace())
    assert estimated(job, find_reader("stuff"), saying()).worst_tokens_out == 2048


def test_an_unpriced_model_is_refused_before_the_first_request() -> None:
    asked: list[Any] = []

    def answer(messages: Any) -> str:
        asked.append(messages)
        return "Revenue was 45.2 million."

    register_model("unpriced-2", context_window=64_000, max_output=4000)
    client = CallableClient(answer, model="unpriced-2")
    with pytest.raises(UnpricedModelError, match="register_model"):
        read(the_chunks(2), QUESTION, client, "stuff")
    assert asked == []
    trace = Trace(Governor(allow_unpriced=True))
    answer_of = read(the_chunks(2), QUESTION, client, "stuff", trace=trace)
    assert answer_of.totals().usd is None


@pytest.mark.parametrize("restate", ["never", "auto", "always"])
def test_a_long_question_and_a_small_window_are_answered(restate: Any) -> None:  # readers 185
    register_model("narrow-3", context_window=1600, max_output=300, input_usd=0, output_usd=0)
    client = saying()
    spec = ReadSpec("stuff", model="narrow-3", restate=restate, max_answer_tokens=100)
    answer = read(the_chunks(2), "What was revenue? " * 60, client, spec)
    assert len(client.calls()) == 1
    assert answer.found


def test_restating_is_budgeted_unless_it_never_happens() -> None:  # readers 186
    from harness_core.models.tokenizers import count_tokens

    rooms = {}
    for restate in ("never", "auto", "always"):
        job = make_job(
            the_chunks(1), QUESTION, ReadSpec("stuff", restate=restate), saying(), Trace()
        )
        rooms[restate] = job.room("answer")
    assert rooms["never"] - rooms["auto"] == count_tokens(QUESTION)
    assert rooms["auto"] == rooms["always"]


def test_an_embedding_request_counts_as_a_call_and_may_be_refused() -> None:  # core 90
    client, trace = Posting(), Trace(Governor(max_calls=0))
    with override(embedder="api"), pytest.warns(EmbedFallbackWarning, match="call cap"):
        assert segment(SENTENCES, "semantic", client=client, trace=trace)
    assert client.embeds() == []
    assert (trace.calls, trace.stop_reason) == (0, "calls")


def test_vectors_that_money_cuts_short_are_replaced_as_a_whole() -> None:  # core 91
    register_model("dear-embed", context_window=8000, kind="embedding", input_usd=100)
    client, trace = Posting(), Trace(Governor(max_cost_usd=0.25))
    client.embedding_model = "dear-embed"
    with override(embedder="api"), pytest.warns(EmbedFallbackWarning, match="spending limit"):
        segment(SENTENCES, "semantic", client=client, trace=trace)
    assert [len(asked.texts) for asked in client.embeds()] == [64]
    assert (trace.calls, trace.stop_reason) == (1, "cost")
    (note,) = [step.detail for step in trace.steps if step.label == "embed"]
    assert (note or {})["source"] == "lexical"


def test_a_refused_request_is_neither_failed_nor_sent() -> None:
    trace = Trace(Governor(max_calls=1))
    client = saying()
    answer = read(many(3), QUESTION, client, ReadSpec("stuff"), trace=trace)
    assert answer.found
    tight = Trace(Governor(max_tokens_total=5))
    with override(embedder="lexical"):
        answer = read(many(3), QUESTION, client, "retrieve", trace=tight)
    assert labels(client) == ["stuff.answer"]
    assert (answer.partial, answer.notes["stop_reason"]) == (True, "tokens")
    assert answer.notes["token_cap_reached"] == 5
    assert "failed_calls" not in answer.notes
    assert "stopped at the limit of 5 tokens" in answer.reasons()


CAP_NOTES = {
    "call_cap_reached", "cost_cap_reached", "token_cap_reached", "output_cap_reached",
    "model_not_allowed", "unpriced_model", "ledger_busy",
}  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "reason", "note", "said"),
    [
        ({"max_cost_usd": 0.001}, "cost", "cost_cap_reached", "spending limit of $0.001"),
        ({"max_tokens_total": 60}, "tokens", "token_cap_reached", "limit of 60 tokens"),
        ({"max_output_tokens": 50}, "output", "output_cap_reached", "50 output tokens"),
        ({"allowed_models": ["else"]}, "model", "model_not_allowed", "model dear-1 may not"),
    ],
)
def test_the_limit_that_stopped_an_answer_is_named(
    limits: dict[str, Any], reason: str, note: str, said: str
) -> None:  # core 86
    trace = Trace(Governor(**limits))
    client = saying()
    answer = read(the_chunks(1), QUESTION, client, ReadSpec("stuff", model="dear-1"), trace=trace)
    assert client.calls() == []
    assert (answer.notes["stop_reason"], trace.stop_reason) == (reason, reason)
    told = {name for name in answer.notes if name in CAP_NOTES}
    assert told == {note}
    assert any(said in why for why in answer.reasons())
    assert (trace.calls, len(trace.refusals)) == (0, 1)


def test_an_earlier_stop_does_not_mark_a_later_read() -> None:
    trace = Trace(Governor(max_output_tokens=200))
    stopped = read(the_chunks(1), QUESTION, saying(), "stuff", trace=trace)
    fine = read(
        the_chunks(1), QUESTION, saying(), ReadSpec("stuff", max_answer_tokens=100), trace=trace
    )
    assert (stopped.partial, fine.partial) == (True, False)
    assert (trace.budget_stop, trace.stop_reason) == (True, "output")


def test_the_bound_of_a_request_leaves_no_room_to_pass_the_limit() -> None:  # core 76
    # five requests fit one after the other where five worst cases do not
    trace = Trace(Governor(max_cost_usd=0.01))
    spec = ReadSpec("map_reduce", model="dear-1")
    answer = read(the_chunks(5), QUESTION, saying(), spec, trace=trace)
    assert trace.calls == 5
    assert trace.spent_usd < 0.01
    assert answer.notes["stop_reason"] == "cost"
    assert answer.notes["failed_calls"] == 0


def test_a_read_is_not_stopped_by_the_refusals_of_another_on_its_trace() -> None:
    trace = Trace(Governor(max_output_tokens=400))

    def asking_elsewhere(messages: Any) -> str:
        # another run on the same budget is refused while this one is on its way
        other = read(the_chunks(1), QUESTION, saying(), "stuff", trace=trace)
        assert other.notes["stop_reason"] == "output"
        return "Revenue was 45.2 million."

    spec = ReadSpec("stuff", max_answer_tokens=300)
    answer = read(the_chunks(1), QUESTION, MockClient(asking_elsewhere), spec, trace=trace)
    assert len(trace.refusals) == 1
    assert (answer.partial, "stop_reason" in answer.notes) == (False, False)


def test_what_is_dropped_is_counted_whole() -> None:
    # parts counted apart add up to more than the room, the whole does not
    from harness_core.models.tokenizers import count_tokens
    from harness_core.reading.prompts import joined, rendered

    chunks = new_chunks([f"w{number}" for number in range(40)])
    whole = count_tokens(joined(chunks))
    assert sum(count_tokens(rendered(chunk)) for chunk in chunks) > whole
    job = make_job(chunks, QUESTION, ReadSpec("stuff"), saying(), Trace())
    assert job.fit(chunks, room=whole).dropped == ()
    kept = job.fit(chunks, room=whole - 30)
    assert kept.dropped
    assert count_tokens(joined(kept.chunks)) <= whole - 30
