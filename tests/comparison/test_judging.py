"""What a right answer cost: who is right, at what price, and what is unknown."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core import (
    Answer,
    BadCorrectWarning,
    Comparison,
    EmbedFallbackWarning,
    Governor,
    MockClient,
    ReadSpec,
    Recipe,
    RecipeFailedWarning,
    SegmentSpec,
    Trace,
    compare,
)
from harness_core.comparison.judging import judge_of, per_correct
from harness_core.comparison.legs import unique

QUESTION = "What was revenue in 2024?"
TEXT = "\n\n".join(
    f"Revenue of unit {number} was {number}.5 million in 2024." for number in range(6)
)
RIGHT = "Revenue was  45.2\nMillion dollars, in 2024."


def answer(text: str, **notes: Any) -> Answer:
    return Answer(answer=text, reader="stuff", question=QUESTION, notes=notes)


def compared(text: str = RIGHT, correct: Any = "45.2 million", **more: Any) -> Comparison:
    client = MockClient(lambda _messages: text)
    return compare(
        TEXT, QUESTION, more.pop("recipes", "fast"), client=client, correct=correct, **more
    )


def only(found: Comparison) -> dict[str, Any]:
    (row,) = found.rows()
    return row


def test_a_right_answer_costs_what_it_cost() -> None:
    # core 156
    row = only(compared(model="priced"))
    assert row["correct"] is True
    assert row["usd_per_correct"] == row["usd"] > 0


def test_a_wrong_answer_that_cost_something_is_infinitely_dear() -> None:
    # P14, core 156
    row = only(compared("Revenue was 7.", model="priced"))
    assert (row["correct"], row["usd_per_correct"]) == (False, math.inf)


def test_a_wrong_answer_that_cost_nothing_is_unknown() -> None:
    row = only(compared("Revenue was 7."))
    assert (row["correct"], row["usd"], row["usd_per_correct"]) == (False, 0, None)


def test_without_a_price_the_cost_is_unknown_and_never_nothing() -> None:
    # P14
    trace = Trace(Governor(max_cost_usd=None))
    row = only(compared(model="no-price", trace=trace))
    assert (row["correct"], row["usd"], row["usd_per_correct"], row["usd_estimated"]) == (
        True, None, None, None,
    )  # fmt: skip


def test_a_function_that_fails_is_told_and_leaves_it_unknown() -> None:
    # P14
    def broken(_answer: Answer) -> bool:
        raise KeyError("45.2")

    with pytest.warns(BadCorrectWarning, match="'fast'.*KeyError"):
        row = only(compared(correct=broken, model="priced"))
    assert (row["correct"], row["usd_per_correct"]) == (None, None)


def test_a_function_is_given_the_answer_and_may_not_know() -> None:
    assert only(compared(correct=lambda one: one.answer.endswith("2024.")))["correct"] is True
    assert only(compared(correct=lambda one: "no" in one.notes))["correct"] is False
    assert only(compared(correct=lambda _one: None))["correct"] is None


def test_what_a_limit_stopped_before_it_found_anything_is_unknown() -> None:
    # core 156
    trace = Trace(Governor(max_calls=0))
    with pytest.warns(RecipeFailedWarning):
        row = only(compared(trace=trace))
    assert (row["correct"], row["usd_per_correct"], row["not_found"]) == (None, None, True)
    assert "max_calls" in row["error"]


def test_what_a_limit_stopped_and_found_something_all_the_same_is_judged() -> None:
    judge = judge_of("45.2")
    assert judge(answer("It was 45.2.", stop_reason="cost")) is True
    assert judge(answer("It was 7.", stop_reason="cost")) is False
    assert judge(answer("NOT_IN_DOCUMENT", stop_reason="cost")) is None
    assert judge(answer("NOT_IN_DOCUMENT")) is False


def test_all_strings_must_occur() -> None:
    assert only(compared(correct=["45.2", "DOLLARS,   in 2024"]))["correct"] is True
    assert only(compared(correct=("45.2", "euros")))["correct"] is False


@given(st.lists(st.sampled_from(["Revenue", "was", "45.2", "Straße"]), min_size=1, max_size=6))
def test_case_and_white_space_do_not_matter(words: list[str]) -> None:
    assert judge_of(" ".join(words).upper())(answer("\n \t".join(words).lower())) is True


def test_the_columns_are_there_when_correct_was_given() -> None:
    assert {"correct", "usd_per_correct"} <= only(compared()).keys()
    assert {"correct", "usd_per_correct"} & only(compared(correct=None)).keys() == set()


@pytest.mark.parametrize(
    ("usd", "correct", "expected"),
    [(0.5, True, 0.5), (0.0, True, 0.0), (0.5, False, math.inf), (0.0, False, None),
     (None, True, None), (None, False, None), (0.5, None, None)],
)  # fmt: skip
def test_the_price_of_a_right_answer(
    usd: float | None, correct: bool | None, expected: float | None
) -> None:
    assert per_correct(usd, correct) == expected


@given(st.lists(st.sampled_from(["a", "b", "a#1", "a#2", "b#1"]), max_size=8))
def test_names_are_made_unique_and_the_first_keeps_its_own(names: list[str]) -> None:
    made = unique(names)
    assert len(set(made)) == len(names)
    for place, name in enumerate(names):
        assert made[place] == name or name in names[:place]


# --- the table ------------------------------------------------------------------------------------


def test_a_row_tells_how_a_recipe_read_and_what_it_came_to() -> None:
    recipe = Recipe(name="mine", segment=SegmentSpec(max_tokens=60), read=ReadSpec("refine"))
    row = only(compared(recipes=recipe, model="priced", max_answer_tokens=200))
    assert list(row) == [
        "recipe", "segmenter", "chunks", "reader", "signature", "settings", "partial",
        "chunks_used", "answer_chars", "not_found", "calls", "tokens_in", "tokens_out", "usd",
        "usd_estimated", "correct", "usd_per_correct", "error",
    ]  # fmt: skip
    assert (row["recipe"], row["segmenter"], row["reader"]) == ("mine", "paragraph", "refine")
    assert row["settings"] == "max_tokens=60, model=priced, max_answer_tokens=200"
    assert row["chunks"] == row["chunks_used"] == row["calls"]
    assert (row["answer_chars"], row["not_found"], row["partial"]) == (len(RIGHT), False, False)
    assert (row["usd_estimated"], row["error"]) == (1.0, None)


def test_a_fallback_of_the_segmenter_is_told() -> None:
    def down(_texts: Any) -> Any:
        raise RuntimeError("no vectors")

    client = MockClient(embed=down)
    with pytest.warns(EmbedFallbackWarning):
        found = compare(TEXT, QUESTION, "needle", client=client)
    assert only(found)["segmenter"].startswith("semantic")
    assert only(found)["error"] is None


@pytest.mark.filterwarnings("ignore::harness_core.errors.EnsembleDegenerateWarning")
def test_an_ensembles_signature_names_its_members() -> None:
    row = only(
        compared(recipes=Recipe(segment=SegmentSpec(max_tokens=60), read=ReadSpec("ensemble")))
    )
    assert row["signature"] == "ensemble|sum+1|none{map_reduce+retrieve}"


def test_dollars_on_counts_of_our_own_are_told_apart() -> None:
    from harness_core.messages import Reply, Usage

    def answer(_messages: Any, params: dict[str, Any]) -> Reply:
        usage = Usage(input=100, output=10) if params["label"] == "reduce" else Usage()
        return Reply(ok=True, text="said", usage=usage)

    recipe = Recipe(segment=SegmentSpec(max_tokens=60), read=ReadSpec(model="priced"))
    found = compare(TEXT, QUESTION, recipe, client=MockClient(answer))
    reported = sum(
        step.budget_pico or 0
        for step in found.trace.requests
        if step.tokens.provenance == "reported"
    )
    row = only(found)
    assert row["usd_estimated"] == pytest.approx(1 - reported / 1e12 / row["usd"], abs=1e-4)


def test_the_premise_has_a_column_when_it_was_checked() -> None:
    assert "premise" not in only(compared())
    assert only(compared(premise=True))["premise"] is None


def test_a_comparison_prints_as_a_table_with_its_answers() -> None:
    found = compared("Revenue was <7>.", recipes=["fast", "thorough"], model="priced")
    lines = str(found).splitlines()
    assert lines[0] == "<Comparison> 2 recipe(s)"
    assert lines[2].split()[:4] == ["recipe", "segmenter", "chunks", "reader"]
    assert lines[3].split()[:4] == ["fast", "paragraph", "1", "stuff"]
    assert lines[-1] == "  thorough: Revenue was <7>."
    assert "inf" in lines[3]
    html = found._repr_html_()
    assert "Revenue was &lt;7&gt;." in html
    assert html.count("<tr>") == 3


def test_why_an_answer_is_partial_is_printed_beside_it() -> None:
    found = compared("Revenue was 7 [chunk 99].", recipes=["fast"])
    assert str(found).endswith("[partial: cites chunks that were never sent: 99]")


def test_an_unknown_cost_is_said() -> None:
    found = compared(model="no-price", trace=Trace(Governor(max_cost_usd=None)), recipes=["fast"])
    assert "unknown" in str(found)


def test_rows_are_copies() -> None:
    found = compared()
    found.rows()[0]["recipe"] = "other"
    assert only(found)["recipe"] == "fast"
