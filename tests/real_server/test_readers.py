"""Every reader over two pieces of the bundled report, as a small real model answered.

Recorded against llama.cpp's server with Gemma 3 270M (``make live``); replayed everywhere else.
"""

import os
from typing import Any

import pytest

from harness_core import (
    Answer,
    ReadSpec,
    SegmentSpec,
    Trace,
    call,
    call_json,
    example_document,
    ingest,
    new_chunks,
    override,
    read,
    segment,
)
from harness_core.clients.openai import OpenAIClient
from harness_core.models.registry import register_model
from harness_core.reading.registry import list_readers
from harness_integrations.pytest_plugin.recorder import HarnessRecording

MODEL = "gemma-3-270m"
QUESTION = "How many passengers can the Dunlin carry?"
SETTINGS: dict[str, dict[str, Any]] = {
    "extract": {"fields": ["passengers"]},
    "screen": {"include": ("It is about ferries.",)},
}
SCHEMA = {
    "type": "object",
    "properties": {"passengers": {"type": "integer"}},
    "required": ["passengers"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def _registered() -> None:
    register_model(MODEL, context_window=8192, max_output=1024, input_usd=0, output_usd=0)


def make() -> OpenAIClient:
    return OpenAIClient(
        model=MODEL, api="chat", api_key="none", base_url=os.environ["LIVE_SERVER_URL"], timeout=300
    )


@pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")
@pytest.mark.parametrize("reader", [row["name"] for row in list_readers()])
def test_a_reader_ends_with_an_answer(harness_recording: HarnessRecording, reader: str) -> None:
    client = harness_recording.client(make)
    report = segment(
        ingest(example_document("md")), SegmentSpec(method="paragraph", max_tokens=150)
    )
    chunks = new_chunks([chunk.text for chunk in report if "Dunlin" in chunk.text][:2])
    spec = ReadSpec(
        reader, max_answer_tokens=24, max_chunk_tokens=24, max_summary_tokens=24, max_rounds=2,
        temperature=0, max_concurrency=1, **SETTINGS.get(reader, {}),
    )  # fmt: skip
    trace = Trace()
    with override(embedder="lexical"):
        answer = read(chunks, QUESTION, client, spec, trace=trace)
    assert isinstance(answer, Answer)
    assert answer.reader == reader
    assert trace.calls > 0
    assert answer.partial  # every reply of this model was cut off at its cap
    assert all(step.tokens.provenance == "reported" for step in trace.requests if step.ok)


# what a chat template adds is more than the tokens that are held for each message
@pytest.mark.filterwarnings("ignore::harness_core.errors.OverrunWarning")
def test_a_reply_that_was_cut_off_says_so(harness_recording: HarnessRecording) -> None:
    reply = call(harness_recording.client(make), "Count from one to fifty.", max_output=16)
    assert reply.finish_reason == "length"
    assert reply.cut
    assert reply.usage.output == 16


def test_a_reply_keeps_to_a_schema(harness_recording: HarnessRecording) -> None:
    asked = "The Dunlin carries 120 passengers. How many passengers does the Dunlin carry?"
    client = harness_recording.client(make)
    reply = call_json(client, asked, SCHEMA, max_output=40, temperature=0)
    assert reply.ok
    assert reply.value is not None
    assert isinstance(reply.value["passengers"], int)
