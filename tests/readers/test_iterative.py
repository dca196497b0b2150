"""Rounds of retrieving and judging."""

import json
from typing import Any

import pytest

from harness_core.answer import Answer
from harness_core.clients.mock import MockClient
from harness_core.errors import EmbedFallbackWarning, IterativeDegradedWarning
from harness_core.messages import SENTINEL, Request
from harness_core.models.budgets import budget
from harness_core.models.tokenizers import count_tokens
from harness_core.pipeline import estimate, read
from harness_core.reading.registry import find_reader
from tests.support.reading import (
    chunks_of,
    client_of,
    cut_off,
    labels,
    notes_of,
    prompt,
    system,
    window,
)

QUESTION = "Who owns the mill and since when?"
TEXTS = (
    "The mill belongs to Ada Quist.",
    "The mill was sold in 1931.",
    "The bakery stands beside the church.",
    "A river runs past the mill.",
    "The church was painted white.",
    "Ada Quist came from Oslo.",
)
CHUNKS = chunks_of(*TEXTS)


def more(query: str) -> dict[str, Any]:
    return {"can_answer": False, "answer": "", "next_query": query}


def done(text: Any = "Ada Quist.", **extra: Any) -> dict[str, Any]:
    return {"can_answer": True, "answer": text, "next_query": "", **extra}


def rounds(client: MockClient, **settings: Any) -> Answer:
    return read(CHUNKS, QUESTION, client, {"reader": "iterative", "top_k": 2, **settings})


def test_a_step_that_can_answer_ends_the_rounds() -> None:
    # readers 31
    client = client_of({"iterative.step": done()})
    answer = rounds(client)
    assert labels(client) == ["iterative.step"]
    assert (answer.answer, answer.partial, len(answer.chunks_used)) == ("Ada Quist.", False, 2)
    assert answer.notes == {
        "rounds": 1, "chunks_seen": 2, "chunks_dropped": 0, "truncated_calls": 0,
        "queries": [QUESTION], "stop_reason": "model satisfied", "embedding_fallback": False,
    }  # fmt: skip
    assert [row.kind for row in answer.evidence] == ["verbatim"] * 2
    assert [row.score for row in answer.evidence] == [None] * 2
    assert notes_of(answer.trace, "iterative.stop") == [{"rounds": 1, "reason": "model satisfied"}]


def test_each_round_looks_for_what_the_last_one_missed_until_a_query_repeats() -> None:
    # readers 26
    client = client_of({"iterative.step": [more("sale year"), more("church"), more("church")]})
    answer = rounds(client, max_rounds=5)
    assert labels(client) == ["iterative.step"] * 3 + ["iterative.final"]
    assert answer.notes["queries"] == [QUESTION, "sale year", "church"]
    assert answer.notes["chunks_seen"] == 6 == len(answer.evidence)
    assert (answer.notes["stop_reason"], answer.partial) == ("query loop", True)
    assert answer.answer == "An answer."
    assert answer.reasons() == ["no step could answer: query loop"]


@pytest.mark.parametrize("query", ["", "  ", None, QUESTION, f" {QUESTION} "])
def test_a_blank_or_repeated_query_ends_the_rounds(query: str) -> None:
    client = client_of({"iterative.step": more(query)})
    assert rounds(client).notes["stop_reason"] == "query loop"
    assert labels(client) == ["iterative.step", "iterative.final"]


def test_the_rounds_are_bounded() -> None:
    # readers 27
    client = client_of({"iterative.step": [more(f"query {n}") for n in range(9)]})
    answer = rounds(client, max_rounds=3, top_k=1)
    assert labels(client) == ["iterative.step"] * 3 + ["iterative.final"]
    assert (answer.notes["rounds"], answer.notes["stop_reason"]) == (3, "max rounds")


def test_the_rounds_end_when_every_chunk_was_seen() -> None:
    client = client_of({"iterative.step": [more(f"query {n}") for n in range(9)]})
    answer = rounds(client, top_k=6)
    assert (answer.notes["stop_reason"], answer.partial) == ("no unseen chunks", True)
    assert labels(client) == ["iterative.step", "iterative.final"]
    assert len(client.embeds()) == 2  # the chunks and the question: no query that nothing answers


def test_chunks_are_embedded_once_and_each_query_alone() -> None:
    client = client_of({"iterative.step": [more("sale year"), done()]})
    rounds(client)
    assert [len(one.texts) for one in client.embeds()] == [6, 1, 1]
    assert client.embeds()[2].texts == ("sale year",)


def test_a_round_whose_query_cannot_be_embedded_ranks_by_words() -> None:
    # readers 92
    def embed(texts: list[str]) -> list[list[float]]:
        if texts == ["Oslo"]:
            raise RuntimeError("down")
        return [[1.0, float(len(text))] for text in texts]

    steps = [more("Oslo"), done()]
    client = MockClient(lambda _m, p: steps[len(client.calls())], embed)
    with pytest.warns(EmbedFallbackWarning):
        answer = rounds(client, top_k=1)
    assert answer.partial
    assert answer.notes["embedding_fallback"]
    assert "embeddings fell back to word matching" in answer.reasons()
    assert 6 in answer.chunks_used


def test_a_query_with_a_vector_of_another_length_is_ranked_by_words_and_said() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0] * (2 if len(texts) == 1 else 3) for _ in texts]

    client = MockClient(lambda _m, _p: done(), embed)
    with pytest.warns(EmbedFallbackWarning, match="cannot be compared"):
        answer = rounds(client)
    assert answer.partial
    assert answer.notes["embedding_fallback"]
    assert 1 in answer.chunks_used


@pytest.mark.parametrize("blank", ["", None, "  "])
def test_an_answer_without_text_is_asked_for_once_more(blank: Any) -> None:
    # readers 93
    client = client_of({"iterative.step": done(blank), "iterative.final": "It is Ada."})
    answer = rounds(client)
    assert labels(client) == ["iterative.step", "iterative.final"]
    assert (answer.answer, answer.partial) == ("It is Ada.", True)
    assert answer.notes["stop_reason"] == "step gave no answer"


@pytest.mark.parametrize("flag", ["true", 1, "yes", None, [True, True]])
def test_only_true_is_true(flag: Any) -> None:
    client = client_of({"iterative.step": {**done(), "can_answer": flag}})
    assert rounds(client).notes["stop_reason"] == "query loop"


def test_an_answer_in_several_sentences_or_parts_is_kept() -> None:
    client = client_of({"iterative.step": done(["Ada.", {"since": "1931"}])})
    assert rounds(client).answer == "Ada.\n1931"


def test_a_sentinel_is_an_answer() -> None:
    client = client_of({"iterative.step": done(SENTINEL)})
    answer = rounds(client)
    assert (answer.answer, answer.partial) == (SENTINEL, False)


@pytest.mark.parametrize("cite", [True, False])
def test_the_step_is_asked_for_citations(cite: bool) -> None:
    # readers 94
    client = client_of({"iterative.step": done()})
    rounds(client, cite=cite)
    assert ("[chunk 3]" in system(client.calls()[0])) is cite


def test_a_step_puts_the_question_first_and_again_after_long_excerpts() -> None:
    client = client_of({"iterative.step": done()})
    rounds(client, restate="always")
    users = [message.content for message in client.calls()[0].messages[1:]]
    assert users[0] == f"Question: {QUESTION}"
    assert users[1].startswith("<excerpts-")
    assert users[1].endswith(QUESTION)
    client = client_of({"iterative.step": done()})
    rounds(client, restate="never")
    assert client.calls()[0].messages[-1].content.endswith(">")


def test_nothing_is_asked_when_no_gathered_chunk_fits() -> None:
    # readers 95
    chunks = chunks_of(*("The mill " + "stands by the river " * 90 for _ in range(3)))
    client = client_of()
    spec = {"reader": "iterative", "model": window(600, max_output=60), "max_answer_tokens": 50}
    answer = read(chunks, QUESTION, client, spec)
    assert client.calls() == []
    assert (answer.answer, answer.partial) == (SENTINEL, True)
    assert answer.notes["stop_reason"] == "no gathered chunk fits one prompt"


def test_every_step_stays_within_the_window() -> None:
    # readers 96
    chunks = chunks_of(*(f"Mill {n} " + "stands by the river " * 40 for n in range(8)))
    client = client_of({"iterative.step": [more(f"mill {n}") for n in range(9)]})
    model = window(1500)
    spec = {"reader": "iterative", "model": model, "max_answer_tokens": 200, "restate": "always"}
    answer = read(chunks, QUESTION, client, spec)
    usable = budget(model, 200).input
    for call in client.calls():
        assert sum(count_tokens(message.content) + 5 for message in call.messages) <= usable
    assert answer.notes["chunks_dropped"] > 0
    assert answer.partial


@pytest.mark.parametrize("order", ["relevance", "document", "edges"])
def test_diverse_selection_never_takes_a_chunk_twice(order: str) -> None:
    # readers 97, 72
    client = client_of({"iterative.step": [more("sale year"), more("church"), done()]})
    answer = rounds(client, mmr=0.4, context_order=order)
    assert len(set(answer.chunks_used)) == len(answer.chunks_used) == 6
    shown = prompt(client.calls()[-1])
    places = [shown.index(f"[chunk {number}]") for number in answer.chunks_used]
    assert places == sorted(places)


def test_a_first_step_cut_inside_its_json_is_said() -> None:
    # readers 50
    client = client_of({"iterative.step": cut_off('{"can_answer": tr')})
    with pytest.warns(IterativeDegradedWarning, match="output cap"):
        answer = rounds(client)
    assert answer.notes["stop_reason"] == "step cut off at the output cap"
    assert (answer.notes["truncated_calls"], answer.partial) == (1, True)
    assert labels(client) == ["iterative.step", "iterative.final"]


def test_a_failed_first_step_leaves_one_retrieval() -> None:
    client = client_of({"iterative.step": "prose"})
    with pytest.warns(IterativeDegradedWarning, match="not the JSON"):
        answer = rounds(client)
    assert (answer.answer, answer.notes["stop_reason"]) == ("An answer.", "step failed")


def test_a_later_step_that_fails_warns_nobody_and_is_partial() -> None:
    client = client_of({"iterative.step": [more("church"), RuntimeError("down")]})
    answer = rounds(client)
    assert (answer.notes["stop_reason"], answer.partial, answer.warnings) == (
        "step failed",
        True,
        [],
    )


# --- premise ------------------------------------------------------------------------------------


def test_a_false_premise_is_in_the_schema_only_when_it_is_checked() -> None:
    for premise in (True, False):
        client = client_of({"iterative.step": done()})
        rounds(client, premise=premise)
        schema = client.calls()[0].params["schema"]
        assert ("false_premise" in schema["properties"]) is premise
        assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize("verify", [True, False])
def test_a_false_premise_is_the_answer_and_needs_no_quotation(verify: bool) -> None:
    said = "The mill was sold in 1931."
    client = client_of({"iterative.step": {**more(""), "false_premise": said}})
    answer = rounds(client, premise=True, verify=verify)
    assert (answer.answer, answer.premise, answer.partial) == (said, said, False)
    assert answer.notes["stop_reason"] == "premise false"
    assert len(client.calls()) == 1


@pytest.mark.parametrize("nothing", [None, "", " ", "None", "null", "N/A"])
def test_no_false_premise_is_no_verdict(nothing: Any) -> None:
    client = client_of({"iterative.step": done(false_premise=nothing)})
    answer = rounds(client, premise=True)
    assert (answer.answer, answer.premise, answer.premise_checked) == ("Ada Quist.", None, True)


def test_the_final_answer_may_find_the_premise_false() -> None:
    final = "FALSE_PREMISE: It was sold."
    client = client_of({"iterative.step": more(""), "iterative.final": final})
    answer = rounds(client, premise=True)
    assert (answer.answer, answer.premise) == ("It was sold.", "It was sold.")


# --- verify -------------------------------------------------------------------------------------


def quoted(*pairs: tuple[Any, str], query: str = "") -> dict[str, Any]:
    quotations = [{"chunk": number, "text": text} for number, text in pairs]
    return {**done("Ada."), "next_query": query, "quotations": quotations}


def best_id(client: MockClient) -> int:
    """The first chunk that the first step is shown."""
    return int(prompt(client.calls()[0]).split("[chunk ")[1].split("]")[0])


def test_quotations_are_asked_for_only_under_verify() -> None:
    for verify in (True, False):
        client = client_of({"iterative.step": more("")})
        rounds(client, verify=verify)
        assert ("quotations" in client.calls()[0].params["schema"]["properties"]) is verify


def test_an_answer_whose_quotations_are_found_is_accepted_with_them_as_evidence() -> None:
    client = client_of({"iterative.step": quoted((1, TEXTS[0]), (2, "sold in 1931"))})
    answer = rounds(client, verify=True, top_k=6)
    assert (answer.answer, answer.partial, answer.chunks_used) == ("Ada.", False, [1, 2])
    assert [(r.text, r.kind, r.verified, r.source_text) for r in answer.evidence] == [
        (TEXTS[0], "extracted", True, TEXTS[0]), ("sold in 1931", "extracted", True, TEXTS[1]),
    ]  # fmt: skip
    assert answer.notes["refused_steps"] == 0


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, "The mill belongs to Ada Quist of Oslo.")],
        [(2, TEXTS[0])],
        [(99, TEXTS[0])],
        [(None, TEXTS[0])],
        [(1, TEXTS[0]), (2, "sold in 1932")],
        [(1, "")],
        [],
    ],
)
def test_an_answer_with_a_quotation_that_is_not_there_is_never_accepted(pairs: list[Any]) -> None:
    client = client_of({"iterative.step": quoted(*pairs)})
    answer = rounds(client, verify=True, top_k=6, max_rounds=3)
    assert (answer.answer, answer.partial, answer.evidence) == (SENTINEL, True, [])
    assert labels(client) == ["iterative.step"] * 3  # no unchecked final answer
    assert answer.notes["stop_reason"] == "no quotation verified"
    assert answer.notes["refused_steps"] == 3
    assert any("no quotation verified" in reason for reason in answer.reasons())


def test_a_refused_step_is_told_what_was_not_found_and_asked_again_over_the_same_chunks() -> None:
    client = client_of({"iterative.step": [quoted((1, "sold to Ada")), quoted((1, TEXTS[0]))]})
    answer = rounds(client, verify=True, top_k=6)
    first, second = client.calls()
    assert "sold to Ada" in prompt(second)
    assert "sold to Ada" not in prompt(first)
    assert (answer.answer, answer.partial) == ("Ada.", False)
    assert (answer.notes["rounds"], answer.notes["refused_steps"]) == (2, 1)
    assert len(client.embeds()) == 2


def test_a_refused_step_with_a_query_looks_again() -> None:
    steps = [quoted((1, "invented"), query="Oslo church"), quoted((1, TEXTS[0]))]
    client = client_of({"iterative.step": steps})
    answer = rounds(client, verify=True, top_k=3)
    assert answer.notes["queries"] == [QUESTION, "Oslo church"]
    assert answer.notes["chunks_seen"] == 6
    assert answer.answer == "Ada."


def test_what_was_told_is_forgotten_after_a_step_that_does_not_answer() -> None:
    steps = [quoted((1, "invented")), more("Oslo"), quoted((1, TEXTS[0]))]
    client = client_of({"iterative.step": steps})
    answer = rounds(client, verify=True, top_k=3)
    assert "invented" not in prompt(client.calls()[2])
    assert answer.answer == "Ada."


def test_verified_rounds_that_end_without_an_answer_make_no_final_request() -> None:
    client = client_of({"iterative.step": more("")})
    answer = rounds(client, verify=True)
    assert (answer.answer, answer.notes["stop_reason"]) == (SENTINEL, "query loop")
    assert labels(client) == ["iterative.step"]


# --- ahead --------------------------------------------------------------------------------------


class Posting(MockClient):
    """A mock that counts as a provider, so that its embeddings are requests."""

    provider = True


def test_the_embedding_requests_are_counted_ahead() -> None:
    # readers 174
    chunks = chunks_of(*(f"Paragraph {n} of the book." for n in range(100)))
    found = estimate(chunks, "Which?", "iterative", client=Posting(), max_rounds=3)
    assert (found.embed_calls, found.calls) == (5, 9)


def test_the_requests_of_a_read_never_pass_the_worst_case() -> None:
    client = client_of({"iterative.step": [more(f"query {n}") for n in range(9)]})
    rounds(client, max_rounds=4, top_k=1)
    found = estimate(CHUNKS, QUESTION, "iterative", client=client, max_rounds=4)
    assert len(client.calls()) == found.worst_calls == 5


def test_a_step_is_a_flow_of_one_request_after_another() -> None:
    from harness_core.calls.trace import Trace
    from harness_core.messages import Reply, Texts
    from harness_core.reading.flow import make_job
    from harness_core.reading.spec import ReadSpec

    client = MockClient()
    spec = ReadSpec("iterative", top_k=2)
    flow = find_reader("iterative").reader.read(make_job(CHUNKS, QUESTION, spec, client, Trace()))
    vectors = None
    for texts in (TEXTS, (QUESTION,)):
        batch = flow.send(None if vectors is None else [vectors])
        assert isinstance(batch, tuple)
        assert isinstance(batch[0], Texts)
        assert batch[0].texts == texts
        vectors = client.embed(batch[0])
    batch = flow.send([vectors])
    assert isinstance(batch, tuple)
    assert isinstance(batch[0], Request)
    assert (batch[0].label, batch[0].final, len(batch)) == ("iterative.step", False, 1)
    with pytest.raises(StopIteration) as stop:
        flow.send([Reply(ok=True, text=json.dumps(done()))])
    assert stop.value.value.answer == "Ada Quist."
