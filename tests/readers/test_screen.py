"""One decision from the opening of a document."""

from typing import Any

import pytest

from harness_core.answer import Answer
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.documents.types import Chunks
from harness_core.errors import BadSettingError, EmptyChunksError, NoCriteriaError
from harness_core.models.tokenizers import count_tokens
from harness_core.pipeline import read
from tests.support.reading import (
    asked,
    chunks_of,
    client_of,
    cut_off,
    notes_of,
    prompt,
    system,
    window,
)

QUESTION = "Does the drug help adults?"
ADULTS, CHILDREN = "Adults only", "Trials in children."
CHUNKS = chunks_of(
    "A randomised trial.", "It enrolled adults with asthma.", "Forty adults took part.",
    page=[1, 2, 2], section=["Title", "Methods", "Methods"],
)  # fmt: skip
EIGHT = chunks_of(*(f"Paragraph {n} tells of the trial at some length." for n in range(1, 9)))


def said(
    decision: Any = "include", reason: str = "why", criterion: Any = None, quote: Any = None
) -> dict[str, Any]:
    return {"decision": decision, "reason": reason, "criterion": criterion, "quote": quote}


def screened(reply: Any, chunks: Chunks = CHUNKS, **more: Any) -> Answer:
    client = reply if isinstance(reply, MockClient) else client_of({"screen.decide": reply})
    spec = {"reader": "screen", "include": (ADULTS,), "exclude": (CHILDREN,), **more}
    return read(chunks, QUESTION, client, spec)


def test_the_opening_and_the_criteria_are_shown_once() -> None:
    # readers 125
    client = client_of({"screen.decide": said(criterion=ADULTS)})
    answer = screened(client, restate="always")
    (call,) = client.calls()
    assert call.messages[1].content == f"Question: {QUESTION}"
    assert f"- {ADULTS}" in call.messages[2].content
    assert "[chunk 1 p.1, § Title]\nA randomised trial." in call.messages[3].content
    assert prompt(call).count(QUESTION) == 1
    assert (call.label, call.params["schema_name"]) == ("screen.decide", "screening")
    assert (answer.answer, answer.partial) == ("include", False)
    total = sum(chunk.tokens for chunk in CHUNKS)
    assert answer.notes == {
        "seen_tokens": total, "document_tokens": total, "truncated": False, "failed_call": False,
        "truncated_calls": 0, "decision": "include", "reason": "why", "criterion": ADULTS,
        "criterion_valid": True,
    }  # fmt: skip


def test_without_criteria_nothing_is_asked() -> None:
    # readers 113
    client = client_of()
    for include in ((), ("", " ")):
        with pytest.raises(NoCriteriaError):
            screened(client, include=include, exclude=())
    assert client.calls() == []


def test_one_criterion_may_be_given_as_text() -> None:
    client = client_of({"screen.decide": said("exclude", criterion="children")})
    answer = read(CHUNKS, QUESTION, client, {"reader": "screen", "exclude": "Children"})
    assert answer.answer == "exclude"
    assert "Include only" not in prompt(client.calls()[0])


def test_only_the_opening_of_a_long_document_is_shown() -> None:
    # readers 114, 124
    client = client_of({"screen.decide": said()})
    trace = Trace(Governor(max_calls=3))
    spec = {"reader": "screen", "include": ADULTS, "screen_tokens": 40}
    answer = read(EIGHT, QUESTION, client, spec, trace=trace)
    (call,) = client.calls()
    assert "Paragraph 1 " in prompt(call)
    assert "Paragraph 8 " not in prompt(call)
    assert answer.notes["truncated"]
    assert not answer.partial
    assert answer.notes["seen_tokens"] < answer.notes["document_tokens"]
    assert f"{answer.notes['seen_tokens']} of {answer.notes['document_tokens']} tokens" in prompt(
        call
    )


def test_the_opening_stops_at_the_first_chunk_that_does_not_fit() -> None:
    # readers 115
    chunks = chunks_of("A trial.", "Long " * 500, "The end.")
    client = client_of({"screen.decide": said()})
    answer = screened(client, chunks, screen_tokens=100)
    assert answer.notes["seen_tokens"] == chunks[0].tokens
    assert "The end." not in prompt(client.calls()[0])
    assert answer.answer == "include"


def test_a_first_chunk_that_is_too_long_is_cut() -> None:
    # readers 116
    chunks = chunks_of("It enrolled adults. " + "More of the same is said here. " * 400)
    client = client_of({"screen.decide": said(quote="It enrolled adults.")})
    answer = screened(client, chunks, screen_tokens=300)
    assert len(client.calls()) == 1
    assert 1 <= answer.notes["seen_tokens"] <= 300
    assert answer.notes["truncated"]
    assert answer.evidence[0].verified is True
    (cut,) = notes_of(answer.trace, "truncate")
    assert (cut["where"], cut["chunk_id"]) == ("screen.opening", 1)


def test_the_header_of_a_chunk_that_is_cut_is_counted() -> None:
    long = "A section whose heading goes on for a good many words" + " and more" * 9
    chunks = chunks_of("More of the same is said here. " * 400, section=[long])
    client = client_of({"screen.decide": said()})
    screened(client, chunks, screen_tokens=100)
    excerpt = client.calls()[0].messages[3].content.split("\n\nThis is the opening")[0]
    shown = "\n".join(excerpt.splitlines()[1:-1])
    assert long in shown
    assert 50 < count_tokens(shown) <= 100


def test_no_room_for_a_word_is_an_error_that_names_the_setting() -> None:
    # readers 117
    client = client_of()
    with pytest.raises(BadSettingError, match="screen_tokens"):
        screened(client, screen_tokens=2)
    assert client.calls() == []


def test_criteria_that_fill_the_window_are_an_error_that_names_it() -> None:
    with pytest.raises(BadSettingError, match="context window"):
        screened(client_of(), include=("Adults " * 900,), model=window(1200))


def test_no_chunks_are_an_error() -> None:
    # readers 117
    client = client_of()
    with pytest.raises(EmptyChunksError):
        screened(client, chunks_of())
    assert client.calls() == []


@pytest.mark.parametrize(
    ("given", "decision"),
    [
        ("include", "include"), (" INCLUDE ", "include"), ("probably include", "unclear"),
        ("", "unclear"), (None, "unclear"), ("unclear", "unclear"), (["include"], "include"),
        (["include", "exclude"], "unclear"),
    ],
)  # fmt: skip
def test_a_decision_is_one_of_three_words(given: Any, decision: str) -> None:
    # readers 118, 119
    answer = screened(said(given))
    assert (answer.answer, answer.partial) == (decision, False)
    assert answer.notes["decision"] == decision


def test_a_near_name_is_not_read_as_the_decision() -> None:
    assert screened({"decisions": "include", "reason": "why"}).answer == "unclear"


@pytest.mark.parametrize(
    "named",
    ["Children", "- children!", '"trials in children"', "2) Trials in  CHILDREN.", None, ""],
)
def test_an_exclusion_rests_on_a_criterion_of_the_protocol(named: Any) -> None:
    # readers 120, 121
    answer = screened(said(" EXCLUDE ", "not adults", named))
    known = bool(named) and "rials" in named
    assert answer.answer == ("exclude" if known else "unclear")
    if known:
        assert (answer.notes["criterion"], answer.notes["criterion_valid"]) == (CHILDREN, True)
    elif named:
        assert (answer.notes["criterion"], answer.notes["criterion_valid"]) == (named, False)
        assert "not one of the protocol's" in answer.notes["reason"]
        assert "not adults" in answer.notes["reason"]
    else:
        assert "criterion_valid" not in answer.notes


def test_an_exclusion_may_name_the_inclusion_criterion_that_fails() -> None:
    # readers 121
    answer = screened(said("exclude", criterion="(a) ADULTS only."))
    assert (answer.answer, answer.notes["criterion"]) == ("exclude", ADULTS)


def test_another_decision_is_only_labelled() -> None:
    # readers 122
    answer = screened(said("include", "fits", "Some rule"))
    assert (answer.answer, answer.notes["criterion_valid"]) == ("include", False)
    assert answer.notes["reason"] == "fits"


@pytest.mark.parametrize(
    ("quote", "chunk_id", "verified", "page", "section"),
    [
        ("Forty adults took part.", 3, True, 2, "Methods"),
        ("adults with asthma. Forty adults", None, True, None, None),
        ("Fifty adults took part.", None, False, None, None),
    ],
)
def test_a_quotation_goes_to_the_chunk_that_holds_it(
    quote: str, chunk_id: int | None, verified: bool, page: int | None, section: str | None
) -> None:
    # readers 123
    answer = screened(said(quote=quote), verify=True)
    (row,) = answer.evidence
    assert (row.chunk_id, row.verified) == (chunk_id, verified)
    assert (row.page, row.section, row.kind) == (page, section, "extracted")
    assert answer.chunks_used == ([] if chunk_id is None else [chunk_id])
    assert answer.partial is not verified


@pytest.mark.parametrize("reply", ["prose", "{}", "[]", '"include"', RuntimeError("down"), ""])
def test_a_reply_that_is_not_the_json_is_no_decision(reply: Any) -> None:
    answer = screened(reply)
    assert (answer.answer, answer.partial, answer.found) == ("", True, False)
    assert "decision" not in answer.notes
    assert answer.notes["failed_call"] is True
    assert answer.notes["error"]


def test_a_request_that_was_not_sent_is_no_decision_and_no_failure() -> None:
    client = client_of({"screen.decide": said()})
    trace = Trace(Governor(max_output_tokens=10))
    answer = read(CHUNKS, QUESTION, client, {"reader": "screen", "include": ADULTS}, trace=trace)
    assert (answer.answer, answer.partial) == ("", True)
    assert (answer.notes["failed_call"], answer.notes["output_cap_reached"]) == (False, 10)


def test_a_reply_cut_off_after_its_json_is_used_and_partial() -> None:
    # readers 44
    whole = '{"decision": "include", "reason": "", "criterion": null, "quote": null}'
    answer = screened(cut_off(whole))
    assert (answer.answer, answer.partial) == ("include", True)
    assert "1 reply(s) were cut off at the output cap" in answer.reasons()


def test_the_premise_is_not_checked() -> None:
    client = client_of({"screen.decide": said()})
    answer = screened(client, premise=True)
    assert not answer.premise_checked
    assert "premise" not in answer.to_dict()
    assert "FALSE_PREMISE" not in system(asked(client)[0])
