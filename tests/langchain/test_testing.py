"""A recorded run answers again: agents, streams, structure, batches; loudly when it diverges."""

import builtins
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.exceptions import ModelError, ModelRateLimitError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, tool
from langchain_openai import ChatOpenAI
from langgraph.graph import add_messages
from openai import RateLimitError
from pydantic import BaseModel

from harness_core import Governor, ReplayExhaustedError, ReplayMissError, Trace, TraceError
from harness_integrations.langchain import (
    DocumentReader,
    GovernedChatModel,
    GovernedRefusal,
    create_reader_chain,
)
from harness_integrations.langchain.testing import ReplayChatModel, record
from tests.support.fake_chat import FakeChat, StreamingChat
from tests.support.tool_server import ToolServer

Make = Callable[..., ChatOpenAI]


class Joke(BaseModel):
    """A joke."""

    setup: str
    punchline: str


@tool
def weather(place: str, config: Annotated[RunnableConfig | None, InjectedToolArg] = None) -> str:
    """The weather at a place."""
    return f"Sunny in {place}."


DOCS = [Document(f"Note {number}: built in {1900 + number}.") for number in range(3)]
ASKED = {"question": "When?", "context": DOCS}


WEATHER: Any = {"messages": ["Weather in 'Rome'?"]}


def agent_run(model: BaseChatModel) -> list[str]:
    state = create_agent(model, [weather]).invoke(WEATHER)
    return [str(message.text) for message in state["messages"]]


RUNS: dict[str, Callable[[BaseChatModel], Any]] = {
    "agent": agent_run,
    "rag batch": lambda model: DocumentReader(model, "map_reduce").batch(
        [ASKED, {**ASKED, "question": "Who?"}]
    ),
    "stream": lambda model: "".join(str(chunk.text) for chunk in model.stream("one two three")),
    "structured": lambda model: model.with_structured_output(Joke).invoke("a 'cat' joke"),
    "structured by a tool": lambda model: model.with_structured_output(
        Joke, method="function_calling"
    ).invoke("a 'cat' joke"),
    "tools": lambda model: (
        model.bind_tools([weather]).invoke("Weather in 'Oslo'?").tool_calls[0]["args"]
    ),
    "override": lambda model: str(model.invoke("hi", model="gpt-4o", temperature=0.2).text),
}


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("what", RUNS)
def test_a_run_is_replayed_equal_without_a_socket(  # 38, 44
    what: str, bare: bool, server: ToolServer, chat: Make, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    with record(chat(temperature=0), path) as model:
        live = RUNS[what](model)
    sent = len(server.requests)
    replay = ReplayChatModel(path, like=None if bare else chat(temperature=0, max_retries=7))
    assert RUNS[what](replay) == live
    assert len(server.requests) == sent > 0
    replay.assert_all_used()


@pytest.mark.anyio
async def test_an_async_batch_is_replayed_in_any_order(achat: Make) -> None:  # 38, 40
    trace = Trace()
    texts: list[Any] = ["a b", "c d", "e f", "g h"]
    live = await GovernedChatModel(achat(), trace=trace).abatch(texts)
    replayed = await ReplayChatModel(trace).abatch(list(reversed(texts)))
    assert [m.text for m in reversed(replayed)] == [m.text for m in live]
    stream = ReplayChatModel(trace).astream("a b")
    assert "".join([str(chunk.text) async for chunk in stream]) == live[0].text


def recorded(*texts: str, **settings: Any) -> Trace:
    trace = Trace(Governor(**settings))
    model = GovernedChatModel(FakeChat(), trace=trace)
    for text in texts:
        try:
            model.invoke(text)
        except GovernedRefusal:
            continue
    return trace


def conversation(call: str, text: str = "Weather?") -> list[Any]:
    asked = AIMessage("", tool_calls=[{"name": "weather", "args": {"place": "Rome"}, "id": call}])
    return [HumanMessage(text), asked, ToolMessage("Sunny.", tool_call_id=call)]


def test_new_ids_do_not_miss_and_a_changed_letter_does() -> None:  # 39
    trace = Trace()
    GovernedChatModel(FakeChat(), trace=trace).invoke(conversation("call_abc"))
    replay = ReplayChatModel(trace, on_exhausted="flag")
    assert replay.invoke(conversation("toolu_another")).text == "echo: Sunny."
    with pytest.raises(ReplayMissError, match="character 7") as caught:
        replay.invoke(conversation("call_abc", "Weather!"))
    assert isinstance(caught.value, ModelError)
    assert caught.value.is_retryable is False
    assert len(replay.missed()) == 1


def test_a_changed_setting_is_named() -> None:  # 39
    trace = recorded("hi")
    replay = ReplayChatModel(trace, like=FakeChat(max_tokens=51))
    with pytest.raises(ReplayMissError, match="max_output 50 was recorded, 51 is asked"):
        replay.invoke("hi")


def test_paths_of_another_machine_do_not_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here-it-is", tmp_path / "there-it-is"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    trace = recorded(f"Read {Path.cwd()}/notes.txt")
    assert str(tmp_path) not in str(trace.export()["steps"])
    monkeypatch.chdir(there)
    assert ReplayChatModel(trace).invoke(f"Read {Path.cwd()}/notes.txt").text


def test_a_recording_is_used_up_and_says_so() -> None:  # 40
    trace = recorded("a", "a", "b")
    replay = ReplayChatModel(trace)
    replay.invoke("a")
    with pytest.raises(AssertionError, match=r"2 recorded replies.*'a'.*'b'"):
        replay.assert_all_used()
    replay.invoke("a")
    replay.invoke("b")
    replay.assert_all_used()
    with pytest.raises(ReplayExhaustedError) as caught:
        replay.invoke("b")
    assert isinstance(caught.value, ModelError)
    again = ReplayChatModel(trace, on_exhausted="flag")
    assert [again.invoke("b").text for _ in range(3)] == ["echo: b"] * 3
    assert again.stats()["repeats"] == 2


def test_equal_requests_are_answered_in_recorded_order_under_threads() -> None:  # 40
    trace = Trace()
    numbers = iter(range(20))
    model = GovernedChatModel(FakeChat(reply=lambda _: f"reply {next(numbers)}"), trace=trace)
    for _ in range(20):
        model.invoke("again")
    replay = ReplayChatModel(trace)
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(str(replay.invoke("again").text)))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f"reply {number}" for number in range(20))
    assert [ReplayChatModel(trace).invoke("again").text for _ in "ab"] == ["reply 0", "reply 0"]


def test_under_lower_limits_it_refuses_where_the_live_run_did() -> None:  # 41
    trace = recorded("a", "b", "c", max_calls=2)
    replay = ReplayChatModel(trace)
    assert [replay.invoke(text).text for text in "ab"] == ["echo: a", "echo: b"]
    with pytest.raises(GovernedRefusal, match="call cap") as caught:
        replay.invoke("c")
    assert caught.value.reason == "calls"
    tighter = ReplayChatModel(recorded("a", "b"), governor=Governor(max_calls=1))
    tighter.invoke("a")
    with pytest.raises(GovernedRefusal):
        tighter.invoke("b")


def test_messages_are_new_each_time() -> None:  # 42
    replay = ReplayChatModel(recorded("hi"), on_exhausted="flag")
    first, second = replay.invoke("hi"), replay.invoke("hi")
    assert first is not second
    assert first.id != second.id
    assert len(add_messages([first], [second])) == 2  # type: ignore[arg-type]  # as a graph calls it


def test_a_recorded_failure_fails_again(server: ToolServer, chat: Make) -> None:  # 43
    server.queue(status=429)
    trace = Trace()
    with pytest.raises(RateLimitError):
        GovernedChatModel(chat(), trace=trace).invoke("hi")
    with pytest.raises(ModelRateLimitError, match="429"):
        ReplayChatModel(trace).invoke("hi")


def test_it_needs_no_providers_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # 44
    path = tmp_path / "run.json"
    recorded("hi").save(path)
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith(("openai", "langchain_openai")):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert ReplayChatModel(path).invoke("hi").text == "echo: hi"


def test_chunks_are_words_or_the_whole() -> None:
    trace = Trace()
    GovernedChatModel(StreamingChat(reply=lambda _: "one two three"), trace=trace).invoke("hi")
    words = [str(chunk.text) for chunk in ReplayChatModel(trace).stream("hi")]
    assert words[:3] == ["one ", "two ", "three"]
    whole = [str(chunk.text) for chunk in ReplayChatModel(trace, chunks="whole").stream("hi")]
    assert whole[0] == "one two three"


def test_a_chain_is_recorded_whole_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    chain = create_reader_chain(FakeChat(), "map_reduce")
    with record(chain, path) as recording:
        live = recording.invoke({"input": "When?", "context": DOCS})
    replay = create_reader_chain(ReplayChatModel(path), "map_reduce")
    assert replay.invoke({"input": "When?", "context": DOCS}) == live
    with pytest.raises(TraceError), record(chain, path):
        pass


def test_a_recording_of_the_cores_own_client_is_replayed_as_text(server: ToolServer) -> None:
    from harness_core import OpenAIClient, call

    trace = Trace()
    client = OpenAIClient("gpt-4o-mini", "test-key", server.url, api="chat")
    call(client, "hello there", max_output=60, trace=trace)
    assert ReplayChatModel(trace).invoke("hello there").text == "echo: hello there"
