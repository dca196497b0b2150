"""The handler writes a step for every run of any LangChain app, and never stands in its way."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import HumanMessage
from langchain_core.tracers import context
from langchain_openai import ChatOpenAI

from harness_core import Governor, Trace
from harness_integrations.langchain import (
    GovernedChatModel,
    ReaderRetriever,
    TraceCallbackHandler,
    trace_calls,
)
from harness_integrations.langchain.testing import ReplayChatModel
from tests.support.fake_chat import FakeChat, StreamingChat
from tests.support.tool_server import ToolServer

Make = Callable[..., ChatOpenAI]


def test_a_run_is_a_priced_step(server: ToolServer, chat: Make) -> None:  # 33
    with trace_calls() as trace:
        chat(temperature=0.5).invoke("hello there", max_tokens=33)
    step = trace.steps[0]
    assert (step.model, step.response, step.ok) == ("gpt-4o-mini", "echo: hello there", True)
    assert (step.params["max_output_asked"], step.params["temperature"]) == (33, 0.5)
    assert step.tokens.provenance == "reported"
    assert trace.cost()[0]["usd"] == trace.spent_usd > 0


@pytest.mark.anyio
async def test_sync_and_async_runs_are_seen_alike(achat: Make) -> None:  # 33
    model = achat()
    with trace_calls() as trace:
        model.invoke("a")
        await model.ainvoke("b")
        list(model.stream("c"))
        _ = [chunk async for chunk in model.astream("d")]
        model.batch(["e", "f"])
        await model.abatch(["g", "h"])
        FakeChat().generate([[HumanMessage("i")], [HumanMessage("j")]])
    assert sorted(step.prompt[0].content for step in trace.steps) == list("abcdefghij")
    assert trace.calls == 10


def test_a_handler_attached_twice_writes_once() -> None:  # 33
    handler = TraceCallbackHandler()
    model = FakeChat().with_config(callbacks=[handler])
    model.invoke("hi", config={"callbacks": [handler]})
    assert len(handler.trace.steps) == 1


def test_a_cache_hit_is_cached_and_free(chat: Make) -> None:  # 7, 33
    model = chat(cache=InMemoryCache())
    with trace_calls() as trace:
        model.invoke("hi")
        model.invoke("hi")
    assert [step.cached for step in trace.steps] == [False, True]
    assert trace.cost()[0]["paid_calls"] == 1
    assert trace.ledger.spent == trace.steps[0].budget_pico


def test_a_hit_of_a_governed_models_cache_is_recorded_as_cached(chat: Make) -> None:  # 7
    trace = Trace(Governor(max_calls=1))
    model = GovernedChatModel(chat(cache=InMemoryCache()), trace=trace)
    with trace_calls(trace):
        model.invoke("hi")
        model.invoke("hi")
    assert [step.cached for step in trace.steps] == [False, True]


@pytest.mark.anyio
async def test_closed_failed_and_unfinished_runs_are_told_apart() -> None:  # 33
    with trace_calls() as trace:
        stream: Any = StreamingChat(reply=lambda _: "one two").stream("closed")
        next(stream)
        stream.close()
        with pytest.raises(RuntimeError, match="broken"):
            FakeChat(fails=RuntimeError("broken")).invoke("failed")
        FakeChat().invoke("fine")
    closed, failed, fine = trace.steps
    assert (closed.cancelled, closed.ok, closed.response.strip()) == (True, False, "one")
    assert (failed.cancelled, failed.ok, failed.error) == (False, False, "RuntimeError: broken")
    assert (fine.cancelled, fine.ok) == (False, True)

    handler = TraceCallbackHandler()
    handler.on_chat_model_start(
        {}, [[HumanMessage("hi")]], run_id=uuid4(), invocation_params={"model": "gpt-4o"}
    )
    assert handler.unfinished == ["gpt-4o"]


def test_a_run_that_outlives_its_block_is_noted() -> None:  # 33
    with trace_calls() as trace:
        stream: Any = StreamingChat(reply=lambda _: "one two").stream("open")
        next(stream)
    assert trace.steps[-1].label == "unfinished"
    stream.close()


def test_completion_models_and_retrievers_are_seen() -> None:  # 33
    with trace_calls() as trace:
        with pytest.warns(UserWarning, match="not registered"):
            FakeListLLM(responses=["done"]).invoke("begin")
        ReaderRetriever(docs=[Document("a cat", id="1")]).invoke("cat")
    step, note = trace.steps
    assert (step.prompt[0].content, step.response) == ("begin", "done")
    assert (note.kind, (note.detail or {})["ids"]) == ("local", ["1"])


def test_details_with_a_tier_before_them_are_read() -> None:  # 34
    class Flex(FakeChat):
        def _message(self, text: str) -> Any:
            message = super()._message(text)
            message.usage_metadata = {  # type: ignore[assignment]  # tiers are not typed
                "input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
                "input_token_details": {"flex_cache_read": 64, "flex": 36},
            }  # fmt: skip
            return message

    with trace_calls() as trace:
        Flex().invoke("hi")
    assert (trace.steps[0].tokens.input, trace.steps[0].tokens.cached_input) == (100, 64)


def test_a_thousand_blocks_register_one_hook() -> None:  # 35
    before = len(context._configure_hooks)
    for _ in range(1000):
        with trace_calls():
            pass
    assert len(context._configure_hooks) == before


def test_nothing_secret_is_in_a_trace_and_texts_can_be_kept_out(chat: Make) -> None:  # 36
    model = chat(api_key="sk-secret-key", default_headers={"X-Token": "hidden"})
    with trace_calls() as trace:
        model.invoke("the code is 1234")
    assert "sk-secret-key" not in str(trace.export())
    assert "hidden" not in str(trace.export())
    with trace_calls(redact=lambda text: text.replace("1234", "****")) as redacted:
        model.invoke("the code is 1234")
    assert "1234" not in str(redacted.export())
    assert "the code is ****" in str(redacted.export())
    with trace_calls(record_content=False) as empty:
        model.invoke("the code is 1234")
    assert "code" not in str(empty.export()["steps"])
    assert empty.tokens_in > 0


def test_usage_nobody_reported_is_counted_and_marked() -> None:
    with trace_calls() as trace:
        FakeChat(usage=None).invoke("one two three")
    tokens = trace.steps[0].tokens
    assert tokens.provenance == "estimated"
    assert (tokens.input or 0) >= 3


def test_a_governed_model_gives_one_step_not_two() -> None:
    trace = Trace()
    with trace_calls(trace):
        GovernedChatModel(FakeChat(), trace=trace).invoke("hi")
    assert len(trace.steps) == trace.calls == 1


def test_a_refusal_leaves_no_step_behind() -> None:
    trace = Trace(Governor(max_calls=0))
    with trace_calls() as watching, pytest.raises(RuntimeError):
        GovernedChatModel(FakeChat(), trace=trace).invoke("hi")
    assert watching.steps == trace.steps == []


def test_what_a_handler_saw_can_be_replayed(chat: Make) -> None:
    with trace_calls() as trace:
        said = chat(temperature=0.5, stop=["x"]).invoke("hello there").text
    assert ReplayChatModel(trace).invoke("hello there").text == said
    like = chat(temperature=0.5, stop=["x"])
    assert ReplayChatModel(trace, like=like).invoke("hello there").text == said


def test_many_threads_write_one_trace() -> None:  # 33
    handler = TraceCallbackHandler()
    model = FakeChat(callbacks=[handler])
    threads = [threading.Thread(target=model.invoke, args=(f"hi {n}",)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(handler.trace.steps) == 16
    assert {step.step for step in handler.trace.steps} == {str(n) for n in range(1, 17)}


@pytest.mark.anyio
async def test_a_cancelled_run_is_marked() -> None:  # 33
    handler = TraceCallbackHandler()
    model = StreamingChat(reply=lambda _: "one two three", pause=0.001, callbacks=[handler])
    stream: Any = model.astream("hi")
    await anext(stream)
    with pytest.raises(asyncio.CancelledError):
        await stream.athrow(asyncio.CancelledError())
    assert handler.trace.steps[0].cancelled
