"""A trace without what was said in it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness_core import (
    ExtractiveClient,
    MockClient,
    ReadSpec,
    ReplayClient,
    Reply,
    Trace,
    answer_document,
    call,
    embed,
    example_document,
    new_chunks,
    read,
)
from harness_core.report import check_trace, diff_traces, redact_trace

QUESTION = "How big was the deficit of the pension scheme?"


def text(trace: Trace) -> str:
    return json.dumps(trace.export(), ensure_ascii=False, default=str)


@pytest.fixture
def trace() -> Trace:
    trace = Trace(record_embeddings=True)
    answer_document(
        example_document("pdf"), QUESTION, "needle", client=ExtractiveClient(), trace=trace
    )
    return trace


def test_neither_prompts_nor_replies_are_left_and_the_bill_is_the_same(
    trace: Trace, tmp_path: Any
) -> None:
    copy = redact_trace(trace)
    for said in ("pension", "5.9 million", "deficit"):
        assert said in text(trace)
        assert said not in text(copy)
    assert copy.cost() == trace.cost()
    assert [step.label for step in copy.steps] == [step.label for step in trace.steps]
    assert check_trace(copy.save(tmp_path / "copy.json")) == []
    assert "pension" in text(trace), "the original is left as it was"


def test_with_replies_kept_it_still_replays_to_the_same_answer(trace: Trace) -> None:
    copy = redact_trace(trace, replies=False)
    assert "Give figures" not in text(copy)
    report, client = example_document("pdf"), ReplayClient(copy)
    again = answer_document(report, QUESTION, "needle", client=client)
    assert "£5.9 million" in again.answer


def test_a_hook_says_what_stands_instead() -> None:
    trace = Trace()
    call(MockClient(lambda _m: "Ada Lovelace did."), "Did Ada Lovelace?", trace=trace)
    (step,) = redact_trace(trace, lambda said: said.replace("Ada Lovelace", "N.N.")).requests
    assert (step.prompt[0].content, step.response) == ("Did N.N.?", "N.N. did.")


def test_equal_texts_stay_equal_and_others_stay_different() -> None:
    trace = Trace()
    replies = iter(("yes, sir", "yes, sir", "not, sir"))
    client = MockClient(lambda _m: next(replies))
    for _ in range(3):
        call(client, "Well?", trace=trace)
    first, second, third = (step.response for step in redact_trace(trace).requests)
    assert first == second != third
    assert first.startswith("[8 characters, sha256 ")


def test_what_a_framework_adds_errors_and_vectors_go_too() -> None:
    trace = Trace(record_embeddings=True)
    more: Mapping[str, Any] = {
        "tool_calls": [{"name": "look", "id": "c1", "args": {"name": "Ada Lovelace"}}]
    }
    failing = MockClient(lambda _m: Reply(ok=False, error="no Ada Lovelace"))
    call(failing, [{"role": "assistant", "content": "", "more": more}], trace=trace)
    embed(MockClient(), ["Ada Lovelace"], trace=trace)
    assert "Ada" in text(trace)
    copy = redact_trace(trace)
    assert "Ada" not in text(copy)
    (kept,) = (copy.steps[0].prompt[0].more or {})["tool_calls"]
    assert (kept["name"], kept["id"]) == ("look", "c1")
    assert copy.steps[1].vectors is None


def test_instructions_in_recorded_settings_go_too() -> None:
    trace = Trace()
    spec = ReadSpec("stuff", instructions="Write for Ada Lovelace.")
    read(new_chunks(["One."]), "Who?", MockClient(), spec, trace=trace)
    assert "Ada" in text(trace)
    assert "Ada" not in text(redact_trace(trace))


def test_the_copy_asks_the_same_requests(trace: Trace) -> None:
    diff = diff_traces(trace, redact_trace(trace))
    assert not diff.added
    assert not diff.dropped
