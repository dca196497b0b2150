"""Any chat model or runnable as the core's client: settings, usage, structure, failures."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import Field

from harness_core import (
    Client,
    EffortUnsupportedWarning,
    Governor,
    ModelFixedWarning,
    NoEmbeddingsWarning,
    Request,
    ResponseCache,
    TemperatureUnsupportedWarning,
    Texts,
    Trace,
    acall,
    call,
    call_json,
    new_chunks,
    read,
)
from harness_core.messages import Message
from harness_integrations.langchain import GovernedChatModel, GovernedEmbeddings, LangChainClient
from tests.support.fake_chat import CaplessChat, FakeChat, StreamingChat
from tests.support.tool_server import ToolServer

Make = Callable[..., ChatOpenAI]
SCHEMA = {
    "type": "object",
    "properties": {"setup": {"type": "string"}, "punchline": {"type": "string"}},
    "required": ["setup", "punchline"],
    "additionalProperties": False,
}
CHUNKS = new_chunks(["Ann has three cats.", "Bob has two dogs."])


def test_it_is_a_client_of_the_core() -> None:
    client = LangChainClient(FakeChat())
    assert isinstance(client, Client)
    assert (client.model, client.provider) == ("gpt-4o-mini", True)
    assert read(CHUNKS, "cats?", client, "stuff").answer == "echo: Question: cats?"
    with pytest.raises(TypeError, match="runnable"):
        LangChainClient("gpt-4o")  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize(
    ("wrap", "text"),
    [
        (lambda model: model, "echo: hi"),
        (lambda model: model.bind(stop=["x"]).with_config(tags=["a"]), "echo: hi"),
        (lambda model: model | StrOutputParser(), "echo: hi"),
        (lambda model: RunnableLambda(lambda given: given) | model, "echo: hi"),
        (lambda model: model.with_retry().with_fallbacks([model]), "echo: hi"),
    ],
)
def test_a_runnable_around_a_model_sends_its_cap(wrap: Callable[[Any], Any], text: str) -> None:
    fake = FakeChat()
    reply = call(LangChainClient(wrap(fake)), "hi", max_output=77)
    assert reply.unwrap().text == text
    assert fake.asked[0]["max_tokens"] == 77


def test_the_cap_is_enforced_on_the_wire(server: ToolServer, chat: Make) -> None:
    call(LangChainClient(chat()), "hi", max_output=123)
    assert server.bodies[0]["max_completion_tokens"] == 123


class Google(CaplessChat):
    max_output_tokens: int | None = None


class Ollama(CaplessChat):
    num_predict: int | None = None

    def _enter(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> str:
        return super()._enter(messages, {**kwargs, "num_predict": self.num_predict})


@pytest.mark.parametrize(("kind", "name"), [(Google, "max_output_tokens"), (Ollama, "num_predict")])
def test_each_providers_word_for_the_cap_is_used(kind: type[CaplessChat], name: str) -> None:
    fake = kind()
    call(LangChainClient(fake), "hi", max_output=66)
    assert fake.asked[0][name] == 66
    assert getattr(fake, name) is None


USAGE: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "openai flex": (
        {
            "input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
            "input_token_details": {"flex_cache_read": 64, "flex": 36},
            "output_token_details": {"flex_reasoning": 8, "flex": 12},
        },
        (100, 20, 64, 8),
    ),  # 34
    "anthropic": (
        {
            "input_tokens": 500, "output_tokens": 9, "total_tokens": 509,
            "input_token_details": {"cache_read": 400, "cache_creation": 50},
        },
        (500, 9, 400, None),
    ),  # 34: what is cached is in the input already
    "plain": ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}, (3, 4, None, None)),
}  # fmt: skip


@pytest.mark.parametrize("provider", USAGE)
def test_usage_is_read_as_each_provider_gives_it(provider: str) -> None:
    given, expected = USAGE[provider]

    class Told(FakeChat):
        def _message(self, text: str) -> AIMessage:
            return AIMessage(content=text, usage_metadata=given)

    usage = call(LangChainClient(Told()), "hi " * 300).usage
    assert (usage.input, usage.output, usage.cached_input, usage.reasoning) == expected
    assert usage.provenance == "reported"


@pytest.mark.parametrize(
    ("metadata", "finish"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"finish_reason": "length"}, "length"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"stopReason": "max_tokens"}, "length"),
        ({"done_reason": "length"}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"finish_reason": "model_length"}, "length"),
        ({"stop_reason": "model_context_window_exceeded"}, "length"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"finish_reason": "x", "normalized_finish_reason": "refusal"}, "refusal"),
        ({}, None),
    ],
)
def test_finish_reasons_of_the_major_providers(
    metadata: dict[str, Any], finish: str | None
) -> None:
    reply = call(LangChainClient(FakeChat(metadata_of_reply=metadata)), "hi")
    assert reply.finish_reason == finish


def test_the_model_is_fixed_and_priced_as_what_it_is() -> None:
    trace = Trace()
    client = LangChainClient(FakeChat())
    with pytest.warns(ModelFixedWarning, match="gpt-4o-mini"):
        call(client, "hi", model="gpt-4o", trace=trace)
    call(client, "hi", model="gpt-4o", trace=trace)  # said once
    assert {row["model"] for row in trace.cost()} == {"gpt-4o-mini"}


def test_what_a_model_cannot_take_is_said_once_and_not_recorded_as_sent() -> None:
    class Fixed(FakeChat):
        profile: Any = Field(default={"temperature": False})

    trace = Trace()
    client = LangChainClient(Fixed(model="o3"))
    with pytest.warns(TemperatureUnsupportedWarning):
        call(client, "hi", temperature=0.3, trace=trace)
    with pytest.warns(EffortUnsupportedWarning):
        call(client, "hi", effort="low", trace=trace)
    call(client, "hi", effort="low", temperature=0.3, trace=trace)
    for step in trace.steps:
        assert step.params_sent["temperature"] is None
        assert step.params_sent["effort"] is None


def test_effort_goes_out_where_the_model_has_a_field_for_it(server: ToolServer, chat: Make) -> None:
    call(LangChainClient(chat(model="o3")), "hi", effort="low", max_output=4000)
    assert server.bodies[0]["reasoning_effort"] == "low"


def test_openai_models_take_the_schema_as_it_is(server: ToolServer, chat: Make) -> None:
    found = call_json(LangChainClient(chat()), "Tell a joke", SCHEMA, schema_name="joke")
    assert found.value is not None
    assert set(found.value) == {"setup", "punchline"}
    wanted = server.bodies[0]["response_format"]["json_schema"]
    assert (wanted["name"], wanted["schema"]) == ("joke", SCHEMA)
    assert found.reply.usage.provenance == "reported"


class Caller(FakeChat):
    """Has tools and no schema: what a provider with function calling alone offers."""

    def _message(self, text: str) -> AIMessage:
        message = super()._message("")
        message.tool_calls = [
            {
                "name": "joke",
                "args": {"setup": "a", "punchline": "b"},
                "id": "1",
                "type": "tool_call",
            }
        ]
        return message


def test_a_model_with_tools_alone_is_given_the_schema_as_a_tool() -> None:
    fake = Caller()
    found = call_json(
        LangChainClient(fake), "Tell a joke", SCHEMA, schema_name="joke", max_output=70
    )
    assert found.value == {"setup": "a", "punchline": "b"}
    assert found.reply.usage.input == 10
    assert fake.asked[0]["tools"][0]["function"]["name"] == "joke"
    assert fake.asked[0]["max_tokens"] == 70


def test_a_model_with_neither_is_asked_in_words() -> None:
    class Plain(FakeChat):
        bind_tools = BaseChatModel.bind_tools  # as a model without tools

    def told(messages: Sequence[BaseMessage]) -> str:
        return (
            '```json\n{"setup": "a", "punchline": "b"}\n```'
            if "JSON schema" in str(messages)
            else ""
        )

    found = call_json(LangChainClient(Plain(reply=told)), "Tell a joke", SCHEMA)
    assert found.value == {"setup": "a", "punchline": "b"}


def test_failures_are_replies_and_carry_the_providers_own_exception(
    server: ToolServer, chat: Make
) -> None:
    from openai import RateLimitError

    server.queue(status=429)
    trace = Trace()
    reply = call(LangChainClient(chat()), "hi", trace=trace)
    assert (reply.ok, reply.status, reply.retryable) == (False, 429, True)
    assert isinstance(reply.cause, RateLimitError)
    assert (len(server.requests), trace.steps[0].budget_pico) == (1, 0)


def test_a_server_that_is_not_there_costs_nothing() -> None:
    trace = Trace()
    model = ChatOpenAI(model="gpt-4o-mini", api_key="k", base_url="http://127.0.0.1:9/v1")  # type: ignore[arg-type]  # a plain key is taken
    reply = call(LangChainClient(model), "hi", max_output=50, trace=trace)
    assert (reply.ok, reply.status) == (False, 0)
    assert trace.spent_usd == 0


def test_an_empty_reply_is_a_failed_one() -> None:
    reply = call(LangChainClient(FakeChat(reply=lambda _: " ")), "hi")
    assert (reply.ok, "empty completion" in (reply.error or "")) == (False, True)


def test_text_is_streamed_to_who_listens() -> None:
    said: list[str] = []
    client = LangChainClient(StreamingChat(reply=lambda _: "one two three"))
    reply = call(client, "hi", on_text=said.append)
    assert (said[:3], reply.text) == (["one ", "two ", "three "], "one two three")
    request = Request(messages=(Message("user", "hi"),))
    assert "".join(str(chunk.text) for chunk in client.stream(request)).strip() == "one two three"


@pytest.mark.anyio
async def test_it_awaits_and_streams() -> None:
    said: list[str] = []
    client = LangChainClient(StreamingChat(reply=lambda _: "one two"))
    assert (await acall(client, "hi", on_text=said.append)).text == "one two"
    assert said[:2] == ["one ", "two "]
    request = Request(messages=(Message("user", "hi"),))
    chunks = [str(chunk.text) async for chunk in client.astream(request)]
    assert "".join(chunks).strip() == "one two"


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.anyio
async def test_another_event_loop_gets_a_clear_error(anyio_backend: str) -> None:
    with pytest.raises(RuntimeError, match="runs on asyncio"):
        await acall(LangChainClient(FakeChat()), "hi")


def test_a_governed_model_is_used_without_its_wrapper() -> None:
    fake = FakeChat()
    outer = Trace(Governor(max_calls=5))
    client = LangChainClient(GovernedChatModel(fake, trace=outer).bind(stop=["x"]))
    assert client.trace is outer
    call(client, "hi", trace=client.trace)
    assert len(fake.asked) == outer.calls == 1


def test_two_budgets_around_a_model_both_hold() -> None:  # 19
    fake = FakeChat()
    inner = GovernedChatModel(fake, trace=Trace(Governor(max_calls=1)))
    client = LangChainClient(GovernedChatModel(inner, trace=Trace()))
    assert call(client, "hi", trace=client.trace).ok
    assert not call(client, "hi", trace=client.trace).ok
    assert len(fake.asked) == 1


def test_a_cached_reply_is_the_same_message_again(tmp_path: Any) -> None:
    cache = ResponseCache(tmp_path / "replies.sqlite3")
    fake = FakeChat()
    client = LangChainClient(fake).with_cache(cache)
    first, again = call(client, "hi"), call(client, "hi")
    assert (again.cached, again.text, len(fake.asked)) == (True, first.text, 1)
    assert again.raw.generations[0].message.content == first.text
    assert again.raw is not first.raw
    warmer = LangChainClient(FakeChat(temperature=0.9)).with_cache(cache)
    assert not call(warmer, "hi").cached
    cache.close()


def test_a_fallback_is_sent_the_cap_as_well() -> None:
    first, second = FakeChat(fails=RuntimeError("down")), FakeChat()
    reply = call(LangChainClient(first.with_fallbacks([second])), "hi", max_output=77)
    assert reply.ok
    assert (first.asked[0]["max_tokens"], second.asked[0]["max_tokens"]) == (77, 77)


def test_what_is_bound_to_a_model_is_part_of_what_is_cached(tmp_path: Any) -> None:
    cache = ResponseCache(tmp_path / "replies.sqlite3")
    fake = FakeChat()
    call(LangChainClient(fake.bind(seed=1)).with_cache(cache), "hi")
    assert call(LangChainClient(fake.bind(seed=1)).with_cache(cache), "hi").cached
    assert not call(LangChainClient(fake.bind(seed=2)).with_cache(cache), "hi").cached
    assert not call(LangChainClient(fake).with_cache(cache), "hi").cached
    cache.close()


def test_vectors_come_from_embeddings_or_from_words() -> None:
    embeddings = DeterministicFakeEmbedding(size=4)
    client = LangChainClient(FakeChat(), embeddings=embeddings)
    found = client.embed(Texts(texts=("a", "b")))
    assert found.vectors is not None
    assert found.vectors.tolist() == embeddings.embed_documents(["a", "b"])
    governed = GovernedEmbeddings(embeddings, model="text-embedding-3-small", trace=Trace())
    assert (
        LangChainClient(FakeChat(), embeddings=governed).embedding_model == "text-embedding-3-small"
    )
    with pytest.warns(NoEmbeddingsWarning):
        assert read(CHUNKS, "cats?", LangChainClient(FakeChat()), "retrieve").found


def test_a_readers_messages_arrive_in_their_roles() -> None:
    fake = FakeChat()
    read(CHUNKS, "cats?", LangChainClient(fake), "stuff")
    kinds = [type(message).__name__ for message in fake.asked[0]["messages"]]
    assert kinds[0] == "SystemMessage"
    assert isinstance(fake.asked[0]["messages"][-1], HumanMessage)
