"""The baseline without a model: it answers with sentences of the text, or says it cannot."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.client import Client
from harness_core.clients.extractive import ExtractiveClient
from harness_core.clients.extracts.units import units
from harness_core.clients.extracts.words import stem
from harness_core.messages import SENTINEL, Message, Request, Task, Texts

ROOT = Path(__file__).parents[2]
TEXTS = {
    "report": ROOT / "core/harness_core/data/report.md",
    "second": ROOT / "tests/data/second.md",
}
CLIENT = ExtractiveClient()

GARDEN = """# The Harrow Garden

The garden was laid out in 1911 by Edith Vane. It covers 14 hectares.

## Visitors

Last year 48,200 people came, 3,100 more than the year before. Dogs are not admitted.

| Month | Visitors | Rain, mm |
|---|---|---|
| May | 9,400 | 51 |
| June | 11,800 | 38 |
"""


def reply(kind: str, question: str, *excerpts: str, schema: Any = None, **more: Any) -> str:
    task = Task(kind, question, tuple(enumerate(excerpts, 1)), more)
    answer = CLIENT.send(Request(messages=(Message("user", "prompt"),), task=task, schema=schema))
    assert answer.ok
    return answer.text


def record(kind: str, question: str, *excerpts: str, **more: Any) -> Any:
    return json.loads(reply(kind, question, *excerpts, **more))


def names(*properties: str) -> dict[str, Any]:
    return {"properties": {name: {"type": "string"} for name in properties}}


# --- the goal -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "least"), [("report", 12), ("second", 8)])
@pytest.mark.parametrize("way", ["whole", "by_section"])
def test_most_questions_get_their_sentence_and_the_rest_the_sentinel(
    text: str, least: int, way: str
) -> None:
    source = TEXTS[text].read_text("utf-8")
    sections = re.split(r"(?m)^(?=## )", source)
    questions = json.loads((ROOT / f"tests/data/{text}_questions.json").read_text("utf-8"))
    right = 0
    for one in questions:
        asked = one["question"]
        if way == "whole":
            said = reply("answer", asked, *sections)
        else:
            found = [reply("answer", asked, section) for section in sections]
            said = reply("merge", asked, *found)
        if not one["answerable"]:
            assert said == SENTINEL, asked
        else:
            right += one["answer"] in said
    assert right >= least


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who laid out the garden?", "Edith Vane"),
        ("How large is the area that the garden covers?", "14 hectares"),
        ("When was the garden laid out?", "1911"),
        ("How many people came last year?", "48,200"),
        ("Are dogs admitted?", "not admitted"),
        ("How much rain fell in June?", "| June | 11,800 | 38 |"),
    ],
)
def test_an_answer_is_the_sentence_or_row_that_holds_it(question: str, answer: str) -> None:
    said = reply("answer", question, GARDEN)
    assert answer in said
    assert all(line in GARDEN for line in said.splitlines())


@pytest.mark.parametrize(
    "question",
    [
        "Who painted the portrait?",
        "How many people came in 1950?",  # a number that is nowhere
        "How many visitors does Kew have?",  # a name that is nowhere
        "",
        "?!",
    ],
)
def test_what_the_text_does_not_say_gets_the_sentinel(question: str) -> None:
    assert reply("answer", question, GARDEN) == SENTINEL
    assert reply("answer", question) == SENTINEL


def test_a_row_is_shown_with_the_heads_of_its_columns() -> None:
    said = reply("answer", "How many visitors came in May?", GARDEN)
    assert said == "| Month | Visitors | Rain, mm |\n| May | 9,400 | 51 |"


def test_an_answer_names_its_chunk_where_citing_is_asked() -> None:
    said = reply("answer", "Are dogs admitted?", "Nothing here.", GARDEN, cite=True)
    assert said == "Dogs are not admitted. [chunk 2]"


def test_the_prompt_is_never_read() -> None:
    task = Task("answer", "Are dogs admitted?", ((1, GARDEN),))
    asked = [Request(messages=(Message("user", text),), task=task) for text in ("a", "b " * 99)]
    assert CLIENT.send(asked[0]).text == CLIENT.send(asked[1]).text


# --- the other stages ---------------------------------------------------------------------------


def test_extraction_copies_or_says_none() -> None:
    said = reply("extract", "How many visitors came in June?", GARDEN)
    assert said.splitlines()[0] == "| Month | Visitors | Rain, mm |"  # the head comes with the row
    assert said.splitlines()[-1] == "| June | 11,800 | 38 |"
    assert said in GARDEN  # and what lies between, so that it is one passage of the source
    assert reply("extract", "Who painted the portrait?", GARDEN) == "NONE"


def test_a_summary_keeps_what_bears_on_the_question_within_its_cap() -> None:
    text = "Filler goes on and on here. " * 60 + "The dam holds 40 million litres."
    task = Task("summarise", "How much does the dam hold?", ((1, text),))
    said = CLIENT.send(Request(messages=(Message("user", "x"),), task=task, max_output=60)).text
    assert "40 million litres" in said
    assert len(said.split()) < 60
    assert reply("summarise", "", GARDEN).startswith("The garden was laid out")


def test_scores_lie_between_0_and_10_and_follow_the_question() -> None:
    schema = names("score", "reason")
    good = record("score", "Are dogs admitted?", GARDEN, schema=schema)
    bad = record("score", "Are dogs admitted?", "Rates rose by 2 percent.", schema=schema)
    assert (good["score"], bad["score"]) == (10, 0)
    assert good["reason"]


def test_merging_takes_the_best_finding() -> None:
    findings = (SENTINEL, "Dogs are not admitted. [chunk 2]", "It covers 14 hectares.")
    assert reply("merge", "Are dogs admitted?", *findings) == findings[1]
    assert reply("merge", "Are dogs admitted?", SENTINEL, SENTINEL) == SENTINEL
    assert reply("merge", "Is it open?", "Only on request.") == "Only on request."


def test_a_conflict_is_settled_by_number() -> None:
    found = record("merge", "area in hectares", "It has trees.", "The area is 14 hectares.",
                   schema={"properties": {"choice": {"type": "integer"}}})  # fmt: skip
    assert found == {"choice": 2}


def test_a_draft_gives_way_to_a_better_sentence_only() -> None:
    asked = "How many people came last year?"
    better = reply("revise", asked, GARDEN, draft="People came.")
    assert "48,200" in better
    assert reply("revise", asked, "Rates rose.", draft=better) == better
    assert reply("revise", asked, GARDEN, draft=SENTINEL) == better
    assert reply("revise", asked, "Rates rose.", draft=SENTINEL) == SENTINEL


def test_a_plan_reads_what_fits_and_skips_only_beside_it() -> None:
    outline = ("Visitors: last year people came", "Roses and their pests", "People of the village")
    plan = record("plan", "How many people came last year?", *outline, schema=names("sections"))
    treatments = {one["id"]: one["treatment"] for one in plan["sections"]}
    assert treatments == {1: "read", 2: "skip", 3: "skim"}
    nothing = record("plan", "Who painted the portrait?", *outline, schema=names("sections"))
    assert {one["treatment"] for one in nothing["sections"]} == {"skim"}


def test_a_step_answers_or_asks_for_the_words_it_misses() -> None:
    schema = {
        "properties": {
            "can_answer": {"type": "boolean"},
            "answer": {"type": "string"},
            "next_query": {"type": "string"},
            "notes": {"type": "array"},
        }
    }
    done = record("step", "Are dogs admitted?", GARDEN, schema=schema)
    assert done == {
        "can_answer": True, "answer": "Dogs are not admitted.", "next_query": "", "notes": [],
    }  # fmt: skip
    more = record("step", "Who painted the portrait?", GARDEN, schema=schema)
    assert (more["can_answer"], more["answer"]) == (False, "")
    assert more["next_query"] == "paint portrait"


def test_screening_decides_by_the_criteria_and_quotes() -> None:
    schema = names("decision", "reason", "criterion", "quote")
    trial = "We ran a randomised trial in 84 adults. Children were not enrolled."
    taken = record("screen", "q", trial, schema=schema, include=["randomised trial of adults"])
    assert (taken["decision"], taken["criterion"]) == ("include", "randomised trial of adults")
    assert taken["quote"] in trial
    left = record("screen", "q", trial, schema=schema, exclude="children enrolled", include=["x"])
    assert (left["decision"], left["criterion"]) == ("exclude", "children enrolled")
    assert record("screen", "q", trial, schema=schema, include=["mice"])["decision"] == "unclear"


def test_fields_are_filled_only_from_a_sentence_that_states_them() -> None:
    schema = {
        "properties": {
            "area_hectares": {"type": ["number", "null"], "description": "hectares it covers"},
            "area_hectares__quote": {"type": ["string", "null"]},
            "dogs_admitted": {"type": ["boolean", "null"]},
            "laid_out_by": {"type": ["string", "null"], "enum": ["Edith Vane", "Ann Poe", None]},
            "painter": {"type": ["string", "null"]},
            "painter__quote": {"type": ["string", "null"]},
            "price": {"type": ["integer", "null"]},
        }
    }
    assert record("fields", "", GARDEN, schema=schema) == {
        "area_hectares": 14, "area_hectares__quote": "It covers 14 hectares.",
        "dogs_admitted": False, "laid_out_by": "Edith Vane",
        "painter": None, "painter__quote": None, "price": None,
    }  # fmt: skip


def test_a_number_is_read_with_its_scale() -> None:
    schema = {"properties": {"revenue": {"type": "number"}}}
    assert record("fields", "", "Revenue rose in 2024 to 3.5 million crowns.", schema=schema) == {
        "revenue": 3_500_000
    }


# --- what the client is -------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_request_without_a_task_fails_and_says_why() -> None:
    asked = Request(messages=(Message("user", "Hi"),), label="call")
    for failed in (CLIENT.send(asked), await CLIENT.asend(asked)):
        assert (failed.ok, failed.sent, failed.label) == (False, False, "call")
        assert "extractive client" in str(failed.error)
    assert not CLIENT.send(Request(messages=(), task=Task("dance", ""))).ok
    assert CLIENT.embed(Texts(texts=("a",))).ok is False


def test_it_costs_nothing_and_is_always_the_same_client() -> None:
    from harness_core.models.registry import model_info

    assert isinstance(CLIENT, Client)
    assert ExtractiveClient().identity == CLIENT.identity is not None
    assert (CLIENT.model, CLIENT.unpriced_ok, CLIENT.can_embed) == ("extractive", True, False)
    assert (model_info("extractive").input_usd, model_info("extractive").output_usd) == (0, 0)


def test_its_text_is_shown_at_once() -> None:
    shown: list[str] = []
    task = Task("answer", "Are dogs admitted?", ((1, GARDEN),))
    CLIENT.send(Request(messages=(), task=task), on_text=shown.append)
    assert shown == ["Dogs are not admitted."]


# --- parts --------------------------------------------------------------------------------------


def test_rows_keep_their_head_across_blank_lines_and_page_cuts() -> None:
    found = units([(1, "Fares\n\nRoute | Fare\n\nEast | 4\n\nWest | 5\n\nProse follows here.")])
    assert [(unit.head, unit.text) for unit in found] == [
        ("Route | Fare", "East | 4"), ("Route | Fare", "West | 5"), ("", "Prose follows here."),
    ]  # fmt: skip
    cut = units([(1, "North | 7\nSouth | 8")])
    assert [unit.text for unit in cut] == ["North | 7", "South | 8"]


def test_sentences_that_a_cut_joined_to_a_row_are_read_as_sentences() -> None:
    joined = f"{'The lamp is lit at dusk. ' * 12}The bell weighs 90 kg. Part | Weight Chapter 5"
    assert reply("answer", "What does the bell weigh?", joined) == "The bell weighs 90 kg."


def test_lines_of_values_are_rows_also_where_a_chunk_was_cut_in_one() -> None:
    sales = "region,year,revenue\n" + "\n".join(f"Region{n},{2000 + n},{37 * n}" for n in range(9))
    question = "What was the revenue of Region7?"
    assert reply("answer", question, sales) == "region,year,revenue\nRegion7,2007,259"
    cut = sales[sales.index("4,2004") : -2]
    assert reply("answer", question, cut, cite=True) == "Region7,2007,259 [chunk 1]"
    assert reply("answer", "What was the revenue of Region77?", sales) == SENTINEL


def test_prose_with_commas_is_no_table() -> None:
    prose = (
        "In May, of 1,200 guests\nsome 1,100 had paid and\nof these 1,000 came back.\nThat is all."
    )
    assert [unit.text for unit in units([(1, prose)])][-1] == "That is all."


@pytest.mark.parametrize(
    "same",
    [
        ("cancelled", "cancellation"), ("services", "service"), ("employees", "employed"),
        ("operating", "operation"), ("companies", "company"), ("took", "take"),
        ("travelling", "travel"), ("boxes", "box"),
    ],
)  # fmt: skip
def test_forms_of_one_word_have_one_stem(same: tuple[str, str]) -> None:
    assert stem(same[0]) == stem(same[1])


@pytest.mark.parametrize("apart", [("status", "state"), ("gas", "gap")])
def test_other_words_keep_apart(apart: tuple[str, str]) -> None:
    assert stem(apart[0]) != stem(apart[1])


KINDS = ["answer", "extract", "summarise", "score", "merge", "revise", "plan", "step", "screen"]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.text(max_size=60), st.lists(st.text(max_size=200), max_size=3))
def test_no_text_raises_and_the_answer_repeats(
    kind: str, question: str, excerpts: list[str]
) -> None:
    task = Task(kind, question, tuple(enumerate(excerpts, 1)))
    request = Request(messages=(), task=task)
    once, again = CLIENT.send(request), CLIENT.send(request)
    assert once.ok
    assert once.text == again.text != ""
