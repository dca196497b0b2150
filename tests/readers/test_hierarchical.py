"""Reading by summaries of summaries."""

from typing import Any

import pytest

from harness_core.answer import Answer
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.errors import OverflowWarning
from harness_core.messages import SENTINEL
from harness_core.models.tokenizers import count_tokens
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

CHUNKS = chunks_of("Alpha text.", "Beta text.", "Gamma text.")
EIGHT = chunks_of(*(f"Chunk text number {number}." for number in range(1, 9)))


def bulky(name: str) -> str:
    """A summary of about 90 tokens that carries a name."""
    return f"{name}: " + " ".join(f"some more of it number {n}." for n in range(12))


def small(client: MockClient, trace: Trace | None = None, **more: Any) -> Answer:
    spec = {"reader": "hierarchical", "model": window(900), "max_answer_tokens": 150, **more}
    return read(EIGHT, QUESTION, client, spec, trace=trace)


def test_summaries_that_fit_are_answered_from_at_once() -> None:
    # readers 19, 20
    client = client_of({"hier.summarise": ["sum one", "sum two", "sum three"]})
    answer = read(CHUNKS, QUESTION, client, "hierarchical")
    assert labels(client) == ["hier.summarise.L1"] * 3 + ["hier.answer"]
    final = asked(client, "hier.answer")[0]
    assert "sum one\n\nsum two\n\nsum three" in prompt(final)
    assert "<summaries-" in prompt(final)
    assert prompt(final).endswith(f"Question: {QUESTION}")
    assert (answer.answer, answer.chunks_used, answer.partial) == ("An answer.", [1, 2, 3], False)
    assert answer.evidence == []
    assert answer.notes == {
        "chunks": 3, "levels": 1, "final_summaries": 3, "failed_summaries": 0,
        "truncated_calls": 0, "summaries_truncated": False, "tokens_truncated": 0,
    }  # fmt: skip


def test_a_summary_is_asked_of_the_bare_text_after_the_question() -> None:
    client = client_of()
    read(chunks_of("Bare text.", page=3, section="Results"), QUESTION, client, "hierarchical")
    _, question, text = (message.content for message in asked(client)[0].messages)
    assert question == f"Question: {QUESTION}"
    assert text.startswith("<text-")
    assert "\nBare text.\n" in text
    assert "[chunk" not in text


def test_summaries_come_from_their_own_model_with_their_own_cap() -> None:
    # readers 25
    client = client_of()
    spec = {"reader": "hierarchical", "summary_model": window(5000), "max_summary_tokens": 77}
    read(CHUNKS, QUESTION, client, spec)
    sums = asked(client, "hier.summarise")
    assert {(c.params["model"], c.params["max_output"]) for c in sums} == {(window(5000), 77)}
    assert asked(client, "hier.answer")[0].params["model"] == "mock-model"


def test_citations_are_never_asked_for() -> None:
    # readers 30
    client = client_of()
    read(CHUNKS, QUESTION, client, {"reader": "hierarchical", "cite": True})
    assert "[chunk 3]" not in system(asked(client, "hier.answer")[0])


def test_summaries_over_the_room_are_summarised_in_groups() -> None:
    # readers 28
    client = client_of({
        "hier.summarise.L1": [bulky(f"s{n}") for n in range(1, 9)],
        "hier.summarise.L2": ["first group", "second group", "third group"],
    })  # fmt: skip
    answer = small(client, fan_in=3)
    groups = asked(client, "hier.summarise.L2")
    assert len(groups) == 3
    assert "s1:" in prompt(groups[0])
    assert "s3:" in prompt(groups[0])
    assert "s7:" in prompt(groups[2])
    assert "s8:" in prompt(groups[2])
    assert "first group\n\nsecond group\n\nthird group" in prompt(asked(client, "hier.answer")[0])
    assert (answer.notes["levels"], answer.notes["final_summaries"]) == (2, 3)
    assert not answer.partial


def test_a_group_without_a_summary_goes_up_as_its_own_summaries() -> None:
    # readers 59
    client = client_of({
        "hier.summarise.L1": [f"{bulky(f's{n}')}" for n in range(1, 9)],
        "hier.summarise.L2": ["group 1", RuntimeError("down"), "group 3", "group 4"],
    })  # fmt: skip
    answer = small(client, fan_in=2)
    final = prompt(asked(client, "hier.answer")[0])
    assert len(asked(client, "hier.summarise.L2")) == 4
    assert answer.notes["failed_summaries"] == 1
    assert answer.partial
    for part in ("group 1", "s3:", "s4:", "group 3", "group 4"):
        assert part in final


def test_a_level_without_a_single_summary_keeps_the_one_below() -> None:
    client = client_of({
        "hier.summarise.L1": bulky("s"), "hier.summarise.L2": RuntimeError("down"),
    })  # fmt: skip
    with pytest.warns(OverflowWarning):
        answer = small(client, fan_in=4)
    assert labels(client).count("hier.summarise.L2") == 2
    assert "hier.summarise.L3" not in labels(client)
    assert (answer.notes["final_summaries"], answer.notes["failed_summaries"]) == (8, 2)


@pytest.mark.parametrize("fan_in", [2, 3, 32])
def test_it_ends_when_summaries_do_not_shrink(fan_in: int) -> None:
    trace = Trace()
    client = client_of({"hier.summarise": lambda text: text.split("\n\n", 1)[1] + bulky("more")})
    wide = window(30_000, max_output=9000)
    with pytest.warns(OverflowWarning):
        answer = small(
            client, trace, fan_in=fan_in, max_levels=12, max_summary_tokens=9000, summary_model=wide
        )
    assert answer.notes["levels"] == {2: 5, 3: 4, 32: 3}[fan_in]
    assert answer.notes["final_summaries"] == 1
    assert answer.notes["summaries_truncated"]
    assert answer.partial
    (cut,) = notes_of(trace, "truncate")
    assert cut["where"] == "hier.summaries"
    assert answer.notes["tokens_truncated"] == cut["tokens_dropped"] > 0
    final = asked(client, "hier.answer")[0]
    assert final.params["prompt_tokens"] + 150 <= 900


def test_one_level_too_few_cuts_the_summaries_and_says_so() -> None:
    # readers 29
    client = client_of({"hier.summarise": bulky("s")})
    with pytest.warns(OverflowWarning, match="cut"):
        answer = small(client, max_levels=1)
    assert (answer.notes["levels"], answer.notes["summaries_truncated"]) == (1, True)
    assert answer.partial
    assert any("summaries were cut" in reason for reason in answer.reasons())
    assert any("token(s) were cut" in reason for reason in answer.reasons())
    assert answer.warnings[0][0] == "OverflowWarning"


def test_the_length_of_each_text_and_of_each_level_is_recorded() -> None:
    trace = Trace()
    small(
        client_of({"hier.summarise.L1": bulky("s"), "hier.summarise.L2": "short"}), trace, fan_in=4
    )
    steps = [step for step in trace.requests if step.label.startswith("hier.summarise")]
    assert dict(steps[0].state or {}) == {
        "tokens_in": count_tokens(EIGHT[0].text), "tokens_out": count_tokens(bulky("s")),
    }  # fmt: skip
    assert dict(steps[8].state or {})["tokens_out"] == count_tokens("short")
    assert notes_of(trace, "hier.state.L1") == [
        {"summaries": 8, "tokens": count_tokens("\n\n".join([bulky("s")] * 8))}
    ]
    assert notes_of(trace, "hier.state.L2") == [
        {"summaries": 2, "tokens": count_tokens("short\n\nshort")}
    ]


def test_a_chunk_without_a_summary_is_left_out_and_counted() -> None:
    client = client_of({"hier.summarise": ["one", RuntimeError("down"), ""]})
    answer = read(CHUNKS, QUESTION, client, "hierarchical")
    assert (answer.notes["failed_summaries"], answer.notes["final_summaries"]) == (2, 1)
    assert answer.partial
    assert any("summary(s) failed" in reason for reason in answer.reasons())


def test_without_any_summary_nothing_is_asked() -> None:
    client = client_of({"hier.summarise": RuntimeError("down")})
    answer = read(CHUNKS, QUESTION, client, "hierarchical")
    assert labels(client) == ["hier.summarise.L1"] * 3
    assert (answer.answer, answer.partial, answer.chunks_used) == (SENTINEL, True, [])
    assert (answer.notes["levels"], answer.notes["failed_summaries"]) == (1, 3)
    assert answer.notes["reason"] == "every request failed"


def test_the_summaries_are_the_answer_when_the_answering_request_fails() -> None:
    client = client_of({"hier.summarise": ["a", "b", "c"], "hier.answer": RuntimeError("down")})
    answer = read(CHUNKS, QUESTION, client, "hierarchical")
    assert (answer.answer, answer.partial, answer.chunks_used) == ("a\n\nb\n\nc", True, [1, 2, 3])
    assert "down" in answer.notes["error"]


def test_summaries_are_not_taken_for_the_sentinel() -> None:
    client = client_of({"hier.summarise": SENTINEL})
    assert read(CHUNKS, QUESTION, client, "hierarchical").notes["final_summaries"] == 3


def test_cut_off_summaries_make_a_whole_answer_partial() -> None:
    # readers 46
    client = client_of({"hier.summarise": cut_off("half a")})
    answer = read(CHUNKS, QUESTION, client, "hierarchical")
    assert (answer.answer, answer.notes["truncated_calls"], answer.partial) == (
        "An answer.", 3, True,
    )  # fmt: skip


def test_a_false_premise_is_asked_for_in_the_answer_alone() -> None:
    client = client_of({"hier.answer": "FALSE_PREMISE: It rose."})
    answer = read(CHUNKS, QUESTION, client, {"reader": "hierarchical", "premise": True})
    assert (answer.answer, answer.premise, answer.partial) == ("It rose.", "It rose.", False)
    assert [("FALSE_PREMISE" in system(call)) for call in asked(client)] == [False] * 3 + [True]


@pytest.mark.parametrize("most", range(4))
def test_a_limit_is_no_failure(most: int) -> None:
    client = client_of({"hier.summarise": ["a", "b", "c"]})
    answer = read_unchecked(CHUNKS, client, most, "hierarchical")
    assert answer.notes["failed_summaries"] == 0
    assert answer.partial
    assert len(asked(client)) == most
    assert answer.answer == [SENTINEL, "a", "a\n\nb", "a\n\nb\n\nc"][most]


def test_expected_and_worst_requests_follow_groups_and_levels() -> None:
    reader = find_reader("hierarchical")
    job = make_job(EIGHT, QUESTION, ReadSpec("hierarchical", fan_in=3), client_of(), Trace())
    assert (reader.expected(job), reader.worst(job)) == (8 + 3 + 1, 12)
    tight = ReadSpec("hierarchical", fan_in=2, model=window(900), max_answer_tokens=150)
    # 8 summaries of 400 tokens, then 4, 2 and 1, and the answer
    assert reader.worst(make_job(EIGHT, QUESTION, tight, client_of(), Trace())) == 8 + 4 + 2 + 1 + 1
