"""Collections in LangChain."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumps
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
)

from harness_core.collections.contract import AnswerResult
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.filters import compile_filter
from harness_core.errors import BadSettingError
from harness_integrations.engine.client import EngineClient
from harness_integrations.engine.faults import MissingTextError
from harness_integrations.langchain.collection_filters import CollectionTranslator
from harness_integrations.langchain.collection_messages import answer_message, asked
from harness_integrations.langchain.collections import AnswerCollection, CollectionRetriever
from tests.support.engine import World, cite
from tests.support.foreign import EXAMPLE, Foreign

QUESTION = "What about the harbour?"
ANN: Any = {"configurable": {"principals": ["user:ann"]}}
BOB: Any = {"configurable": {"principals": ["user:bob"]}}
PNG = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}


@pytest.fixture
def client(served: World) -> Iterator[EngineClient]:
    with EngineClient(
        served.url, served.keys["K"], capabilities=["answer", "search", "read_spans"]
    ) as made:
        yield made


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
        [HumanMessage(["Both?", PNG, PNG])],
        [HumanMessage(["Earlier?", PNG]), HumanMessage("y")],
        [HumanMessage([{"type": "audio", "base64": "aGk=", "mime_type": "audio/wav"}])],
        [AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "1"}]), HumanMessage("y")],
        5,
        {"question": "x"},
    ):
        with pytest.raises(BadSettingError):
            asking.invoke(bad)  # type: ignore[arg-type]  # that is the point
    assert len(served.model.requests) == 2


def test_a_conversation_with_other_models_is_a_history() -> None:
    earlier: Any = answer_message(AnswerResult(request_id="r", answer="In May.", effort="medium"))
    thought = AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "No."}])
    told = asked(
        [HumanMessage("When?"), earlier, thought, AIMessageChunk(content="Yes."), _human(PNG)]
    )
    assert told == {
        "query": "Where is it?",
        "history": [
            {"role": "user", "content": "When?"},
            {"role": "assistant", "content": "In May."},
            {"role": "assistant", "content": "No."},
            {"role": "assistant", "content": "Yes."},
        ],
        "query_image": {"data": "aGk=", "media_type": "image/png"},
    }
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert asked([_human(url)])["query_image"] == told["query_image"]


def _human(image: dict[str, Any]) -> HumanMessage:
    return HumanMessage([{"type": "text", "text": "Where is it?"}, image])


def test_who_asks_is_not_for_the_input_to_say(served: World) -> None:
    secure = served.collection("secure")
    asking = AnswerCollection(secure, principals=["user:bob"])
    paths = {one.path for one in asking.invoke("canary").sources}
    assert paths == {"/b.txt", "/c.txt"}
    assert _paths(asking.invoke("canary", ANN)) == {"/a.txt", "/c.txt"}
    assert _paths(asking.bind(principals=["user:ann"]).invoke("canary")) == {"/a.txt", "/c.txt"}
    given = {"query": "canary", "principals": ["user:ann"]}
    with pytest.raises(BadSettingError, match="principals"):
        asking.invoke(given)
    trusting = AnswerCollection(secure, allow_input_principals=True)
    assert {one.path for one in trusting.invoke(given).sources} == {"/a.txt", "/c.txt"}
    with pytest.raises(InvalidRequestError):
        AnswerCollection(secure).invoke("canary")


def _paths(result: AnswerResult) -> set[str]:
    return {one.path for one in result.sources}


def test_a_call_sets_what_it_may_and_nothing_else(served: World, client: EngineClient) -> None:
    for docs in (served.collection("docs"), client.collection("acme", "docs")):
        asking = AnswerCollection(docs)
        now: Any = {"configurable": {"effort": "high", "filter": {"file.path": "/plan.md"}}}
        result = asking.invoke("harbour", now)
        assert (result.effort, _paths(result)) == ("high", {"/plan.md"})
        assert asking.invoke("harbour", effort="high").effort == "high"
        assert asking.invoke({"query": "harbour", "effort": "high"}).effort == "high"
        field = asking.configurable_fields(instructions=ConfigurableField(id="style"))
        field.with_config(configurable={"style": "In verse."}).invoke("harbour")
        assert "In verse." in served.model.sent
        with pytest.raises(BadSettingError, match="top_k"):
            asking.invoke("harbour", top_k=3)
        with pytest.raises(BadSettingError, match="top_k"):
            CollectionRetriever(docs).invoke("harbour", top_k=3)
        assert (asking.effort, asking.filter) == (None, None)


def test_a_retriever_is_told_per_call_who_asks(served: World, client: EngineClient) -> None:
    for secure in (served.collection("secure"), client.collection("acme", "secure")):
        finding = CollectionRetriever(secure, principals=["user:ann"])
        chain = finding | (lambda found: {one.metadata["path"] for one in found})
        assert chain.invoke("canary") == {"/a.txt", "/c.txt"}
        assert chain.invoke("canary", BOB) == {"/b.txt", "/c.txt"}
        assert len(finding.invoke("canary", k=1)) == 1
        for k in (0, 101):
            with pytest.raises(BadSettingError, match="1 to 100"):
                finding.invoke("canary", k=k)


# --- an agent's tool --------------------------------------------------------------------------


def _call(**args: Any) -> Any:
    return {"name": "ask_collection", "args": args, "id": "1", "type": "tool_call"}


def test_a_model_fills_in_the_question_of_the_tool_and_nothing_else(served: World) -> None:
    served.model.write = lambda request: cite(request, 0)
    tool = AnswerCollection(served.collection("secure")).as_tool()
    assert list(tool.args) == ["question"]
    told = tool.invoke(_call(question="canary", principals=["user:ann"]), BOB)
    assert isinstance(told, ToolMessage)
    assert _paths(told.artifact) == {"/b.txt", "/c.txt"}
    (first, *_) = told.artifact.sources
    assert told.content == f"Fact 0 [[SRC:0001]].\n[[SRC:0001]] {first.path}"
    with pytest.raises(InvalidRequestError):
        tool.invoke(_call(question="canary", principals=["user:ann"]))
    with pytest.raises(BadSettingError):
        AnswerCollection(served.collection("secure")).as_tool(arg_types={"principals": list})


def test_a_tool_says_that_an_answer_is_partial(served: World) -> None:
    served.model.write = lambda request: f"It did [chunk 17]. {cite(request, 1)}"
    told = AnswerCollection(served.collection("docs")).as_tool().invoke(_call(question="harbour"))
    assert "cited_unknown" in told.content


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_agent_awaits_the_tool(served: World, client: EngineClient) -> None:
    secure = client.collection("acme", "secure")
    tool = AnswerCollection(secure, principals=["user:bob"]).as_tool(name="rules", description="R")
    told = await tool.ainvoke(_call(question="canary"))
    assert _paths(told.artifact) == {"/b.txt", "/c.txt"}
    assert (tool.name, tool.description) == ("rules", "R")
    assert served.keys["K"] not in repr(tool) + dumps(tool)  # AC94


# --- messages ---------------------------------------------------------------------------------


def test_a_message_carries_citations_of_its_own_text(served: World) -> None:
    served.model.write = lambda request: cite(request, 1, 0)
    message = AnswerCollection(served.collection("docs")).as_message().invoke(QUESTION)
    block: Any = message.content[0]
    assert block["text"] == "Fact 1. Fact 0."
    said = [block["text"][one["start_index"] : one["end_index"]] for one in block["annotations"]]
    assert said == ["Fact 1", "Fact 0"]
    assert [one["extras"]["ref"] for one in block["annotations"]] == ["SRC:0001", "SRC:0002"]
    assert message.response_metadata["credits"] == 1
    assert message.content_blocks[0]["type"] == "text"
    bare = AnswerCollection(served.collection("docs"), sources="none").invoke(QUESTION)
    assert answer_message(bare).text == bare.answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("All of it is old. It was dug in 1931 [[SRC:0001]].", ["It was dug in 1931"]),
        ("In May [[SRC:0001]], at noon [[SRC:0001]].", ["In May", "at noon"]),
        ("In May [[SRC:0001]][[SRC:0001]].", ["In May", "In May"]),
        ("In May. [[SRC:0001]] [[SRC:0001]]", ["In May.", "In May."]),
        ("[[SRC:0001]] In May [[SRC:0002]].", [""]),
    ],
)
def test_a_citation_marks_the_sentence_before_it(answer: str, said: list[str]) -> None:
    matches = [{"span": EXAMPLE["sources"][0]["span"], "text": "word for word"}]
    source = {**EXAMPLE["sources"][0], "matches": matches}
    result = AnswerResult.model_validate({**EXAMPLE, "answer": answer, "sources": [source]})
    block: Any = answer_message(result).content[0]
    marks = block["annotations"]
    assert [block["text"][one["start_index"] : one["end_index"]] for one in marks] == said
    assert {one["cited_text"] for one in marks} == {"word for word"}
    assert {one["title"] for one in marks} == {"/reports/incident.txt"}


def test_an_answer_in_a_prompt_is_its_text(served: World) -> None:
    asking = AnswerCollection(served.collection("docs"))
    chain = {"found": asking} | ChatPromptTemplate.from_template("Shorten: {found}")
    assert chain.invoke(QUESTION).to_string() == "Human: Shorten: Fact 0 [[SRC:0001]]."
    assert (asking.as_message() | StrOutputParser()).invoke(QUESTION) == "Fact 0."


class Named(BaseCallbackHandler):
    """The names of the runs that were opened."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])

    def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_runs_have_names_and_batches_a_run_each(served: World) -> None:  # AC88
    docs, named = served.collection("docs"), Named()
    config: Any = {"callbacks": [named], "run_name": "policies"}
    asking = AnswerCollection(docs)
    assert len(await asking.abatch([QUESTION] * 2, config)) == 2
    assert [one.answer async for one in asking.astream(QUESTION, config)]
    CollectionRetriever(docs).invoke(QUESTION, {"callbacks": [named]})
    AnswerCollection(docs, name="rules").invoke(QUESTION, {"callbacks": [named]})
    assert named.names == ["policies"] * 3 + ["CollectionRetriever", "rules"]
    kinds = [type(one) for one in asking.batch([QUESTION, " "], return_exceptions=True)]
    assert kinds == [AnswerResult, InvalidRequestError]


# --- texts ------------------------------------------------------------------------------------


def _read(*parts: dict[str, Any]) -> dict[str, Any]:
    span = EXAMPLE["sources"][0]["span"]
    return {"request_id": "r", "parts": [{"span": span, **one} for one in parts]}


@pytest.mark.parametrize(
    ("part", "retryable"),
    [({"error": "not_found"}, True), ({"error": "too_large"}, False), ({"text": ""}, False)],
)
def test_a_text_that_does_not_come_is_an_error(part: Any, retryable: bool) -> None:  # AC89
    given = ((200, EXAMPLE), (200, _read(part))) * 2
    with Foreign(*given) as server:
        client = EngineClient(server.url, "k", capabilities=["answer", "read_spans"])
        docs = client.collection("acme", "docs")
        with pytest.raises(MissingTextError, match="allow_empty_text") as caught:
            CollectionRetriever(docs).invoke(QUESTION)
        (found,) = CollectionRetriever(docs, allow_empty_text=True).invoke(QUESTION)
    assert caught.value.retryable is retryable
    assert caught.value.details["reasons"] == [part.get("error", "no text")]
    assert found.page_content == ""


def test_a_search_without_texts_is_an_error(served: World) -> None:  # AC89
    hit = {k: EXAMPLE["sources"][0][k] for k in ("span", "path", "content_type", "score")}
    with Foreign((200, {"request_id": "r", "results": [hit]})) as server:
        client = EngineClient(server.url, "k", capabilities=["search"])
        with pytest.raises(MissingTextError):
            CollectionRetriever(client.collection("acme", "docs")).invoke(QUESTION)


def test_spans_of_a_unit_that_is_not_known_are_not_asked_for() -> None:  # AC95
    source = {**EXAMPLE["sources"][0], "span": {"file_id": "f", "unit": "slides"}}
    with Foreign((200, {**EXAMPLE, "sources": [source]})) as server:
        client = EngineClient(server.url, "k", capabilities=["answer", "read_spans"])
        docs = client.collection("acme", "docs")
        (found,) = CollectionRetriever(docs, allow_empty_text=True).invoke(QUESTION)
    assert (found.id, found.page_content) == ("f:slides", "")


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LangChain's callbacks know no other
async def test_the_retriever_awaits(served: World, client: EngineClient) -> None:
    for collection in (served.collection("docs"), client.collection("acme", "docs")):
        assert await CollectionRetriever(collection).ainvoke("harbour bridge")


NEW_YEAR = "2026-01-01T00:00:00Z"


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
            _is(Comparator.GT, {"datetime": NEW_YEAR, "type": "datetime"}, "file.created_at"),
            {"field": "created_at", "op": "gt", "value": NEW_YEAR},
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
        _is(Comparator.GT, {"date": "2026-01-01", "type": "date"}, "file.created_at"),
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
