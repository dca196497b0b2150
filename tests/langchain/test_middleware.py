"""The governor as agent middleware: innermost, sync and async, beside the stock ones."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from harness_core import BadSettingError, Governor, Trace, governed_run
from harness_integrations.langchain import (
    GovernedChatModel,
    GovernedRefusal,
    UngovernedWarning,
)
from harness_integrations.langchain.middleware import GovernorMiddleware
from tests.support.fake_chat import FakeChat


@tool
def weather(place: str) -> str:
    """The weather at a place."""
    return f"Sunny in {place}."


class Asking(FakeChat):
    """Calls the tool for every question of a person, and then answers."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        result = super()._generate(messages, *args, **kwargs)
        self._call(messages, result.generations[0].message)
        return result

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        result = await super()._agenerate(messages, *args, **kwargs)
        self._call(messages, result.generations[0].message)
        return result

    def _call(self, messages: Sequence[BaseMessage], message: Any) -> None:
        if messages[-1].type == "human" and isinstance(message, AIMessage):
            message.tool_calls = [
                {"name": "weather", "args": {"place": "Rome"}, "id": "1", "type": "tool_call"}
            ]


ASKED: Any = {"messages": ["Weather?"]}


def agent(model: Any, *middleware: Any) -> Any:
    return create_agent(model, [weather], middleware=middleware)


@pytest.mark.anyio
async def test_each_model_call_of_an_agent_is_a_step() -> None:  # 50
    trace = Trace(Governor(max_calls=4))
    app = agent(Asking(), GovernorMiddleware(trace=trace))
    assert app.invoke(ASKED)["messages"][-1].text == "echo: Sunny in Rome."
    assert (await app.ainvoke(ASKED))["messages"][-1].text == "echo: Sunny in Rome."
    assert trace.calls == 4
    with pytest.raises(GovernedRefusal):
        app.invoke(ASKED)


@pytest.mark.anyio
async def test_an_agent_ends_with_a_message_where_it_is_asked_to() -> None:  # 50
    fake = Asking()
    trace = Trace(Governor(max_calls=1))
    app = agent(fake, GovernorMiddleware(trace=trace, exit_behavior="end"))
    state = app.invoke(ASKED)
    assert state["messages"][-1].text.startswith("Stopped: call cap reached")
    assert len(fake.asked) == 1
    again = await app.ainvoke(ASKED)  # the same budget: the limit stays reached
    assert again["messages"][-1].text.startswith("Stopped")
    assert trace.raised


def test_a_fallback_is_governed_when_the_governor_is_innermost() -> None:  # 50
    first, second = Asking(fails=RuntimeError("down")), Asking()
    trace = Trace(Governor(max_calls=1))
    app = agent(first, ModelFallbackMiddleware(second), GovernorMiddleware(trace=trace))
    with pytest.raises(GovernedRefusal):
        app.invoke(ASKED)
    assert (len(first.asked), len(second.asked)) == (1, 0)
    assert [step.model for step in trace.steps] == ["gpt-4o-mini"]
    assert trace.refusals


def test_standing_outside_a_fallback_is_warned_of() -> None:  # 50
    second = Asking()
    trace = Trace(Governor(max_calls=0))
    app = agent(Asking(), GovernorMiddleware(trace=trace), ModelFallbackMiddleware(second))
    with pytest.warns(UngovernedWarning, match="last in the list"):
        app.invoke(ASKED)
    assert second.asked


def test_a_retry_does_not_repeat_a_refusal() -> None:  # 50
    trace = Trace(Governor(max_calls=0))
    app = agent(Asking(), ModelRetryMiddleware(initial_delay=0), GovernorMiddleware(trace=trace))
    with pytest.raises(GovernedRefusal):
        app.invoke(ASKED)
    assert len(trace.refusals) == 1


def test_it_counts_what_the_call_limit_does_not_see() -> None:  # 50
    fake = Asking(fails=RuntimeError("down"))
    trace = Trace(Governor(max_calls=2))
    app = agent(
        fake,
        ModelCallLimitMiddleware(run_limit=1),
        ModelRetryMiddleware(max_retries=5, initial_delay=0, on_failure="error"),
        GovernorMiddleware(trace=trace),
    )
    with pytest.raises(GovernedRefusal):
        app.invoke(ASKED)
    assert len(fake.asked) == 2


def test_a_summarisers_own_model_is_governed_by_itself() -> None:  # 50
    trace = Trace()
    summariser = GovernedChatModel(FakeChat(), trace=trace)
    app = agent(
        Asking(),
        SummarizationMiddleware(summariser, trigger=("messages", 2), keep=("messages", 1)),
        GovernorMiddleware(trace=trace),
    )
    app.invoke({"messages": ["One?", AIMessage("1"), "Two?"]})
    assert trace.calls > 2


def test_a_governed_model_is_not_governed_twice() -> None:
    trace, other = Trace(), Trace()
    model = GovernedChatModel(Asking(), trace=trace)
    agent(model, GovernorMiddleware(trace=other)).invoke(ASKED)
    assert (trace.calls, other.calls) == (2, 0)


def test_without_a_budget_it_takes_the_one_around() -> None:
    app = agent(Asking(), GovernorMiddleware())
    with governed_run(governor=Governor(max_calls=9)) as run:
        app.invoke(ASKED)
    assert run.calls == 2


def test_an_unknown_exit_is_refused() -> None:
    with pytest.raises(BadSettingError):
        GovernorMiddleware(exit_behavior="leave")  # type: ignore[arg-type]  # the point


def test_agents_built_on_a_governed_model_keep_its_profile(chat: Callable[..., Any]) -> None:
    from pydantic import BaseModel

    class Joke(BaseModel):
        """A joke."""

        setup: str
        punchline: str

    trace = Trace()
    model = GovernedChatModel(chat(model="gpt-5.5"), trace=trace)
    app: Any = create_agent(model, response_format=Joke)
    assert isinstance(app.invoke({"messages": ["a 'cat' joke"]})["structured_response"], Joke)
    assert trace.calls == 1
