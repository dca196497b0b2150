"""Reading by a plan made from the outline."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.calls.trace import Trace
from harness_core.documents.types import Chunks
from harness_core.errors import PreviewDegradedWarning
from harness_core.messages import SENTINEL, Reply
from harness_core.models.tokenizers import count_tokens
from harness_core.pipeline import read
from harness_core.readers.preview import read_plan
from harness_core.reading.flow import make_job
from harness_core.reading.outline import outline_of, sections_of
from harness_core.reading.registry import find_reader
from harness_core.reading.spec import ReadSpec
from tests.support.reading import (
    QUESTION,
    asked,
    chunks_of,
    client_of,
    cut_off,
    labels,
    notes_of,
    prompt,
    read_unchecked,
    system,
    window,
)

NAMES = ("Intro", "Methods", "Results", "Discussion", "References")
FIVE = chunks_of(
    *(f"{name} part {part} says something of its own." for name in NAMES for part in (1, 2)),
    section=[name for name in NAMES for _ in (1, 2)],
)


def plan(*treatments: str) -> str:
    entries = [
        {"id": number, "treatment": treatment, "reason": "because"}
        for number, treatment in enumerate(treatments, 1)
    ]
    return json.dumps({"sections": entries})


def copies(text: str) -> str:
    return text.split("]\n", 1)[1].split("\n\n[chunk", 1)[0].rsplit("\n</", 1)[0]


# --- the plan and what comes of it ----------------------------------------------------------------


def test_sections_are_read_skimmed_and_skipped_as_planned() -> None:
    # readers 103
    trace = Trace()
    client = client_of({
        "preview.plan": plan("read", "skip", "skim", "skip", "read"), "preview.skim": copies,
    })  # fmt: skip
    answer = read(FIVE, QUESTION, client, "preview", trace=trace)
    assert labels(client) == ["preview.plan", "preview.skim", "preview.answer"]
    skim, final = (prompt(call) for call in asked(client)[1:])
    assert "Results part 1" in skim
    assert "Results part 2" in skim
    assert "Intro part 1" in final
    assert "References part 2" in final
    assert "[chunk 5]\nResults part 1" in final
    assert "Methods part" not in final
    assert "Discussion part" not in final
    kinds = [(row.chunk_id, row.kind, row.section) for row in answer.evidence]
    assert kinds == [
        (1, "verbatim", "Intro"), (2, "verbatim", "Intro"), (9, "verbatim", "References"),
        (10, "verbatim", "References"), (5, "extracted", "Results"),
    ]  # fmt: skip
    assert answer.evidence[-1].verified
    assert answer.chunks_used == [1, 2, 9, 10, 5]
    notes = answer.notes
    assert [part["treatment"] for part in notes["plan"]] == [
        "read", "skip", "skim", "skip", "read",
    ]  # fmt: skip
    assert notes["plan"][1] == {
        "section": 2, "label": "Methods", "chunks": "3-4", "treatment": "skip",
        "reason": "because", "tokens": FIVE[2].tokens + FIVE[3].tokens,
    }  # fmt: skip
    assert (notes["sections"], notes["read"], notes["skimmed"], notes["skipped"]) == (5, 2, 1, 2)
    assert notes["tokens_skipped"] > 0
    assert answer.partial
    assert any("skipped by the plan" in reason for reason in answer.reasons())
    (note,) = notes_of(trace, "preview.plan")
    assert note == {
        "sections": 5, "read": 2, "skimmed": 1, "skipped": 2, "demoted": 0, "degraded": False,
        "tokens_read": sum(FIVE[n].tokens for n in (0, 1, 8, 9)),
        "tokens_skipped": notes["tokens_skipped"],
    }  # fmt: skip


def test_reading_everything_is_whole() -> None:
    # readers 31, 104
    client = client_of({"preview.plan": plan(*["read"] * 5)})
    answer = read(FIVE, QUESTION, client, "preview")
    assert labels(client) == ["preview.plan", "preview.answer"]
    assert (answer.chunks_used, answer.partial) == (list(range(1, 11)), False)
    assert answer.notes["skipped"] == 0


def test_a_section_the_plan_does_not_speak_of_is_read() -> None:
    # readers 105
    answer = read(FIVE, QUESTION, client_of({"preview.plan": plan("skip")}), "preview")
    assert (answer.notes["read"], answer.notes["degraded"]) == (4, False)


def test_without_a_plan_everything_is_read_and_it_is_said() -> None:
    # readers 106
    client = client_of({"preview.plan": "I would read the results first."})
    with pytest.warns(PreviewDegradedWarning):
        answer = read(FIVE, QUESTION, client, "preview")
    assert (answer.answer, answer.notes["degraded"], answer.partial) == ("An answer.", True, True)
    assert len(answer.chunks_used) == 10
    assert answer.warnings[0][0] == "PreviewDegradedWarning"


def test_the_plan_comes_from_the_model_and_the_skims_from_the_skim_model() -> None:
    client = client_of({"preview.plan": plan(*["skim"] * 5)})
    read(FIVE, QUESTION, client, {"reader": "preview", "skim_model": window(5000)})
    assert asked(client, "preview.plan")[0].params["model"] == "mock-model"
    assert {c.params["model"] for c in asked(client, "preview.skim")} == {window(5000)}


def test_the_planning_prompt_gives_the_number_of_sections_and_a_strict_schema() -> None:
    client = client_of({"preview.plan": plan("read")})
    read(FIVE, QUESTION, client, "preview")
    call = asked(client, "preview.plan")[0]
    _, question, outline, closing = (message.content for message in call.messages)
    assert question == f"Question: {QUESTION}"
    assert outline.startswith("<outline-")
    assert "[5] References | chunks 9-10" in outline
    assert "5 sections" in closing
    assert call.params["schema_name"] == "reading_plan"
    assert call.params["schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("said", "entries"),
    [
        ('{"sections": [{"id": 2, "treatment": " Skim ", "reason": ["a", "b"]}]}',
         {2: ("skim", "a\nb")}),
        ('```json\n{"sections": {"id": "1", "treatment": "SKIP"}}\n```', {1: ("skip", "")}),
        ('{"sections": [{"id": 1, "treatment": "skip"}, {"id": [1], "treatment": "read"}]}',
         {1: ("read", "")}),
        ('{"sections": [{"id": 0, "treatment": "skip"}, {"id": 4, "treatment": "skip"},'
         ' {"id": 1.5, "treatment": "skip"}, {"id": true, "treatment": "skip"},'
         ' {"id": 2, "treatment": "maybe"}, 7, null]}', {}),
        ('{"plan": []}', {}),
        ("[1, 2]", {}),
        ("7", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_a_plan_is_read_tolerantly_and_only_by_its_valid_entries(
    said: str, entries: dict[int, tuple[str, str]]
) -> None:
    assert read_plan(Reply(ok=True, text=said), 3) == entries


def test_a_plan_that_skips_everything_reads_nothing() -> None:
    client = client_of({"preview.plan": plan(*["skip"] * 5)})
    answer = read(FIVE, QUESTION, client, "preview")
    assert labels(client) == ["preview.plan"]
    assert (answer.answer, answer.partial, answer.evidence) == (SENTINEL, True, [])
    assert answer.notes["reason"] == "the plan skips every section"


def test_skims_without_a_passage_leave_nothing_to_answer_from() -> None:
    client = client_of({"preview.plan": plan(*["skim"] * 5), "preview.skim": "NONE"})
    answer = read(FIVE, QUESTION, client, "preview")
    assert "preview.answer" not in labels(client)
    assert answer.notes["reason"] == "no section holds anything on the question"


def test_a_skipped_section_cannot_be_cited_and_a_skimmed_one_can() -> None:
    # readers 112
    treatments = plan("read", "skip", "skim", "skip", "read")
    for said, unknown in (("It is 7 [chunk 8].", [8]), ("It is 7 [chunk 6].", None)):
        client = client_of({
            "preview.plan": treatments, "preview.skim": copies, "preview.answer": said,
        })  # fmt: skip
        answer = read(FIVE, QUESTION, client, {"reader": "preview", "cite": True})
        assert answer.notes.get("cited_unknown") == unknown
        assert "[chunk 3]" in system(asked(client, "preview.answer")[0])


# --- what does not fit ----------------------------------------------------------------------------


def sized(sections: int, words: int, *, parts: int = 1) -> Chunks:
    """Sections of so many chunks of so many words."""
    names = [f"Part {number}" for number in range(1, sections + 1) for _ in range(parts)]
    texts = [
        f"{name} opens. " + " ".join(f"Item {word} holds." for word in range(words // 3))
        for name in names
    ]
    return chunks_of(*texts, section=names)


def test_sections_too_long_to_be_read_are_skimmed_whole() -> None:
    # readers 107
    client = client_of({"preview.plan": plan(*["read"] * 6), "preview.skim": "NONE"})
    chunks = sized(6, 90, parts=2)
    spec = {"reader": "preview", "model": window(1200), "max_answer_tokens": 200}
    answer = read(chunks, QUESTION, client, spec)
    notes = answer.notes
    assert notes["demoted_to_skim"] == len(asked(client, "preview.skim")) > 0
    assert (notes["skipped"], notes["read"] + notes["skimmed"]) == (0, 6)
    assert [p["treatment"] for p in notes["plan"]].count("skim") == notes["demoted_to_skim"]
    final = prompt(asked(client, "preview.answer")[0])
    for number, part in enumerate(notes["plan"]):
        ids = (2 * number + 1, 2 * number + 2)
        shown = {f"[chunk {one} § Part" in final for one in ids}
        assert shown == {part["treatment"] == "read"}


def test_passages_that_do_not_fit_are_left_out_of_prompt_and_evidence() -> None:
    # readers 111
    chunks = sized(8, 400)
    client = client_of({"preview.plan": plan(*["read"] * 8), "preview.skim": copies})
    spec = {"reader": "preview", "model": window(4000, max_output=1500), "max_chunk_tokens": 700}
    answer = read(chunks, QUESTION, client, spec)
    final = asked(client, "preview.answer")[0]
    assert final.params["max_output"] == 1500
    assert final.params["prompt_tokens"] + 1500 <= 4000
    assert answer.notes["dropped_chunks"] > 0
    assert answer.partial
    read_ids = {row.chunk_id for row in answer.evidence if row.kind == "verbatim"}
    skim_ids = {row.chunk_id for row in answer.evidence if row.kind == "extracted"}
    assert not read_ids & skim_ids
    assert len(read_ids) + len(skim_ids) + answer.notes["dropped_chunks"] == 8
    for one in range(1, 9):
        assert (f"[chunk {one}" in prompt(final)) == (one in read_ids | skim_ids)


def test_passages_none_of_which_fit_leave_nothing_to_answer_from() -> None:
    client = client_of({"preview.plan": plan("skim", "skip"), "preview.skim": "Item holds. " * 70})
    spec = {"reader": "preview", "model": window(700, max_output=300), "max_chunk_tokens": 300}
    answer = read(sized(2, 30), QUESTION, client, {**spec, "max_answer_tokens": 300})
    assert answer.notes["reason"] == "no passage fits the context window"
    assert answer.notes["dropped_chunks"] == 1


def test_a_section_over_half_the_room_is_skimmed_cut_and_counted() -> None:
    trace = Trace()
    client = client_of({"preview.plan": plan("skim", "read"), "preview.skim": "Item 0 holds."})
    chunks = chunks_of(sized(1, 900)[0].text, "Short.", section=["Long one", "Short one"])
    answer = read(
        chunks, QUESTION, client,
        {"reader": "preview", "model": window(1500), "max_answer_tokens": 200}, trace=trace,
    )  # fmt: skip
    (cut,) = notes_of(trace, "truncate")
    assert (cut["where"], cut["chunk_id"]) == ("preview.skim", 1)
    assert answer.notes["tokens_truncated"] == cut["tokens_dropped"] > 0
    assert answer.partial


# --- failures -------------------------------------------------------------------------------------


def test_a_failed_skim_is_counted_and_the_rest_answers() -> None:
    client = client_of({
        "preview.plan": plan("read", "skim", "read", "read", "read"),
        "preview.skim": RuntimeError("down"),
    })  # fmt: skip
    answer = read(FIVE, QUESTION, client, "preview")
    assert (answer.answer, answer.notes["failed_calls"], answer.partial) == ("An answer.", 1, True)


def test_a_failed_answer_leaves_no_evidence() -> None:
    client = client_of({"preview.plan": plan("read"), "preview.answer": RuntimeError("down")})
    answer = read(FIVE, QUESTION, client, "preview")
    assert (answer.answer, answer.evidence) == (SENTINEL, [])
    assert len(answer.chunks_used) == 10


@pytest.mark.parametrize("stage", ["preview.plan", "preview.skim", "preview.answer"])
def test_a_reply_that_was_cut_off_makes_the_answer_partial(stage: str) -> None:
    # readers 44, 46
    said: dict[str, Any] = {
        "preview.plan": plan("skim", "read", "read", "read", "read"), "preview.skim": copies,
        "preview.answer": "An answer.",
    }  # fmt: skip
    whole = read(FIVE, QUESTION, client_of(said), "preview")
    assert (whole.partial, whole.notes["truncated_calls"]) == (False, 0)
    text = said[stage] if isinstance(said[stage], str) else "Intro part 1 says something"
    answer = read(FIVE, QUESTION, client_of({**said, stage: cut_off(text)}), "preview")
    assert (answer.answer, answer.notes["truncated_calls"]) == ("An answer.", 1)
    assert answer.partial


@pytest.mark.filterwarnings("ignore::harness_core.errors.PreviewDegradedWarning")
@pytest.mark.parametrize("most", range(4))
def test_a_limit_is_no_failure(most: int) -> None:
    client = client_of({
        "preview.plan": plan("skim", "read", "read", "read", "read"), "preview.skim": copies,
    })  # fmt: skip
    answer = read_unchecked(FIVE, client, most, "preview")
    assert answer.notes["failed_calls"] == 0
    assert answer.partial == (most < 3)
    assert answer.answer == (SENTINEL if most < 3 else "An answer.")
    assert len(asked(client)) == most


def test_a_false_premise_is_asked_for_in_the_answer_alone() -> None:
    client = client_of({
        "preview.plan": plan("read", "skim"), "preview.skim": copies,
        "preview.answer": "FALSE_PREMISE: It rose.",
    })  # fmt: skip
    answer = read(FIVE, QUESTION, client, {"reader": "preview", "premise": True})
    assert (answer.answer, answer.premise, answer.partial) == ("It rose.", "It rose.", False)
    assert [("FALSE_PREMISE" in system(call)) for call in asked(client)] == [False, False, True]


def test_at_the_worst_every_section_is_skimmed() -> None:
    job = make_job(FIVE, QUESTION, ReadSpec("preview"), client_of(), Trace())
    assert find_reader("preview").worst(job) == 10  # never below a request per chunk
    single = chunks_of("One chunk.")
    job = make_job(single, QUESTION, ReadSpec("preview"), client_of(), Trace())
    assert find_reader("preview").worst(job) == 3


# --- the outline ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sections", [None, "[no section]", "Only heading", ["", None] * 12])
def test_a_document_without_several_sections_is_planned_in_blocks(sections: Any) -> None:
    # readers 108, 109
    chunks = chunks_of(*(f"Text {n}." for n in range(24)), section=sections)
    found = sections_of(chunks)
    assert [one.ids for one in found] == [[3 * n + 1, 3 * n + 2, 3 * n + 3] for n in range(8)]
    if sections != "Only heading":
        assert found[1].label == "chunks 4-6"


def test_three_headings_are_three_sections_and_a_name_that_returns_is_another() -> None:
    # readers 109
    chunks = chunks_of("a", "b", "c", "d", section=["One", "Two", "Two", "One"])
    assert [one.ids for one in sections_of(chunks)] == [[1], [2, 3], [4]]


@pytest.mark.parametrize(
    ("pages", "said"),
    [(("iv", "v"), "pp. iv-v"), ((1.5, 2.5), "pp. 1.5-2.5"), ((7, 3), "pp. 3-7"), ((4, 4), "p. 4")],
)
def test_pages_are_numbers_or_labels(pages: Any, said: str) -> None:
    # readers 110
    chunks = chunks_of("a", "b", "c", page=[*pages, None], section=["One", "One", "Two"])
    first, second = sections_of(chunks)
    assert f"| {said} |" in first.entry(1, 8)
    assert "p." not in second.entry(2, 8)


def test_samples_shrink_before_the_outline_passes_its_cap() -> None:
    chunks = sized(5, 300)
    texts = [outline_of(chunks, tokens, "mock-model").text for tokens in (2000, 900, 400, 100)]
    assert [count_tokens(text) for text in texts] == sorted(map(count_tokens, texts), reverse=True)
    assert "opens:" in texts[0]
    assert "ends:" in texts[0]
    assert "opens:" not in texts[-1]
    assert all(f"[5] Part 5 | chunks 5-5 | {chunks[4].tokens} tokens" in text for text in texts)


@settings(max_examples=25, deadline=None)
@given(
    names=st.lists(
        st.sampled_from(["", "A", "B", "long name " * 20, "方法"]), min_size=1, max_size=90
    ),
    tokens=st.integers(100, 2000),
    text=st.sampled_from(["word " * 60, "字" * 400, "x" * 3000]),
)
def test_an_outline_keeps_its_cap_and_shows_every_chunk(
    names: list[str], tokens: int, text: str
) -> None:
    chunks = chunks_of(*(text for _ in names), section=names)
    outline = outline_of(chunks, tokens, "mock-model")
    assert count_tokens(outline.text, "mock-model") <= tokens
    assert [one for section in outline.sections for one in section.ids] == [
        chunk.chunk_id for chunk in chunks
    ]
    for number, section in enumerate(outline.sections, 1):
        assert f"[{number}] {section.label} | chunks {section.first}-{section.last}" in outline.text
