"""Recorded runs replayed through LlamaIndex, the core and LangChain."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from llama_index.core import SimpleDirectoryReader, SummaryIndex, set_global_tokenizer
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import TextNode
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, SecretStr

from harness_core import (
    Governor,
    Message,
    ReplayClient,
    ReplayExhaustedError,
    ReplayMissError,
    Request,
    RequestRefused,
    Trace,
    call,
)
from harness_core.calls.api import run_flow
from harness_core.errors import TraceError
from harness_core.flows.ask import ask
from harness_integrations.llama_index import (
    GovernedLLM,
    LlamaIndexClient,
    ReaderQueryEngine,
    ReaderResponse,
    ReaderSynthesizer,
)
from harness_integrations.llama_index.testing import ReplayLLM, record
from tests.support.llama import (
    HARBOUR,
    SHIP,
    Forwarding,
    Script,
    nodes,
    openai,
    reading_reply,
    user,
)
from tests.support.openai_server import OpenAIServer

TEXTS = (SHIP, HARBOUR)
QUESTION = "How many passengers can the Dunlin carry?"


class _Ship(BaseModel):
    """A ship."""

    name: str
    built: int


def test_it_is_what_llama_index_takes() -> None:  # 1
    names = [kind.__name__ for kind in ReplayLLM.__mro__]
    assert BaseLLM.__name__ in names
    assert FunctionCallingLLM.__name__ in names


def _recorded(server: OpenAIServer, *asks: Callable[[Any], Any], **settings: Any) -> Trace:
    llm = GovernedLLM(openai(server, **settings), governor=Governor())
    for one in asks:
        one(llm)
    return llm.trace


def test_an_engine_replays_with_its_answer_usage_and_citations(tmp_path: Path) -> None:  # 37
    path = tmp_path / "run.jsonl"
    given = [one.node for one in nodes()]
    with OpenAIServer(reading_reply) as server, record(openai(server), path) as llm:
        live = ReaderQueryEngine.from_documents(given, "skim", llm).query(QUESTION)
        usage = [step.tokens for step in llm.trace.requests]
    assert isinstance(live, ReaderResponse)
    for replay in (ReplayLLM(path), ReplayClient(path)):
        again = ReaderQueryEngine.from_documents(given, "skim", replay).query(QUESTION)
        assert isinstance(again, ReaderResponse)
        assert (str(again), again.citations) == (str(live), live.citations)
        assert again.trace is not None
        assert [step.tokens for step in again.trace.requests] == usage


def test_a_llama_index_engine_replays_in_a_process_without_key_or_openai(
    tmp_path: Path,
) -> None:  # 37
    path = tmp_path / "run.jsonl"
    with (
        OpenAIServer(lambda messages: "She carries 61.") as server,
        record(openai(server), path) as llm,
    ):
        index = SummaryIndex([
            TextNode(text=text, metadata={"file_path": "/somewhere/1.txt"}) for text in TEXTS
        ])  # fmt: skip
        assert str(index.as_query_engine(llm=llm).query(QUESTION)) == "She carries 61."
    program = f"""
import sys, socket
def closed(*_): raise OSError("a socket")
socket.socket.connect = closed
sys.path[:0] = {sys.path!r}
from llama_index.core import SummaryIndex
from llama_index.core.schema import TextNode
from harness_integrations.llama_index.testing import ReplayLLM
nodes = [TextNode(text=text, metadata={{"file_path": "/other/place/1.txt"}}) for text in {TEXTS!r}]
llm = ReplayLLM({str(path)!r})
print(SummaryIndex(nodes).as_query_engine(llm=llm).query({QUESTION!r}))
llm.assert_all_used()
assert "openai" not in sys.modules
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.stdout.strip() == "She carries 61.", done.stderr


@pytest.mark.anyio
async def test_a_replay_is_free_of_order(server: OpenAIServer) -> None:  # 38
    words = [f"word{number}" for number in range(8)]
    trace = _recorded(server, *[lambda llm, w=word: llm.chat(user(w)) for word in words])
    replay = ReplayLLM(trace)
    words = words[::2] + words[1::2][::-1]
    found: dict[str, str | None] = {}

    async def ask_for(word: str) -> None:
        found[word] = (await replay.achat(user(word))).message.content

    async with asyncio.TaskGroup() as group:
        for word in words:
            group.create_task(ask_for(word))
    assert found == {word: f"echo: {word}" for word in words}
    replay.assert_all_used()


def test_equal_requests_are_answered_in_their_order(server: OpenAIServer) -> None:  # 38
    for text in ("first", "second"):
        server.queue(text=text)
    trace = _recorded(server, lambda llm: llm.chat(user()), lambda llm: llm.chat(user()))
    replay = ReplayLLM(trace)
    assert [replay.chat(user()).message.content for _ in range(2)] == ["first", "second"]
    with pytest.raises(ReplayExhaustedError):
        replay.chat(user())
    flagged = ReplayLLM(trace, on_exhausted="flag")
    assert [flagged.chat(user()).message.content for _ in range(3)][2] == "second"


@pytest.mark.parametrize("mode", ["refine", "compact", "tree_summarize"])
def test_a_miss_is_loud_and_names_the_nearest(server: OpenAIServer, mode: str) -> None:  # 38
    trace = _recorded(
        server, lambda llm: llm.complete("something else"), lambda llm: llm.chat(user())
    )
    replay = ReplayLLM(trace)
    synthesizer = get_response_synthesizer(llm=replay, response_mode=ResponseMode(mode))
    with pytest.raises(ReplayMissError, match="differs at character"):
        synthesizer.synthesize(QUESTION, nodes())
    assert len(replay.missed()) == 1  # asked once, not again


@pytest.mark.parametrize("recorded", ["chat", "complete", "stream_chat", "stream_complete"])
@pytest.mark.anyio
async def test_one_recorded_request_serves_every_way_of_asking(
    server: OpenAIServer, recorded: str
) -> None:  # 37
    given: Any = user() if "chat" in recorded else "hello there"

    def asked(llm: Any) -> None:
        said = getattr(llm, recorded)(given)
        if "stream" in recorded:
            list(said)

    trace = _recorded(server, asked)
    said = "echo: hello there"
    assert ReplayLLM(trace).chat(user()).message.content == said
    assert ReplayLLM(trace).complete("hello there").text == said
    assert (await ReplayLLM(trace).achat(user())).message.content == said
    assert (await ReplayLLM(trace).acomplete("hello there")).text == said
    chat = list(ReplayLLM(trace).stream_chat(user()))
    assert (len(chat) > 1, "".join(piece.delta or "" for piece in chat)) == (True, said)
    completion = list(ReplayLLM(trace, chunks="whole").stream_complete("hello there"))
    assert [piece.delta for piece in completion] == [said]
    last = [piece async for piece in await ReplayLLM(trace).astream_chat(user())][-1]
    assert last.message.content == said


def test_recorded_usage_reaches_a_token_counter(server: OpenAIServer) -> None:  # 37
    trace = _recorded(server, lambda llm: llm.chat(user()))
    counter = TokenCountingHandler(tokenizer=str.split)
    ReplayLLM(trace, callback_manager=CallbackManager([counter])).chat(user())
    usage = trace.requests[0].tokens
    assert counter.prompt_llm_token_count == usage.input
    assert counter.completion_llm_token_count == usage.output


def _look_up(name: str) -> str:
    """Look a ship up."""
    return f"{name} carries 61 passengers"


async def _agent_says(llm: Any, *, streaming: bool) -> str:
    tool = FunctionTool.from_defaults(fn=_look_up, name="look_up")
    agent = FunctionAgent(tools=[tool], llm=llm, system_prompt="Use tools.", streaming=streaming)
    return str(await agent.run(QUESTION))


@pytest.mark.anyio
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", ["openai", "responses"])
async def test_an_agents_run_replays(
    server: OpenAIServer, streaming: bool, kind: str
) -> None:  # 39
    server.queue_tool_calls(("look_up", {"name": "Dunlin"}))
    server.queue(text="She carries 61 passengers.")
    llm = GovernedLLM(openai(server, kind), governor=Governor())
    live = await _agent_says(llm, streaming=streaming)
    replay = ReplayLLM(llm.trace)
    for again in (streaming, not streaming):
        assert await _agent_says(ReplayLLM(llm.trace), streaming=again) == live
    assert await _agent_says(replay, streaming=streaming) == live == "She carries 61 passengers."
    replay.assert_all_used()
    assert replay.trace.calls == len(server.requests) == 2


@pytest.mark.anyio
async def test_an_agent_that_swallows_a_refusal_is_told_on(server: OpenAIServer) -> None:  # 22
    from harness_core import governed_run

    server.queue_tool_calls(("look_up", {"name": "Dunlin"}))
    llm = GovernedLLM(openai(server))
    trace = Trace(Governor(max_calls=1))

    def costly(name: str) -> str:
        """Ask a model."""
        return str(llm.complete(name))

    tool = FunctionTool.from_defaults(fn=costly, name="look_up")
    with pytest.raises(RequestRefused), governed_run(trace):  # noqa: PT012 - the block is what is tested
        agent = FunctionAgent(tools=[tool], llm=llm, system_prompt="Use tools.", streaming=False)
        await agent.run(QUESTION)
    assert len(server.requests) == 1


def test_streamed_structured_output_replays_filled(server: OpenAIServer) -> None:  # 39
    prompt = PromptTemplate("Name a ship of {year}.")
    server.queue_tool_calls(("_Ship", {"name": "Dunlin", "built": 1961}))
    streamed = _recorded(server, lambda llm: list(
        llm.stream_structured_predict(_Ship, prompt, year=1961)
    ))  # fmt: skip
    last = list(ReplayLLM(streamed).stream_structured_predict(_Ship, prompt, year=1961))[-1]
    assert last == _Ship(name="Dunlin", built=1961)
    server.queue_tool_calls(("_Ship", {"name": "Dunlin", "built": 1961}))
    trace = _recorded(server, lambda llm: llm.structured_predict(_Ship, prompt, year=1961))
    assert ReplayLLM(trace).structured_predict(_Ship, prompt, year=1961) == last
    form = (
        ReplayLLM(trace)
        .as_structured_llm(_Ship)
        .chat([ChatMessage(role="user", content="Name a ship of 1961.")])
    )
    assert json.loads(form.message.content or "") == {"name": "Dunlin", "built": 1961}


def test_tool_call_ids_are_kept(server: OpenAIServer) -> None:  # 39
    tool = FunctionTool.from_defaults(fn=_look_up, name="look_up")
    server.queue_tool_calls(("look_up", {"name": "Dunlin"}))
    trace = _recorded(server, lambda llm: llm.chat_with_tools([tool], user_msg="who?"))
    replay = ReplayLLM(trace)
    [selected] = replay.get_tool_calls_from_response(
        replay.chat_with_tools([tool], user_msg="who?")
    )
    assert (selected.tool_id, selected.tool_name) == ("call_1", "look_up")
    assert selected.tool_kwargs == {"name": "Dunlin"}


def test_a_recording_replays_where_the_files_lie_elsewhere(
    server: OpenAIServer, tmp_path: Path
) -> None:  # 40
    def engine(folder: str, llm: Any) -> Any:
        place = tmp_path / folder / "deep"
        place.mkdir(parents=True)
        (place / "ship.txt").write_text("The Dunlin carries 61 passengers.")
        documents = SimpleDirectoryReader(str(place)).load_data()
        for document in documents:  # times of the file system are no part of the question
            document.metadata = {"file_path": document.metadata["file_path"]}
        return SummaryIndex.from_documents(documents).as_query_engine(llm=llm)

    server.reply = lambda messages: "She carries 61."
    llm = GovernedLLM(openai(server), governor=Governor())
    live = str(engine("here", llm).query(QUESTION))
    assert str(tmp_path) in json.dumps(server.bodies)
    assert str(tmp_path) not in json.dumps(llm.trace.export(), default=str)
    replay = ReplayLLM(llm.trace)
    assert str(engine("there", replay).query(QUESTION)) == live
    windows = re.sub(r"file_path: .*", r"file_path: C:\\Users\\x\\ship.txt",
                     server.bodies[0]["messages"][-1]["content"])  # fmt: skip
    system = server.bodies[0]["messages"][0]["content"]
    said = [ChatMessage(role="system", content=system), ChatMessage(role="user", content=windows)]
    assert ReplayLLM(llm.trace).chat(said).message.content == live


def test_a_miss_says_that_the_window_or_tokenizer_differs(server: OpenAIServer) -> None:  # 40
    trace = _recorded(server, lambda llm: llm.chat(user()))
    like = Script(window=999)
    with pytest.raises(ReplayMissError, match=r"context window of 128000 tokens, here it is 999"):
        ReplayLLM(trace, like=like).chat(user("other"))
    import llama_index.core

    before = llama_index.core.global_tokenizer
    set_global_tokenizer(str.split)
    try:
        with pytest.raises(ReplayMissError, match=r"tokenizer cl100k_base, here it is str.split"):
            ReplayLLM(trace).chat(user("other"))
    finally:
        llama_index.core.global_tokenizer = before
    assert ReplayLLM(trace).metadata.context_window == 128_000


def test_fewer_requests_than_recorded_are_noticed(server: OpenAIServer) -> None:  # 41
    trace = _recorded(server, lambda llm: llm.chat(user("one")), lambda llm: llm.chat(user("two")))
    replay = ReplayLLM(trace)
    replay.chat(user("one"))
    assert replay.unused() == ["two"]
    with pytest.raises(AssertionError, match="two"):
        replay.assert_all_used()
    assert replay.stats()["hits"] == 1


def test_recorded_limits_are_in_force(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with record(openai(server), path, max_calls=1) as llm:
        llm.chat(user())
        with pytest.raises(RequestRefused):
            llm.chat(user("more"))
    replay = ReplayLLM(path)
    replay.chat(user())
    with pytest.raises(RequestRefused):
        replay.chat(user("more"))
    with pytest.raises(TraceError), record(openai(server), path):
        pass


# --- across frameworks --------------------------------------------------------------------------

_SETTINGS: dict[str, Any] = {"temperature": 0.3, "max_tokens": 50}
_SAID: list[Any] = [("system", "Be brief."), ("user", "hello there")]


def _chat_messages() -> list[ChatMessage]:
    return [ChatMessage(role=role, content=text) for role, text in _SAID]


def _core_request() -> Request:
    return Request(
        messages=tuple(Message(role, text) for role, text in _SAID),
        model="gpt-4o-mini", max_output=50, temperature=0.3,
    )  # fmt: skip


def test_a_core_recording_replays_in_llama_index_and_back(server: OpenAIServer) -> None:  # 42
    trace = Trace(Governor())
    client = LlamaIndexClient(openai(server))
    live = run_flow(ask(_core_request()), client, trace)
    assert ReplayLLM(trace, like=openai(server, **_SETTINGS)).chat(
        _chat_messages()
    ).message.content == (live.text)
    assert ReplayLLM(trace).chat(_chat_messages()).message.content == live.text
    recorded = _recorded(server, lambda llm: llm.chat(_chat_messages()), **_SETTINGS)
    assert run_flow(ask(_core_request()), ReplayClient(recorded), Trace()).text == live.text


def _langchain(server: OpenAIServer) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model="gpt-4o-mini",
        api_key=SecretStr("sk-secret"),
        base_url=server.url,
        max_retries=0,
        http_client=httpx.Client(transport=Forwarding()),
        **_SETTINGS,
    )


def test_a_langchain_recording_replays_in_llama_index_and_the_core(
    server: OpenAIServer,
) -> None:  # C3
    from harness_integrations.langchain import GovernedChatModel

    model = GovernedChatModel(_langchain(server), governor=Governor())
    live = str(model.invoke(_SAID).text)
    replay = ReplayLLM(model.trace, like=openai(server, **_SETTINGS))
    assert replay.chat(_chat_messages()).message.content == live
    assert ReplayLLM(model.trace).complete  # its metadata are its model's
    assert run_flow(ask(_core_request()), ReplayClient(model.trace), Trace()).text == live
    assert len(server.requests) == 1


def test_a_llama_index_recording_replays_in_langchain(server: OpenAIServer) -> None:  # C3
    from harness_integrations.langchain.testing import ReplayChatModel

    trace = _recorded(server, lambda llm: llm.chat(_chat_messages()), **_SETTINGS)
    assert (
        str(ReplayChatModel(trace, like=_langchain(server)).invoke(_SAID).text)
        == "echo: hello there"
    )


def test_the_first_setting_that_differs_is_named(server: OpenAIServer) -> None:  # C3
    trace = _recorded(server, lambda llm: llm.chat(_chat_messages()), **_SETTINGS)
    with pytest.raises(ReplayMissError, match=r"temperature 0.3 was recorded, 0.9 is asked"):
        ReplayLLM(trace, like=openai(server, temperature=0.9, max_tokens=50)).chat(_chat_messages())
    with pytest.raises(ReplayMissError, match="max_output 50 was recorded, 60 is asked"):
        ReplayLLM(trace, like=openai(server, temperature=0.3, max_tokens=60)).chat(_chat_messages())
    with pytest.raises(ReplayMissError, match="recorded under model gpt-4o-mini"):
        ReplayLLM(trace, like=openai(server, model="gpt-4o", **_SETTINGS)).chat(_chat_messages())


def test_a_core_call_replays_through_a_llama_index_reader(server: OpenAIServer) -> None:  # 42
    trace = Trace(Governor())
    reply = call(LlamaIndexClient(openai(server)), "hello there", max_output=50, trace=trace)
    assert ReplayLLM(trace).complete("hello there").text == reply.text
    server.reply = reading_reply
    live = ReaderSynthesizer("stuff", openai(server), trace=Trace()).synthesize(QUESTION, nodes())
    assert isinstance(live, ReaderResponse)
    again = ReaderSynthesizer("stuff", ReplayClient(live.trace)).synthesize(QUESTION, nodes())
    assert str(again) == str(live)
