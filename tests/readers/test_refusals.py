"""A limit that is felt at any request leaves a partial answer, counts no failure, and replays."""

from typing import Any

import pytest

from harness_core.answer import Answer
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.clients.extractive import ExtractiveClient
from harness_core.clients.mock import MockClient
from harness_core.pipeline import read
from harness_core.ranking import flush_embeddings
from tests.support.oracle import Oracle
from tests.support.reading import QUESTION, chunks_of, read_unchecked

CHUNKS = chunks_of(*(
    f"The marker{n}x entry says that revenue was {n}0 million in the year 202{n}."
    for n in range(1, 6)
))  # fmt: skip
READERS: dict[str, dict[str, Any]] = {
    "rerank": {"rerank_min_score": 1},
    "iterative": {},
    "ensemble": {"members": ("rerank", "map_reduce")},
    "screen": {"include": ("it is about revenue",)},
    "extract": {"fields": ("topic",), "resolve": "model"},
}

pytestmark = [
    pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning"),
    pytest.mark.parametrize("reader", READERS),
]


def whole(reader: str) -> Answer:
    return read(CHUNKS, QUESTION, MockClient(Oracle()), {"reader": reader, **READERS[reader]})


def test_a_cap_at_any_request_leaves_a_partial_answer(reader: str) -> None:  # core 85
    needed = whole(reader).trace.calls
    assert needed >= 1
    for most in range(needed):
        flush_embeddings()
        client = MockClient(Oracle())
        answer = read_unchecked(CHUNKS, client, most, reader, **READERS[reader])
        assert answer.trace.calls == len(client.calls()) + len(client.embeds()) <= most
        assert answer.partial, most
        assert answer.notes.get("failed_calls", 0) == answer.notes.get("scoring_failures", 0) == 0
        assert answer.trace.refusals


def test_a_cap_that_is_just_enough_changes_nothing(reader: str) -> None:
    expected = whole(reader)
    flush_embeddings()
    client = MockClient(Oracle())
    answer = read_unchecked(CHUNKS, client, expected.trace.calls, reader, **READERS[reader])
    assert (answer.answer, answer.notes, answer.partial) == (
        expected.answer, expected.notes, False,
    )  # fmt: skip


def test_a_recording_gives_the_same_answer(reader: str) -> None:
    trace = Trace(record_embeddings=True)
    spec = {"reader": reader, **READERS[reader]}
    first = read(CHUNKS, QUESTION, MockClient(Oracle()), spec, trace=trace)
    again = read(CHUNKS, QUESTION, ReplayClient(trace), spec)
    assert again.to_dict(trace=False) == first.to_dict(trace=False)


def test_the_client_without_a_model_answers(reader: str) -> None:
    question = "What was revenue in 2023?"
    spec = {"reader": reader, **READERS[reader], "include": ("revenue of the entry",)}
    if reader == "extract":
        spec["fields"] = {"revenue": "revenue in 2023"}
    answer = read(CHUNKS, question, ExtractiveClient(), spec)
    wanted = "include" if reader == "screen" else "30 million"
    assert wanted in answer.answer
    assert not answer.partial
