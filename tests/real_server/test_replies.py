"""What a real server taught: streams, schemas, caps, empty replies, and how it counts tokens.

Recorded and replayed as in test_readers.py. Its chat template is not the model's own, so that the
marks around each message are ordinary text to it: some twenty tokens that nobody else can count.
"""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel

from harness_core import (
    CallableClient,
    Governor,
    OverrunWarning,
    Reply,
    Trace,
    call,
    call_json,
    override,
    recording_warnings,
)
from harness_integrations.langchain import DocumentReader
from harness_integrations.llama_index import OutputInvalidError, ReaderSynthesizer
from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.support import small_model
from tests.support.small_model import MODEL, QUESTION, SCHEMA, TOLD

# what a chat template adds is more than the tokens that are held for each message
pytestmark = pytest.mark.filterwarnings("ignore::harness_core.errors.OverrunWarning")


class Ship(BaseModel):
    """What is known of a ship."""

    passengers: int


# --- cut off ------------------------------------------------------------------------------------


def test_a_reply_that_was_cut_off_says_so(harness_recording: HarnessRecording) -> None:
    client = harness_recording.client(small_model.client)
    reply = call(client, "Count from one to fifty.", max_output=16, temperature=0)
    assert (reply.ok, reply.cut, reply.finish_reason) == (True, True, "length")
    assert reply.usage.output == 16


def test_langchain_is_told_that_a_reply_was_cut_off(harness_recording: HarnessRecording) -> None:
    said = harness_recording.chat_model(small_model.chat_model).invoke(TOLD)
    assert said.response_metadata["finish_reason"] == "length"
    assert said.usage_metadata["output_tokens"] == 16


def test_llama_index_is_told_that_a_reply_was_cut_off(harness_recording: HarnessRecording) -> None:
    model = harness_recording.llm(small_model.llm)
    said = model.chat([ChatMessage(role="user", content=TOLD)])
    (step,) = harness_recording.trace.requests
    assert (step.finish_reason, step.tokens.output) == ("length", 16)
    assert said.message.content == step.response


# --- empty --------------------------------------------------------------------------------------

HELLO = "Say hello."  # this model says it back, and so stops before its first word at "Say"


def test_an_empty_reply_is_a_failure_that_is_paid_for(harness_recording: HarnessRecording) -> None:
    client, trace = harness_recording.client(small_model.client), Trace()
    reply = call(
        client, HELLO, max_output=16, temperature=0, extra_body={"stop": ["Say"]}, trace=trace
    )
    assert (reply.ok, reply.text, reply.finish_reason) == (False, "", "empty")
    assert reply.usage.input > 0
    assert trace.calls == 1


def test_langchain_s_empty_reply_stays_an_empty_message(
    harness_recording: HarnessRecording,
) -> None:
    said = harness_recording.chat_model(small_model.chat_model).invoke(HELLO, stop=["Say"])
    assert (said.content, said.response_metadata["finish_reason"]) == ("", "stop")


def test_llama_index_s_empty_reply_stays_an_empty_message(
    harness_recording: HarnessRecording,
) -> None:
    said = harness_recording.llm(small_model.llm).complete(HELLO, stop=["Say"])
    assert said.text == ""


# --- streams ------------------------------------------------------------------------------------


def test_the_core_streams_what_the_server_streamed(harness_recording: HarnessRecording) -> None:
    heard: list[str] = []
    client = harness_recording.client(small_model.client)
    reply = call(client, TOLD, max_output=16, temperature=0, on_text=heard.append)
    assert "".join(heard) == reply.text
    assert (reply.finish_reason, reply.usage.output) == ("length", 16)


def test_langchain_streams_what_the_server_streamed(harness_recording: HarnessRecording) -> None:
    model = harness_recording.chat_model(small_model.chat_model)
    chunks = list(model.stream(TOLD))
    assert len(chunks) > 3
    usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert [one["output_tokens"] for one in usage] == [16]
    assert any(chunk.response_metadata.get("finish_reason") == "length" for chunk in chunks)


def test_llama_index_streams_what_the_server_streamed(harness_recording: HarnessRecording) -> None:
    model = harness_recording.llm(small_model.llm)
    pieces = list(model.stream_chat([ChatMessage(role="user", content=TOLD)]))
    assert len(pieces) > 3
    assert pieces[-1].message.content == "".join(piece.delta or "" for piece in pieces)


def test_a_reader_of_langchain_streams_its_answer(harness_recording: HarnessRecording) -> None:
    model = harness_recording.chat_model(small_model.chat_model)
    reader = DocumentReader(model, "stuff", spec=small_model.spec("stuff"))
    asked = {"question": QUESTION, "context": [Document(page_content="The Dunlin carries 120.")]}
    pieces = list(reader.stream(asked))
    assert len(pieces) > 1
    assert "".join(pieces) == harness_recording.trace.requests[0].response


def test_an_engine_of_llama_index_streams_its_answer(harness_recording: HarnessRecording) -> None:
    model = harness_recording.llm(small_model.llm)
    synthesizer = ReaderSynthesizer("stuff", model, spec=small_model.spec("stuff"), streaming=True)
    nodes = [NodeWithScore(node=TextNode(text="The Dunlin carries 120."))]
    response: Any = synthesizer.synthesize(QUESTION, nodes)
    pieces = list(response.response_gen)
    assert len(pieces) > 1
    assert "".join(pieces) == harness_recording.trace.requests[0].response
    assert response.partial


def test_an_async_stream_is_recorded_too(harness_recording: HarnessRecording) -> None:
    model = harness_recording.chat_model(small_model.chat_model)

    async def heard() -> list[Any]:
        return [chunk async for chunk in model.astream("Hello there.")]

    assert len(asyncio.run(heard())) > 3


# --- schemas ------------------------------------------------------------------------------------


def test_a_reply_keeps_to_a_schema(harness_recording: HarnessRecording) -> None:
    client = harness_recording.client(small_model.client)
    reply = call_json(client, TOLD, SCHEMA, max_output=40, temperature=0)
    assert reply.ok
    assert reply.value is not None
    assert isinstance(reply.value["passengers"], int)


def test_json_that_was_cut_off_is_no_value(harness_recording: HarnessRecording) -> None:
    client = harness_recording.client(small_model.client)
    reply = call_json(client, TOLD, SCHEMA, max_output=6, temperature=0)
    assert (reply.value, reply.cut) == (None, True)


def test_langchain_s_structured_output_keeps_to_a_schema(
    harness_recording: HarnessRecording,
) -> None:
    model = harness_recording.chat_model(
        lambda: small_model.chat_model(max_completion_tokens=40)
    ).with_structured_output(Ship, method="json_schema")
    assert isinstance(model.invoke(TOLD).passengers, int)


def test_langchain_s_structured_output_that_was_cut_off_is_said(
    harness_recording: HarnessRecording,
) -> None:
    model = harness_recording.chat_model(lambda: small_model.chat_model(max_completion_tokens=6))
    chain = model.with_structured_output(SCHEMA, method="json_schema", include_raw=True)
    said = chain.invoke(TOLD)
    assert said["raw"].response_metadata["finish_reason"] == "length"
    assert said["parsed"] is None


@pytest.mark.parametrize("cap", [40, 6])
def test_llama_index_s_form_keeps_to_its_schema_or_is_said_not_to(
    harness_recording: HarnessRecording, cap: int
) -> None:
    model = harness_recording.llm(lambda: small_model.llm(max_tokens=cap))
    spec = small_model.spec("stuff").having(max_answer_tokens=cap)
    synthesizer = ReaderSynthesizer("stuff", model, spec=spec, output_cls=Ship)
    nodes = [NodeWithScore(node=TextNode(text="The Dunlin carries 120."))]
    if cap == 6:
        with pytest.raises(OutputInvalidError):
            synthesizer.synthesize(QUESTION, nodes)
    else:
        response: Any = synthesizer.synthesize(QUESTION, nodes)
        assert isinstance(response.response.passengers, int)
