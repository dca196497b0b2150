"""Reading by passages that a model copies out of every chunk."""

from typing import Any

import pytest

from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.messages import SENTINEL
from harness_core.pipeline import read
from harness_core.reading.flow import make_job
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

TEXTS = (
    "Revenue was 45.2 million dollars in 2025. Costs were stable.",
    "The cafeteria was renovated in spring.",
    "Revenue had been 40.1 million dollars in 2023.",
)
CHUNKS = chunks_of(*TEXTS)
FIRST = "Revenue was 45.2 million dollars in 2025."
LONG = chunks_of(*(
    f"Section {n}. " + " ".join(f"Figure {n}.{m} is stated here." for m in range(9))
    for n in range(1, 7)
))  # fmt: skip
SMALL: dict[str, Any] = {"reader": "skim", "max_answer_tokens": 150, "max_chunk_tokens": 200}


def copies(text: str) -> str:
    """The excerpt itself, as a model that copies everything."""
    return text.split("]\n", 1)[1].rsplit("\n</", 1)[0]


def small(client: MockClient, **more: Any) -> Any:
    return read(LONG, QUESTION, client, {**SMALL, "model": window(900), **more})


def test_a_request_per_chunk_and_one_from_the_passages() -> None:
    # readers 19, 20, 64, 65
    client = client_of({"skim.extract": [FIRST, "NONE", "Revenue had been 40.1 million"]})
    answer = read(CHUNKS, QUESTION, client, "skim")
    assert labels(client) == ["skim.extract"] * 3 + ["skim.answer"]
    body = prompt(asked(client, "skim.answer")[0])
    assert f"[chunk 1]\n{FIRST}\n\n[chunk 3]\nRevenue had been" in body
    assert "<evidence-" in body
    assert "cafeteria" not in body
    assert body.endswith(f"Question: {QUESTION}")
    assert (answer.answer, answer.chunks_used, answer.partial) == ("An answer.", [1, 3], False)
    assert [(row.chunk_id, row.kind, row.verified, row.match) for row in answer.evidence] == [
        (1, "extracted", True, 1), (3, "extracted", True, 1),
    ]  # fmt: skip
    assert answer.evidence[0].source_text == TEXTS[0]
    assert answer.notes == {
        "chunks": 3, "with_evidence": 2, "failed_calls": 0, "truncations": 0,
        "evidence_consolidated": False, "evidence_verified": 2, "truncated_calls": 0,
    }  # fmt: skip


def test_the_passages_come_from_the_skim_model_and_the_answer_from_the_model() -> None:
    # readers 24
    client = client_of()
    read(CHUNKS, QUESTION, client, {"reader": "skim", "skim_model": window(5000)})
    assert {call.params["model"] for call in asked(client, "skim.extract")} == {window(5000)}
    assert asked(client, "skim.answer")[0].params["model"] == "mock-model"


def test_an_extraction_shows_the_question_then_the_chunk_and_never_asks_for_citations() -> None:
    client = client_of()
    read(CHUNKS, QUESTION, client, {"reader": "skim", "cite": True})
    one = asked(client, "skim.extract")[0]
    assert one.messages[1].content == f"Question: {QUESTION}"
    assert "[chunk 1]\n" + TEXTS[0] in one.messages[2].content
    assert "[chunk 3]" not in system(one)
    assert "[chunk 3]" in system(asked(client, "skim.answer")[0])


@pytest.mark.parametrize("nothing", ["NONE", "NONE。", "**none**", "...", "\u200b—"])
def test_a_reply_without_a_passage_is_no_evidence_and_no_failure(nothing: str) -> None:
    # readers 61
    client = client_of({"skim.extract": [FIRST, nothing, nothing]})
    answer = read(CHUNKS, QUESTION, client, "skim")
    assert (answer.notes["with_evidence"], answer.partial) == (1, False)
    assert "unverified_evidence" not in answer.notes


def test_a_passage_that_merely_opens_with_none_is_evidence() -> None:
    chunks = chunks_of("None of the revenue was restated.")
    client = client_of({"skim.extract": "None of the revenue was restated."})
    assert read(chunks, QUESTION, client, "skim").notes["with_evidence"] == 1


def test_an_invented_quotation_makes_the_answer_partial() -> None:
    # readers 66
    client = client_of({"skim.extract": [FIRST, "Revenue doubled to 99 million.", "NONE"]})
    answer = read(CHUNKS, QUESTION, client, "skim")
    assert [row.verified for row in answer.evidence] == [True, False]
    assert answer.notes["unverified_evidence"] == 1
    assert answer.notes["evidence_verified"] == 1
    assert answer.partial


def test_two_paragraphs_copied_as_one_extraction_are_verified() -> None:
    # readers 67
    text = "Revenue was 45.2 million dollars.\n\nAn aside.\n\nCosts were 30.1 million dollars."
    said = "Revenue was 45.2 million dollars.\n\nCosts were 30.1 million dollars."
    answer = read(chunks_of(text), QUESTION, client_of({"skim.extract": said}), "skim")
    assert answer.evidence[0].verified
    assert not answer.partial


def test_a_quotation_is_checked_against_the_documents_text_not_the_rewritten_one() -> None:
    # readers 162
    chunks = chunks_of("Header by a model.\n\nRevenue rose.", source_text="Revenue rose.")
    answer = read(chunks, QUESTION, client_of({"skim.extract": "Header by a model."}), "skim")
    assert answer.evidence[0].verified is False


@pytest.mark.parametrize(
    ("said", "partial", "reason"),
    [
        (["NONE"], False, "no chunk holds anything on the question"),
        (["NONE", RuntimeError("down")], True, "no chunk holds anything on the question"),
        ([RuntimeError("down")], True, "every request failed"),
        ([cut_off("NONE"), "NONE"], True, "no chunk holds anything on the question"),
    ],
)
def test_without_a_passage_nothing_is_answered(said: list[Any], partial: bool, reason: str) -> None:
    client = client_of({"skim.extract": said})
    answer = read(CHUNKS, QUESTION, client, "skim")
    assert labels(client) == ["skim.extract"] * 3
    assert (answer.answer, answer.partial, answer.chunks_used) == (SENTINEL, partial, [])
    assert answer.notes["reason"] == reason


def test_a_failed_extraction_is_counted_and_the_others_answer() -> None:
    client = client_of({"skim.extract": [FIRST, RuntimeError("down"), ""]})
    answer = read(CHUNKS, QUESTION, client, "skim")
    assert (answer.answer, answer.notes["failed_calls"], answer.partial) == ("An answer.", 2, True)


def test_a_failed_answer_leaves_no_evidence_and_keeps_what_was_used() -> None:
    client = client_of({"skim.extract": FIRST, "skim.answer": RuntimeError("down")})
    answer = read(CHUNKS, QUESTION, client, "skim")
    assert (answer.answer, answer.evidence, answer.chunks_used) == (SENTINEL, [], [1, 2, 3])
    assert answer.partial
    assert "down" in answer.notes["error"]


def test_passages_that_were_cut_off_make_a_whole_answer_partial() -> None:
    # readers 46
    client = client_of({"skim.extract": cut_off(FIRST)})
    answer = read(chunks_of(TEXTS[0]), QUESTION, client, "skim")
    assert (answer.answer, answer.notes["truncated_calls"]) == ("An answer.", 1)
    assert answer.partial


def test_a_false_premise_is_asked_for_in_the_answer_alone() -> None:
    client = client_of({"skim.extract": FIRST, "skim.answer": "FALSE_PREMISE: It rose."})
    answer = read(CHUNKS, QUESTION, client, {"reader": "skim", "premise": True})
    assert (answer.answer, answer.premise) == ("It rose.", "It rose.")
    assert [("FALSE_PREMISE" in system(call)) for call in asked(client)] == [False] * 3 + [True]


# --- passages too many for one request ------------------------------------------------------------


def test_passages_over_the_room_are_consolidated_with_their_labels() -> None:
    client = client_of({
        "skim.extract": copies,
        "skim.consolidate": "[chunk 2] Figure 2.1. [chunk 5] Figure 5.1.",
        "skim.answer": "It is 2.1 [chunk 2].",
    })  # fmt: skip
    answer = small(client, cite=True)
    consolidations = asked(client, "skim.consolidate")
    assert consolidations[-1].label == "skim.consolidate"
    assert "[chunk 1]\nSection 1." in prompt(consolidations[0])
    assert "<evidence-" in prompt(consolidations[0])
    assert "<evidence-" in prompt(asked(client, "skim.answer")[0])
    assert answer.notes["evidence_consolidated"]
    assert answer.notes["merge_ok"]
    assert answer.notes["cite_dropped"] is False
    assert not answer.partial
    assert len(answer.evidence) == 6


def test_only_a_label_that_survives_consolidation_may_be_cited() -> None:
    client = client_of({
        "skim.extract": copies,
        "skim.consolidate": "[chunk 2] Figure 2.1.",
        "skim.answer": "It is 3.1 [chunk 3], not 2.1 [chunk 2].",
    })  # fmt: skip
    assert small(client, cite=True).notes["cited_unknown"] == [3]


def test_citations_are_not_asked_for_when_no_label_survives() -> None:
    # readers 63
    client = client_of({
        "skim.extract": copies,
        "skim.consolidate": "Figures are stated.",
        "skim.answer": "It is 3.1 [chunk 3].",
    })  # fmt: skip
    answer = small(client, cite=True)
    assert "[chunk 3]" not in system(asked(client, "skim.answer")[0])
    assert answer.notes["cite_dropped"]
    assert answer.notes["cited_unknown"] == [3]
    assert answer.partial


def test_a_failed_consolidation_hands_on_bounded_passages() -> None:
    # readers 62
    client = client_of({
        "skim.extract": copies,
        "skim.consolidate": RuntimeError("down"),
        "skim.answer": "It is 1.1 [chunk 1] and 6.1 [chunk 6].",
    })  # fmt: skip
    answer = small(client, cite=True)
    assert answer.notes["evidence_consolidated"]
    assert answer.notes["merge_ok"] is False
    assert answer.notes["failed_calls"] > 0
    assert answer.notes["cited_unknown"] == [6]
    assert answer.partial


def test_passages_that_cannot_be_merged_are_no_failed_requests_and_the_reason_is_told() -> None:
    texts = (" ".join(f"Figure {n}.{m} is stated here." for m in range(22)) for n in (1, 2, 3))
    client = client_of({"skim.extract": copies})
    spec = {**SMALL, "model": window(700), "max_chunk_tokens": 400}
    answer = read(chunks_of(*texts), QUESTION, client, spec)
    assert asked(client, "skim.consolidate") == []
    assert answer.notes["error"] == "merging made no progress"
    assert (answer.notes["failed_calls"], answer.notes["merge_ok"]) == (0, False)
    assert answer.partial


def test_the_answer_prompt_keeps_within_the_window_whatever_consolidation_gives() -> None:
    trace = Trace()
    client = client_of({"skim.extract": copies, "skim.consolidate": RuntimeError("down")})
    answer = read(LONG, QUESTION, client, {**SMALL, "model": window(700)}, trace=trace)
    final = asked(client, "skim.answer")[0]
    assert final.params["prompt_tokens"] + 150 <= 700
    assert "skim.answer.input" in [cut["where"] for cut in notes_of(trace, "truncate")]
    assert answer.notes["truncations"] > 0


@pytest.mark.parametrize("most", range(5))
def test_a_limit_is_no_failure(most: int) -> None:
    client = client_of({"skim.extract": FIRST})
    answer = read_unchecked(CHUNKS, client, most, "skim")
    assert answer.notes["failed_calls"] == 0
    assert answer.partial
    assert len(asked(client)) == min(most, 4)
    if most == 0:
        assert answer.notes["reason"] == "the call cap stopped every request"
    elif most < 4:
        assert "call cap" in answer.notes["error"]
        assert "skim.answer" in answer.notes["error"]
        assert answer.evidence == []


def test_worst_case_counts_the_consolidation_only_where_passages_may_not_fit() -> None:
    skim = find_reader("skim")
    for model, most in (("mock-model", 7), (window(900), 9)):
        spec = ReadSpec(**{**SMALL, "model": model})
        job = make_job(LONG, QUESTION, spec, client_of(), Trace())
        assert (skim.expected(job), skim.worst(job) >= most) == (7, True)
    assert skim.worst(make_job(LONG, QUESTION, ReadSpec("skim"), client_of(), Trace())) == 7
