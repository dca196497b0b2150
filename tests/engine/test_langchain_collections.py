"""Collections in LangChain."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
)

from harness_core.collections.faults import CollectionEmptyError, InvalidRequestError
from harness_core.collections.filters import compile_filter
from harness_core.errors import BadSettingError
from harness_integrations.engine.client import EngineClient
from harness_integrations.langchain.collections import (
    AnswerCollection,
    CollectionRetriever,
    CollectionTranslator,
    answer_message,
)
from tests.support.engine import DOCS, World, cite

QUESTION = "What about the harbour?"


class Runs(BaseCallbackHandler):
    """The runs that were opened and how they ended."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("start")

    def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("end")

    def on_chain_error(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("error")


@pytest.fixture
def client(served: World) -> Iterator[EngineClient]:
    with EngineClient(served.url, served.keys["K"], capabilities=["answer", "read_spans"]) as made:
        yield made


def test_embedded_and_served_answer_alike(served: World, client: EngineClient) -> None:  # AC87
    served.model.write = lambda request: cite(request, 1, 0)
    here = AnswerCollection(served.collection("docs")).invoke(QUESTION)
    there = AnswerCollection(client.collection("acme", "docs")).invoke(QUESTION)
    assert (here.answer, here.sources) == (there.answer, there.sources)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LangChain's callbacks know no other
async def test_each_way_of_calling_opens_one_run(served: World) -> None:  # AC88
    asking, runs = AnswerCollection(served.collection("docs")), Runs()
    config: Any = {"callbacks": [runs]}
    answer = asking.invoke(QUESTION, config)
    assert (await asking.ainvoke(QUESTION, config)).answer == answer.answer
    assert [one.answer for one in asking.batch([QUESTION], config)] == [answer.answer]
    assert [one.answer for one in asking.stream(QUESTION, config)] == [answer.answer]
    assert runs.seen == ["start", "end"] * 4


def test_a_fault_ends_the_run_as_an_error(served: World) -> None:  # AC88
    runs = Runs()
    with pytest.raises(CollectionEmptyError) as caught:
        AnswerCollection(served.collection("void")).invoke(QUESTION, {"callbacks": [runs]})
    assert caught.value.retryable is False
    assert runs.seen == ["start", "error"]


def test_messages_become_question_history_and_style(served: World) -> None:
    asking = AnswerCollection(served.collection("docs"))
    served.model.write = lambda r: cite(r, 0) if r.task and r.task.excerpts else "harbour"
    prompt = ChatPromptTemplate.from_messages(
        [("system", "In verse."), ("human", "Earlier?"), ("ai", "Yes."), ("human", "{question}")]
    )
    (prompt | asking).invoke({"question": QUESTION})
    assert "In verse." in served.model.sent
    assert "Earlier?" in served.model.sent
    for bad in (
        [AIMessage("x")],
        [SystemMessage("x")],
        [ToolMessage("x", tool_call_id="1"), HumanMessage("y")],
        [HumanMessage([{"type": "image", "url": "https://x/y.png"}])],
        5,
        {"question": "x"},
    ):
        with pytest.raises(BadSettingError):
            asking.invoke(bad)


def test_who_asks_is_not_for_the_input_to_say(served: World) -> None:
    secure = served.collection("secure")
    asking = AnswerCollection(secure, principals=["user:bob"])
    paths = {one.path for one in asking.invoke("canary").sources}
    assert paths == {"/b.txt", "/c.txt"}
    mine: Any = {"configurable": {"principals": ["user:ann"]}}
    assert {one.path for one in asking.invoke("canary", mine).sources} == {"/a.txt", "/c.txt"}
    given = {"query": "canary", "principals": ["user:ann"]}
    with pytest.raises(BadSettingError, match="principals"):
        asking.invoke(given)
    trusting = AnswerCollection(secure, allow_input_principals=True)
    assert {one.path for one in trusting.invoke(given).sources} == {"/a.txt", "/c.txt"}
    with pytest.raises(InvalidRequestError):
        AnswerCollection(secure).invoke("canary")


def test_a_message_carries_citations_of_its_own_text(served: World) -> None:
    served.model.write = lambda request: cite(request, 1, 0)
    message = AnswerCollection(served.collection("docs")).as_message().invoke(QUESTION)
    block: Any = message.content[0]
    assert block["text"] == "Fact 1. Fact 0."
    said = [block["text"][one["start_index"] : one["end_index"]] for one in block["annotations"]]
    assert [one.strip(" .") for one in said] == ["Fact 1", "Fact 0"]
    assert [one["extras"]["ref"] for one in block["annotations"]] == ["SRC:0001", "SRC:0002"]
    assert message.response_metadata["credits"] == 1
    assert message.content_blocks[0]["type"] == "text"
    bare = AnswerCollection(served.collection("docs"), sources="none").invoke(QUESTION)
    assert answer_message(bare).text == bare.answer


def test_the_retriever_gives_places_with_their_text(served: World, client: EngineClient) -> None:
    # AC89
    here = CollectionRetriever(served.collection("docs"), k=2).invoke("harbour bridge")
    assert len(here) == 2
    assert here[0].page_content in DOCS[here[0].metadata["path"]]
    there = CollectionRetriever(client.collection("acme", "docs")).invoke("harbour bridge")
    assert {one.page_content for one in there} == set(DOCS.values())
    assert {"ref", "path", "span", "score", "cited"} <= set(there[0].metadata)
    span = there[0].metadata["span"]
    assert there[0].id == f"{span['file_id']}:chars:{span['start']}-{span['end']}"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LangChain's callbacks know no other
async def test_the_retriever_awaits(served: World, client: EngineClient) -> None:
    for collection in (served.collection("docs"), client.collection("acme", "docs")):
        assert await CollectionRetriever(collection).ainvoke("harbour bridge")


def test_without_texts_nothing_is_given_in_silence(served: World) -> None:  # AC89
    with EngineClient(served.url, served.keys["K"]) as foreign:
        collection = foreign.collection("acme", "docs")
        with pytest.raises(BadSettingError, match="allow_empty_text"):
            CollectionRetriever(collection).invoke("harbour")
        found = CollectionRetriever(collection, allow_empty_text=True).invoke("harbour")
    assert found
    assert all(one.page_content == "" for one in found)


def test_nothing_written_of_an_adapter_holds_the_key(served: World) -> None:  # AC94
    client = EngineClient(served.url, "heliotrope")
    for one in (
        AnswerCollection(client.collection("acme", "docs"), principals=["user:heliotrope"]),
        CollectionRetriever(client.collection("acme", "docs")),
    ):
        assert "heliotrope" not in repr(one) + dumps(one)
    packed = pickle.dumps(AnswerCollection(client.collection("acme", "docs")))
    assert b"heliotrope" not in packed


def _is(comparator: Comparator, value: Any, attribute: str = "team") -> Comparison:
    return Comparison(comparator=comparator, attribute=attribute, value=value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (_is(Comparator.EQ, "db"), {"field": "metadata.team", "op": "eq", "value": "db"}),
        (_is(Comparator.NE, "db"), {"field": "metadata.team", "op": "neq", "value": "db"}),
        (_is(Comparator.GTE, "db"), {"field": "metadata.team", "op": "gte", "value": "db"}),
        (_is(Comparator.IN, ["a"]), {"field": "metadata.team", "op": "in", "value": ["a"]}),
        (
            _is(Comparator.NIN, ["a"]),
            {"not": {"field": "metadata.team", "op": "in", "value": ["a"]}},
        ),
        (_is(Comparator.LIKE, "d%"), {"field": "metadata.team", "op": "prefix", "value": "d"}),
        (
            _is(Comparator.EQ, "/a", "file.path"),
            {"field": "path", "op": "eq", "value": "/a"},
        ),
        (
            Operation(operator=Operator.NOT, arguments=[_is(Comparator.EQ, "db")]),
            {"not": {"field": "metadata.team", "op": "eq", "value": "db"}},
        ),
        (
            Operation(
                operator=Operator.OR,
                arguments=[_is(Comparator.LT, "a"), _is(Comparator.GT, "b")],
            ),
            {
                "or": [
                    {"field": "metadata.team", "op": "lt", "value": "a"},
                    {"field": "metadata.team", "op": "gt", "value": "b"},
                ]
            },
        ),
    ],
)
def test_structured_queries_become_filters(given: Any, wanted: Any) -> None:
    assert given.accept(CollectionTranslator()) == wanted
    compile_filter(wanted, {"team": "text"})
    query = StructuredQuery(query="x", filter=given, limit=None)
    assert CollectionTranslator().visit_structured_query(query) == ("x", {"filter": wanted})


@pytest.mark.parametrize(
    "given",
    [
        _is(Comparator.CONTAIN, "d"), _is(Comparator.LIKE, "%d"), _is(Comparator.LIKE, "d_%"),
        _is(Comparator.LIKE, "d"), _is(Comparator.EQ, 1, "file.size"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused(given: Any) -> None:
    with pytest.raises(BadSettingError):
        given.accept(CollectionTranslator())


def test_an_adapter_filters_by_a_structured_query(served: World) -> None:
    plan = _is(Comparator.LIKE, "/plan%", "file.path")
    docs = served.collection("docs")
    assert [
        one.metadata["path"] for one in CollectionRetriever(docs, filter=plan).invoke("harbour")
    ] == ["/plan.md"]
    assert [one.path for one in AnswerCollection(docs, filter=plan).invoke("harbour").sources] == [
        "/plan.md"
    ]
    with pytest.raises(BadSettingError):
        AnswerCollection("docs")
