"""Reading with a draft that is carried from chunk to chunk."""

from typing import Any

import pytest

from harness_core.calls.trace import Trace
from harness_core.flows.types import Pause
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

CHUNKS = chunks_of("Alpha text.", "Beta text.", "Gamma text.")
LONG = " ".join(f"word{number}" for number in range(400))


def test_every_chunk_is_asked_in_order_with_the_draft_of_the_one_before() -> None:
    # readers 19, 21
    client = client_of({"refine": ["one", "two", "three"]})
    answer = read(CHUNKS, QUESTION, client, "refine")
    assert labels(client) == ["refine.draft", "refine.revise", "refine.revise"]
    third = asked(client)[2]
    assert "two" in prompt(third)
    assert "Gamma text." in prompt(third)
    assert "one" not in prompt(third)
    assert (answer.answer, answer.partial, answer.chunks_used) == ("three", False, [1, 2, 3])
    assert answer.evidence == []
    assert answer.notes == {
        "chunks": 3, "visited": 3, "revisions": 2, "failed_calls": 0, "truncated_calls": 0,
        "truncations": 0, "tokens_truncated": 0,
    }  # fmt: skip


def test_a_revision_shows_question_draft_excerpt_and_what_to_do_in_this_order() -> None:
    client = client_of({"refine": "a draft"})
    read(CHUNKS, QUESTION, client, "refine")
    _, question, draft, excerpt, closing = (m.content for m in asked(client)[1].messages)
    assert question == f"Question: {QUESTION}"
    assert draft.startswith("<draft-")
    assert "a draft" in draft
    assert excerpt.startswith("<new_excerpt-")
    assert "[chunk 2]\nBeta text." in excerpt
    assert SENTINEL in closing


def test_a_draft_that_comes_back_as_it_was_is_no_revision() -> None:
    answer = read(CHUNKS, QUESTION, client_of({"refine": ["same", " same ", "same"]}), "refine")
    assert answer.notes["revisions"] == 0
    assert not answer.partial


def test_the_sentinel_is_a_draft_that_a_later_excerpt_may_replace() -> None:
    client = client_of({"refine": [SENTINEL, "found", "found"]})
    answer = read(CHUNKS, QUESTION, client, "refine")
    assert labels(client)[1] == "refine.revise"
    assert answer.answer == "found"
    assert not read(CHUNKS, QUESTION, client_of({"refine": SENTINEL}), "refine").partial


def test_an_unusable_reply_leaves_the_draft_and_its_chunk_unvisited() -> None:
    client = client_of({"refine": ["one", RuntimeError("down"), "three"]})
    answer = read(CHUNKS, QUESTION, client, "refine")
    assert "one" in prompt(asked(client)[2])
    assert (answer.answer, answer.chunks_used, answer.partial) == ("three", [1, 3], True)
    assert (answer.notes["failed_calls"], answer.notes["visited"]) == (1, 2)


def test_drafting_goes_on_until_a_chunk_gives_a_draft() -> None:
    client = client_of({"refine": [RuntimeError("down"), "", "three"]})
    answer = read(CHUNKS, QUESTION, client, "refine")
    assert labels(client) == ["refine.draft"] * 3
    assert (answer.answer, answer.notes["failed_calls"]) == ("three", 2)


def test_each_step_says_how_long_the_draft_was_on_its_way_in_and_out() -> None:
    trace = Trace()
    client = client_of({"refine": ["one two three", RuntimeError("down"), "one"]})
    read(CHUNKS, QUESTION, client, "refine", trace=trace)
    states = [dict(step.state or {}) for step in trace.requests]
    assert states[0] == {"tokens_in": 0, "tokens_out": states[0]["tokens_out"]}
    assert states[1] == {"tokens_in": states[0]["tokens_out"], "tokens_out": states[1]["tokens_in"]}
    assert states[2]["tokens_in"] == states[0]["tokens_out"] > states[2]["tokens_out"] > 0


def test_an_excerpt_longer_than_half_the_room_is_cut_and_counted() -> None:
    # readers 60
    trace = Trace()
    model = window(1000)
    answer = read(
        chunks_of(LONG, "Beta text."), QUESTION, client_of(),
        {"reader": "refine", "model": model, "max_answer_tokens": 200}, trace=trace,
    )  # fmt: skip
    (cut,) = notes_of(trace, "truncate")
    assert (cut["where"], cut["chunk_id"]) == ("refine.excerpt", 1)
    assert cut["tokens_kept"] <= cut["limit"] < cut["tokens_before"]
    assert cut["tokens_dropped"] == cut["tokens_before"] - cut["tokens_kept"]
    assert answer.partial
    assert answer.notes["truncations"] == 1
    assert answer.notes["tokens_truncated"] == cut["tokens_dropped"]
    assert any("cut to fit" in reason for reason in answer.reasons())


def test_a_draft_longer_than_half_the_room_is_carried_cut_and_answers_whole() -> None:
    trace, draft = Trace(), LONG[:400]
    answer = read(
        CHUNKS, QUESTION, client_of({"refine": [draft, draft, RuntimeError("down")]}),
        {"reader": "refine", "model": window(1000), "max_answer_tokens": 400}, trace=trace,
    )  # fmt: skip
    cuts = notes_of(trace, "truncate")
    assert [(cut["where"], cut["chunk_id"]) for cut in cuts] == [
        ("refine.draft", 2), ("refine.draft", 3),
    ]  # fmt: skip
    assert answer.notes["tokens_truncated"] == sum(cut["tokens_dropped"] for cut in cuts)
    assert answer.answer == draft
    second = trace.requests[1]
    assert dict(second.state or {})["tokens_in"] == cuts[0]["tokens_kept"]


def test_a_cut_draft_makes_the_answer_partial_although_the_last_one_is_whole() -> None:
    # readers 47
    answer = read(CHUNKS, QUESTION, client_of({"refine.draft": cut_off("half a")}), "refine")
    assert answer.notes["truncated_calls"] == 1
    assert answer.partial


@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_limit_ends_the_reading_and_is_no_failure(most: int) -> None:
    client = client_of({"refine": ["one", "two", "three"]})
    answer = read_unchecked(CHUNKS, client, most, "refine")
    assert answer.answer == [SENTINEL, "one", "two"][most]
    assert answer.chunks_used == [1, 2, 3][:most]
    assert (answer.notes["failed_calls"], answer.partial) == (0, True)
    assert len(asked(client)) == most


def test_only_the_draft_prompt_asks_for_citations() -> None:
    client = client_of({"refine": "said [chunk 1]"})
    read(CHUNKS, QUESTION, client, {"reader": "refine", "cite": True})
    draft, revise, _ = (system(call) for call in asked(client))
    assert "[chunk 3]" in draft
    assert "[chunk 3]" not in revise


def test_a_chunk_that_was_never_visited_cannot_be_cited() -> None:
    client = client_of({"refine": ["one", RuntimeError("down"), "said [chunk 2]"]})
    assert read(CHUNKS, QUESTION, client, "refine").notes["cited_unknown"] == [2]


def test_a_false_premise_is_carried_with_its_marker_and_read_at_the_end() -> None:
    spec = {"reader": "refine", "premise": True}
    client = client_of(
        {"refine": ["**FALSE_PREMISE** - It rose.", "FALSE_PREMISE: It rose by 3%."]}
    )
    answer = read(CHUNKS, QUESTION, client, spec)
    assert "FALSE_PREMISE: It rose.\n" in prompt(asked(client)[1])
    assert all("FALSE_PREMISE" in system(call) for call in asked(client))
    assert answer.answer == answer.premise == "It rose by 3%."
    assert not answer.partial


def test_a_later_excerpt_may_overturn_a_false_premise() -> None:
    client = client_of({"refine": ["FALSE_PREMISE: It rose.", "It fell."]})
    answer = read(CHUNKS, QUESTION, client, {"reader": "refine", "premise": True})
    assert (answer.answer, answer.premise) == ("It fell.", None)


def test_a_marker_without_a_sentence_is_an_unusable_reply() -> None:
    client = client_of({"refine": ["one", "FALSE_PREMISE:", "one"]})
    answer = read(CHUNKS, QUESTION, client, {"reader": "refine", "premise": True})
    assert (answer.answer, answer.notes["failed_calls"]) == ("one", 1)


def test_a_delay_lies_between_requests() -> None:
    client = client_of()
    spec = ReadSpec("refine", delay_between_calls=2)
    flow = find_reader("refine").reader.read(make_job(CHUNKS, QUESTION, spec, client, Trace()))
    asked_for: list[Any] = []
    todo: Any = next(flow)
    while todo is not None:
        paused = isinstance(todo, Pause)
        asked_for.append(todo if paused else todo[0].label)
        try:
            todo = flow.send(None if paused else [client.send(todo[0])])
        except StopIteration:
            todo = None
    assert asked_for == [
        "refine.draft", Pause(2), "refine.revise", Pause(2), "refine.revise",
    ]  # fmt: skip


def test_only_the_last_chunks_reply_may_be_shown_as_it_comes() -> None:
    said: list[str] = []
    client = client_of({"refine": ["one", "two", "three"]})
    read(CHUNKS, QUESTION, client, "refine", on_text=said.append)
    assert "".join(said) == "three"
