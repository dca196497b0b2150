"""What readers make of failures, empty replies, cut replies, and of finding nothing."""

from dataclasses import replace
from typing import Any

import pytest

from harness_core import (
    AuthError,
    Chunks,
    MockClient,
    ReadSpec,
    Trace,
    answer_document,
    embed,
    list_readers,
    new_chunks,
    read,
)
from harness_core.errors import EmptyChunksError
from harness_core.messages import SENTINEL
from tests.support.oracle import Oracle
from tests.support.reading import QUESTION, cut_off, labels, prompt_of, saying, the_chunks

READERS = [row["name"] for row in list_readers()]
GENERAL = [name for name in READERS if name not in ("screen", "extract")]

pytestmark = pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")


def the_spec(reader: str, **more: Any) -> ReadSpec:
    """Every setting that some reader needs."""
    return ReadSpec(reader, include=("it is about revenue",), fields=["topic"], **more)


@pytest.mark.parametrize(
    ("reader", "requests"),
    [("stuff", 1), ("retrieve", 1), ("map_reduce", 6), ("refine", 5), ("skim", 6),
     ("hierarchical", 6), ("screen", 1)],
)  # fmt: skip
def test_requests_of_a_read_of_five_chunks(reader: str, requests: int) -> None:  # readers 19
    client = saying(screen_decide='{"decision": "include"}')
    answer = read(the_chunks(5), QUESTION, client, the_spec(reader))
    assert len(client.calls()) == requests
    assert answer.totals().calls == requests


def test_retrieve_asks_once_about_at_most_top_k_chunks() -> None:  # readers 22
    client = saying()
    answer = read(the_chunks(9), QUESTION, client, ReadSpec("retrieve", top_k=3))
    assert labels(client) == ["retrieve.answer"]
    assert len(answer.chunks_used) == 3


@pytest.mark.parametrize("reader", READERS)
def test_a_read_whose_every_request_fails_is_partial(reader: str) -> None:  # readers 32
    client = saying(other=RuntimeError("the model is gone"))
    answer = read(the_chunks(3), QUESTION, client, the_spec(reader))
    assert answer.partial
    assert any("the model is gone" in reason for reason in answer.reasons())
    if reader in GENERAL:
        assert not answer.found


@pytest.mark.parametrize("reader", READERS)
def test_a_read_of_empty_completions_is_partial(reader: str) -> None:  # readers 33
    answer = read(the_chunks(3), QUESTION, saying(other=""), the_spec(reader))
    assert answer.partial


@pytest.mark.parametrize(
    ("said", "reason", "failed", "partial"),
    [
        (RuntimeError("gone"), "every request failed", 3, True),  # readers 34
        (SENTINEL, "no chunk yielded an answer", 0, False),  # readers 35
        (f"{SENTINEL}\u3002", "no chunk yielded an answer", 0, False),  # readers 37
    ],
)
def test_map_reduce_that_finds_nothing_says_why(
    said: Any, reason: str, failed: int, partial: bool
) -> None:
    client = saying(map_answer=said)
    answer = read(the_chunks(3), QUESTION, client, "map_reduce")
    assert labels(client) == ["map.answer"] * 3
    assert (answer.found, answer.chunks_used, answer.evidence) == (False, [], [])
    assert (answer.notes["reason"], answer.notes["failed_calls"]) == (reason, failed)
    assert answer.partial is partial


def test_a_chunk_that_explains_why_it_has_nothing_is_left_out() -> None:  # readers 36
    def answered(text: str) -> str:
        return "It was 3.5." if "Part 3." in text else f"{SENTINEL}. Nothing about it here."

    client = saying(map_answer=answered)
    answer = read(the_chunks(4), QUESTION, client, "map_reduce")
    assert len(client.calls()) == 4
    assert answer.answer == "It was 3.5."
    assert (answer.notes["answered"], answer.chunks_used) == (1, [3])
    assert [row.text for row in answer.evidence] == ["It was 3.5."]
    assert not answer.partial


@pytest.mark.parametrize("reader", GENERAL)
def test_a_read_of_no_chunks_asks_nothing(reader: str) -> None:  # readers 39
    client, trace = saying(), Trace()
    answer = read(Chunks(chunks=()), QUESTION, client, the_spec(reader), trace=trace)
    assert (trace.calls, answer.found, answer.partial) == (0, False, True)
    assert answer.reasons()


def test_a_screening_of_no_chunks_is_an_error() -> None:
    with pytest.raises(EmptyChunksError):
        read(Chunks(chunks=()), QUESTION, saying(), the_spec("screen"))


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_key_stops_the_run(reader: str) -> None:  # readers 40
    with pytest.raises(AuthError):
        read(the_chunks(3), QUESTION, saying(other=AuthError("no key")), the_spec(reader))


def test_a_missing_key_stops_an_embedding() -> None:  # readers 40
    def no_key(texts: list[str]) -> Any:
        raise AuthError("no key")

    client = MockClient(embed=no_key)
    with pytest.raises(AuthError):
        embed(client, ["one"])
    with pytest.raises(AuthError):
        read(the_chunks(), QUESTION, client, "retrieve")


def test_a_dead_client_is_told_in_the_printed_answer() -> None:  # readers 41
    text = "Revenue was 45.2 million dollars in the year."
    client = saying(other=RuntimeError("connection lost"))
    answer = answer_document([text], QUESTION, "thorough", client=client)
    assert answer.answer == SENTINEL
    assert answer.reasons() == [
        "1 request(s) failed",
        "first error: RuntimeError: connection lost",
    ]
    assert "part of the document that was read" in str(answer)


@pytest.mark.parametrize(
    ("recipe", "wording"),
    [
        ("fast", "Not found in the document."),  # readers 42
        ("needle", "Not found in the part of the document that was read."),  # readers 43
    ],
)
def test_a_clean_not_found_says_how_much_was_read(recipe: str, wording: str) -> None:
    text = ["Revenue was 45.2 million dollars in the year.", "Costs were 40 million."]
    answer = answer_document(text, QUESTION, recipe, client=saying(other=SENTINEL))
    assert not answer.partial
    assert wording in str(answer)


@pytest.mark.parametrize("reader", READERS)
def test_replies_cut_at_every_stage_are_counted(reader: str) -> None:  # readers 44
    chunks = new_chunks([f"The marker{n}x entry says that it is {n}." for n in range(1, 6)])
    answer = read(chunks, QUESTION, MockClient(Oracle("cut off")), the_spec(reader))
    assert answer.partial
    assert answer.notes["truncated_calls"] >= 1
    assert any("output cap" in reason for reason in answer.reasons())


@pytest.mark.parametrize("reader", READERS)
def test_a_read_that_nothing_cut_counts_none(reader: str) -> None:  # readers 45
    chunks = new_chunks([f"The marker{n}x entry says that it is {n}." for n in range(1, 6)])
    answer = read(chunks, QUESTION, MockClient(Oracle()), the_spec(reader))
    assert answer.notes["truncated_calls"] == 0
    assert not answer.partial


@pytest.mark.parametrize(
    ("reader", "stage"),
    [("map_reduce", "map.answer"), ("hierarchical", "hier.summarise.L1"), ("skim", "skim.extract")],
)
def test_an_earlier_reply_that_was_cut_makes_a_whole_answer_partial(
    reader: str, stage: str
) -> None:  # readers 46
    def answering(cutting: bool) -> MockClient:
        oracle = Oracle()

        def answer(messages: Any, params: Any) -> Any:
            reply = oracle(messages, params)
            short = cutting and params["label"] == stage
            return replace(reply, finish_reason="length") if short else reply

        return MockClient(answer)

    chunks = new_chunks([f"The marker{n}x entry says that it is {n}." for n in range(1, 6)])
    whole = read(chunks, QUESTION, answering(False), reader)
    cut_short = read(chunks, QUESTION, answering(True), reader)
    assert (whole.partial, cut_short.partial) == (False, True)
    assert whole.answer == cut_short.answer
    assert cut_short.notes["truncated_calls"] == 5


def test_the_answer_itself_may_be_the_reply_that_was_cut() -> None:
    answer = read(the_chunks(), QUESTION, saying(other=cut_off("Revenue was")), "stuff")
    assert (answer.answer, answer.partial) == ("Revenue was", True)
    assert answer.notes["truncated_calls"] == 1
    assert answer.evidence


def test_chunks_whose_not_found_was_cut_make_the_answer_partial() -> None:
    client = saying(map_answer=cut_off(SENTINEL))
    answer = read(the_chunks(2), QUESTION, client, "map_reduce")
    assert (answer.found, answer.partial, answer.notes["truncated_calls"]) == (False, True, 2)


def test_no_answer_no_evidence() -> None:
    failed = saying(other=RuntimeError("gone"))
    for reader in ("stuff", "retrieve"):
        answer = read(the_chunks(2), QUESTION, failed, reader)
        assert (answer.evidence, sorted(answer.chunks_used)) == ([], [1, 2])


def test_what_does_not_fit_one_request_is_left_out_and_told() -> None:
    from harness_core import OverflowWarning, errors, register_model

    register_model("small-1", context_window=900, max_output=300, input_usd=0, output_usd=0)
    client = saying()
    spec = ReadSpec("stuff", model="small-1", max_answer_tokens=200)
    with pytest.warns(OverflowWarning, match="left out"):
        answer = read(the_chunks(30), QUESTION, client, spec)
    dropped = answer.notes["dropped_chunks"]
    assert 0 < dropped < 30
    assert answer.chunks_used == list(range(1, 31 - dropped))
    assert f"{dropped} chunk(s) did not fit" in answer.reasons()
    with pytest.raises(errors.OverflowError):
        read(the_chunks(30), QUESTION, client, spec.having(on_overflow="error"))
    assert len(client.calls()) == 1


def test_map_reduce_names_premises_that_chunks_contradict() -> None:
    def answered(text: str) -> str:
        return "FALSE_PREMISE: Revenue fell." if "Part 2." in text else "It rose."

    client = saying(map_answer=answered, reduce="FALSE_PREMISE: It fell.")
    answer = read(the_chunks(3), QUESTION, client, ReadSpec("map_reduce", premise=True))
    assert (answer.answer, answer.premise) == ("It fell.", "It fell.")
    assert answer.notes["premise_chunks"] == [2]
    assert "FALSE_PREMISE: Revenue fell." in prompt_of(client, 3)
    assert not answer.partial
    step = next(step for step in answer.trace.steps if step.label == "read.premise")
    assert step.detail == {"contradicted": True, "premise": "It fell."}


def test_a_failed_merge_gives_no_verdict_on_the_premise() -> None:
    client = saying(map_answer="FALSE_PREMISE: Revenue fell.", reduce=RuntimeError("gone"))
    answer = read(the_chunks(2), QUESTION, client, ReadSpec("map_reduce", premise=True))
    assert answer.premise is None
    assert answer.premise_checked
    assert "FALSE_PREMISE" not in answer.answer
    assert answer.notes["premise_chunks"] == [1, 2]


def test_a_premise_marker_without_a_sentence_is_an_unusable_reply() -> None:
    answer = read(the_chunks(1), QUESTION, saying(other="FALSE_PREMISE:"), "stuff")
    assert answer.found  # nobody asked about the premise
    spec = ReadSpec("stuff", premise=True)
    answer = read(the_chunks(1), QUESTION, saying(other="FALSE_PREMISE:"), spec)
    assert (answer.found, answer.partial, answer.premise) == (False, True, None)


def test_verify_lets_the_check_decide() -> None:
    spec = ReadSpec("stuff", verify=True)
    answer = read(the_chunks(2), QUESTION, saying(), spec)
    assert [row.verified for row in answer.evidence] == [True, True]
    assert not answer.partial
    step = next(step for step in answer.trace.steps if step.label == "read.verify")
    assert step.detail == {"rows": 2, "checked": 2, "not_found": 0}
    answer = read(the_chunks(2), QUESTION, saying(), ReadSpec("map_reduce", verify=True))
    assert [row.verified for row in answer.evidence] == [None, None]
    assert not answer.partial
