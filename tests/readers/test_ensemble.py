"""Several readers over the same chunks, and one request between them."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness_core.answer import Answer
from harness_core.clients.mock import MockClient
from harness_core.documents.types import Chunks
from harness_core.errors import (
    AuthError,
    BadEnsembleError,
    BudgetError,
    EnsembleDegenerateWarning,
    NearMissWarning,
    RequestRefused,
    UnknownMethodError,
)
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL
from harness_core.pipeline import estimate, read
from harness_core.reading.job import Job
from harness_core.reading.registry import register_reader
from harness_core.reading.spec import ReadSpec
from tests.support.reading import (
    asked,
    chunks_of,
    client_of,
    cut_off,
    labels,
    prompt,
    window,
)

QUESTION = "What did the harvest yield?"
CHUNKS = chunks_of(
    "The harvest was poor, said Alma.",
    "The harvest yield was nine tons, said Berta.",
    "The harvest begins in June, said Carla.",
)

DIFFERENT = {"retrieve.answer": "One.", "reduce": "Two."}


def weighed(
    client: MockClient,
    members: Sequence[str] | None = None,
    chunks: Chunks = CHUNKS,
    **more: Any,
) -> Answer:
    return read(chunks, QUESTION, client, {"reader": "ensemble", "members": members, **more})


def test_the_members_read_one_after_another_and_one_request_weighs_them() -> None:
    # readers 23, 100
    client = client_of({
        "retrieve.answer": "Nine tons.", "map.answer": "Part.", "reduce": "Nine, poor.",
        "ensemble.adjudicate": "Nine tons, a poor harvest.",
    })  # fmt: skip
    answer = weighed(client)
    assert labels(client) == [
        "retrieve.answer", "map.answer", "map.answer", "map.answer", "reduce",
        "ensemble.adjudicate",
    ]  # fmt: skip
    assert (answer.answer, answer.partial) == ("Nine tons, a poor harvest.", False)
    assert answer.notes["members"] == answer.notes["answered"] == ["retrieve", "map_reduce"]
    assert answer.notes["signatures"] == ["topk|1|none", "all|N+logN|tree"]
    assert answer.notes["adjudication"] == "llm"
    assert answer.notes["partial_members"] == answer.notes["collapsed_members"] == []
    assert answer.to_dict()["notes"]["partial_members"] == []
    assert set(answer.notes["member_notes"]) == {"retrieve", "map_reduce"}
    body = prompt(asked(client, "ensemble.adjudicate")[0])
    assert 'source="retrieve">\nNine tons.\n' in body
    assert 'source="map_reduce">\nNine, poor.\n' in body
    assert body.endswith(f"Question: {QUESTION}")


def test_the_evidence_of_all_members_is_kept() -> None:
    # readers 101
    answer = weighed(client_of(DIFFERENT), verify=True)
    assert {(row.kind, row.verified) for row in answer.evidence} == {
        ("verbatim", True), ("answer", None),
    }  # fmt: skip
    assert (sorted(answer.chunks_used), answer.partial) == ([1, 2, 3], False)


@pytest.mark.parametrize(
    "members",
    [
        ["stuff", "stuff"],  # readers 5
        ["map_reduce"],  # readers 6
        ["ensemble", "stuff"],  # readers 7
        ["ensemble"],
        [],
        ["stuff", " ", ""],
    ],
)
def test_fewer_than_two_ways_of_reading_are_refused_before_anything_is_sent(
    members: list[str],
) -> None:
    client = client_of()
    with pytest.raises(BadEnsembleError):
        weighed(client, members)
    assert client.calls() == []


def echo(job: Job) -> Flow[Answer]:
    """Says nothing new."""
    yield from ()
    return job.answer("Echo.", used=[1])


def test_two_readers_of_one_signature_are_one_way_of_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # readers 8
    from harness_core.reading import registry

    monkeypatch.setattr(registry, "_registered", {})
    register_reader("whole", echo, signature="all|1|none")
    with pytest.raises(BadEnsembleError, match="signature"):
        weighed(client_of(), ["stuff", "whole"])


def test_a_member_that_nobody_registered_is_refused() -> None:
    with pytest.raises(UnknownMethodError):
        weighed(client_of(), ["stuff", "stuf"])


def test_a_member_that_says_nothing_leaves_the_other_to_answer() -> None:
    # readers 38
    client = client_of({"stuff.answer": f"{SENTINEL}: no harvest", "map.answer": "Nine."})
    answer = weighed(client, ["stuff", "map_reduce"])
    assert (answer.answer, answer.partial) == ("An answer.", True)
    assert answer.notes["answered_by"] == "map_reduce"
    assert answer.notes["adjudication"] == "single member answered"
    assert {row.kind for row in answer.evidence} == {"answer"}
    assert answer.reasons() == ["only map_reduce found an answer"]
    assert "ensemble.adjudicate" not in labels(client)


def test_no_member_that_answers_is_partial() -> None:
    client = client_of(default=SENTINEL)
    answer = weighed(client)
    assert (answer.answer, answer.partial, answer.chunks_used) == (SENTINEL, True, [])
    assert answer.reasons() == ["no member found an answer"]


def test_members_over_one_chunk_and_with_one_answer_are_said_to_be_alike() -> None:
    # readers 98
    client = client_of({"rerank.score": {"score": 9}}, default="Nine tons.")
    with pytest.warns(EnsembleDegenerateWarning):
        answer = weighed(client, ["stuff", "rerank"], chunks_of("The harvest yield: nine tons."))
    assert [name for name, _ in answer.warnings] == ["EnsembleDegenerateWarning"] * 2
    assert answer.notes["collapsed_members"] == [["stuff", "rerank"]]


def test_failures_of_a_member_are_counted_and_named() -> None:
    # readers 99
    chunks = chunks_of(*(f"Harvest {n} was fine." for n in range(10)))
    client = client_of({"map.answer": [*["Fine."] * 3, RuntimeError("down")]})
    answer = weighed(client, None, chunks)
    assert answer.notes["adjudication"] == "llm"
    assert answer.notes["member_notes"]["map_reduce"]["failed_calls"] == 7
    assert (answer.notes["failed_calls"], answer.partial) == (7, True)
    assert answer.notes["partial_members"] == ["map_reduce"]
    assert "7 request(s) failed" in answer.reasons()


def test_every_partial_member_is_named() -> None:
    # readers 102, 48
    client = client_of({"retrieve.answer": cut_off("Nine"), "reduce": cut_off("Ni")})
    answer = weighed(client)
    assert answer.notes["truncated_calls"] == 2
    assert answer.partial
    assert "members with a partial answer: retrieve, map_reduce" in answer.reasons()


def test_an_adjudication_that_was_cut_off_is_used_and_partial() -> None:
    # readers 44
    answer = weighed(client_of({**DIFFERENT, "ensemble.adjudicate": cut_off("Nine t")}))
    assert (answer.answer, answer.partial, answer.notes["truncated_calls"]) == ("Nine t", True, 1)


def test_the_answers_are_joined_when_the_adjudication_fails() -> None:
    answer = weighed(client_of({**DIFFERENT, "ensemble.adjudicate": RuntimeError("x")}))
    assert (answer.answer, answer.partial) == ("One.\n\n---\n\nTwo.", True)
    assert answer.notes["adjudication"] == "concatenated"
    assert len(answer.evidence) == 6


def test_an_adjudication_may_find_that_nothing_answers() -> None:
    answer = weighed(client_of({**DIFFERENT, "ensemble.adjudicate": SENTINEL}))
    assert (answer.answer, answer.partial) == (SENTINEL, False)


def test_a_citation_is_checked_against_what_the_members_used() -> None:
    cited = {"ensemble.adjudicate": "Nine [chunk 2], poor [chunk 9]."}
    answer = weighed(client_of({**DIFFERENT, **cited}), cite=True)
    assert (answer.notes["cited_unknown"], answer.partial) == ([9], True)


def test_an_error_of_one_member_is_its_own() -> None:
    client = client_of({"map.answer": "Nine."})
    answer = weighed(client, ["map_reduce", "screen"])  # screen has no criteria here
    assert answer.notes["answered_by"] == "map_reduce"
    assert answer.partial
    assert "criteria" in answer.notes["member_notes"]["screen"]["error"]


def test_a_missing_key_stops_the_run() -> None:
    # readers 40
    with pytest.raises(AuthError):
        weighed(client_of({"map.answer": AuthError("no key")}))


def test_a_refusal_that_is_to_be_raised_is_no_error_of_a_member() -> None:
    from harness_core.calls.governor import Governor
    from harness_core.calls.trace import Trace

    trace = Trace(Governor(max_output_tokens=100, on_refusal="raise"))
    with pytest.raises(RequestRefused):
        read(CHUNKS, QUESTION, client_of(), {"reader": "ensemble"}, trace=trace)


def test_a_bug_is_not_taken_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_core.reading import registry

    def broken(job: Job) -> Flow[Answer]:
        yield from ()
        raise ZeroDivisionError

    monkeypatch.setattr(registry, "_registered", {})
    register_reader("broken", broken, signature="own|0|none")
    with pytest.raises(ZeroDivisionError):
        weighed(client_of(), ["stuff", "broken"])


def test_a_window_too_small_for_a_member_is_its_error() -> None:
    tiny = window(300, max_output=200)
    try:
        answer = weighed(client_of(), None, CHUNKS, model=tiny)
    except BudgetError:
        return  # said before any member reads: the window holds no question at all
    assert answer.partial


def test_only_the_adjudication_is_streamed() -> None:
    heard: list[str] = []
    client = client_of({**DIFFERENT, "ensemble.adjudicate": "Weighed."})
    read(CHUNKS, QUESTION, client, "ensemble", on_text=heard.append)
    assert "".join(heard) == "Weighed."


def test_members_are_read_with_the_same_settings_which_are_questioned_once() -> None:
    with pytest.warns(NearMissWarning) as said:
        spec = ReadSpec("ensemble", topk=2)
    answer = read(CHUNKS, QUESTION, client_of(DIFFERENT), spec)
    assert len(said) == 1
    assert answer.found


# --- premise ------------------------------------------------------------------------------------

FALSE = "FALSE_PREMISE: The harvest failed."


def test_a_member_that_finds_the_premise_false_is_weighed_with_its_marker() -> None:
    client = client_of({"retrieve.answer": FALSE, "ensemble.adjudicate": FALSE})
    answer = weighed(client, premise=True)
    assert f'source="retrieve">\n{FALSE}' in prompt(asked(client, "ensemble.adjudicate")[0])
    assert answer.answer == answer.premise == "The harvest failed."
    assert answer.notes["premise_members"] == ["retrieve"]


def test_a_failed_adjudication_is_no_verdict() -> None:
    client = client_of({"retrieve.answer": FALSE, "ensemble.adjudicate": RuntimeError("x")})
    answer = weighed(client, premise=True)
    assert answer.answer == "The harvest failed.\n\n---\n\nAn answer."
    assert (answer.premise, answer.notes["premise_members"]) == (None, ["retrieve"])


def test_a_single_member_hands_on_its_verdict() -> None:
    client = client_of({"retrieve.answer": FALSE}, default=SENTINEL)
    answer = weighed(client, premise=True)
    assert answer.answer == answer.premise == "The harvest failed."


# --- ahead --------------------------------------------------------------------------------------


class Posting(MockClient):
    """A mock that counts as a provider, so that its embeddings are requests."""

    provider = True


def test_the_requests_of_all_members_are_counted_ahead_and_shared_texts_once() -> None:
    members = ("retrieve", "rerank", "map_reduce")
    chunks = chunks_of(*(f"Paragraph {n}." for n in range(70)))
    found = estimate(chunks, "Wo?", "ensemble", client=Posting(), members=members)
    assert found.embed_calls == 2  # 71 texts, though two members embed them
    assert found.calls - 2 == 1 + 1 + 21 + (70 + 14)
    assert found.worst_calls >= found.calls


def test_later_embeddings_of_members_are_counted_too() -> None:
    members = ("iterative", "map_reduce")
    found = estimate(CHUNKS, "Wo?", "ensemble", client=Posting(), members=members, max_rounds=3)
    assert found.embed_calls == 1 + 3
