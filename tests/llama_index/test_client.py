"""Any LlamaIndex LLM as the core's client."""

from typing import Any

import pytest
from llama_index.core import MockEmbedding
from llama_index.core.llms import MockLLM

from harness_core import Client, Governor, Trace, acall, call, call_json, embed, read
from harness_core.errors import (
    EffortUnsupportedWarning,
    ModelFixedWarning,
    TemperatureUnsupportedWarning,
)
from harness_core.messages import Reply, Usage
from harness_core.segmenting.chunks import new_chunks
from harness_integrations.llama_index import (
    GovernedLLM,
    LlamaIndexClient,
    OutputCapUnenforceable,
)
from tests.support.llama import Script, Uncapped, embedding, openai
from tests.support.openai_server import OpenAIServer

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_it_is_a_client(llm: Any) -> None:
    assert isinstance(LlamaIndexClient(llm), Client)


def test_a_request_goes_out_capped_with_its_settings(server: OpenAIServer) -> None:
    bare = openai(server, max_tokens=500, temperature=0.7)
    trace = Trace(Governor())
    reply = call(LlamaIndexClient(bare), "hello", max_output=9, temperature=0.0, trace=trace)
    assert reply.unwrap().text == "echo: hello"
    assert (server.bodies[0]["max_tokens"], server.bodies[0]["temperature"]) == (9, 0.0)
    assert (reply.usage.provenance, reply.finish_reason) == ("reported", "stop")
    assert (bare.max_tokens, bare.temperature) == (500, 0.7)
    assert trace.spent_usd > 0


def test_a_schema_goes_out_natively_with_openais_classes(server: OpenAIServer) -> None:
    for kind in ("openai", "responses"):
        server.queue(text='{"name": "Dunlin"}')
        found = call_json(
            LlamaIndexClient(openai(server, kind)), "a ship", SCHEMA, schema_name="ship"
        )
        assert found.value == {"name": "Dunlin"}
    chat, responses = server.bodies
    assert chat["response_format"]["json_schema"]["schema"] == SCHEMA
    assert responses["text"]["format"]["schema"] == SCHEMA


def test_other_llms_are_asked_for_json_in_words() -> None:
    llm = Script(reply=lambda prompt: '{"name": "Dunlin"}', prompts=[])
    found = call_json(LlamaIndexClient(llm), "a ship", SCHEMA)
    assert found.value == {"name": "Dunlin"}
    assert '"additionalProperties": false' in llm.prompts[0]


def test_effort_goes_out_as_each_class_takes_it(server: OpenAIServer) -> None:
    call(LlamaIndexClient(openai(server, model="gpt-5-mini")), "hello", effort="low")
    call(LlamaIndexClient(openai(server, "responses", model="gpt-5-mini")), "hello", effort="low")
    assert server.bodies[0]["reasoning_effort"] == "low"
    assert server.bodies[1]["reasoning"] == {"effort": "low"}


def test_what_the_llm_cannot_take_is_said_once(server: OpenAIServer) -> None:
    client = LlamaIndexClient(openai(server))
    with pytest.warns(ModelFixedWarning, match="gpt-4o"):
        reply = call(client, "hello", model="gpt-4o")
    assert reply.model == server.bodies[0]["model"] == "gpt-4o-mini"
    call(client, "hello", model="gpt-4o")
    fake = LlamaIndexClient(MockLLM(max_tokens=3))
    with pytest.warns(TemperatureUnsupportedWarning):
        call(fake, "hello", temperature=0.0)


def test_an_effort_no_class_takes_is_said() -> None:
    from harness_core.models import register_model

    register_model("Script", context_window=8000, max_output=500, reasoning=True)
    with pytest.warns(EffortUnsupportedWarning):
        call(LlamaIndexClient(Script(prompts=[])), "hello", effort="low")


def test_an_llm_that_cannot_be_capped_is_refused() -> None:
    with pytest.raises(OutputCapUnenforceable):
        LlamaIndexClient(Uncapped())
    assert call(LlamaIndexClient(Uncapped(prompts=[]), allow_uncapped=True), "hello").ok


def test_what_is_no_llm_is_refused() -> None:
    with pytest.raises(TypeError, match="str"):
        LlamaIndexClient("gpt-4o")  # type: ignore[arg-type]  # on purpose


def test_a_providers_exception_is_a_failed_reply(server: OpenAIServer) -> None:
    server.queue(status=429)
    reply = call(LlamaIndexClient(openai(server)), "hello")
    assert (reply.ok, reply.status, reply.retryable) == (False, 429, True)
    assert reply.cause is not None
    assert len(server.requests) == 1


def test_text_is_heard_as_it_comes(server: OpenAIServer) -> None:
    heard: list[str] = []
    reply = call(LlamaIndexClient(openai(server)), "one two three", on_text=heard.append)
    assert len(heard) > 1
    assert "".join(heard) == reply.text == "echo: one two three"
    assert reply.usage.provenance == "reported"


@pytest.mark.anyio
async def test_async_requests_are_awaited(server: OpenAIServer) -> None:
    heard: list[str] = []
    client = LlamaIndexClient(openai(server))
    assert (await acall(client, "hello")).text == "echo: hello"
    assert (await acall(client, "hello", on_text=heard.append)).text == "".join(heard)


def test_a_governed_llm_is_governed_once_and_brings_its_trace(server: OpenAIServer) -> None:
    llm = GovernedLLM(openai(server), governor=Governor())
    client = LlamaIndexClient(llm)
    assert client.trace is llm.trace
    call(client, "hello", trace=client.trace)
    assert llm.trace.calls == len(server.requests) == 1


def test_embeddings_come_from_the_embedding_given(server: OpenAIServer) -> None:
    trace = Trace(Governor())
    client = LlamaIndexClient(openai(server), embeddings=embedding(server))
    found = embed(client, ["one", "two"], trace=trace, fallback="error")
    assert found.vectors is not None
    assert found.vectors.shape[0] == 2
    assert trace.embed_tokens > 0
    assert client.embedding_model == "text-embedding-3-small"
    assert not LlamaIndexClient(openai(server)).can_embed
    fake = LlamaIndexClient(MockLLM(max_tokens=3), embeddings=MockEmbedding(embed_dim=4))
    assert embed(fake, ["one"], fallback="error").ok


def test_a_reader_reads_through_any_llm() -> None:
    llm = Script(prompts=[])
    answer = read(
        new_chunks(["The Dunlin carries 61."]), "How many?", LlamaIndexClient(llm), "stuff"
    )
    assert answer.answer == "She carries 61 passengers."
    assert answer.totals().usd is not None


@pytest.mark.parametrize(("raw", "usage", "finish"), [
    ({"usage": {"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 3},
      "stop_reason": "max_tokens"}, (10, 2), "length"),
    ({"usage_metadata": {"prompt_token_count": 7, "candidates_token_count": 2,
                         "thoughts_token_count": 4}, "finish_reason": "STOP"}, (7, 6), "stop"),
    ({"usage": {"inputTokens": 7, "outputTokens": 2}, "stopReason": "tool_use"},
     (7, 2), "tool_use"),
    ({"usage": {"prompt_tokens": 7, "completion_tokens": 2}, "done_reason": "length"},
     (7, 2), "length"),
    ({}, (None, None), None),
])  # fmt: skip
def test_usage_and_finish_are_read_as_each_provider_tells_them(
    raw: dict[str, Any], usage: tuple[Any, Any], finish: str | None
) -> None:
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse

    from harness_integrations.llama_index.replies import read_response

    message = ChatMessage(role="assistant", content="x")
    reply: Reply = read_response(ChatResponse(message=message, raw=raw))
    assert (reply.usage.input, reply.usage.output, reply.finish_reason) == (*usage, finish)
    assert isinstance(reply.usage, Usage)
