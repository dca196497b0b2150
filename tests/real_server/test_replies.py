"""What a real server taught: streams, schemas, caps, empty replies, and how it counts tokens.

Recorded and replayed as in test_readers.py. Its chat template is not the model's own, so that the
marks around each message are ordinary text to it: some twenty tokens that nobody else can count.
"""

import asyncio
import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel, Field

from harness_core import (
    CallableClient,
    Governor,
    OverrunWarning,
    Reply,
    Trace,
    Usage,
    call,
    call_json,
    override,
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

    passengers: int = Field(ge=0, le=9999)


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
    assert (reply.ok, reply.text, reply.finish_reason) == (False, "", "stop")
    assert (reply.usage.input or 0) > 0
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
    assert "".join(heard) == reply.text  # word by word, or in one piece from the recording
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
    assert len(pieces) > 1 or harness_recording.replays  # in one piece
    assert "".join(pieces) == harness_recording.trace.requests[0].response


def test_an_engine_of_llama_index_streams_its_answer(harness_recording: HarnessRecording) -> None:
    model = harness_recording.llm(small_model.llm)
    synthesizer = ReaderSynthesizer("stuff", model, spec=small_model.spec("stuff"), streaming=True)
    nodes = [NodeWithScore(node=TextNode(text="The Dunlin carries 120."))]
    response: Any = synthesizer.synthesize(QUESTION, nodes)
    pieces = list(response.response_gen)
    assert len(pieces) > 1 or harness_recording.replays
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
    said = call_json(client, TOLD, SCHEMA, max_output=6, temperature=0)
    assert (said.ok, said.value, said.reply.finish_reason) == (False, None, "length")


def test_langchain_s_structured_output_keeps_to_a_schema(
    harness_recording: HarnessRecording,
) -> None:
    model = harness_recording.chat_model(
        lambda: small_model.chat_model(max_completion_tokens=120)  # it likes to end in blanks
    ).with_structured_output(Ship, method="json_schema")
    assert isinstance(model.invoke(TOLD).passengers, int)


def test_langchain_s_structured_output_that_was_cut_off_is_an_error_that_is_counted(
    harness_recording: HarnessRecording,
) -> None:
    model = harness_recording.chat_model(lambda: small_model.chat_model(max_completion_tokens=6))
    with pytest.raises(Exception, match="length limit was reached"):
        model.with_structured_output(SCHEMA, method="json_schema").invoke(TOLD)
    (step,) = harness_recording.trace.requests
    assert (step.ok, step.finish_reason) == (False, "length")
    assert (step.tokens.output, step.tokens.provenance) == (6, "reported")


def test_a_form_that_langchain_cut_off_is_a_reply_that_was_cut_off(
    harness_recording: HarnessRecording,
) -> None:
    model = harness_recording.chat_model(small_model.chat_model)
    reader = DocumentReader(model, "extract", spec=small_model.spec("extract"), output="full")
    asked = {"question": QUESTION, "context": [Document(page_content="The Dunlin carries 120.")]}
    reader.invoke(asked)
    (step,) = harness_recording.trace.requests
    assert (step.ok, step.finish_reason) == (True, "length")
    assert step.response.startswith("{")


def test_llama_index_s_form_keeps_to_its_schema(harness_recording: HarnessRecording) -> None:
    synthesizer = ReaderSynthesizer(
        "stuff", harness_recording.llm(small_model.llm),
        spec=small_model.spec("stuff").having(max_answer_tokens=40), output_cls=Ship,
    )  # fmt: skip
    nodes = [NodeWithScore(node=TextNode(text="The Dunlin carries 120."))]
    response: Any = synthesizer.synthesize(QUESTION, nodes)
    assert isinstance(response.response.passengers, int)


class Voyage(BaseModel):
    """More than fits the smallest cap."""

    name_of_the_ship: str
    name_of_the_captain: str
    name_of_the_harbour: str


def test_llama_index_s_form_that_was_cut_off_is_an_error(
    harness_recording: HarnessRecording,
) -> None:
    synthesizer = ReaderSynthesizer(
        "stuff", harness_recording.llm(small_model.llm), spec=small_model.spec("stuff"),
        output_cls=Voyage,
    )  # fmt: skip
    with pytest.raises(OutputInvalidError):
        synthesizer.synthesize(QUESTION, [NodeWithScore(node=TextNode(text="The Dunlin sails."))])


# --- what the server counts ---------------------------------------------------------------------

SHORT, LONGER = "Count from one to fifty.", TOLD
COUNTED = {SHORT: 29, LONGER: 42}
"""Tokens of these prompts as the server counted them; 9 and 22 are held before any margin."""


@pytest.mark.parametrize("prompt", COUNTED)
def test_a_chat_template_takes_more_than_is_held_for_a_message(
    harness_recording: HarnessRecording, prompt: str
) -> None:
    client, trace = harness_recording.client(small_model.client), Trace()
    reply = call(client, prompt, max_output=16, temperature=0, trace=trace)
    assert reply.usage.input == COUNTED[prompt]
    assert trace.requests[0].params["prompt_tokens"] + 20 == COUNTED[prompt]


@pytest.mark.filterwarnings("default::harness_core.errors.OverrunWarning")
@pytest.mark.parametrize(
    ("prompt", "bound", "margin", "told"),
    [
        (SHORT, "margin", 0.1, True),
        (LONGER, "margin", 0.1, True),
        (SHORT, "margin", 0.5, True),  # on a short prompt no share of it is enough
        (f"{LONGER} " * 3, "margin", 0.5, False),
        (SHORT, "strict", 0.1, False),
        (LONGER, "strict", 0.1, False),
    ],
)
def test_what_holds_such_a_template_is_a_larger_margin_or_a_strict_bound(
    prompt: str, bound: Any, margin: float, told: bool
) -> None:
    counted = COUNTED.get(prompt, 3 * 17 + 25)

    def reply(_messages: Any) -> Reply:
        return Reply(ok=True, text="One.", usage=Usage(input=counted, output=16))

    trace = Trace(Governor(bound=bound))
    with override(safety_margin=margin), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call(CallableClient(reply, model=MODEL), prompt, max_output=16, trace=trace)
    assert [one.category for one in heard] == ([OverrunWarning] if told else [])
