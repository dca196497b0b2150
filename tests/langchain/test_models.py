"""A governed chat model is the wrapped one to LangChain, and each request is accounted for."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import ConfigurableField, RunnableBinding, RunnableLambda
from langchain_openai import ChatOpenAI
from openai import RateLimitError
from pydantic import BaseModel

from harness_core import BadSettingError, Governor, ResponseCache, Trace, governed_run
from harness_integrations.langchain import GovernedChatModel, GovernedRefusal, govern
from harness_integrations.langchain.testing import ReplayChatModel
from tests.support.fake_chat import FakeChat, StreamingChat
from tests.support.tool_server import ToolServer

Make = Callable[..., ChatOpenAI]


def governed(model: Any = None, **settings: Any) -> tuple[GovernedChatModel, Trace]:
    limits = {k: settings.pop(k) for k in list(settings) if k.startswith(("max_", "allow"))}
    trace = Trace(Governor(**limits))
    return GovernedChatModel(model or FakeChat(), trace=trace, **settings), trace


class Joke(BaseModel):
    """A joke."""

    setup: str
    punchline: str


class Starts(BaseCallbackHandler):
    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.starts.append(kwargs)


# --- whose budget -------------------------------------------------------------------------------


def test_a_model_without_limits_says_how_to_name_them() -> None:
    model = GovernedChatModel(FakeChat())
    with pytest.raises(TypeError, match=r"trace=.*governor=.*governed_run"):
        model.invoke("hi")


def test_the_models_of_one_governor_share_one_trace() -> None:
    governor = Governor(max_calls=2)
    one, other = (GovernedChatModel(FakeChat(), governor=governor) for _ in range(2))
    one.invoke("hi")
    other.invoke("hi")
    assert one.trace is other.trace
    with pytest.raises(GovernedRefusal):
        one.invoke("hi")


def test_a_run_around_wins_over_a_governor_and_loses_to_a_trace() -> None:
    mine, trace = governed()
    shared = GovernedChatModel(FakeChat(), governor=Governor())
    with governed_run(governor=Governor(max_calls=9)) as run:
        shared.invoke("hi")
        mine.invoke("hi")
    assert len(run.steps) == len(trace.steps) == 1


def test_a_refusal_that_a_chain_swallows_is_raised_at_the_end_of_the_run() -> None:
    model = GovernedChatModel(FakeChat())
    answer = model | RunnableLambda(lambda message: str(message.text))
    safe = answer.with_fallbacks([RunnableLambda(lambda _: "never mind")])

    def ask() -> None:
        with governed_run(governor=Governor(max_calls=0)):
            assert safe.invoke("hi") == "never mind"

    with pytest.raises(GovernedRefusal):
        ask()


def test_a_governor_that_raises_leaves_one_refusal_on_the_trace() -> None:
    trace = Trace(Governor(max_calls=0, on_refusal="raise"))
    with pytest.raises(GovernedRefusal) as caught:
        GovernedChatModel(FakeChat(), trace=trace).invoke("hi")
    assert isinstance(caught.value, RuntimeError)
    assert len(trace.raised) == 1


def test_a_trace_and_a_governor_that_differ_are_refused_at_once() -> None:
    with pytest.raises(BadSettingError):
        GovernedChatModel(FakeChat(), trace=Trace(), governor=Governor())


# --- what is accounted for ----------------------------------------------------------------------


def test_missing_usage_is_charged_at_what_was_held() -> None:  # 9
    model, trace = governed(FakeChat(usage=None))
    model.invoke("hi")
    tokens = trace.steps[0].tokens
    assert (tokens.output, tokens.provenance) == (50, "bound")
    assert trace.spent_usd > 0


def test_several_generations_are_held_several_times_and_counted_once() -> None:  # 9
    closed, trace = governed(FakeChat(n=3), max_calls=0)
    with pytest.raises(GovernedRefusal):
        closed.invoke("hi")
    single, other = governed(FakeChat(), max_calls=0)
    with pytest.raises(GovernedRefusal):
        single.invoke("hi")
    assert trace.refusals[0].bound_tokens == other.refusals[0].bound_tokens + 100
    model, spent = governed(FakeChat(n=3))
    result = model.generate([[HumanMessage("hi")]])
    assert len(result.generations[0]) == 3
    assert (spent.tokens_in, spent.tokens_out) == (10, 5)


@pytest.mark.parametrize(
    ("make", "kwargs", "cap"),
    [
        (lambda: FakeChat(max_tokens=50), {}, 50),
        (lambda: FakeChat(max_tokens=50), {"max_tokens": 20}, 20),
        (lambda: FakeChat(max_tokens=50), {"max_completion_tokens": 70}, 70),
        (lambda: FakeChat(max_tokens=None), {"extra_body": {"max_tokens": 33}}, 33),
    ],
)
def test_the_cap_of_the_call_wins_over_the_models(
    make: Callable[[], FakeChat], kwargs: dict[str, Any], cap: int
) -> None:  # 10
    model, _ = governed(make(), max_output_tokens=19)
    with pytest.raises(GovernedRefusal, match=rf"up to {cap} reply tokens"):
        model.invoke("hi", **kwargs)
    bound, _ = governed(make(), max_output_tokens=19)
    with pytest.raises(GovernedRefusal, match=rf"up to {cap} reply tokens"):
        bound.bind(**kwargs).invoke("hi")


def test_a_body_cannot_smuggle_a_larger_cap_or_another_model(  # 10
    server: ToolServer, chat: Make
) -> None:
    larger, _ = governed(chat(max_tokens=50, extra_body={"max_tokens": 9999}))
    with pytest.raises(BadSettingError, match="max_output"):
        larger.invoke("hi")
    other, _ = governed(chat(extra_body={"model": "gpt-4o"}))
    with pytest.raises(BadSettingError, match="model"):
        other.invoke("hi")
    assert server.requests == []


def test_a_bound_model_must_be_an_allowed_one(server: ToolServer, chat: Make) -> None:  # 10
    model, trace = governed(chat(), allowed_models="gpt-4o-mini")
    model.invoke("hi")
    with pytest.raises(GovernedRefusal, match="gpt-4o"):
        model.bind(model="gpt-4o").invoke("hi")
    assert len(server.requests) == 1
    assert trace.refusals[0].reason == "model"


def test_an_unknown_model_is_sent_the_cap_it_was_held_at() -> None:
    fake = FakeChat(model="nobody-knows-it", max_tokens=None)
    model, _ = governed(fake, allow_unpriced=True)
    with pytest.warns(UserWarning, match="nobody-knows-it"):
        model.invoke("hi")
    assert fake.asked[0]["max_tokens"] > 0


def test_an_unpriced_model_is_refused_under_a_spending_limit() -> None:
    model, trace = governed(FakeChat(model="nobody-prices-it"), max_cost_usd=1.0)
    with pytest.warns(UserWarning, match="nobody-prices-it"), pytest.raises(GovernedRefusal):
        model.invoke("hi")
    assert trace.refusals[0].reason == "unpriced"


def test_a_data_block_is_counted_and_its_bytes_stay_out_of_the_trace() -> None:
    model, trace = governed(max_calls=1)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    model.invoke([HumanMessage([{"type": "text", "text": "what is it?"}, picture])])
    step = trace.steps[0]
    assert step.prompt[0].content == "what is it?"
    assert "aGVsbG8" not in str(step.as_json())
    assert step.params["prompt_tokens"] > 2000


# --- streams ------------------------------------------------------------------------------------


def test_a_closed_stream_is_settled_at_what_arrived() -> None:  # 6
    model, trace = governed(StreamingChat(reply=lambda _: "one two three four"))
    stream: Any = model.stream("hi")
    next(stream)
    stream.close()
    step = trace.steps[0]
    assert trace.ledger.held == 0
    assert (step.tokens.provenance, step.response.strip()) == ("estimated", "one")


def test_a_collected_stream_is_settled() -> None:  # 6
    model, trace = governed(StreamingChat())
    stream = model.stream("hi")
    next(stream)
    assert trace.ledger.held == 1
    del stream
    gc.collect()
    assert trace.ledger.held == 0
    assert len(trace.steps) == 1


@pytest.mark.anyio
async def test_an_async_stream_that_is_closed_or_cancelled_is_settled() -> None:  # 6
    model, trace = governed(StreamingChat(pause=0.001))
    stream: Any = model.astream("hi")
    await anext(stream)
    await stream.aclose()
    assert trace.ledger.held == 0

    slow, other = governed(FakeChat(pause=30))
    task = asyncio.create_task(slow.ainvoke("hi"))
    while not other.ledger.held:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert other.ledger.held == 0
    assert other.steps[0].cancelled


def test_a_failed_stream_is_settled_and_raises_what_the_provider_raised() -> None:  # 6
    fault = RuntimeError("the line is cut")
    model, trace = governed(StreamingChat(fails=fault))
    with pytest.raises(RuntimeError, match="the line is cut"):
        list(model.stream("hi"))
    assert trace.ledger.held == 0
    assert not trace.steps[0].ok


@pytest.mark.anyio
async def test_a_model_that_cannot_stream_gives_one_chunk_counted_once() -> None:  # 15
    model, trace = governed(FakeChat())
    assert len(list(model.stream("hi"))) == 1
    assert len([chunk async for chunk in model.astream("hi")]) == 1
    assert len(trace.steps) == 2


def test_a_model_whose_generate_streams_is_counted_once() -> None:  # 16
    class Ollama(StreamingChat):
        def _generate(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **k: Any
        ) -> Any:
            from langchain_core.language_models.chat_models import generate_from_stream

            return generate_from_stream(self._stream(messages, stop=stop, **k))

    model, trace = governed(Ollama())
    assert model.invoke("hi").text.strip() == "echo: hi"
    assert len(trace.steps) == 1
    assert trace.tokens_out == 5


def test_usage_of_a_stream_is_asked_for(server: ToolServer, chat: Make) -> None:
    model, trace = governed(chat())
    list(model.stream("hi"))
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert trace.steps[0].tokens.provenance == "reported"


# --- caches -------------------------------------------------------------------------------------


def test_a_hit_of_langchains_cache_never_reaches_us() -> None:  # 7
    fake = FakeChat(cache=InMemoryCache())
    model, trace = governed(fake, max_calls=1)
    model.invoke("hi")
    model.invoke("hi")
    assert (len(fake.asked), trace.calls) == (1, 1)
    assert trace.ledger.held == 0


@pytest.mark.anyio
async def test_our_cache_serves_invoke_and_streams_alike(tmp_path: Any) -> None:  # 8
    cache = ResponseCache(tmp_path / "replies.sqlite3")
    fake = StreamingChat(reply=lambda _: "one two")
    model, trace = governed(fake, response_cache=cache)
    first = "".join(str(chunk.text) for chunk in model.stream("hi"))
    again = "".join(str(chunk.text) for chunk in model.stream("hi"))
    third = "".join([str(chunk.text) async for chunk in model.astream("hi")])
    assert first == again == third == model.invoke("hi").text
    assert len(fake.asked) == 1
    assert [step.cached for step in trace.steps] == [False, True, True, True]
    cache.close()


# --- what stays as it was -----------------------------------------------------------------------


class Limiter(BaseRateLimiter):
    def __init__(self) -> None:
        self.taken = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        self.taken += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        return self.acquire()


def test_what_a_chat_model_does_around_its_requests_happens_once() -> None:  # 11
    limiter, starts = Limiter(), Starts()
    fake = FakeChat(rate_limiter=limiter, callbacks=[starts], tags=["mine"], metadata={"a": 1})
    model, _ = governed(fake)
    model.invoke("hi")
    assert (limiter.taken, len(starts.starts)) == (1, 1)
    assert starts.starts[0]["tags"] == ["mine"]
    assert starts.starts[0]["metadata"]["a"] == 1


def test_output_version_profile_and_disabled_streaming_are_kept(chat: Make) -> None:  # 11
    model, _ = governed(chat(output_version="v1", disable_streaming=True))
    assert isinstance(model.invoke("hi").content, list)
    assert len(list(model.stream("hi"))) == 1
    assert model.profile == chat().profile


def test_it_shares_cache_entries_and_names_with_the_model_inside(chat: Make) -> None:  # 12, 13
    inner = chat()
    model, trace = governed(inner)
    assert model._get_llm_string(stop=["x"]) == inner._get_llm_string(stop=["x"])
    assert (model.model_name, model.model, model._llm_type) == (
        "gpt-4o-mini",
        "gpt-4o-mini",
        "openai-chat",
    )
    params = model._get_ls_params()
    assert params.pop("harness_trace") == trace.run_id
    assert params == inner._get_ls_params()
    assert model.metadata is not None
    assert "harness-integrations" in model.metadata["lc_versions"]
    assert "langchain-openai" in model.metadata["lc_versions"]


def test_tools_and_structured_output_are_built_around_the_wrapper(chat: Make) -> None:  # 14
    model, trace = governed(chat())
    tools = model.bind_tools([Joke], tool_choice="any")
    assert isinstance(tools, RunnableBinding)
    assert tools.bound is model
    found = model.with_structured_output(Joke, include_raw=True).invoke("hi")
    assert isinstance(found["parsed"], Joke)
    assert found["raw"].usage_metadata["total_tokens"] > 0
    assert len(trace.steps) == 1


FIELD = ConfigurableField(id="temperature")
WAYS: dict[str, Callable[[GovernedChatModel, Make], Any]] = {
    "with_config": lambda model, make: model.with_config(tags=["x"]),
    "bind": lambda model, make: model.bind(stop=["x"]),
    "with_listeners": lambda model, make: model.with_listeners(on_start=lambda run: None),
    "with_retry": lambda model, make: model.with_retry(stop_after_attempt=1),
    "with_fallbacks": lambda model, make: model.with_fallbacks([make()]),
    "configurable_fields": lambda model, make: model.configurable_fields(
        temperature=FIELD
    ).with_config(configurable={"temperature": 0.5}),
    "configurable_alternatives": lambda model, make: model.configurable_alternatives(
        ConfigurableField(id="which"), other=make()
    ).with_config(configurable={"which": "other"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_change_a_model_keeps_it_governed(  # 17
    way: str, server: ToolServer, chat: Make
) -> None:
    model, trace = governed(chat(), max_calls=1)
    changed = WAYS[way](model, chat)
    changed.invoke("hi")
    with pytest.raises(GovernedRefusal):
        changed.invoke("hi")
    assert len(server.requests) == len(trace.steps) == 1
    if way == "configurable_fields":
        assert server.bodies[0]["temperature"] == 0.5


def test_retries_inside_the_providers_client_are_off(server: ToolServer, chat: Make) -> None:  # 18
    server.queue(status=429, headers={"Retry-After": "0"}, times=2)
    model, trace = governed(chat(max_retries=5))
    for _ in range(2):
        with pytest.raises(RateLimitError) as caught:
            model.invoke("hi")
        assert isinstance(caught.value, ModelRateLimitError)
    assert model.invoke("hi").text
    assert len(server.requests) == len(trace.steps) == 3
    assert [step.status for step in trace.steps[:2]] == [429, 429]
    assert trace.steps[0].budget_pico == 0


def test_the_model_given_keeps_its_retries(chat: Make) -> None:  # 18
    inner = chat(max_retries=5)
    model, _ = governed(inner)
    model.invoke("hi")
    assert (inner.max_retries, inner.root_client.max_retries) == (5, 5)


def test_a_wrapper_around_a_wrapper_counts_in_each_once() -> None:  # 19
    inner, one = governed(FakeChat())
    outer, other = governed(inner)
    outer.invoke("hi")
    assert len(one.steps) == len(other.steps) == 1
    tight, _ = governed(inner, max_calls=0)
    with pytest.raises(GovernedRefusal):
        tight.invoke("hi")
    assert len(one.steps) == 1


def test_governing_twice_changes_nothing() -> None:  # 19
    model, trace = governed()
    assert govern(model, trace=trace) is model


def test_it_takes_no_runnable_in_place_of_a_model() -> None:
    with pytest.raises(TypeError, match="govern"):
        GovernedChatModel(FakeChat().bind(stop=["x"]), trace=Trace())  # type: ignore[arg-type]  # the point


def test_the_providers_message_is_the_callers(chat: Make) -> None:
    model, trace = governed(chat())
    message = model.invoke("hi")
    assert isinstance(message, AIMessage)
    assert message.response_metadata["id"] == trace.steps[0].response_id
    assert message.usage_metadata is not None
    assert message.usage_metadata["total_tokens"] == trace.tokens_in + trace.tokens_out


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.anyio
async def test_another_event_loop_gets_a_clear_error(anyio_backend: str) -> None:
    model, _ = governed()
    with pytest.raises(RuntimeError, match="runs on asyncio"):
        await model._agenerate([HumanMessage("hi")])


# --- text that is no valid Unicode ----------------------------------------------------------------

ODD = "a\ud800b\x00c"
READ = "a\ufffdb\x00c"
ODD_TALK = [
    SystemMessage(ODD),
    HumanMessage([
        {"type": "text", "text": ODD},
        {"type": "image_url", "image_url": {"url": f"https://example.org/{ODD}"}},
        {"type": "custom", ODD: ODD},
    ], name=ODD),
    AIMessage("", tool_calls=[{"id": ODD, "name": ODD, "args": {ODD: ODD}}]),
    ToolMessage(ODD, tool_call_id=ODD),
]  # fmt: skip


@pytest.mark.anyio
async def test_text_that_is_no_unicode_is_recorded_cached_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    trace, fake = Trace(path=path), FakeChat(reply=lambda _: ODD)
    model = GovernedChatModel(fake, trace=trace, response_cache=ResponseCache(tmp_path / "cache"))
    settings: dict[str, Any] = {"stop": [ODD], "user": ODD, "extra": {ODD: ODD}}
    tooled = model.bind_tools([{"type": "function", "function": {"name": ODD, "description": ODD}}])
    assert model.invoke(ODD_TALK, **settings).content == ODD
    assert "".join(str(x.content) for x in model.stream(ODD_TALK, **settings)) == READ
    assert (await tooled.ainvoke(ODD_TALK, tool_choice=ODD)).content == ODD
    assert [step.cached for step in trace.steps] == [False, True, False]
    assert ReplayChatModel(path).invoke(ODD_TALK, **settings).content == READ


def test_a_failure_whose_words_are_no_unicode_is_recorded(tmp_path: Path) -> None:
    trace = Trace(path=tmp_path / "run.jsonl")
    model = GovernedChatModel(FakeChat(fails=ValueError(ODD)), trace=trace)
    with pytest.raises(ValueError, match="a"):
        model.invoke("hi")
    assert trace.steps[0].error == f"ValueError: {READ}"
