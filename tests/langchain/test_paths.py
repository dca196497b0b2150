"""No request leaves after a refusal, whichever of LangChain's doors it came through."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ModelError
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from harness_core import Governor, Refusal, RequestRefused, Trace, override, register_model
from harness_integrations.langchain import GovernedChatModel, GovernedRefusal, retry_unless_refused
from tests.support.tool_server import ToolServer


class Joke(BaseModel):
    """A joke."""

    setup: str
    punchline: str


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


pytestmark = pytest.mark.filterwarnings("ignore:The method `BaseChatModel._a?chat_model_stream_v3`")

HELLO: Any = {"messages": ["hi"]}
Make = Callable[..., ChatOpenAI]

SYNC: dict[str, Callable[[GovernedChatModel, Make], Any]] = {
    "invoke": lambda model, make: model.invoke("hi"),
    "stream": lambda model, make: list(model.stream("hi")),
    "batch": lambda model, make: model.batch(["hi", "you"]),
    "stream_events v3": lambda model, make: list(model.stream_events("hi", version="v3")),
    "generate": lambda model, make: model.generate([[HumanMessage("hi")]]),
    "with_structured_output": lambda model, make: model.with_structured_output(Joke).invoke("hi"),
    "bind_tools": lambda model, make: model.bind_tools([add]).invoke("hi"),
    "create_agent": lambda model, make: create_agent(model, [add]).invoke(HELLO),
    "with_fallbacks": lambda model, make: model.with_fallbacks([make()]).invoke("hi"),
    "with_retry": lambda model, make: model.with_retry(
        wait_exponential_jitter=False, stop_after_attempt=2
    ).invoke("hi"),
}


async def _all(events: Any) -> list[Any]:
    return [one async for one in events]


async def _v3(model: GovernedChatModel) -> list[Any]:
    return await _all(await model.astream_events("hi", version="v3"))


async def _batch(model: GovernedChatModel) -> None:
    # with errors returned: LangChain never closes the run of a sibling that it abandons
    found = await model.abatch(["hi", "you"], return_exceptions=True)
    raise next(one for one in found if isinstance(one, Exception))


ASYNC: dict[str, Callable[[GovernedChatModel], Awaitable[Any]]] = {
    "ainvoke": lambda model: model.ainvoke("hi"),
    "astream": lambda model: _all(model.astream("hi")),
    "abatch": _batch,
    "astream_events v2": lambda model: _all(model.astream_events("hi", version="v2")),
    "astream_events v3": _v3,
}


class Events(BaseCallbackHandler):
    run_inline = True

    def __init__(self) -> None:
        self.started = 0
        self.failed: list[BaseException] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.started += 1

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.failed.append(error)


def closed(model: ChatOpenAI) -> tuple[GovernedChatModel, Trace, Events]:
    trace, events = Trace(Governor(max_calls=0)), Events()
    return GovernedChatModel(model, trace=trace, callbacks=[events]), trace, events


@pytest.mark.parametrize("path", SYNC)
def test_nothing_leaves_a_closed_budget(path: str, server: ToolServer, chat: Make) -> None:  # 2, C3
    model, trace, events = closed(chat())
    with pytest.raises(GovernedRefusal):
        SYNC[path](model, chat)
    assert server.requests == []
    assert trace.steps == []
    assert trace.refusals
    assert isinstance(trace.raised[0], GovernedRefusal)
    assert trace.ledger.held == 0
    # 3: one start and one error per attempt
    assert events.started == len(events.failed) >= 1
    assert all(isinstance(error, GovernedRefusal) for error in events.failed)


@pytest.mark.anyio
@pytest.mark.parametrize("path", ASYNC)
async def test_nothing_leaves_a_closed_budget_async(  # 2, 3, C3
    path: str, server: ToolServer, achat: Make
) -> None:
    model, trace, events = closed(achat())
    with pytest.raises(GovernedRefusal):
        await ASYNC[path](model)
    for _ in range(20):  # version 3 tells its handlers after it told the caller
        await asyncio.sleep(0)
    assert server.requests == []
    assert trace.steps == []
    assert trace.ledger.held == 0
    assert events.started == len(events.failed) >= 1


def test_a_refusal_is_known_to_langchain_and_to_us(chat: Make) -> None:  # 4
    import pickle

    model, _, _ = closed(chat())
    with pytest.raises(GovernedRefusal) as caught:
        model.invoke("hi")
    refusal = caught.value
    for kind in (RuntimeError, ModelError, RequestRefused):
        assert isinstance(refusal, kind)
    assert refusal.is_retryable is False
    assert refusal.reason == "calls"
    assert "raise max_calls" in str(refusal)
    again = pickle.loads(pickle.dumps(refusal))  # noqa: S301 - our own object
    assert (str(again), again.reason) == (str(refusal), "calls")


def test_a_retry_that_asks_does_not_ask_again(chat: Make) -> None:  # 4, 17
    model, trace, _ = closed(chat())
    patient = model.with_retry(retry_if_exception_type=retry_unless_refused)
    with pytest.raises(GovernedRefusal):
        patient.invoke("hi")
    assert len(trace.refusals) == 1


LIMITS: dict[str, Callable[[Refusal], Governor]] = {
    "calls": lambda one: Governor(max_calls=5),
    "usd": lambda one: Governor(max_cost_usd=5 * (one.bound_pico or 0) / 1e12),
    "tokens": lambda one: Governor(max_tokens_total=5 * one.bound_tokens),
}


def bound_of(model: ChatOpenAI) -> Refusal:
    """What one request is held at: a reply that takes all of it makes five of them exact."""
    governed, trace, _ = closed(model)
    with pytest.raises(GovernedRefusal):
        governed.invoke("hi")
    return trace.refusals[0]


def taking(one: Refusal) -> Callable[[Any, str], tuple[int, int]]:
    return lambda messages, text: (one.bound_tokens - 60, 60)


@pytest.mark.parametrize("limit", LIMITS)
def test_threads_spend_a_limit_exactly(limit: str, chat: Make) -> None:  # 5, C3
    most = bound_of(chat(max_tokens=60))
    with ToolServer(usage=taking(most)) as server:
        trace = Trace(LIMITS[limit](most))
        model = GovernedChatModel(chat(base_url=server.url, max_tokens=60), trace=trace)
        refused: list[int] = []

        def work() -> None:
            for _ in range(4):
                try:
                    model.invoke("hi")
                except GovernedRefusal:
                    refused.append(1)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.requests) == 5
        assert len(refused) == 19
        assert trace.ledger.held == 0


@pytest.mark.anyio
@pytest.mark.parametrize("limit", LIMITS)
async def test_tasks_spend_a_limit_exactly(limit: str, achat: Make) -> None:  # 5, C3
    most = bound_of(achat(max_tokens=60))
    with ToolServer(usage=taking(most)) as server:
        trace = Trace(LIMITS[limit](most))
        model = GovernedChatModel(achat(base_url=server.url, max_tokens=60), trace=trace)
        outcomes: list[bool] = []

        async def work() -> None:
            try:
                await model.ainvoke("hi")
                outcomes.append(True)
            except GovernedRefusal:
                outcomes.append(False)

        async with asyncio.TaskGroup() as group:
            for _ in range(24):
                group.create_task(work())
        assert len(server.requests) == outcomes.count(True) == 5
        assert trace.ledger.held == 0


PEERS = ("one after another", "twenty threads", "twenty tasks")


@pytest.mark.anyio
@pytest.mark.parametrize("how", PEERS)
async def test_twenty_calls_under_ten_cents_are_two_calls(how: str, achat: Make) -> None:
    """1,000 tokens in and 4,000 out at 2.50 and 10.00 USD per million: 0.0425 USD a call."""
    register_model(
        "priced-peer", context_window=128_000, max_output=16_384, input_usd=2.5, output_usd=10
    )
    prompt = " ".join(["word"] * 995)  # with its framing 1,000 tokens
    with (
        ToolServer(usage=lambda messages, text: (1000, 4000)) as server,
        override(tokenizer="words", safety_margin=0.0),
    ):
        bound = achat(model="priced-peer", base_url=server.url, max_tokens=4000)
        model = GovernedChatModel(bound, governor=Governor(max_cost_usd=0.10))
        match how:
            case "one after another":
                results = [model.batch([prompt], return_exceptions=True)[0] for _ in range(20)]
            case "twenty threads":
                wide = RunnableConfig(max_concurrency=20)
                results = model.batch([prompt] * 20, wide, return_exceptions=True)
            case _:
                results = await model.abatch([prompt] * 20, return_exceptions=True)
        assert len(server.requests) == 2
    assert sum(isinstance(one, GovernedRefusal) for one in results) == 18
    assert model.trace.spent_usd == 0.085
