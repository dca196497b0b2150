"""Several recipes over one document: who runs, on what account, and what stops them.

Numbers are those of the list on comparisons (P) and of the core's list.
"""

import json
import threading
import warnings
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from harness_core import (
    Answer,
    AuthError,
    BadRecipeError,
    BadSettingError,
    CallableClient,
    Comparison,
    DuplicateRecipeWarning,
    EmbedFallbackWarning,
    ExtractiveClient,
    Governor,
    Job,
    MockClient,
    NoRecipesError,
    OpenAIClient,
    Progress,
    Recipe,
    RecipeFailedWarning,
    ReplayClient,
    ReplayExhaustedError,
    ReplayMissError,
    RequestRefused,
    SourceNotFoundError,
    Trace,
    UnknownOverrideError,
    acompare,
    answer_document,
    compare,
    example_document,
    governed_run,
    override,
    register_cleaner,
    register_extractor,
    register_reader,
)
from harness_core.documents.extractors.registry import Extracted
from harness_core.documents.types import Block
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow
from harness_core.messages import Reply

QUESTION = "What was revenue in 2024?"
TEXT = "\n\n".join(
    f"Part {number}. Revenue of unit {number} was {number}.5 million in 2024. It rose a little, "
    "as it had done in the years before, and nobody expected otherwise."
    for number in range(1, 7)
)
PARTS: dict[str, Any] = {"segment": {"method": "paragraph", "max_tokens": 60}}
SITUATED: dict[str, Any] = {
    "segment": {"method": "contextual", "context_source": "llm", "max_tokens": 220}
}


def recipe(name: str, reader: str = "map_reduce", **parts: Any) -> Recipe:
    read = {"reader": reader, **parts.pop("read", {})}
    return Recipe(name=name, read=read, **{**PARTS, **parts})  # type: ignore[arg-type]  # read by ``of``


def said(text: str = "Revenue was 45.2 million.") -> MockClient:
    return MockClient(lambda _messages: text)


def row(comparison: Comparison, name: str) -> dict[str, Any]:
    return next(row for row in comparison.rows() if row["recipe"] == name)


def labels(trace: Trace) -> list[str]:
    return [step.label for step in trace.requests]


# --- who runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [{"top_k": 3}, {"model": "priced"}, {"effort": "low"}, {"max_answer_tokens": 99}, {"mmr": 0.5}],
)
def test_recipes_that_differ_in_any_setting_both_run(changed: dict[str, Any]) -> None:
    # P1, readers 83
    with override(embedder="lexical"):
        found = compare(
            TEXT, QUESTION, [recipe("one", "retrieve"), recipe("two", "retrieve", read=changed)],
            client=said(),
        )  # fmt: skip
    assert list(found.answers) == ["one", "two"]


def test_a_recipe_that_is_another_in_all_but_its_name_runs_once() -> None:
    # P1
    client = said()
    with pytest.warns(DuplicateRecipeWarning, match="'again' is 'one'"):
        found = compare(TEXT, QUESTION, [recipe("one"), recipe("again")], client=client)
    assert list(found.answers) == ["one"]
    assert len(client.calls()) == found.trace.calls == row(found, "one")["calls"]


def test_duplicates_run_when_asked_for_under_names_of_their_own() -> None:
    # P1
    found = compare(TEXT, QUESTION, ["fast", "fast", "fast"], client=said(), allow_duplicates=True)
    assert list(found.answers) == ["fast", "fast#1", "fast#2"]
    assert [answer.recipe for answer in found.answers.values()] == list(found.answers)
    assert found.trace.calls == 3


def test_names_are_unique_even_beside_one_that_looks_made() -> None:
    recipes = [recipe("a"), recipe("a", "skim"), recipe("a#1", "refine")]
    assert list(compare(TEXT, QUESTION, recipes, client=said()).answers) == ["a", "a#2", "a#1"]


def test_a_recipe_answers_alone_as_it_does_among_others() -> None:
    # P2
    report = example_document("md")
    with override(embedder="lexical"):
        among = compare(report, QUESTION, client=ExtractiveClient())
        for name, answer in among.answers.items():
            alone = answer_document(report, QUESTION, name, client=ExtractiveClient())
            plain, other = (one.to_dict(trace=False) for one in (alone, answer))
            for told in ("trace_steps", "document"):  # the ingestion is the comparison's
                del plain[told], other[told]
            assert other == plain
            assert answer.document is not None


def test_one_recipe_is_one_recipe() -> None:
    # P10
    for one in (recipe("mine"), "fast", {"segment": PARTS["segment"], "read": "stuff"}):
        assert len(compare(TEXT, QUESTION, one, client=said()).answers) == 1


@pytest.mark.parametrize("none", [(), [], None])
def test_no_recipes_are_an_error(none: Any) -> None:
    # P11
    with pytest.raises(NoRecipesError):
        compare(TEXT, QUESTION, none, client=said())


def test_what_is_wrong_is_said_before_the_document_is_touched() -> None:
    # R12
    def asked(*recipes: Any, **more: Any) -> Comparison:
        return compare("no_such.pdf", QUESTION, recipes or ("fast",), client=said(), **more)

    with pytest.raises(BadRecipeError, match="auto"):
        asked("fast", "auto")
    with pytest.raises(UnknownOverrideError):
        asked(no_such_setting=1)
    with pytest.raises(BadSettingError, match="on_error"):
        asked(on_error="ignore")
    for wrong in ([], "  ", ["a", ""], 7):
        with pytest.raises(BadSettingError, match="correct"):
            asked(correct=wrong)
    with pytest.raises(BadSettingError, match="client"):
        compare("no_such.pdf", QUESTION, client="gpt")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(SourceNotFoundError):
        asked()


def test_overrides_reach_every_recipe() -> None:
    found = compare(TEXT, QUESTION, ["fast", "thorough"], client=said(), max_answer_tokens=77)
    assert all("max_answer_tokens=77" in one["settings"] for one in found.rows())


# --- on what account ------------------------------------------------------------------------------


def test_the_call_cap_is_each_recipes_own() -> None:
    # P3
    two = {**PARTS, "segment": {"max_tokens": 160}}
    recipes = [
        recipe("first", **two),
        recipe("second", "skim", **two),
        recipe("last", "refine", **two),
    ]
    found = compare(TEXT, QUESTION, recipes, client=said(), trace=Trace(Governor(max_calls=3)))
    assert [one["calls"] for one in found.rows()] == [3, 3, 2]
    assert not any("stop_reason" in answer.notes for answer in found.answers.values())
    assert found.trace.calls == 8


@pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")
@pytest.mark.parametrize("share", [0.9, 0.6, 0.3])
def test_the_spending_limit_is_the_comparisons(share: float) -> None:
    # P4
    recipes = [recipe(name, name) for name in ("map_reduce", "skim", "refine", "hierarchical")]
    caps: dict[str, Any] = {
        "model": "priced", "max_answer_tokens": 16, "max_chunk_tokens": 16,
        "max_summary_tokens": 16,
    }  # fmt: skip
    client = said("Revenue rose in the year 2024, by 45.2 million.")
    most = compare(TEXT, QUESTION, recipes, client=client, **caps).trace.spent_usd * share
    trace = Trace(Governor(max_cost_usd=most))
    found = compare(TEXT, QUESTION, recipes, client=client, trace=trace, **caps)
    assert 0.5 * most < trace.spent_usd <= most
    stopped = ["stop_reason" in answer.notes for answer in found.answers.values()]
    assert stopped[-1]
    assert stopped == sorted(stopped), "the first ones had all there was"


def test_the_token_limit_is_the_comparisons() -> None:
    recipes = [recipe("one"), recipe("two", "skim"), recipe("three", "refine")]
    governor = Governor(max_tokens_total=4000)
    found = compare(
        TEXT, QUESTION, recipes, client=said(), trace=Trace(governor), max_answer_tokens=64,
        max_chunk_tokens=64,
    )  # fmt: skip
    assert found.trace.ledger.tokens <= 4000
    assert found.answers["three"].notes["stop_reason"] == "tokens"


def test_what_else_the_trace_has_spent_counts_against_the_limit_and_not_in_the_rows() -> None:
    trace = Trace(Governor(max_cost_usd=1))
    answer_document(TEXT, QUESTION, "fast", client=said(), model="priced", trace=trace)
    before = trace.spent_usd
    found = compare(TEXT, QUESTION, "thorough", client=said(), model="priced", trace=trace)
    assert found.trace is trace
    assert row(found, "thorough")["usd"] == pytest.approx(trace.spent_usd - before)
    assert len(trace.answers) == 2


def test_recipes_that_cut_alike_share_the_chunks_and_are_each_charged_for_them() -> None:
    # P12, core 157
    client = said("In the report on revenue.")
    recipes = [recipe("one", **SITUATED), recipe("two", "skim", **SITUATED)]
    found = compare(TEXT, QUESTION, recipes, client=client, model="priced")
    cut = labels(found.trace).count("segment.context")
    assert cut > 0
    for one in recipes:
        alone = compare(
            TEXT, QUESTION, one, client=said("In the report on revenue."), model="priced"
        )
        for column in ("calls", "tokens_in", "tokens_out", "usd", "usd_estimated", "chunks"):
            assert row(found, one.name)[column] == alone.rows()[0][column]
    charged = sum(one["usd"] for one in found.rows())
    twice = [step for step in found.trace.steps if step.label == "segment.context"]
    assert charged == pytest.approx(
        found.trace.spent_usd + sum(step.budget_pico or 0 for step in twice) / 1e12
    )
    assert sum(one["calls"] for one in found.rows()) == found.trace.calls + cut
    assert found.trace.calls == len(client.calls())


def test_shared_chunks_count_against_a_later_recipes_cap() -> None:
    recipes = [recipe("one", "stuff", **SITUATED), recipe("two", "refine", **SITUATED)]
    cut = compare(TEXT, QUESTION, recipes[0], client=said()).rows()[0]["calls"] - 1
    trace = Trace(Governor(max_calls=cut + 1))
    with pytest.warns(RecipeFailedWarning, match="above the cap"):
        found = compare(TEXT, QUESTION, recipes, client=said(), trace=trace)
    assert [one["calls"] for one in found.rows()] == [cut + 1, cut]
    assert found.trace.calls == cut + 1


@pytest.mark.filterwarnings("ignore::harness_core.errors.SegmentFallbackWarning")
def test_chunks_that_a_limit_cut_short_are_not_shared() -> None:
    # P7
    recipes = [recipe("one", "stuff", **SITUATED), recipe("two", "refine", **SITUATED)]
    with pytest.warns(RecipeFailedWarning):
        found = compare(TEXT, QUESTION, recipes, client=said(), trace=Trace(Governor(max_calls=1)))
    assert labels(found.trace) == ["segment.context", "segment.context"]


def test_chunks_of_one_text_with_other_unread_pages_are_not_shared(tmp_path: Path) -> None:
    # P8
    def extract(_path: Path, opts: Any) -> Extracted:
        unread = (2,) if opts["ocr"] == "never" else ()
        return Extracted(blocks=(Block(text=TEXT, page=1),), pages=2, unread_pages=unread)

    register_extractor("paged", "paged", extract)
    path = tmp_path / "a.paged"
    path.write_text("x")
    recipes = [recipe("whole"), recipe("blind", ingest={"ocr": "never"})]
    found = compare(path, QUESTION, recipes, client=said())
    assert "unread_pages" not in found.answers["whole"].notes
    assert found.answers["blind"].notes["unread_pages"] == [2]
    assert [label for label in (s.label for s in found.trace.steps) if label == "segment"] == [
        "segment", "segment",
    ]  # fmt: skip


def test_chunks_of_another_text_of_the_same_length_are_not_shared() -> None:
    # P9
    register_cleaner("swapped", lambda text, _opts: text.replace("million", "billion"))
    client = MockClient(lambda messages: "b" if "billion" in str(messages) else "m")
    recipes = [recipe("one", "stuff"), recipe("two", "stuff", ingest={"clean": ["swapped"]})]
    found = compare(TEXT, QUESTION, recipes, client=client)
    assert [answer.answer for answer in found.answers.values()] == ["m", "b"]


def test_chunks_that_another_model_would_cut_are_not_shared() -> None:
    recipes = [recipe("one", read={"model": "priced"}, **SITUATED),
               recipe("two", read={"model": "dear"}, **SITUATED)]  # fmt: skip
    found = compare(TEXT, QUESTION, recipes, client=said())
    asked = {(s.label, s.model) for s in found.trace.requests if s.label == "segment.context"}
    assert asked == {("segment.context", "priced"), ("segment.context", "dear")}


def test_each_answer_holds_its_own_recipe_and_the_trace_holds_all() -> None:
    # core 102
    recipes = [recipe("one", **SITUATED), recipe("two", "refine", **SITUATED)]
    found = compare(TEXT, QUESTION, recipes, client=said())
    one, two = (answer.trace for answer in found.answers.values())
    assert "ingest" not in {step.label for step in one.steps + two.steps}
    assert {step.label for step in two.steps} == {
        "segment.context", "segment", "preflight", "refine.draft", "refine.revise",
    }  # fmt: skip
    assert found.answers["two"].totals().calls == row(found, "two")["calls"]
    recipes_of = {step.label: step.recipe for step in found.trace.steps}
    assert (recipes_of["ingest"], recipes_of["segment"], recipes_of["segment.context"]) == (
        None,
    ) * 3
    assert (recipes_of["map.answer"], recipes_of["refine.draft"]) == ("one", "two")
    assert {step.source for step in found.trace.steps if step.label != "ingest"} == {
        step.source for step in one.steps
    }


def test_one_recipe_is_a_list_in_the_record() -> None:
    # core 105
    found = compare(TEXT, QUESTION, "fast", client=said())
    meta = json.loads(json.dumps(found.trace.export()["meta"]))
    assert (meta["recipes"], meta["question"], meta["source"]) == (
        ["fast"], QUESTION, found.document.label,
    )  # fmt: skip


def test_progress_knows_what_was_spent_before() -> None:
    heard: list[Progress] = []
    found = compare(
        TEXT, QUESTION, [recipe("one"), recipe("two", "refine")], client=said(), model="priced",
        on_progress=heard.append,
    )  # fmt: skip
    spent = [one.spent for one in heard]
    assert spent == sorted(spent, key=lambda usd: usd or 0)
    assert spent[-1] == found.trace.spent_usd


def test_each_recipe_keeps_its_own_bound_on_requests_in_flight() -> None:
    going: list[int] = []
    most: dict[str, int] = {}

    async def answer(_messages: Any, params: dict[str, Any]) -> str:
        going.append(1)
        most[params["label"]] = max(most.get(params["label"], 0), len(going))
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        going.pop()
        return "said"

    async def main() -> None:
        await acompare(
            TEXT, QUESTION,
            [recipe("one", read={"max_concurrency": 1}), recipe("many", "skim")],
            client=CallableClient(answer, model="priced"),
        )  # fmt: skip

    anyio.run(main)
    assert (most["map.answer"], most["skim.extract"]) == (1, 4)


@pytest.mark.anyio
async def test_the_async_twin_gives_the_same() -> None:
    recipes = [recipe("one", **SITUATED), recipe("two", "skim", **SITUATED), "fast"]
    here = compare(TEXT, QUESTION, recipes, client=said(), model="priced", correct="45.2")
    there = await acompare(TEXT, QUESTION, recipes, client=said(), model="priced", correct="45.2")
    assert there.rows() == here.rows()
    assert labels(there.trace) == labels(here.trace)
    assert str(there) == str(here)


# --- what stops a recipe --------------------------------------------------------------------------


def failing(job: Job) -> Flow[Answer]:
    """Ask once, and break."""
    yield from ask(job.answering(job.chunks, "failing.answer"))
    raise ZeroDivisionError("one over nothing")


@pytest.fixture
def _failing() -> None:
    register_reader("failing", failing, signature="own|1|none", stages=["failing.answer"])


@pytest.mark.usefixtures("_failing")
def test_a_recipe_that_fails_is_a_row_and_what_it_spent_is_in_the_trace() -> None:
    # P5
    with pytest.warns(
        RecipeFailedWarning, match="'bad' failed: ZeroDivisionError: one over nothing"
    ):
        found = compare(
            TEXT, QUESTION, [recipe("bad", "failing"), recipe("good")], client=said(),
            model="priced", correct="45.2",
        )  # fmt: skip
    bad, good = found.rows()
    assert (bad["error"], bad["calls"], bad["partial"], bad["not_found"]) == (
        "one over nothing", 1, True, True,
    )  # fmt: skip
    assert bad["usd"] > 0
    assert bad["usd"] + good["usd"] == pytest.approx(found.trace.spent_usd)
    assert (bad["correct"], good["correct"]) == (False, True)
    answer = found.answers["bad"]
    assert answer.trace is found.trace
    assert answer.totals().calls == 1
    assert answer.notes["error"] == "one over nothing"
    steps = {step.label: step.recipe for step in found.trace.steps}
    assert steps["failing.answer"] == "bad"


@pytest.mark.usefixtures("_failing")
def test_it_stops_the_comparison_when_asked_to() -> None:
    trace = Trace()
    with pytest.raises(ZeroDivisionError):
        compare(TEXT, QUESTION, [recipe("bad", "failing"), recipe("good")], client=said(),
                on_error="stop", trace=trace)  # fmt: skip
    assert labels(trace) == ["failing.answer"]
    assert trace.requests[0].recipe == "bad"


def test_failures_that_a_reader_only_counts_are_told() -> None:
    # P6
    def unauthorised(_messages: Any) -> Reply:
        return Reply.failed("HTTP 401: no such key", status=401)

    found = compare(TEXT, QUESTION, [recipe("one")], client=MockClient(unauthorised))
    assert row(found, "one")["error"] == "HTTP 401: no such key"
    assert "error" not in found.answers["one"].notes or found.answers["one"].partial


def test_a_failure_that_a_fallback_made_good_is_no_error() -> None:
    def down(_texts: Any) -> Any:
        raise RuntimeError("no vectors today")

    client = MockClient(lambda _messages: "Revenue rose.", embed=down)
    with pytest.warns(EmbedFallbackWarning):
        found = compare(TEXT, QUESTION, [recipe("one", "retrieve")], client=client)
    assert found.trace.errors
    assert row(found, "one")["error"] is None


def test_a_missing_key_stops_everything_before_the_document_is_read() -> None:
    # core 5, core 7
    with pytest.raises(AuthError):
        compare("no_such.pdf", QUESTION, client=OpenAIClient("gpt-4o-mini"))


def test_a_key_that_turns_out_useless_stops_everything() -> None:
    # core 7
    def locked(_messages: Any) -> str:
        raise AuthError("no key")

    with pytest.raises(AuthError):
        compare(TEXT, QUESTION, [recipe("one"), recipe("two", "skim")], client=MockClient(locked))


def test_a_refusal_that_is_raised_is_a_row_and_is_told_to_whoever_governs() -> None:
    governor = Governor(max_calls=8, max_tokens_total=300, on_refusal="raise")
    found: list[Comparison] = []

    def governed() -> None:
        with governed_run(governor=governor):
            found.append(compare(TEXT, QUESTION, ["fast"], client=said()))

    with pytest.warns(RecipeFailedWarning), pytest.raises(RequestRefused):
        governed()
    assert found[0].answers["fast"].notes["stop_reason"] == "tokens"
    assert found[0].trace.stop_reason == "tokens"


# --- again, from the recording --------------------------------------------------------------------


def test_a_comparison_replays() -> None:
    with override(embedder="lexical"):
        recipes = [recipe("one", **SITUATED), recipe("two", "skim", **SITUATED), "needle", "fast"]
        first = compare(TEXT, QUESTION, recipes, client=said(), model="priced", correct="45.2")
        client = ReplayClient(Trace.load(first.trace.export()))
        again = compare(TEXT, QUESTION, recipes, client=client, model="priced", correct="45.2")
    spent = ("usd", "usd_estimated", "usd_per_correct")
    for one, other in zip(first.rows(), again.rows(), strict=True):
        assert {k: v for k, v in other.items() if k not in spent} == {
            k: v for k, v in one.items() if k not in spent
        }
    assert again.trace.spent_usd == 0
    assert client.stats()["misses"] == 0
    assert client.stats()["hits"] == client.stats()["recorded"]


@pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")
@pytest.mark.parametrize(
    "limits",
    [{"max_calls": 7}, {"max_calls": 3}, {"max_cost_usd": 0.0045}, {"max_cost_usd": 0.002},
     {"max_tokens_total": 2500}],
)  # fmt: skip
def test_a_comparison_that_was_stopped_stops_in_a_replay_where_it_did(limits: Any) -> None:
    # P13
    recipes = [recipe("one"), recipe("two", "skim", **SITUATED), recipe("three", "refine"),
               recipe("four", "stuff")]  # fmt: skip
    caps: dict[str, Any] = {"max_answer_tokens": 64, "max_chunk_tokens": 64, "model": "priced"}

    def told(client: Any) -> tuple[list[Any], Trace]:
        trace = Trace(Governor(**limits))
        found = compare(TEXT, QUESTION, recipes, client=client, trace=trace, **caps)
        return [
            (answer.answer, answer.partial, answer.notes, answer.chunks_used)
            for answer in found.answers.values()
        ], trace

    first, trace = told(said())
    again, replayed = told(ReplayClient(Trace.load(trace.export())))
    assert again == first
    assert any("stop_reason" in notes for _, _, notes, _ in first)
    assert labels(replayed) == labels(trace)


@pytest.mark.filterwarnings("ignore::harness_core.errors.RecipeFailedWarning")
def test_a_recipe_that_a_limit_stopped_before_its_first_request_is_stopped_in_a_replay() -> None:
    # P13
    caps: dict[str, Any] = {"max_answer_tokens": 16, "max_chunk_tokens": 16}
    recipes = [recipe("one"), recipe("two", "refine")]
    alone = compare(TEXT, QUESTION, recipes[0], client=said(), model="priced", **caps)
    governor = Governor(max_cost_usd=alone.trace.spent_usd * 1.05)
    first = compare(
        TEXT, QUESTION, recipes, client=said(), model="priced", trace=Trace(governor), **caps
    )
    again = compare(
        TEXT, QUESTION, recipes, client=ReplayClient(Trace.load(first.trace.export())),
        model="priced", trace=Trace(governor), **caps,
    )  # fmt: skip
    errors = [[one["error"] for one in found.rows()] for found in (first, again)]
    assert errors[0] == errors[1]
    assert "before any reply" in (errors[0][1] or "")
    with pytest.raises((ReplayMissError, ReplayExhaustedError)):  # it may spend more than was
        compare(TEXT, QUESTION, recipes, client=ReplayClient(first.trace), model="priced", **caps)


def test_two_comparisons_on_one_trace_keep_its_limit_together() -> None:
    recipes = [recipe(name, name) for name in ("map_reduce", "skim", "refine")]
    whole = compare(TEXT, QUESTION, recipes, client=said(), model="priced").trace.spent_usd
    trace = Trace(Governor(max_cost_usd=whole))
    found: list[Comparison] = []

    def one() -> None:
        found.append(
            compare(
                TEXT, QUESTION, recipes, client=MockClient(lambda _m: "Rose.", concurrent=True),
                model="priced", trace=trace, max_answer_tokens=16, max_chunk_tokens=16,
            )
        )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=one, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(found) == 3
    assert 0 < trace.spent_usd <= whole
    assert sum(one["calls"] for each in found for one in each.rows()) == trace.calls
    assert trace.calls == len(trace.requests)


def test_a_replay_that_diverges_stops_loudly() -> None:
    trace = compare(TEXT, QUESTION, [recipe("one")], client=said()).trace
    with pytest.raises(ReplayMissError):
        compare(TEXT, "Another question?", [recipe("one")], client=ReplayClient(trace))


def test_a_comparison_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    path, asked = tmp_path / "run.jsonl", 0

    def tired(_messages: Any) -> str:
        nonlocal asked
        asked += 1
        if asked == 9:
            raise AuthError("revoked")
        return "said"

    recipes = [recipe("one"), recipe("two", "skim")]
    trace = Trace(path=path)
    with pytest.raises(AuthError):
        compare(TEXT, QUESTION, recipes, client=MockClient(tired), trace=trace)
    trace.close()
    client, resumed = said("said"), Trace(path=path, resume=True)
    found = compare(TEXT, QUESTION, recipes, client=client, trace=resumed)
    resumed.close()
    whole = compare(TEXT, QUESTION, recipes, client=said("said"))
    assert len(client.calls()) == whole.trace.calls - 8
    assert [answer.answer for answer in found.answers.values()] == ["said", "said"]
    assert [one["calls"] for one in found.rows()] == [one["calls"] for one in whole.rows()]
