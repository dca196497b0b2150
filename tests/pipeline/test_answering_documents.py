"""From a source to an answer: recipes, overrides, the automatic choice, what is recorded.

Numbers are those of the list on recipes and one document (R) and on limits, cost and records (L).
R3 has no counterpart: ``get_recipe`` takes one name and ``list_recipes`` tells of all. R12 is about
comparisons and many documents, tested there; that ``auto`` is no recipe is here. L11 is about a
cache directory: ours is one file, tested with the cache. L14 is about extracted records, tested
there.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_core import (
    CallableClient,
    Chunks,
    Estimate,
    Governor,
    IngestSpec,
    MockClient,
    OpenAIClient,
    Progress,
    ReadSpec,
    Recipe,
    ReplayClient,
    ResponseCache,
    SegmentSpec,
    Trace,
    aanswer_document,
    answer_document,
    aread,
    asegment,
    call,
    configure,
    current_settings,
    estimate,
    example_document,
    get_recipe,
    ingest,
    list_recipes,
    override,
    read,
    register_embedder,
    register_model,
    register_reader,
    segment,
    set_tokenizer,
)
from harness_core.asked import auto_limit
from harness_core.errors import (
    AmbiguousNameWarning,
    AuthError,
    BadOverrideError,
    BadRecipeError,
    BadSettingError,
    BudgetError,
    ClampedWarning,
    EmbedFallbackWarning,
    HarnessError,
    PathAsTextWarning,
    ReservedNameError,
    UnknownModelWarning,
    UnknownOverrideError,
)
from harness_core.reading.registry import find_reader
from harness_core.recipes import as_recipe
from tests.support.reading import QUESTION, labels, saying, the_chunks

TEXT = ["Revenue was 45.2 million dollars in 2025.", "Costs were 40.1 million dollars in 2025."]
REPORT = example_document("md")


@pytest.fixture(autouse=True)
def _settings() -> Any:
    """The tokenizer and the models of these tests, and the tokenizer put back."""
    register_model("plain-1", context_window=128_000, max_output=4096, input_usd=2, output_usd=8)
    register_model("narrow-4", context_window=4000, max_output=1000, input_usd=2, output_usd=8)
    former = current_settings()["tokenizer"]
    yield
    configure(tokenizer=former)


# --- recipes and overrides ------------------------------------------------------------------------


def test_an_unknown_override_is_refused_before_anything_is_done(tmp_path: Path) -> None:  # R1
    client = MockClient()
    with pytest.raises(UnknownOverrideError, match=r"'max_token'.*max_tokens"):
        answer_document(tmp_path / "missing.md", QUESTION, "fast", client=client, max_token=9)
    assert client.calls() == []


def test_none_is_not_a_size(tmp_path: Path) -> None:  # R2
    with pytest.raises(BadOverrideError, match="max_tokens"):
        answer_document(tmp_path / "missing.md", QUESTION, "fast", max_tokens=None)
    answer = answer_document(TEXT, QUESTION, "fast", client=saying(), model=None)
    assert answer.found


def test_a_name_of_both_kinds_is_the_recipe_s() -> None:  # R4
    register_reader("fast", find_reader("stuff").reader)
    with pytest.warns(AmbiguousNameWarning):
        assert as_recipe("fast").segment.max_tokens == 4000


def test_no_credential_is_told_before_ingestion(tmp_path: Path) -> None:  # R5
    with pytest.raises(AuthError):
        answer_document(tmp_path / "missing.pdf", QUESTION, client=OpenAIClient("plain-1"))
    cached = OpenAIClient("plain-1").with_cache(ResponseCache(tmp_path / "cache.sqlite"))
    with pytest.raises(FileNotFoundError):  # a cache may answer without a credential
        answer_document(tmp_path / "missing.pdf", QUESTION, client=cached)


def test_the_client_s_model_is_asked_sized_and_priced() -> None:  # R6
    client = CallableClient(lambda messages: "Revenue was 45.2 million.", model="narrow-4")
    answer = answer_document(TEXT, QUESTION, client=client)
    (step,) = [s for s in answer.trace.steps if s.label == "auto_recipe"]
    assert (step.detail or {})["models"] == ["narrow-4"]
    assert answer.trace.cost()[0]["model"] == "narrow-4"
    assert (answer.totals().usd or 0) > 0


RECIPES: dict[str, tuple[str, int, int, str, dict[str, Any]]] = {
    "fast": ("paragraph", 4000, 0, "stuff", {}),
    "precise": ("sentence", 600, 60, "skim", {"cite": True}),
    "needle": ("semantic", 500, 50, "retrieve", {"top_k": 8, "cite": True}),
    "thorough": ("paragraph", 1200, 120, "map_reduce", {}),
    "survey": ("structural", 1500, 0, "hierarchical", {"fan_in": 5}),
    "narrative": ("paragraph", 1500, 0, "refine", {}),
    "scanned": ("page", 2000, 0, "rerank", {"rerank_candidates": 25, "top_k": 6}),
    "research": (
        "structural", 900, 90, "iterative", {"top_k": 5, "max_rounds": 4, "cite": True},
    ),
    "consensus": (
        "recursive", 1000, 100, "ensemble", {"members": ("retrieve", "map_reduce", "refine")},
    ),
    "legacy": ("paragraph", 3000, 0, "map_reduce", {}),
}  # fmt: skip


def test_the_recipes_are_listed() -> None:
    rows = list_recipes()
    assert [row["name"] for row in rows] == list(RECIPES)
    for row in rows:
        cut = (row["segmenter"], row["max_tokens"], row["overlap_tokens"], row["reader"])
        assert cut == RECIPES[row["name"]][:4]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_what_its_row_says(name: str) -> None:
    method, most, overlap, reader, settings = RECIPES[name]
    recipe = get_recipe(name)
    segment, spec = recipe.segment, recipe.read
    assert (segment.method, segment.max_tokens, segment.overlap_tokens) == (method, most, overlap)
    assert (recipe.name, spec.reader, spec.model) == (name, reader, None)
    assert {setting: getattr(spec, setting) for setting in settings} == settings
    assert recipe.ingest.clean == {
        "scanned": "scan", "research": "academic", "legacy": "legacy",
    }.get(name, "standard")  # fmt: skip


@pytest.mark.parametrize(
    ("given", "name", "reader"),
    [
        ("fast", "fast", "stuff"),
        ("skim", "paragraph+skim", "skim"),
        (Recipe(name="mine", read=ReadSpec("refine")), "mine", "refine"),
        ({"read": "stuff"}, "paragraph+stuff", "stuff"),
        ({"segment": {"method": "sentence"}, "name": "mine"}, "mine", "map_reduce"),
        (ReadSpec("retrieve"), "paragraph+retrieve", "retrieve"),
    ],
)
def test_a_recipe_may_be_given_in_several_forms(given: Any, name: str, reader: str) -> None:
    recipe = as_recipe(given)
    assert (recipe.name, recipe.read.reader) == (name, reader)


@pytest.mark.parametrize(
    "given", ["auto", "quick", 3, None, {}, {"reed": 1}, {"read": "stuff", "x": 1}]
)
def test_what_is_no_recipe_is_refused(given: Any) -> None:  # R12
    with pytest.raises(BadRecipeError):
        as_recipe(given)


def test_no_reader_may_be_called_auto() -> None:  # R12
    with pytest.raises(ReservedNameError):
        register_reader("auto", find_reader("stuff").reader)


def test_an_override_reaches_the_part_that_owns_it() -> None:
    client = saying()
    answer = answer_document(
        TEXT, QUESTION, "thorough", client=client, clean="none", max_tokens=40, overlap_tokens=0,
        max_chunk_tokens=99, premise=True,
    )  # fmt: skip
    notes = {s.label: dict(s.detail or {}) for s in answer.trace.steps if s.local}
    assert notes["segment"]["settings"]["max_tokens"] == 40
    assert notes["preflight"]["settings"]["max_chunk_tokens"] == 99
    assert client.calls()[0].params["max_output"] == 99
    assert answer.premise_checked
    assert answer.document is not None
    assert answer.document["clean_steps"] == []


def test_a_parallel_override_goes_to_every_part() -> None:
    from harness_core.recipes import overridden

    recipe = overridden(get_recipe("scanned"), {"parallel": False})
    assert (recipe.ingest.parallel, recipe.segment.parallel, recipe.read.parallel) == (False,) * 3


# --- auto -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "chosen"), [(50_000, "fast"), (50_001, "thorough")])  # R7
def test_auto_reads_what_fits_comfortably_at_once(tokens: int, chosen: str) -> None:  # core 139
    with override(tokenizer="words"):
        answer = estimate([" ".join(["stone"] * tokens)], QUESTION, client=saying())
    assert answer.recipe == chosen


def test_auto_takes_the_thorough_way_where_the_window_is_a_guess() -> None:  # R7
    client = CallableClient(lambda messages: "Yes.", model="nobody-knows-2")
    with pytest.warns(UnknownModelWarning):
        assert estimate(TEXT, QUESTION, client=client).recipe == "thorough"


def test_auto_takes_half_the_room_of_a_small_window() -> None:  # R7
    assert auto_limit("narrow-4", 1000) == (4000 * 9 // 10 - 1000) // 2
    assert auto_limit("plain-1", 1500) == 50_000
    with override(tokenizer="words"):
        for words, chosen in ((1300, "fast"), (1301, "thorough")):
            found = estimate(
                ["stone " * words], QUESTION, client=saying(), model="narrow-4",
                max_answer_tokens=1000,
            )  # fmt: skip
            assert found.recipe == chosen


def test_auto_counts_the_whole_text_not_its_lines() -> None:  # R8
    set_tokenizer("rounding-up", lambda text: -(-len(text.split()) // 10))
    lines = [f"Stone number {n}." for n in range(1500)]  # a token each, 450 together
    assert estimate(lines, QUESTION, client=saying(), model="narrow-4").recipe == "fast"


def test_only_the_chosen_recipe_s_warnings_are_given(
    recwarn: pytest.WarningsRecorder,
) -> None:  # R9
    fast = answer_document(TEXT, QUESTION, client=saying(), max_tokens=100)
    assert fast.recipe == "fast"
    assert fast.warnings == []
    with pytest.warns(ClampedWarning, match="overlap_tokens"):
        thorough = answer_document(
            ["stone was laid on stone. " * 2000], QUESTION, client=saying(), model="narrow-4",
            max_tokens=100,
        )  # fmt: skip
    assert thorough.recipe == "thorough"
    assert [name for name, _ in thorough.warnings] == ["ClampedWarning"]


def test_a_warning_of_both_candidates_is_given_once_and_early(tmp_path: Path) -> None:  # R10
    with (
        pytest.warns(ClampedWarning, match="mmr") as heard,
        pytest.raises(FileNotFoundError),
    ):
        answer_document(tmp_path / "missing.md", QUESTION, client=saying(), mmr=7)
    assert len(heard) == 1
    with pytest.warns(ClampedWarning, match="mmr") as heard:
        answer = answer_document(TEXT, QUESTION, client=saying(), mmr=7)
    assert len(heard) == len(answer.warnings) == 1


def test_a_replay_takes_the_recorded_choice(tmp_path: Path) -> None:  # R11, core 126
    text = ["Stone was laid on stone in the year 1911. " * 200]
    run = answer_document(text, QUESTION, client=saying(), model="narrow-4")
    assert run.recipe == "thorough"
    assert run.notes["auto_recipe"] == "thorough"
    replay = ReplayClient(run.trace.save(tmp_path / "run.json"))
    register_model("narrow-4", context_window=400_000, max_output=1000, input_usd=2, output_usd=8)
    again = answer_document(text, QUESTION, client=replay, model="narrow-4")
    assert (again.recipe, again.answer) == ("thorough", run.answer)
    (step,) = [s for s in again.trace.steps if s.label == "auto_recipe"]
    assert (step.detail or {})["replayed"] is True


# --- the record -----------------------------------------------------------------------------------


def test_the_steps_of_a_run_stand_in_their_order() -> None:
    answer = answer_document(TEXT, QUESTION, "needle", client=saying(), premise=True, verify=True)
    assert [step.label for step in answer.trace.steps] == [
        "ingest", "segment", "preflight", "embed.request", "embed", "retrieve.rank",
        "retrieve.answer", "read.verify", "read.premise",
    ]  # fmt: skip
    assert answer.trace_steps == (1, 9)
    auto = answer_document(TEXT, QUESTION, client=saying())
    labels_of = [step.label for step in auto.trace.steps]
    assert labels_of[:4] == ["ingest", "auto_recipe", "segment", "preflight"]


def test_an_answer_tells_its_recipe_document_and_chunks() -> None:
    answer = answer_document(REPORT, QUESTION, "thorough", client=saying(), max_tokens=300)
    assert (answer.recipe, answer.reader, answer.signature) == (
        "thorough", "map_reduce", "all|N+logN|tree",
    )  # fmt: skip
    assert answer.document is not None
    assert answer.document["source"].endswith("report.md")
    assert answer.segmentation is not None
    assert answer.segmentation["n"] == answer.notes["chunks"]
    assert {step.recipe for step in answer.trace.steps} == {"thorough"}
    assert {step.source for step in answer.trace.steps} == {"report.md"}
    assert answer.trace.answers == [answer]
    assert (answer.trace.meta["question"], answer.trace.meta["recipe"]) == (QUESTION, "thorough")
    json.loads(answer.to_json())


def test_answers_on_one_trace_count_their_own_steps() -> None:  # R13
    trace = Trace()
    first = answer_document(TEXT, "What about quays?", "fast", client=saying(), trace=trace)
    second = answer_document(TEXT, "What about sheds?", "fast", client=saying(), trace=trace)
    assert (first.totals().calls, second.totals().calls, trace.calls) == (1, 1, 2)
    assert "1 model call(s)" in str(second)
    stored = json.loads(second.to_json())["trace"]
    assert [step["label"] for step in stored["steps"]] == [
        "ingest",
        "segment",
        "preflight",
        "stuff.answer",
    ]
    assert "quays" not in json.dumps(stored["steps"])
    assert (stored["summary"]["calls"], stored["summary"]["steps"]) == (1, 4)
    assert first.trace_steps == (1, 4)
    assert second.trace_steps == (5, 8)


def test_ingestion_recorded_before_a_read_is_part_of_its_record() -> None:  # readers 188
    trace = Trace()
    document = ingest(TEXT, trace=trace)
    chunks = segment(document, trace=trace)
    answer = read(chunks, QUESTION, saying(), "stuff", trace=trace)
    assert answer.trace_steps == (1, trace.issued)


def test_warnings_of_ingestion_stay_with_the_answer_also_when_it_is_remembered() -> None:  # R14
    source = "reports/2024/annual-report-and-more.pfd"
    with pytest.warns(PathAsTextWarning):
        first = answer_document(source, QUESTION, "fast", client=saying())
    again = answer_document(source, QUESTION, "fast", client=saying())
    for answer in (first, again):
        assert [name for name, _ in answer.warnings] == ["PathAsTextWarning"]


# --- limits, cost, text ---------------------------------------------------------------------------


def test_a_request_that_could_pass_the_limit_is_not_sent_and_not_failed() -> None:  # L1
    client = saying()
    trace = Trace(Governor(max_cost_usd=0.001))
    answer = answer_document(TEXT, QUESTION, "fast", client=client, model="plain-1", trace=trace)
    assert client.calls() == []
    assert (answer.partial, answer.notes["stop_reason"]) == (True, "cost")
    assert answer.totals().errors == 0
    assert len(trace.refusals) == 1


def test_a_parallel_run_leaves_the_trace_of_a_sequential_one() -> None:  # L2
    rows = []
    for width in (1, 8):
        answer = answer_document(
            REPORT, QUESTION, "thorough", client=saying(), max_tokens=150, overlap_tokens=0,
            max_concurrency=width, trace=Trace(Governor(max_calls=60)),
        )  # fmt: skip
        rows.append([(r["step"], r["stage"], r["tokens_in"]) for r in answer.trace.rows()])
    assert rows[0] == rows[1]


def test_embedding_requests_are_counted_and_shown_apart() -> None:  # L3
    answer = answer_document(TEXT, QUESTION, "needle", client=saying())
    totals = answer.totals()
    assert (totals.calls, totals.embed_calls, answer.trace.calls) == (1, 1, 2)
    assert totals.embed_tokens > 0
    assert "1 model call(s), 1 embeddings request(s)" in str(answer)


def test_a_reply_without_usage_is_counted_here() -> None:  # L4
    trace = Trace()
    reply = call(saying(), QUESTION, model="plain-1", trace=trace)
    assert (reply.usage.input or 0) > 0
    assert (reply.usage.output or 0) > 0
    assert trace.spent_usd > 0


def test_an_unknown_price_is_none_never_nothing() -> None:  # L5
    register_model("unpriced-5", context_window=9000, max_output=500)
    client = CallableClient(lambda messages: "Yes.", model="unpriced-5")
    trace = Trace(Governor(allow_unpriced=True))
    answer = answer_document(TEXT, QUESTION, "fast", client=client, trace=trace)
    assert answer.totals().usd is None
    assert estimate(TEXT, QUESTION, "fast", client=client).usd is None


def test_vectors_of_no_use_fall_back_and_make_the_ranking_partial() -> None:  # L6
    client = MockClient(embed=lambda texts: [[0.0, 0.0] for _ in texts])
    with pytest.warns(EmbedFallbackWarning):
        answer = answer_document(TEXT, QUESTION, "needle", client=client)
    assert answer.partial


def test_a_setting_goes_to_none_and_back() -> None:  # L7
    former = configure(max_cost_usd=None, max_calls=7)
    assert current_settings()["max_cost_usd"] is None
    assert configure(**former) == {"max_cost_usd": None, "max_calls": 7}
    assert (current_settings()["max_cost_usd"], current_settings()["max_calls"]) == (5, 400)


@pytest.mark.parametrize("value", [float("nan"), "5", True, -1])
def test_a_limit_that_cannot_be_compared_is_refused(value: Any) -> None:  # L8
    with pytest.raises(BadSettingError):
        configure(max_cost_usd=value)
    with pytest.raises(BadSettingError):
        Governor(max_cost_usd=value)


def test_a_deterministic_embedder_reproduces_cuts_and_ranking() -> None:  # L9
    register_embedder(
        "letters", lambda texts, params: [[1 + t.count(c) for c in "aeiouns"] for t in texts],
        deterministic=True,
    )  # fmt: skip
    with override(embedder="letters"):
        run = answer_document(REPORT, QUESTION, "needle", client=saying(), max_tokens=150)
        again = answer_document(
            REPORT, QUESTION, "needle", client=ReplayClient(run.trace), max_tokens=150
        )
    assert run.segmentation == again.segmentation
    assert (run.chunks_used, run.warnings) == (again.chunks_used, again.warnings)


def test_lists_of_one_are_arrays_in_json() -> None:  # L10
    answer = answer_document(TEXT[:1], QUESTION, "thorough", client=saying())
    plain = json.loads(answer.to_json())
    assert plain["chunks_used"] == [1]
    assert len(plain["evidence"]) == 1
    assert isinstance(plain["document"]["unread_pages"], list)


def test_figures_of_another_script_are_read() -> None:  # L12
    assert ReadSpec("retrieve", top_k="\u0663").top_k == 3


def test_nothing_is_printed_and_progress_is_told_when_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:  # L13
    heard: list[Progress] = []
    answer_document(REPORT, QUESTION, "thorough", client=saying(), on_progress=heard.append)
    assert capsys.readouterr() == ("", "")
    stages = {one.stage for one in heard}
    assert stages == {"map.answer", "reduce"}
    assert [one.done for one in heard if one.stage == "map.answer"][-1] == max(
        one.total for one in heard if one.stage == "map.answer"
    )
    register_model("unpriced-6", context_window=9000, max_output=500)
    client = CallableClient(lambda messages: "Yes.", model="unpriced-6")
    unpriced = Trace(Governor(allow_unpriced=True))
    heard.clear()
    answer_document(TEXT, QUESTION, "fast", client=client, trace=unpriced, on_progress=heard.append)
    assert heard[-1].spent is None


# --- the other ways in ----------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_async_twins_give_the_same() -> None:
    spec = SegmentSpec(max_tokens=200)
    with override(embedder="lexical"):
        here = answer_document(REPORT, QUESTION, "needle", client=saying())
        there = await aanswer_document(REPORT, QUESTION, "needle", client=saying())
        assert here.to_dict(trace=False) == there.to_dict(trace=False)
        document = ingest(REPORT)
        chunks = await asegment(document, spec)
        assert chunks.chunks == segment(document, spec).chunks
        answer = await aread(chunks, QUESTION, saying(), "retrieve")
    assert answer.answer == read(chunks, QUESTION, saying(), "retrieve").answer


def test_the_text_of_the_answer_is_streamed() -> None:
    pieces: list[str] = []
    answer = answer_document(REPORT, QUESTION, "thorough", client=saying(), on_text=pieces.append)
    assert "".join(pieces) == answer.answer
    pieces.clear()
    answer_document(
        TEXT, QUESTION, "fast", client=saying(other="NOT_IN_DOCUMENT"), on_text=pieces.append
    )
    assert pieces == []


def test_segmenting_takes_a_source_a_document_and_a_spec_in_any_form() -> None:
    document = ingest(REPORT, IngestSpec())
    for spec in ("sentence", {"method": "sentence"}, SegmentSpec(method="sentence")):
        assert segment(document, spec).chunks == segment(REPORT, spec).chunks


# --- estimates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", [row["name"] for row in list_recipes()])
def test_an_estimate_sends_nothing_and_bounds_the_run(recipe: str) -> None:
    client = saying(other="Revenue was 45.2 million dollars [chunk 1].")
    report = example_document("pdf")
    found = estimate(report, QUESTION, recipe, client=client, model="plain-1")
    assert (client.calls(), client.embeds()) == ([], [])
    assert isinstance(found, Estimate)
    assert 0 < found.calls <= found.worst_calls
    assert 0 < (found.usd or 0) <= (found.worst_usd or 0)
    assert json.dumps(found.to_dict())


def test_an_estimate_of_chunks_is_that_of_their_document() -> None:
    chunks = segment(REPORT, {"max_tokens": 300})
    found = estimate(chunks, QUESTION, "map_reduce", client=saying(), model="plain-1")
    assert found.chunks == len(chunks)
    assert found.calls == len(chunks) + -(-len(chunks) // 5)
    assert estimate(the_chunks(3), QUESTION, client=saying()).recipe == "fast"


def test_a_free_client_is_estimated_at_nothing() -> None:
    from harness_core import ExtractiveClient

    found = estimate(REPORT, QUESTION, client=ExtractiveClient())
    assert (found.usd, found.worst_usd, found.recipe) == (0, 0, "fast")


@pytest.mark.parametrize(
    ("recipe", "more", "error"),
    [
        ("extract", {}, HarnessError),
        ("screen", {}, HarnessError),
        ("ensemble", {"members": ("stuff",)}, HarnessError),
        ("thorough", {"model": "tiny-1"}, BudgetError),
        ("fast", {"model": "tiny-1"}, BudgetError),
    ],
)
def test_an_estimate_of_what_cannot_be_read_fails_as_the_read_would(
    recipe: str, more: dict[str, Any], error: type[HarnessError]
) -> None:
    register_model("tiny-1", context_window=150, max_output=60, input_usd=1, output_usd=1)
    client = saying()
    errors = []
    for way in (estimate, answer_document):
        with pytest.raises(error) as caught:
            way(REPORT, QUESTION, recipe, client=client, **more)
        errors.append(type(caught.value))
    assert errors[0] is errors[1]
    assert labels(client) == []


def test_chunks_are_a_sequence(tmp_path: Path) -> None:
    chunks = segment(TEXT)
    assert isinstance(chunks, Chunks)
    assert len(list(chunks)) == len(chunks)
