"""LangChain's and LlamaIndex's objects, recorded and replayed as the objects they are."""

import asyncio
import socket
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore, TextNode

from harness_core import (
    BadSettingError,
    Governor,
    MockClient,
    ReplayMissError,
    RequestRefused,
    Trace,
    call,
)
from harness_integrations.langchain import DocumentReader, GovernedChatModel
from harness_integrations.llama_index import GovernedLLM, ReaderSynthesizer
from harness_integrations.pytest_plugin.modes import Mode
from harness_integrations.pytest_plugin.places import Place
from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.support.fake_chat import FakeChat, StreamingChat
from tests.support.llama import openai
from tests.support.openai_server import OpenAIServer

Record = Callable[..., HarnessRecording]


class Fake(DeterministicFakeEmbedding):
    """Embeddings with the name of a model that costs nothing."""

    model: str = "mock-embed"


def mock() -> MockEmbedding:
    """The same of LlamaIndex."""
    return MockEmbedding(embed_dim=4, model_name="mock-embed")


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """The recording of one test, as the fixture makes it."""

    def opened(mode: Mode = "once", **more: Any) -> HarnessRecording:
        place = Place(path=tmp_path / "recordings" / "a.jsonl", test="test_a.py::test_a")
        return HarnessRecording(place=place, mode=mode, **more)

    return opened


def closed(recording: HarnessRecording) -> None:
    recording.finish(passed=True, strict=True)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("a replay made the real object")


@pytest.fixture
def module() -> Iterator[Any]:
    """Somebody's module, to patch names in."""
    made: Any = types.ModuleType("somebodys_models")
    sys.modules["somebodys_models"] = made
    yield made
    del sys.modules["somebodys_models"]


def test_a_chat_model_replays_calls_streams_and_batches_without_the_real_one(
    record: Record,
) -> None:
    def asked(model: BaseChatModel) -> list[Any]:
        return [
            model.invoke("one").content,
            [chunk.content for chunk in model.stream("two three four five")][-1:],
            "".join(str(chunk.content) for chunk in model.stream("two three four")),
            [one.content for one in model.batch(["six", "seven"])],
            asyncio.run(model.ainvoke("eight")).content,
        ]

    first = record()
    live = asked(first.chat_model(lambda: StreamingChat(temperature=0)))
    closed(first)
    again = record("none")
    model = again.chat_model(never)
    assert asked(model)[2:] == live[2:]
    assert len(list(again.recording.trace.requests)) == 6
    assert again.trace.spent_usd == 0
    again.recording.used.update(step.step for step in again.recording.trace.requests)
    closed(again)


def test_two_models_of_one_test_share_its_recording(record: Record) -> None:
    def asked(make: Callable[[], BaseChatModel], recording: HarnessRecording) -> list[Any]:
        first, second = recording.chat_model(make), recording.chat_model(make)
        return [first.invoke("roll").content, second.invoke("roll").content]

    rolls = iter(["3", "5"])

    def reply(_: Sequence[BaseMessage]) -> str:
        return next(rolls)

    first = record()
    assert asked(lambda: FakeChat(reply=reply), first) == ["3", "5"]
    closed(first)
    again = record("none")
    assert asked(never, again) == ["3", "5"]
    closed(again)


def test_a_failure_of_the_provider_replays_as_one(record: Record) -> None:
    class SlowDown(Exception):
        status_code = 429

    first = record()
    with pytest.raises(SlowDown):
        first.chat_model(FakeChat(fails=SlowDown("slow down"))).invoke("hello")
    closed(first)
    again = record("none")
    with pytest.raises(ModelRateLimitError):
        again.chat_model().invoke("hello")
    closed(again)


def test_a_governed_model_keeps_its_limits(record: Record) -> None:
    def model() -> GovernedChatModel:
        return GovernedChatModel(FakeChat(), governor=Governor(max_calls=1))

    for mode in ("once", "none"):
        recording = record(mode)
        wrapped = recording.chat_model(model())
        wrapped.invoke("one")
        with pytest.raises(RequestRefused):
            wrapped.invoke("two")
        closed(recording)


def test_limits_of_the_recording_are_in_force_without_the_real_model(record: Record) -> None:
    first = record()
    first.limits(max_calls=1)
    first.chat_model(FakeChat()).invoke("one")
    closed(first)
    again = record("none")
    model = again.chat_model()
    model.invoke("one")
    with pytest.raises(RequestRefused):
        model.invoke("two")


def test_a_reader_on_a_recorded_model_is_recorded(record: Record) -> None:
    asked = {"question": "When?", "context": ["Built in 1962.", "Sold in 1987."]}
    for mode, make in (("once", FakeChat), ("none", never)):
        recording = record(mode)
        reader = DocumentReader(recording.chat_model(make), "map_reduce")
        assert reader.invoke(asked)
        closed(recording)


def test_the_models_of_a_runnable_are_replaced_wherever_they_stand(record: Record) -> None:
    chain = ChatPromptTemplate.from_template("{a}") | FakeChat().with_retry()
    first = record()
    said = first.runnable(chain).invoke({"a": "hello"}).content
    closed(first)
    again = record("none")
    other = ChatPromptTemplate.from_template("{a}") | FakeChat(reply=never).with_retry()
    assert again.runnable(lambda: other).invoke({"a": "hello"}).content == said
    closed(again)


def test_langchain_embeddings_replay_their_vectors(record: Record) -> None:
    def vectors(embeddings: Embeddings) -> list[Any]:
        return [embeddings.embed_query("one"), embeddings.embed_documents(["one", "two"])]

    first = record()
    live = vectors(first.embeddings(lambda: Fake(size=8)))
    closed(first)
    again = record("none")
    assert vectors(again.embeddings(never)) == live
    closed(again)
    third = record("none")
    with pytest.raises(ReplayMissError, match=r"no vectors for these 1 text.*'three'"):
        third.embeddings(never).embed_query("three")


def test_an_embedder_nobody_recorded_cannot_be_guessed(record: Record) -> None:
    with pytest.raises(BadSettingError, match="which framework's embeddings"):
        record("none").embeddings(never)


def test_llama_index_settings_are_replaced_and_restored(
    record: Record, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr(Settings, "_embed_model", None)

    def asked(recording: HarnessRecording, llm: Any, embed_model: Any) -> list[str]:
        recording.settings(llm=llm, embed_model=embed_model)
        index = VectorStoreIndex.from_documents([Document(text="Built in 1962.", id_="a")])
        response: Any = index.as_query_engine(streaming=True).query("When?")
        return list(response.response_gen)

    first = record()
    live = asked(first, lambda: openai(server), mock)
    assert isinstance(Settings._llm, GovernedLLM)
    closed(first)
    assert Settings._llm is None
    monkeypatch.setattr(socket.socket, "connect", never)
    again = record("none")
    assert "".join(asked(again, None, None)) == "".join(live)
    closed(again)


def test_the_llms_of_an_engine_are_replaced_and_put_back(
    record: Record, server: OpenAIServer
) -> None:
    embedding = mock()
    index = VectorStoreIndex.from_documents(
        [Document(text="Built in 1962.", id_="a")], embed_model=embedding
    )
    llm = openai(server)
    engine = index.as_query_engine(llm=llm)
    first = record()
    assert first.engine(engine) is engine
    live = str(engine.query("When?"))
    closed(first)
    before = len(server.requests)
    again = record("none")
    again.engine(engine)
    assert str(engine.query("When?")) == live
    assert len(server.requests) == before
    closed(again)
    engine.query("When?")
    assert len(server.requests) == before + 1


def test_an_engine_can_be_built_from_recorded_parts(record: Record, server: OpenAIServer) -> None:
    def build(llm: LLM, embed_model: BaseEmbedding) -> Any:
        documents = [Document(text="Built in 1962.", id_="a")]
        index = VectorStoreIndex.from_documents(documents, embed_model=embed_model)
        return index.as_query_engine(llm=llm)

    first = record()
    engine = first.engine(
        build,
        llm=lambda: openai(server),
        embed_model=mock(),
    )
    live = str(engine.query("When?"))
    closed(first)
    again = record("none")
    assert str(again.engine(build, llm=never, embed_model=never).query("When?")) == live
    closed(again)


@pytest.mark.parametrize("kind", ["object", "function"])
def test_a_name_is_patched_for_the_test_alone(record: Record, module: Any, kind: str) -> None:
    def make(temperature: float = 0.0) -> BaseChatModel:
        return FakeChat(temperature=temperature)

    module.model = FakeChat() if kind == "object" else make
    original = module.model

    def asked() -> Any:
        model = module.model if kind == "object" else module.model(temperature=0.5)
        return model.invoke("hello").content

    first = record()
    first.patch("somebodys_models.model")
    live = asked()
    closed(first)
    assert module.model is original
    if kind == "function":
        module.model = never
    again = record("none")
    again.patch("somebodys_models.model")
    assert asked() == live
    closed(again)


def test_what_is_patched_may_be_in_a_class_and_of_any_kind(record: Record, module: Any) -> None:
    class Home:
        client = MockClient()

    module.Home = Home
    for mode in ("once", "none"):
        recording = record(mode)
        recording.patch("somebodys_models.Home.client")
        assert call(Home.client, "hello").ok
        closed(recording)
    assert len(Home.client.calls()) == 1


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nobodys_models.model", "names nothing that can be imported"),
        ("somebodys_models.missing", "there is no 'missing'"),
        ("somebodys_models.number", "int sends no requests"),
    ],
)
def test_a_target_that_cannot_be_patched_is_named(
    record: Record, module: Any, target: str, said: str
) -> None:
    module.number = 3
    with pytest.raises(BadSettingError, match=said):
        record().patch(target)


@pytest.mark.parametrize("kind", ["client", "chat_model", "llm", "runnable"])
def test_recording_needs_the_real_object(record: Record, kind: str) -> None:
    with pytest.raises(BadSettingError, match=r"is needed to record .*a\.jsonl"):
        getattr(record(), kind)(None)
    with pytest.raises(BadSettingError, match="not int"):
        getattr(record(), kind)(lambda: 3)


def test_requests_in_another_trace_are_recorded_too(record: Record) -> None:
    for mode in ("once", "none"):
        recording = record(mode)
        client = recording.client(lambda: MockClient(lambda m: m[0]["content"]))
        own = Trace(Governor(max_calls=2))
        texts = [call(client, text, trace=own).text for text in ("one", "two", "three")]
        assert texts == ["one", "two", ""]
        assert call(client, "four").text == "four"
        assert call(client, "five", trace=recording.trace).text == "five"
        closed(recording)


def test_a_test_that_uses_vcrpy_as_well_is_recorded(
    record: Record, server: OpenAIServer, tmp_path: Path
) -> None:
    import vcr  # type: ignore[import-untyped]  # ships no types

    said = []
    for mode, played in (("once", "once"), ("none", "none")):
        recording = record(mode)
        with vcr.use_cassette(str(tmp_path / "cassette.yaml"), record_mode=played):
            said.append(recording.llm(lambda: openai(server)).complete("hello").text)
        closed(recording)
    assert said[0] == said[1]
    assert len(server.requests) == 1


def test_the_order_in_which_equal_batches_ask_does_not_matter(record: Record) -> None:
    first = record()
    model = first.chat_model(FakeChat())
    live = model.batch(["one", "two", "three"])
    closed(first)
    again = record("none")
    replayed = again.chat_model().batch(["three", "two", "one"])
    assert [one.content for one in replayed] == [one.content for one in reversed(live)]
    closed(again)


def test_new_tells_of_a_model_once(record: Record, server: OpenAIServer) -> None:
    for text in ("one", "two"):
        recording = record("new")
        llm = recording.llm(lambda: openai(server))
        assert [llm.complete("one").text, llm.complete(text).text] == ["echo: one", f"echo: {text}"]
        recording.finish(passed=True, strict=False)
    labels = [step.label for step in record("none").recording.trace.steps]
    assert labels == ["llama_index.llm", "complete", "complete", "complete"]


def test_new_takes_what_is_recorded_and_sends_the_rest(record: Record) -> None:
    first = record()
    first.chat_model(FakeChat()).invoke("one")
    closed(first)
    fake = StreamingChat()
    more = record("new")
    model = more.chat_model(fake)
    assert model.invoke("one").content == "echo: one"
    assert "".join(str(chunk.content) for chunk in model.stream("two")).strip() == "echo: two"
    closed(more)
    assert len(fake.asked) == 1
    again = record("none")
    model = again.chat_model()
    assert [model.invoke(text).content for text in ("one", "two")] == [
        "echo: one", "echo: two ",
    ]  # fmt: skip
    closed(again)


def ship(name: str) -> str:
    """Look a ship up."""
    return name


def harbour(name: str) -> str:
    """Look a harbour up."""
    return name


@pytest.fixture
def chat(server: OpenAIServer) -> Iterator[Callable[..., Any]]:
    """Makes a ``ChatOpenAI`` that asks the loopback server, and closes its connection."""
    from langchain_openai import ChatOpenAI

    with httpx.Client() as http:

        def make(**settings: Any) -> Any:
            known: dict[str, Any] = {
                "model": "gpt-4o-mini", "base_url": server.url, "api_key": "unused",
                "http_client": http,
            }  # fmt: skip
            return ChatOpenAI(**{**known, **settings})

        yield make


def test_tool_calls_replay_and_other_tools_or_another_model_are_named(
    record: Record, server: OpenAIServer, chat: Callable[..., Any]
) -> None:
    server.queue_tool_calls(("ship", {"name": "Dunlin"}))
    first = record()
    real = first.chat_model(chat)
    live = real.bind_tools([ship]).invoke("Look the Dunlin up").tool_calls
    closed(first)
    again = record("none")
    (called,) = again.chat_model().bind_tools([ship]).invoke("Look the Dunlin up").tool_calls
    assert (called["name"], called["args"]) == (live[0]["name"], live[0]["args"])
    closed(again)
    with pytest.raises(
        ReplayMissError, match=r"tools: \['ship'\] was recorded, \['ship', 'harbour'\]"
    ):
        record("none").chat_model().bind_tools([ship, harbour]).invoke("Look the Dunlin up")
    other = chat(model="gpt-4o")
    with pytest.raises(ReplayMissError, match="model: 'gpt-4o-mini' was recorded, 'gpt-4o' is"):
        record("none").chat_model(other).bind_tools([ship]).invoke("Look the Dunlin up")


def test_requests_that_overtake_each_other_get_their_own_answers(record: Record) -> None:
    async def asked(model: BaseChatModel, slow: str) -> dict[str, Any]:
        said = {}

        async def one(text: str) -> None:
            if text == slow:
                await asyncio.sleep(0)
            said[text] = (await model.ainvoke(text)).content

        async with asyncio.TaskGroup() as group:
            for text in ("one", "two"):
                group.create_task(one(text))
        return said

    first = record()
    live = asyncio.run(asked(first.chat_model(FakeChat()), "one"))
    closed(first)
    again = record("none")
    assert asyncio.run(asked(again.chat_model(), "two")) == live
    closed(again)


def test_headers_are_in_no_recording_and_may_change(
    record: Record, server: OpenAIServer, chat: Callable[..., Any]
) -> None:
    key = "acme-key-0123456789abcdef"  # of no provider's shape
    first = record()
    first.chat_model(lambda: chat(default_headers={"X-Acme-Key": key})).invoke("hello")
    closed(first)
    assert key in server.requests[0].headers.values()
    assert key not in first.place.path.read_text()
    again = record("none")
    again.chat_model(chat(default_headers={"X-Stainless-New": "1"})).invoke("hello")
    closed(again)
    assert len(server.requests) == 1


def test_a_reader_of_llama_index_is_under_the_recorded_limits(
    record: Record, server: OpenAIServer
) -> None:
    nodes = [NodeWithScore(node=TextNode(text="The Dunlin was built in 1962."))]
    for mode, make in (("once", lambda: openai(server, max_tokens=50)), ("none", never)):
        recording = record(mode)
        if mode == "once":
            recording.limits(max_calls=1)
        synthesizer = ReaderSynthesizer("stuff", recording.llm(make))
        first: Any = synthesizer.synthesize("When?", nodes)
        second: Any = synthesizer.synthesize("When exactly?", nodes)
        assert (first.partial, second.partial) == (False, True)
        assert first.trace is recording.trace
        assert recording.trace.calls == 1
        closed(recording)
