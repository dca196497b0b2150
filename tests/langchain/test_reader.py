"""``DocumentReader``: the same answer through every door of a runnable, within limits."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add as plus
from typing import Annotated, Any
from uuid import uuid4

import pytest
from langchain_classic.chains.retrieval import create_retrieval_chain
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from harness_core import (
    BadSettingError,
    Governor,
    ResponseCache,
    Trace,
    governed_run,
    is_not_found,
    list_readers,
)
from harness_integrations.langchain import (
    DocumentReader,
    GovernedChatModel,
    GovernedRefusal,
    ReaderRetriever,
    create_reader_chain,
)
from tests.support.fake_chat import FakeChat, StreamingChat

DOCS = [
    Document(f"Note {number}: the bridge was built in {1900 + number}.", id=f"note-{number}",
             metadata={"source": f"{number}.txt", "page": number})
    for number in range(1, 5)
]  # fmt: skip
ASKED = {"question": "When was it built?", "context": DOCS}


def says(messages: Sequence[BaseMessage]) -> str:
    return "It was built  in 1901."


def reader(llm: Any = None, name: str = "map_reduce", **settings: Any) -> DocumentReader:
    settings.setdefault("trace", Trace())
    return DocumentReader(llm or StreamingChat(reply=says), name, **settings)


async def collected(stream: Any) -> list[Any]:
    return [piece async for piece in stream]


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["stuff", "map_reduce", "refine", "skim"])
async def test_every_door_gives_the_same_answer(name: str) -> None:  # 20
    one = reader(name=name)
    expected = one.invoke(ASKED)
    assert type(expected) is str  # 27
    assert await one.ainvoke(ASKED) == expected
    assert one.batch([ASKED, ASKED]) == [expected, expected]
    assert await one.abatch([ASKED, ASKED]) == [expected, expected]
    assert "".join(one.stream(ASKED)) == expected
    assert "".join(await collected(one.astream(ASKED))) == expected
    assert "".join(one.transform(iter([ASKED]))) == expected


def many(messages: Sequence[BaseMessage]) -> str:
    return '{"score": 8, "reason": "x", "can_answer": true, "answer": "1901", "next_query": ""}'


@pytest.mark.filterwarnings("ignore::harness_core.HarnessWarning")
@pytest.mark.parametrize("said", [says, many, lambda _: "NOT_IN_DOCUMENT", lambda _: "  a \n"])
@pytest.mark.parametrize("premise", [False, True])
@pytest.mark.parametrize("name", [row["name"] for row in list_readers()])
def test_the_stream_of_every_reader_is_its_answer(  # 20, 28
    name: str, premise: bool, said: Any
) -> None:
    more: dict[str, dict[str, Any]] = {
        "extract": {"fields": {"year": "integer"}},
        "screen": {"include": ("built",)},
    }
    one = reader(StreamingChat(reply=said), name, spec={"premise": premise, **more.get(name, {})})
    assert "".join(one.stream(ASKED)) == one.invoke(ASKED)


@pytest.mark.anyio
async def test_the_pieces_of_a_full_output_add_up_to_it() -> None:  # 28
    one = reader(output="full", name="stuff")
    whole = one.invoke(ASKED)
    for pieces in (list(one.stream(ASKED)), await collected(one.astream(ASKED))):
        total = pieces[0]
        for piece in pieces[1:]:
            total = total + piece
        assert len(pieces) > 3
        assert {**total, "trace_id": 0} == {**whole, "trace_id": 0}


class Runs(BaseCallbackHandler):
    run_inline = True

    def __init__(self) -> None:
        self.chains: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.chains.append(kwargs)

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.models.append(kwargs)


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_config_reaches_every_child_also_in_worker_threads(is_async: bool) -> None:  # 21
    runs, run_id = Runs(), uuid4()
    config: Any = {
        "callbacks": [runs], "run_name": "my-reader", "run_id": run_id, "tags": ["mine"],
        "metadata": {"who": "me"},
    }  # fmt: skip
    one = reader()
    if is_async:
        await one.ainvoke(ASKED, config)
    else:
        one.invoke(ASKED, config)
    assert (runs.chains[0]["name"], runs.chains[0]["run_id"]) == ("my-reader", run_id)
    assert len(runs.models) == 5
    for child in runs.models:
        assert child["parent_run_id"] == run_id
        assert "mine" in child["tags"]
        assert child["metadata"]["who"] == "me"
    # 29: only the answer may stream out of a graph
    assert ["nostream" in child["tags"] for child in runs.models] == [True] * 4 + [False]


@pytest.mark.anyio
async def test_the_width_bounds_requests_over_a_whole_batch() -> None:  # 22
    slow = FakeChat(pause=0.01)
    one = reader(slow, max_concurrency=8)
    one.batch([ASKED] * 4, config={"max_concurrency": 3})
    assert slow.most_at_once <= 3
    quick = FakeChat(pause=0.01)
    two = reader(quick, max_concurrency=2)
    await two.abatch([ASKED] * 4)
    assert quick.most_at_once == 2


@pytest.mark.anyio
async def test_cancelling_sends_nothing_further() -> None:  # 23
    slow = FakeChat(pause=30)
    trace = Trace()
    task = asyncio.create_task(reader(slow, trace=trace, max_concurrency=2).ainvoke(ASKED))
    while len(slow.asked) < 2:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(slow.asked) == 2
    assert trace.ledger.held == 0


def test_closing_a_stream_early_settles_it() -> None:  # 6, 23
    trace = Trace()
    fake = StreamingChat(reply=lambda _: "one two three four five")
    stream: Any = reader(fake, "stuff", trace=trace).stream(ASKED)
    assert next(stream) == "one"
    stream.close()
    assert trace.ledger.held == 0
    assert len(trace.requests) == 1


def test_nothing_is_sent_after_the_first_refusal() -> None:  # 24, 31
    fake = StreamingChat(reply=says, usage=(90, 600))
    trace = Trace(Governor(max_tokens_total=1700))
    found = reader(fake, trace=trace, output="full").invoke(ASKED)
    assert len(fake.asked) == 2
    assert (found["partial"], found["stop_reason"]) == (True, "tokens")
    assert found["reasons"]


@pytest.mark.parametrize("limit", [{"max_calls": 0}, {"max_calls": 2}, {"max_tokens_total": 40}])
def test_a_limit_raises_where_it_is_asked_to(limit: dict[str, Any]) -> None:  # 31
    trace = Trace(Governor(**limit))
    fake = FakeChat()
    with pytest.raises(GovernedRefusal) as caught:
        reader(fake, trace=trace, on_limit="error").invoke(ASKED)
    assert trace.raised == [caught.value]
    assert len(fake.asked) <= 2


def test_a_governor_that_raises_is_heard_by_langchain_too() -> None:  # 31
    trace = Trace(Governor(max_tokens_total=40, on_refusal="raise"))
    with pytest.raises(GovernedRefusal):
        reader(FakeChat(), trace=trace).invoke(ASKED)


@pytest.mark.parametrize("question", ["question", "input", "query"])
@pytest.mark.parametrize("documents", ["context", "documents", "docs", "input_documents"])
def test_the_usual_names_are_found(question: str, documents: str) -> None:  # 25
    assert reader(name="stuff").invoke({question: "When?", documents: DOCS}) == says([])


def test_named_keys_win_and_missing_ones_are_listed() -> None:  # 25
    one = reader(name="stuff", question_key="q", documents_key="found")
    assert one.invoke({"q": "When?", "found": DOCS, "context": 7})
    with pytest.raises(BadSettingError, match=r"'q'.*'question', 'found'"):
        one.invoke({"question": "When?", "found": DOCS})
    with pytest.raises(BadSettingError, match="not int"):
        reader().invoke({"question": "When?", "context": 7})
    with pytest.raises(BadSettingError, match="not list"):
        reader().invoke([1])


def test_a_text_is_one_document_and_messages_are_a_question() -> None:  # 25
    fake = FakeChat()
    asked = [HumanMessage("Old?"), AIMessage("Yes."), HumanMessage("When?")]
    reader(fake).invoke({"question": asked, "context": "One text.\n\nOf two paragraphs."})
    assert len(fake.asked) == 1
    assert "When?" in str(fake.asked[0]["messages"])


@pytest.mark.parametrize("nothing", [[], "", "  ", [Document(" ")]])
def test_without_documents_nothing_is_asked(nothing: Any) -> None:  # 25
    fake = FakeChat()
    one = reader(fake, output="full")
    found = one.invoke({"question": "When?", "context": nothing})
    assert is_not_found(found["answer"])
    assert (found["partial"], found["spend"]["calls"], fake.asked) == (True, 0, [])
    assert one.trace is not None
    assert one.trace.steps == []


def test_ids_and_metadata_come_back_with_the_citations() -> None:  # 25
    found = reader(name="stuff", output="full").invoke(ASKED)
    assert [c["document_id"] for c in found["citations"]] == [
        "note-1",
        "note-2",
        "note-3",
        "note-4",
    ]
    assert found["citations"][0]["source"] == "1.txt"
    assert found["citations"][0]["page"] == 1
    assert found["spend"]["calls"] == 1


def test_a_document_prompt_is_shown_and_the_document_cited() -> None:
    fake = FakeChat()
    prompt = PromptTemplate.from_template("From {source}: {page_content}")
    chain = create_reader_chain(
        fake,
        "stuff",
        document_prompt=prompt,
        instructions="In French.",
        trace=Trace(),
        output="full",
    )
    found = chain.invoke({"input": "When?", "context": DOCS[:1]})
    assert "From 1.txt: Note 1" in str(fake.asked[0]["messages"])
    assert "In French." in str(fake.asked[0]["messages"])
    assert found["citations"][0]["text"] == DOCS[0].page_content


def test_it_stands_in_a_retrieval_chain_and_in_a_pipeline() -> None:  # 26
    retriever = ReaderRetriever(docs=DOCS, k=2)
    chain = create_retrieval_chain(
        retriever, create_reader_chain(FakeChat(reply=says), trace=Trace())
    )
    found = chain.invoke({"input": "When was it built?"})
    assert (found["answer"], len(found["context"])) == (says([]), 2)
    pipeline = {"context": retriever, "question": RunnablePassthrough()} | reader()
    assert pipeline.invoke("When was it built?") == says([])
    assert "".join(pipeline.stream("When was it built?")) == says([])
    text = {
        "context": retriever | (lambda docs: docs[0].page_content),
        "question": RunnablePassthrough(),
    }
    assert (text | reader()).invoke("When was it built?") == says([])


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str
    evidence: dict[str, Any]
    log: Annotated[list[str], plus]


def graph(llm: Any, trace: Trace) -> Any:
    made = StateGraph(State)
    made.add_node("read", reader(llm, trace=trace).as_node(full="evidence"))
    made.add_edge(START, "read")
    made.add_edge("read", END)
    return made.compile()


@pytest.mark.anyio
async def test_a_node_changes_its_part_of_the_state_and_leaks_no_inner_tokens() -> None:  # 26, 29
    given = {"question": "When?", "documents": DOCS, "log": ["kept"]}
    app = graph(StreamingChat(reply=says), Trace())
    state = app.invoke(given)
    assert (state["answer"], state["log"]) == (says([]), ["kept"])
    assert state["evidence"]["partial"] is False
    assert (await app.ainvoke(given))["answer"] == says([])
    said = [str(message.text) for message, _ in app.stream(given, stream_mode="messages")]
    assert "".join(said).strip() == says([])


def test_a_node_reads_dataclasses() -> None:
    @dataclass
    class Plain:
        question: str
        documents: list[Document]

    node = reader().as_node(answer="said")
    assert node.invoke(Plain("When?", DOCS)) == {"said": says([])}


def test_it_describes_itself_offline() -> None:  # 30
    one = reader()
    shape = one.get_input_jsonschema()["$defs"]["ReaderInput"]["properties"]
    assert shape["question"]["type"] == "string"
    assert shape["context"]["anyOf"][0]["type"] == "array"
    assert one.get_output_jsonschema()["type"] == "string"
    assert "partial" in str(reader(output="full").get_output_jsonschema())
    assert one.get_name() == "DocumentReader"
    assert "DocumentReader" in (one | str).get_graph().draw_mermaid()


# --- whose budget -------------------------------------------------------------------------------


def test_a_governed_model_lends_its_trace_and_is_governed_once() -> None:
    fake = FakeChat()
    trace = Trace(Governor(max_calls=9))
    one = DocumentReader(GovernedChatModel(fake, trace=trace), "stuff", output="full")
    assert one.invoke(ASKED)["trace_id"] == trace.run_id
    assert len(trace.requests) == len(fake.asked) == trace.calls == 1


def test_a_second_budget_beside_it_is_an_error_before_anything_is_sent() -> None:
    fake = FakeChat()
    model = GovernedChatModel(fake, trace=Trace())
    with pytest.raises(BadSettingError, match="governed already"):
        DocumentReader(model, trace=Trace())
    with pytest.raises(BadSettingError, match="governed already"):
        DocumentReader(model, governor=Governor())
    assert fake.asked == []


def test_a_mistyped_limit_is_no_limit_and_says_so() -> None:
    with pytest.raises(ValueError, match="governer"):
        DocumentReader(FakeChat(), governer=Governor())


def test_a_model_that_waits_for_a_run_takes_the_readers_budget() -> None:
    trace = Trace()
    one = DocumentReader(GovernedChatModel(FakeChat()), "stuff", trace=trace)
    one.invoke(ASKED)
    assert trace.calls == 1


def test_a_reader_without_a_budget_takes_a_fresh_trace_per_call() -> None:
    one = DocumentReader(FakeChat(), "stuff", output="full")
    ids = {one.invoke(ASKED)["trace_id"] for _ in range(3)}
    assert len(ids) == 3
    with governed_run(governor=Governor(max_calls=1)) as run:
        assert one.invoke(ASKED)["trace_id"] == run.run_id
        assert one.invoke(ASKED)["stop_reason"] == "calls"


def test_a_governor_is_shared_by_all_readers_that_are_given_it() -> None:
    governor = Governor(max_calls=2)
    one, two = (DocumentReader(FakeChat(), "stuff", output="full", governor=governor) for _ in "ab")
    assert one.invoke(ASKED)["trace_id"] == two.invoke(ASKED)["trace_id"]
    assert one.invoke(ASKED)["stop_reason"] == "calls"


def test_a_response_cache_answers_repeats(tmp_path: Any) -> None:
    cache = ResponseCache(tmp_path / "replies.sqlite3")
    fake = FakeChat()
    one = reader(fake, "stuff", response_cache=cache)
    assert one.invoke(ASKED) == one.invoke(ASKED)
    assert len(fake.asked) == 1
    cache.close()


def test_a_governed_models_cache_serves_a_reader_too(tmp_path: Any) -> None:
    cache = ResponseCache(tmp_path / "replies.sqlite3")
    fake = FakeChat()
    model = GovernedChatModel(fake, trace=Trace(), response_cache=cache)
    one = DocumentReader(model, "stuff")
    assert one.invoke(ASKED) == one.invoke(ASKED)
    assert len(fake.asked) == 1
    cache.close()


def test_a_hit_of_langchains_cache_costs_a_reader_nothing() -> None:
    trace = Trace()
    fake = FakeChat(cache=InMemoryCache())
    one = DocumentReader(fake, "stuff", trace=trace)
    assert one.invoke(ASKED) == one.invoke(ASKED)
    assert len(fake.asked) == 1
    assert [step.cached for step in trace.requests] == [False, True]
    assert trace.cost()[0]["paid_calls"] == 1
    assert trace.ledger.spent == trace.requests[0].budget_pico


def test_callbacks_given_to_a_governed_model_are_called_for_a_reader() -> None:
    runs = Runs()
    model = GovernedChatModel(FakeChat(), trace=Trace(), callbacks=[runs])
    DocumentReader(model, "stuff").invoke(ASKED)
    assert len(runs.models) == 1


@pytest.mark.anyio
async def test_two_traces_in_two_tasks_do_not_mix() -> None:
    one = DocumentReader(FakeChat(), "stuff", output="full")

    async def ask() -> tuple[str, str]:
        with governed_run(governor=Governor()) as run:
            return (await one.ainvoke(ASKED))["trace_id"], run.run_id

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask()) for _ in range(4)]
    assert all(found == run for found, run in (task.result() for task in tasks))
    assert len({task.result()[1] for task in tasks}) == 4
