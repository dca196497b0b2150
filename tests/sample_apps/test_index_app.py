"""A LlamaIndex index with a query engine and a function-calling agent, made from Settings."""

import asyncio
from typing import Any

import pytest

from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.sample_apps import index_app
from tests.support.openai_server import OpenAIServer

# FunctionAgent reads names that pydantic has deprecated
pytestmark = pytest.mark.filterwarnings(
    "ignore:The `__fields", "ignore:Accessing the 'model_.* on the instance is deprecated"
)


def test_the_archive_answers(harness_recording: HarnessRecording, server: object) -> None:
    harness_recording.settings(llm=index_app.make_llm, embed_model=index_app.make_embedding)
    engine = index_app.archive().as_query_engine(similarity_top_k=1, streaming=True)
    response: Any = engine.query("How many does the Dunlin carry?")
    pieces = list(response.response_gen)
    assert "120 passengers" in "".join(pieces)
    assert len(pieces) > 3


def test_the_agent_looks_things_up(
    harness_recording: HarnessRecording, server: OpenAIServer | None
) -> None:
    if server is not None:
        server.queue()  # the vectors of the notes
        server.queue_tool_calls(("look_up", {"question": "When was the Heron built?"}))
        server.queue()  # the vector of the question
        server.queue(text="The Heron was built in 1987.")
        server.queue(text="In 1987, the archive says.")
    harness_recording.settings(llm=index_app.make_llm, embed_model=index_app.make_embedding)

    async def ask() -> str:
        agent = index_app.agent(index_app.archive())
        return str(await agent.run("How old is the Heron?"))

    assert asyncio.run(ask()) == "In 1987, the archive says."
