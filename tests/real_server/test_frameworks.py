"""Streams of both frameworks, as a real server sent them."""

import os
from typing import Any

import pytest

from harness_core.models.registry import register_model
from harness_integrations.pytest_plugin.recorder import HarnessRecording

MODEL = "gemma-3-270m"
ASKED = "The Dunlin carries 120 passengers. How many passengers does the Dunlin carry?"


@pytest.fixture(autouse=True)
def _registered() -> None:
    register_model(MODEL, context_window=8192, max_output=1024, input_usd=0, output_usd=0)


def chat_model() -> Any:
    from langchain_openai import ChatOpenAI

    url: Any = os.environ["LIVE_SERVER_URL"]
    key: Any = "none"
    return ChatOpenAI(
        model=MODEL, base_url=url, api_key=key, temperature=0, max_completion_tokens=24
    )


def llm() -> Any:
    from llama_index.llms.openai import OpenAI

    # the server answers for any model; LlamaIndex takes only those it knows
    return OpenAI(
        model="gpt-4o-mini", api_base=os.environ["LIVE_SERVER_URL"], api_key="none", temperature=0,
        max_tokens=24,
    )  # fmt: skip


# what a chat template adds is more than the tokens that are held for each message
pytestmark = pytest.mark.filterwarnings("ignore::harness_core.errors.OverrunWarning")


def test_langchain_streams_what_the_server_streamed(harness_recording: HarnessRecording) -> None:
    model = harness_recording.chat_model(chat_model)
    chunks = list(model.stream(ASKED))
    assert len(chunks) > 3
    usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert usage[-1]["output_tokens"] > 0
    assert any(chunk.response_metadata.get("finish_reason") for chunk in chunks)


def test_llama_index_streams_what_the_server_streamed(harness_recording: HarnessRecording) -> None:
    pieces = list(harness_recording.llm(llm).stream_complete(ASKED))
    assert len(pieces) > 3
    assert pieces[-1].text
