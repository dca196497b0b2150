"""What these readers promise alike: the same answer however it is driven, and degradation said."""

import json
from typing import Any

import pytest

from harness_core.answer import Answer
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.clients.extractive import ExtractiveClient
from harness_core.clients.mock import MockClient
from harness_core.documents.types import Chunks
from harness_core.messages import SENTINEL
from harness_core.models.registry import register_model
from harness_core.pipeline import aread, read
from harness_core.reading.registry import find_reader
from tests.support.reading import QUESTION, chunks_of, client_of, cut_off, labels

READERS = ("refine", "skim", "hierarchical", "preview")
CHUNKS = chunks_of(
    *(
        f"Revenue of the {unit} unit was {number}.2 million dollars in 2025. Costs were stable."
        for number, unit in enumerate(("Alder", "Birch", "Cedar", "Hazel", "Maple", "Rowan"), 41)
    ),
    section=["Sales", "Sales", "Costs", "Costs", "Outlook", "Outlook"],
)
NOTHING = Chunks(chunks=())
PLAN = json.dumps({
    "sections": [
        {"id": 1, "treatment": "read", "reason": ""}, {"id": 2, "treatment": "skim", "reason": ""},
    ]
})  # fmt: skip
EVERY_STAGE: dict[str, str] = {
    "refine": "a draft", "skim.extract": "Costs were stable.", "hier.summarise": "a summary",
    "preview.plan": PLAN, "preview.skim": "Costs were stable.",
}  # fmt: skip


def client(*, failing: bool = False, concurrent: bool = False) -> MockClient:
    if failing:
        return client_of(default=RuntimeError("down"))
    mock = client_of(EVERY_STAGE)
    mock.in_order = not concurrent
    return mock


def seen(answer: Answer) -> dict[str, Any]:
    """An answer and its record, without times."""
    plain = answer.to_dict(trace=False)
    steps = [
        (s.step, s.label, s.response, s.error, dict(s.detail or {}), dict(s.state or {}))
        for s in answer.trace.steps
        if s.label != "preflight"
    ]
    return {**plain, "steps": steps}


@pytest.mark.parametrize("reader", READERS)
def test_no_chunks_are_answered_without_a_request(reader: str) -> None:
    mock = client()
    answer = read(NOTHING, QUESTION, mock, reader)
    assert (answer.answer, answer.partial, labels(mock)) == (SENTINEL, True, [])
    assert answer.notes["chunks"] == 0
    assert answer.reasons() == ["there are no chunks to read"]


@pytest.mark.filterwarnings("ignore::harness_core.errors.PreviewDegradedWarning")
@pytest.mark.parametrize("reader", READERS)
def test_when_every_request_fails_nothing_is_invented(reader: str) -> None:
    # readers 32
    answer = read(CHUNKS, QUESTION, client(failing=True), reader)
    assert (answer.answer, answer.partial, answer.evidence) == (SENTINEL, True, [])
    assert any("RuntimeError: down" in reason for reason in answer.reasons())


@pytest.mark.filterwarnings("ignore::harness_core.errors.PreviewDegradedWarning")
@pytest.mark.parametrize("reader", READERS)
def test_replies_that_were_cut_off_are_used_counted_and_told(reader: str) -> None:
    # readers 44
    mock = client_of({stage: cut_off(said) for stage, said in EVERY_STAGE.items()})
    answer = read(CHUNKS, QUESTION, mock, reader)
    assert answer.partial
    assert answer.notes["truncated_calls"] >= 1
    assert any("output cap" in reason for reason in answer.reasons())


@pytest.mark.parametrize("reader", READERS)
def test_a_whole_read_is_not_partial_and_cuts_nothing(reader: str) -> None:
    # readers 45
    answer = read(CHUNKS, QUESTION, client(), reader)
    assert (answer.partial, answer.notes["truncated_calls"], answer.reasons()) == (False, 0, [])


@pytest.mark.anyio
@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.filterwarnings("ignore::harness_core.errors.PreviewDegradedWarning")
async def test_every_driver_gives_the_same_answer_and_record(reader: str, failing: bool) -> None:
    one = {"reader": reader, "max_concurrency": 1}
    many = {"reader": reader, "max_concurrency": 8}
    alone = seen(read(CHUNKS, QUESTION, client(failing=failing), one))
    assert seen(read(CHUNKS, QUESTION, client(failing=failing, concurrent=True), many)) == alone
    found = await aread(CHUNKS, QUESTION, client(failing=failing, concurrent=True), many)
    assert seen(found) == alone


@pytest.mark.filterwarnings("ignore::harness_core.errors.PreviewDegradedWarning")
@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("premise", [False, True])
@pytest.mark.parametrize("reader", READERS)
def test_a_replay_of_its_own_trace_gives_the_same_answer(
    reader: str, premise: bool, failing: bool
) -> None:
    trace = Trace()
    spec = {"reader": reader, "premise": premise, "cite": True}
    recorded = read(CHUNKS, QUESTION, client(failing=failing), spec, trace=trace)
    replayed = read(CHUNKS, QUESTION, ReplayClient(trace), spec)
    assert seen(replayed) == seen(recorded)


@pytest.mark.parametrize("cite", [False, True])
@pytest.mark.parametrize("reader", READERS)
def test_the_extractive_client_answers(reader: str, cite: bool) -> None:
    question = "What was the revenue of the Maple unit in 2025?"
    answer = read(CHUNKS, question, ExtractiveClient(), {"reader": reader, "cite": cite})
    assert "45.2 million" in answer.answer
    assert ("[chunk 5]" in answer.answer) == (cite and reader != "hierarchical")
    assert "cited_unknown" not in answer.notes
    assert "unverified_evidence" not in answer.notes


@pytest.mark.parametrize("reader", READERS)
def test_every_request_belongs_to_a_declared_stage(reader: str) -> None:
    mock = client()
    read(CHUNKS, QUESTION, mock, reader)
    stems = find_reader(reader).reader.stages
    for label in labels(mock):
        assert any(label == stem or label.startswith(f"{stem}.") for stem in stems)


@pytest.mark.parametrize("reader", READERS)
def test_effort_is_set_by_stage(reader: str) -> None:
    register_model(
        "reasoner", context_window=100_000, max_output=4000, input_usd=0, output_usd=0,
        reasoning=True,
    )  # fmt: skip
    last = find_reader(reader).reader.stages[-1]
    mock, effort = client(), {last: "high", "default": "low"}
    read(CHUNKS, QUESTION, mock, {"reader": reader, "model": "reasoner", "effort": effort})
    for call in mock.calls():
        assert call.params["effort"] == ("high" if call.label == last else "low")
