"""An image beside a question goes to a vision model that speaks OpenAI's APIs."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_core import OpenAIClient, Request, Trace, register_model
from harness_core.clients.wire.bodies import chat_body, responses_body
from harness_core.messages import Image, Message, Usage
from tests.support.engine import World, world
from tests.support.images import image, png
from tests.support.openai_server import OpenAIServer

MODEL = "eyes-1"
SHOWN = base64.b64encode(png()).decode()
URL = f"data:image/png;base64,{SHOWN}"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(
        reply=lambda messages: "a green bridge over the harbour", usage=lambda *_: (700, 6)
    ) as made:
        yield made


@pytest.fixture(params=["responses", "chat"])
def w(request: pytest.FixtureRequest, server: OpenAIServer, tmp_path: Path) -> Iterator[World]:
    register_model(MODEL, context_window=100_000, max_output=4_000, input_usd=1.0, output_usd=10.0)
    eyes = OpenAIClient(MODEL, "test-key", server.url, api=request.param)
    with world(tmp_path, names=("docs",), vision=eyes) as made:
        yield made


def test_the_vision_model_is_sent_the_image(
    w: World, server: OpenAIServer, traces: list[Trace]
) -> None:  # AC57
    told = w.ask(query="What is this?", query_image=image(png()))
    assert told.json()["image_description"] == "a green bridge over the harbour"
    (seen,) = server.requests
    assert seen.body["model"] == MODEL
    said = seen.body.get("messages") or seen.body["input"]
    assert [part["type"] for part in said[-1]["content"]] in (
        ["text", "image_url"], ["input_text", "input_image"]
    )  # fmt: skip
    assert URL in str(said[-1]["content"][1])
    assert "a green bridge" in w.model.sent
    step = next(one for one in traces[0].requests if one.label == "answer.image")
    assert step.tokens == Usage(input=700, output=6, reasoning=0, cached_input=0)
    assert step.budget_pico == 700 * 1_000_000 + 6 * 10_000_000
    assert (step.bound_pico or 0) > 2_000 * 1_000_000  # what an image may count for was held
    assert SHOWN not in str(traces[0].export())


def test_without_an_image_messages_are_text() -> None:
    request = Request(messages=(Message("user", "Hi"),), payload={"prompt_tokens": 1})
    assert chat_body(request, "m", {})["messages"] == [{"role": "user", "content": "Hi"}]
    assert responses_body(request, "m", {})["input"] == [{"role": "user", "content": "Hi"}]


def test_an_image_is_beside_the_last_message() -> None:
    messages = (Message("system", "Be brief."), Message("user", "One."), Message("user", "Two."))
    request = Request(messages=messages, payload=Image(data=png(), media_type="image/png"))
    *before, last = chat_body(request, "m", {})["messages"]
    assert [one["content"] for one in before] == ["Be brief.", "One."]
    assert last["content"] == [
        {"type": "text", "text": "Two."}, {"type": "image_url", "image_url": {"url": URL}}
    ]  # fmt: skip
    assert responses_body(request, "m", {})["input"][-1]["content"] == [
        {"type": "input_text", "text": "Two."}, {"type": "input_image", "image_url": URL}
    ]  # fmt: skip
