"""Every reader over two pieces of the bundled report, as a small real model answered.

Recorded against llama.cpp's server with Gemma 3 270M (``make live``); replayed everywhere else.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode

from harness_core import Trace, override, read
from harness_core.reading.registry import list_readers
from harness_integrations.langchain import DocumentReader
from harness_integrations.llama_index import ReaderQueryEngine
from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.support import small_model
from tests.support.small_model import QUESTION

Said = tuple[str, bool, str]
"""The answer's words, whether it is partial, the reader."""


def through_the_core(recording: HarnessRecording, reader: str) -> Said:
    client = recording.client(small_model.client)
    spec = small_model.spec(reader)
    answer = read(small_model.pieces(), QUESTION, client, spec, trace=recording.trace)
    return answer.answer, answer.partial, answer.reader


def through_langchain(recording: HarnessRecording, reader: str) -> Said:
    model = recording.chat_model(small_model.chat_model)
    asked = {
        "question": QUESTION,
        "context": [Document(page_content=one.text) for one in small_model.pieces()],
    }
    chain = DocumentReader(model, reader, spec=small_model.spec(reader), output="full")
    output: Mapping[str, Any] = chain.invoke(asked)
    return output["answer"], output["partial"], output["reader"]


def through_llama_index(recording: HarnessRecording, reader: str) -> Said:
    nodes = [TextNode(text=one.text) for one in small_model.pieces()]
    engine = ReaderQueryEngine.from_documents(
        nodes, reader, recording.llm(small_model.llm), spec=small_model.spec(reader)
    )
    response: Any = engine.query(QUESTION)
    return response.answer.answer, response.partial, response.answer.reader


# what a chat template adds is more than the tokens that are held for each message
@pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")
@pytest.mark.parametrize(
    "through", [through_the_core, through_langchain, through_llama_index],
    ids=["core", "langchain", "llama_index"],
)  # fmt: skip
@pytest.mark.parametrize("reader", [row["name"] for row in list_readers()])
def test_a_reader_ends_with_an_answer(
    harness_recording: HarnessRecording,
    reader: str,
    through: Callable[[HarnessRecording, str], Said],
) -> None:
    with override(embedder="lexical"):
        words, partial, name = through(harness_recording, reader)
    assert name == reader
    trace: Trace = harness_recording.trace
    assert trace.calls > 0
    assert words or reader == "screen"  # whose answer is its kept pieces: none, of cut-off JSON
    assert partial  # nearly every reply of this model was cut off at its cap
    assert "length" in {step.finish_reason for step in trace.requests}
    assert {step.finish_reason for step in trace.requests} <= {"length", "stop"}
    assert {step.tokens.provenance for step in trace.requests} == {"reported"}
