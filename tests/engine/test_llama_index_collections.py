"""Collections in LlamaIndex."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from llama_index.core.base.base_selector import BaseSelector, MultiSelection, SingleSelection
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index_instrumentation import get_dispatcher

from harness_core.collections.faults import CollectionEmptyError, InvalidRequestError
from harness_core.collections.filters import compile_filter
from harness_core.errors import BadSettingError
from harness_integrations.engine.client import EngineClient
from harness_integrations.engine.faults import MissingTextError
from harness_integrations.llama_index.collection_chat import CollectionChatEngine
from harness_integrations.llama_index.collections import (
    CollectionQueryEngine,
    CollectionRetriever,
    collection_filter,
)
from tests.support.engine import DOCS, World, cite
from tests.support.foreign import EXAMPLE, Foreign

QUESTION = "What about the harbour?"


@pytest.fixture
def client(served: World) -> Iterator[EngineClient]:
    with EngineClient(served.url, served.keys["K"], capabilities=["answer", "read_spans"]) as made:
        yield made


@pytest.mark.anyio
async def test_the_retriever_gives_nodes_best_first(served: World) -> None:
    retriever = CollectionRetriever(served.collection("docs"), similarity_top_k=2)
    nodes = retriever.retrieve("harbour bridge")
    assert await retriever.aretrieve("harbour bridge") == nodes
    assert len(nodes) == 2
    assert nodes[0].score is not None
    assert nodes[0].get_content() in DOCS.values()


def test_without_texts_nothing_is_given_in_silence(served: World) -> None:
    with EngineClient(served.url, served.keys["K"]) as foreign:
        collection = foreign.collection("acme", "docs")
        with pytest.raises(BadSettingError, match="allow_empty_text"):
            CollectionQueryEngine(collection).query(QUESTION)
        assert CollectionQueryEngine(collection, sources="none").query(QUESTION).source_nodes == []
        bare = CollectionQueryEngine(collection, allow_empty_text=True).query(QUESTION)
    assert len(bare.source_nodes) == len(DOCS)
    assert served.model.requests


def test_a_fault_is_raised_as_it_is(served: World, client: EngineClient) -> None:
    for one in (served.collection("void"), client.collection("acme", "void")):
        with pytest.raises(CollectionEmptyError):
            CollectionQueryEngine(one).query(QUESTION)


def _filters(*filters: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=condition)


TEAM = MetadataFilter(key="team", value="db")
IS_TEAM = {"field": "metadata.team", "op": "eq", "value": "db"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (_filters(TEAM), IS_TEAM),
        (_filters(TEAM, TEAM), {"and": [IS_TEAM, IS_TEAM]}),
        (_filters(TEAM, TEAM, condition=FilterCondition.OR), {"or": [IS_TEAM, IS_TEAM]}),
        (_filters(TEAM, condition=FilterCondition.NOT), {"not": IS_TEAM}),
        (
            _filters(TEAM, TEAM, condition=FilterCondition.NOT),
            {"not": {"and": [IS_TEAM, IS_TEAM]}},
        ),
        (_filters(_filters(TEAM, TEAM), TEAM), {"and": [{"and": [IS_TEAM, IS_TEAM]}, IS_TEAM]}),
        (
            MetadataFilter(key="level", operator=FilterOperator.GTE, value=3),
            {"field": "metadata.level", "op": "gte", "value": 3},
        ),
        (
            MetadataFilter(key="team", operator=FilterOperator.NIN, value=["a"]),
            {"not": {"field": "metadata.team", "op": "in", "value": ["a"]}},
        ),
        (
            MetadataFilter(key="team", operator=FilterOperator.IS_EMPTY, value=None),
            {"field": "metadata.team", "op": "eq", "value": None},
        ),
        (
            MetadataFilter(key="file.path", operator=FilterOperator.IN, value=["/a"]),
            {"field": "path", "op": "in", "value": ["/a"]},
        ),
        (
            {"field": "path", "op": "eq", "value": "/a"},
            {"field": "path", "op": "eq", "value": "/a"},
        ),
    ],
)
def test_metadata_filters_become_filters(given: Any, wanted: Any) -> None:
    assert collection_filter(given) == wanted
    compile_filter(wanted, {"team": "text", "level": "number"})


@pytest.mark.parametrize(
    "operator", ["any", "all", "contains", "text_match", "text_match_insensitive"]
)
def test_what_cannot_be_said_is_refused(operator: str) -> None:
    one = MetadataFilter(key="team", operator=FilterOperator(operator), value=["x"])
    with pytest.raises(BadSettingError, match=operator):
        collection_filter(_filters(TEAM, one))
    with pytest.raises(BadSettingError):
        collection_filter(_filters())


def test_an_engine_filters(served: World) -> None:
    only = MetadataFilters(filters=[MetadataFilter(key="file.path", value="/plan.md")])
    response = CollectionQueryEngine(served.collection("docs"), filters=only).query("harbour")
    assert [one.metadata["path"] for one in response.source_nodes] == ["/plan.md"]


def test_a_text_that_does_not_come_is_an_error() -> None:  # AC89
    span = EXAMPLE["sources"][0]["span"]
    read = (200, {"request_id": "r", "parts": [{"span": span, "error": "not_found"}]})
    with Foreign((200, EXAMPLE), read, (200, EXAMPLE), read) as server:
        client = EngineClient(server.url, "k", capabilities=["answer", "read_spans"])
        docs = client.collection("acme", "docs")
        with pytest.raises(MissingTextError):
            CollectionQueryEngine(docs).query(QUESTION)
        bare = CollectionQueryEngine(docs, allow_empty_text=True).query(QUESTION)
    assert [one.node.get_content() for one in bare.source_nodes] == [""]


def test_an_image_is_not_dropped_in_silence(served: World) -> None:
    bundle = QueryBundle("What is this?", image_path="bridge.png")
    for ask in (
        CollectionQueryEngine(served.collection("docs")).query,
        CollectionRetriever(served.collection("docs")).retrieve,
    ):
        with pytest.raises(BadSettingError, match="query_image"):
            ask(bundle)
    with pytest.raises(BadSettingError, match="1 to 100"):
        CollectionRetriever(served.collection("docs"), similarity_top_k=0).retrieve("harbour")


# --- inside LlamaIndex ------------------------------------------------------------------------


class Heard(BaseEventHandler):
    """The names of the events that were fired."""

    names: list[str] = []  # noqa: RUF012 - pydantic copies it

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.names.append(event.class_name())


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler, dispatcher = Heard(), get_dispatcher()
    dispatcher.add_event_handler(handler)
    yield handler
    dispatcher.event_handlers.remove(handler)


def test_engine_and_retriever_fire_the_events_of_their_kind(served: World, heard: Heard) -> None:
    docs, legacy = served.collection("docs"), LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([legacy])
    CollectionQueryEngine(docs, callback_manager=manager).query(QUESTION)
    CollectionRetriever(docs, callback_manager=manager).retrieve(QUESTION)
    assert heard.names == [
        "QueryStartEvent", "QueryEndEvent", "RetrievalStartEvent", "RetrievalEndEvent"
    ]  # fmt: skip
    assert len(legacy.get_event_pairs(CBEventType.QUERY)) == 1
    with pytest.raises(CollectionEmptyError):
        CollectionQueryEngine(served.collection("void"), callback_manager=manager).query(QUESTION)


class First(BaseSelector):
    """Chooses the first tool."""

    def _select(self, choices: Any, query: QueryBundle) -> Any:
        return MultiSelection(selections=[SingleSelection(index=0, reason="it is there")])

    async def _aselect(self, choices: Any, query: QueryBundle) -> Any:
        return self._select(choices, query)

    def _get_prompts(self) -> Any:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        """It has none."""


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LlamaIndex knows no other
async def test_a_router_sends_questions_to_a_collection(
    served: World, client: EngineClient
) -> None:
    engine = CollectionQueryEngine(client.collection("acme", "docs"))
    tool = QueryEngineTool.from_defaults(engine, name="docs", description="All of the docs")
    router = RouterQueryEngine(selector=First(), query_engine_tools=[tool], llm=MockLLM())
    for response in (
        await anyio.to_thread.run_sync(router.query, QUESTION),
        await router.aquery(QUESTION),
    ):
        assert response.source_nodes[0].metadata["ref"] == "SRC:0001"


# --- a conversation ---------------------------------------------------------------------------


@pytest.fixture(params=["library", "http"])
def chat(request: pytest.FixtureRequest, served: World, client: EngineClient) -> Any:
    """A conversation with the collection, in this process and over HTTP."""
    here = request.param == "library"
    docs = served.collection("docs") if here else client.collection("acme", "docs")
    served.model.write = lambda r: cite(r, 0) if r.task and r.task.excerpts else "harbour"
    memory = ChatMemoryBuffer.from_defaults(token_limit=100_000)
    return CollectionChatEngine(CollectionQueryEngine(docs), memory)


def test_a_conversation_is_kept_on_the_callers_memory(served: World, chat: Any) -> None:
    first = chat.chat("What about the harbour?")
    assert (str(first), first.metadata["effort"]) == ("Fact 0 [[SRC:0001]].", "medium")
    assert first.source_nodes[0].node.get_content() in DOCS.values()
    assert served.model.requests[-1].label == "stuff.answer"
    assert "Fact 0" not in served.model.sent
    chat.chat("And the bridge?")
    assert "user: What about the harbour?" in served.model.sent
    assert "assistant: Fact 0." in served.model.sent
    assert [one.content for one in chat.chat_history] == [
        "What about the harbour?", "Fact 0 [[SRC:0001]].", "And the bridge?", "Fact 0 [[SRC:0001]]."
    ]  # fmt: skip
    chat.reset()
    assert chat.chat_history == []


def test_the_newest_texts_are_sent_and_nothing_else() -> None:
    said = [ChatMessage(role=MessageRole.USER, content=f"Turn {number}.") for number in range(40)]
    other = [
        ChatMessage(role=MessageRole.SYSTEM, content="Obey."),
        ChatMessage(role=MessageRole.ASSISTANT, content=None),
        ChatMessage(role=MessageRole.TOOL, content="42"),
    ]
    memory = ChatMemoryBuffer.from_defaults(token_limit=100_000)
    with Foreign((200, EXAMPLE)) as server:
        docs = EngineClient(server.url, "k").collection("acme", "docs")
        engine = CollectionQueryEngine(docs, allow_empty_text=True)
        CollectionChatEngine(engine, memory).chat(QUESTION, said + other)
        (asked,) = server.asked
    history = json.loads(asked)["history"]
    assert history == [{"role": "user", "content": f"Turn {number}."} for number in range(8, 40)]


def test_a_question_that_fails_is_not_remembered(chat: Any) -> None:
    with pytest.raises(InvalidRequestError):
        chat.chat(" ")
    assert chat.chat_history == []


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_answer_streams_as_one_piece(chat: Any) -> None:
    assert list(chat.stream_chat(QUESTION).response_gen) == ["Fact 0 [[SRC:0001]]."]
    stream = await chat.astream_chat(QUESTION)
    assert [piece async for piece in stream.async_response_gen()] == ["Fact 0 [[SRC:0001]]."]
    assert (await chat.achat(QUESTION)).response == "Fact 0 [[SRC:0001]]."
    assert len(stream.source_nodes) == len(DOCS)
    assert len(chat.chat_history) == 6
