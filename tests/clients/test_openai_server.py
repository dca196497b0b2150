"""The server that other tests talk to speaks the official SDK's language."""

import json

import openai
from openai.types.shared_params import FunctionDefinition

from tests.support.openai_server import OpenAIServer

CALL = ("look_up", {"name": "Dunlin"})
TOOL: FunctionDefinition = {"name": "look_up", "parameters": {"type": "object"}}


def talk(server: OpenAIServer) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=server.url, max_retries=0)


def test_calls_of_tools_are_scripted_in_both_apis() -> None:
    with OpenAIServer() as server, talk(server) as sdk:
        server.queue_tool_calls(CALL)
        chat = sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}],
            tools=[{"type": "function", "function": TOOL}],
        )  # fmt: skip
        server.queue_tool_calls(CALL)
        response = sdk.responses.create(model="m", input="x")
    calls = chat.choices[0].message.tool_calls or []
    assert isinstance(calls[0], openai.types.chat.ChatCompletionMessageFunctionToolCall)
    assert calls[0].function.name == "look_up"
    assert json.loads(calls[0].function.arguments) == CALL[1]
    assert chat.choices[0].finish_reason == "tool_calls"
    assert response.output[0].type == "function_call"


def test_calls_of_tools_are_streamed() -> None:
    with OpenAIServer() as server, talk(server) as sdk:
        server.queue_tool_calls(CALL)
        chunks = list(sdk.chat.completions.create(model="m", messages=[], stream=True))
        server.queue_tool_calls(CALL)
        with sdk.responses.stream(model="m", input="x") as events:
            final = events.get_final_response()
    deltas = [one.choices[0].delta.tool_calls for one in chunks if one.choices]
    assert [calls[0].function.name for calls in deltas if calls and calls[0].function] == [
        "look_up"
    ]
    assert final.output[0].type == "function_call"


def test_text_is_streamed_and_the_sdk_puts_it_together() -> None:
    with OpenAIServer(reply=lambda messages: f"{len(messages)} messages") as server:
        with talk(server) as sdk, sdk.responses.stream(model="m", input="x") as events:
            final = events.get_final_response()
        vectors = talk(server).embeddings.create(model="e", input=["a", "b"])
    assert final.output_text == "1 messages"
    assert [len(row.embedding) for row in vectors.data] == [8, 8]
    assert server.bodies[0]["stream"] is True
