"""Readers as response synthesizers and query engines."""

import asyncio
import copy
import json
import pickle
import threading
import time
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, SummaryIndex, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import ImageNode, IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from pydantic import BaseModel

from harness_core import (
    BaseClient,
    ExtractiveClient,
    Governor,
    Reply,
    Request,
    RequestRefused,
    Trace,
    governed_run,
)
from harness_core.errors import BadSettingError
from harness_integrations.llama_index import (
    GovernedLLM,
    OutputInvalidError,
    ReaderQueryEngine,
    ReaderResponse,
    ReaderSynthesizer,
    TraceSpanHandler,
    instrument,
)
from tests.support.llama import ANSWER, HARBOUR, SHIP, Script, nodes, openai, reading_reply
from tests.support.openai_server import OpenAIServer

QUESTION = "How many passengers can the Dunlin carry?"


@pytest.fixture
def script() -> Script:
    return Script(prompts=[], reply=lambda prompt: ANSWER)


class _Slow(BaseClient):
    """A client that takes its time without blocking, and answers with the question's last word."""

    model = "Script"

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
        time.sleep(self.seconds)
        return self._said(request, on_text)

    async def asend(self, request: Request, /, *, on_text: Any = None) -> Reply:
        await asyncio.sleep(self.seconds)
        return self._said(request, on_text)

    def _said(self, request: Request, on_text: Any) -> Reply:
        text = request.messages[-1].content.split()[-1]
        if on_text is not None:
            for piece in (text[:2], text[2:]):
                on_text(piece)
        return Reply(ok=True, text=text, finish_reason="stop")


class _Questions(BaseQuestionGenerator):
    def _get_prompts(self) -> Any:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        pass

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question=QUESTION, tool_name=tool.name) for tool in tools]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


def _embedded() -> VectorStoreIndex:
    return VectorStoreIndex([one.node for one in nodes()], embed_model=MockEmbedding(embed_dim=4))


def _tool(engine: BaseQueryEngine, name: str = "ships") -> QueryEngineTool:
    return QueryEngineTool(engine, ToolMetadata(name=name, description=f"about {name}"))


def test_they_are_what_llama_index_takes() -> None:  # 1
    assert BaseSynthesizer.__name__ in [kind.__name__ for kind in ReaderSynthesizer.__mro__]
    assert BaseQueryEngine.__name__ in [kind.__name__ for kind in ReaderQueryEngine.__mro__]


def test_a_string_and_a_bundle_give_the_same(script: Script) -> None:  # 2
    engine = ReaderQueryEngine.from_documents([one.node for one in nodes()], "stuff", script)
    assert str(engine.query(QUESTION)) == str(engine.query(QueryBundle(QUESTION))) == ANSWER


@pytest.mark.anyio
async def test_aquery_awaits(script: Script) -> None:  # 2
    engine = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "stuff", _Slow(0.05)
    )  # fmt: skip
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    assert str(await engine.aquery(QUESTION)) == "carry?"
    assert str(await engine.aquery(QueryBundle(QUESTION))) == "carry?"
    ticking.cancel()
    assert ticks > 5


class _Heard(BaseEventHandler):
    names: list[str] = []  # noqa: RUF012 - a field, copied for each

    @classmethod
    def class_name(cls) -> str:
        return "Heard"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.names.append(type(event).__name__)


@pytest.mark.anyio
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_events_of_both_systems_fire_once(script: Script, asynchronous: bool) -> None:  # 3
    heard, debug = _Heard(names=[]), LlamaDebugHandler(print_trace_on_end=False)
    get_dispatcher().add_event_handler(heard)
    engine = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "stuff", script, callback_manager=CallbackManager([debug])
    )
    response = await engine.aquery(QUESTION) if asynchronous else engine.query(QUESTION)
    kept = [n for n in heard.names if n.startswith(("Query", "Synthesize", "Reading"))]
    assert [n for n in kept if not n.startswith("ReadingStep")] == [
        "QueryStartEvent", "SynthesizeStartEvent", "ReadingStartEvent", "ReadingEndEvent",
        "SynthesizeEndEvent", "QueryEndEvent",
    ]  # fmt: skip
    assert "ReadingStepEvent" in kept
    for kind in (CBEventType.QUERY, CBEventType.SYNTHESIZE):
        [(start, end)] = debug.get_event_pairs(kind)
        assert (start.payload or {})[EventPayload.QUERY_STR] == QUESTION
        assert (end.payload or {})[EventPayload.RESPONSE] is response


def test_spans_are_nested(server: OpenAIServer) -> None:  # 4
    engine = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "stuff", openai(server), spec={"parallel": False}
    )
    with instrument(Trace()):
        handler = next(h for h in get_dispatcher().span_handlers if isinstance(h, TraceSpanHandler))
        engine.query(QUESTION)
    by_id = {span.id_: span for span in handler.spans}
    chat = next(span for span in handler.spans if span.name == "OpenAI.chat")
    above: list[str] = []
    while chat.parent_id in by_id:
        chat = by_id[chat.parent_id]
        above.append(chat.name)
    assert above[-1] == "ReaderQueryEngine.query"
    assert "ReaderQueryEngine._query" in above


def test_it_works_in_every_engine(script: Script) -> None:  # 5
    synthesizer = ReaderSynthesizer.from_defaults("stuff", script)
    index = _embedded()
    retriever = index.as_retriever()
    engines = [
        index.as_query_engine(response_synthesizer=synthesizer, llm=script),
        SummaryIndex([one.node for one in nodes()]).as_query_engine(
            response_synthesizer=synthesizer, llm=script
        ),
        RetrieverQueryEngine(retriever, response_synthesizer=synthesizer),
        CitationQueryEngine(retriever, llm=script, response_synthesizer=synthesizer),
        SubQuestionQueryEngine(
            _Questions(), synthesizer, [_tool(RetrieverQueryEngine(retriever, synthesizer))],
            use_async=False, verbose=False,
        ),
    ]  # fmt: skip
    for engine in engines:
        response = engine.query(QUESTION)
        assert isinstance(response, ReaderResponse), type(engine).__name__
        assert str(response) == ANSWER
        assert response.source_nodes


def _choosing(prompt: str) -> str:
    if "choices are given" not in prompt:
        return ANSWER
    chosen = [{"choice": 1, "reason": "x"}, {"choice": 2, "reason": "y"}]
    return json.dumps(chosen if "top choices" in prompt else chosen[:1])


def test_it_works_in_a_router_that_asks_one_engine_or_several() -> None:  # 5, 9, 13
    llm = Script(prompts=[], reply=_choosing)
    synthesizer = ReaderSynthesizer.from_defaults("stuff", llm)
    tools = [
        _tool(RetrieverQueryEngine(_embedded().as_retriever(), synthesizer), name)
        for name in ("ships", "harbours")
    ]
    one = RouterQueryEngine(LLMSingleSelector.from_defaults(llm=llm), tools, llm=llm).query(
        QUESTION
    )
    assert one.metadata is not None
    assert "selector_result" in one.metadata
    assert one.metadata["harness"]["reader"] == "stuff"
    summarizer: Any = synthesizer
    several = RouterQueryEngine(
        LLMMultiSelector.from_defaults(llm=llm), tools, llm=llm, summarizer=summarizer
    ).query(QUESTION)
    assert str(several) == ANSWER


def test_metadata_is_safe_as_a_nodes_text() -> None:  # 9
    llm = Script(prompts=[])
    inner = ReaderQueryEngine.from_documents([one.node for one in nodes()], "stuff", llm)
    index = VectorStoreIndex(
        objects=[IndexNode(text="ships", obj=inner, index_id="ships")],
        embed_model=MockEmbedding(embed_dim=4),
    )
    outer = RetrieverQueryEngine(index.as_retriever(), ReaderSynthesizer("stuff", llm))
    assert str(outer.query(QUESTION)) == ANSWER
    assert len(llm.prompts[-1]) < 3000


def test_settings_are_never_asked_when_an_llm_is_given(script: Script) -> None:  # 6
    Settings._llm = None
    engine = ReaderQueryEngine.from_documents([one.node for one in nodes()], "stuff", script)
    assert str(engine.query(QUESTION)) == ANSWER
    core = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "stuff", ExtractiveClient()
    )
    assert "61" in str(core.query(QUESTION))
    assert Settings._llm is None


def test_the_default_llm_is_used_when_none_is_given(script: Script) -> None:
    Settings.llm = script
    assert str(ReaderSynthesizer("stuff").synthesize(QUESTION, nodes())) == ANSWER


@pytest.mark.parametrize("streaming", [False, True])
def test_no_nodes_is_no_request(script: Script, streaming: bool) -> None:  # 7
    synthesizer = ReaderSynthesizer("stuff", script, empty_response="nothing", streaming=streaming)
    assert str(synthesizer.synthesize(QUESTION, [])) == "nothing"
    assert script.prompts == []


def test_source_nodes_are_the_nodes_given(script: Script) -> None:  # 8
    given, more = nodes(), [NodeWithScore(node=TextNode(id_="more", text="x"))]
    before = [one.model_dump_json() for one in given]
    response = ReaderSynthesizer("stuff", script).synthesize(QUESTION, given, more)
    assert all(a is b for a, b in zip(response.source_nodes, [*given, *more], strict=True))
    assert [one.model_dump_json() for one in given] == before
    assert response.metadata is not None
    assert set(response.metadata) == {"n1", "n2", "more", "harness"}
    assert json.loads(json.dumps(response.metadata["harness"]))["calls"] == 1


def test_prompts_can_be_read_and_changed(script: Script) -> None:  # 10
    engine = ReaderQueryEngine.from_documents([one.node for one in nodes()], "stuff", script)
    assert list(engine.get_prompts()) == ["response_synthesizer:instructions"]
    engine.update_prompts({
        "response_synthesizer:instructions": PromptTemplate("Answer in Dutch, {query_str}"),
        "response_synthesizer:unknown": PromptTemplate("x"),
    })  # fmt: skip
    engine.query(QUESTION)
    assert f"Answer in Dutch, {QUESTION}" in script.prompts[-1]
    assert (
        engine.get_prompts()["response_synthesizer:instructions"]
        .get_template()
        .startswith("Answer in")
    )
    with pytest.raises(ValueError, match="not found"):
        engine.update_prompts({"elsewhere:x": PromptTemplate("x")})


def test_a_response_is_text_can_be_compared_copied_and_pickled(script: Script) -> None:  # 11
    response = ReaderSynthesizer("stuff", script).synthesize(QUESTION, nodes())
    assert isinstance(response, ReaderResponse)
    assert str(response) == ANSWER
    assert "n1" in response.get_formatted_sources()
    for twin in (
        copy.copy(response),
        copy.deepcopy(response),
        pickle.loads(pickle.dumps(response)),  # noqa: S301 - our own
    ):
        assert twin == response
        assert twin.answer is not None
        assert twin.answer.answer == ANSWER
    assert copy.copy(response).trace is response.trace
    assert response.chunks_used == [1, 2]
    assert not response.partial


class _Form(BaseModel):
    passengers: int


@pytest.mark.anyio
async def test_an_output_class_is_filled_and_checked(server: OpenAIServer) -> None:  # 12
    synthesizer = ReaderSynthesizer("stuff", openai(server), output_cls=_Form)
    for _ in range(2):
        server.queue(text=ANSWER)
        server.queue(text='{"passengers": 61}')
    for response in (
        synthesizer.synthesize(QUESTION, nodes()),
        await synthesizer.asynthesize(QUESTION, nodes()),
    ):
        assert isinstance(response, PydanticResponse)
        assert response.response == _Form(passengers=61)
        assert response.metadata is not None
        assert response.metadata["harness"]["found"]
    server.queue(text=ANSWER)
    server.queue(text='{"passengers": "many"}')
    with pytest.raises(OutputInvalidError, match="_Form"):
        synthesizer.synthesize(QUESTION, nodes())
    assert not issubclass(OutputInvalidError, ValueError)


def test_get_response_takes_plain_texts(script: Script) -> None:  # 13
    assert ReaderSynthesizer("stuff", script).get_response(QUESTION, [SHIP, HARBOUR]) == ANSWER


@pytest.mark.anyio
async def test_concurrent_questions_do_not_mix() -> None:  # 14
    engine = ReaderQueryEngine.from_documents([one.node for one in nodes()], "stuff", _Slow(0.01))
    found: dict[str, Any] = {}

    async def ask(word: str) -> None:
        found[word] = await engine.aquery(f"What of {word}")

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(ask(f"ship{number}"))
    for word, response in found.items():
        assert str(response) == word
        assert response.answer.question == f"What of {word}"
    assert len({response.metadata["harness"]["run_id"] for response in found.values()}) == 10


@pytest.mark.anyio
async def test_a_sync_query_works_inside_a_running_loop(script: Script) -> None:  # 15
    engine = ReaderQueryEngine.from_documents([one.node for one in nodes()], "map_reduce", script)
    assert str(engine.query(QUESTION)) == ANSWER


def test_it_works_in_a_thread_without_a_loop(script: Script) -> None:  # 15
    said: list[str] = []

    def work() -> None:
        engine = ReaderQueryEngine.from_documents([one.node for one in nodes()], "stuff", script)
        said.append(str(engine.query(QUESTION)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == [ANSWER]


# --- streaming ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["stuff", "map_reduce", "skim"])
def test_a_streamed_answer_is_the_whole_answer(reader: str) -> None:  # 16, 17
    with OpenAIServer(reading_reply) as server:
        llm = openai(server)
        whole = ReaderSynthesizer(reader, llm).synthesize(QUESTION, nodes())
        streamed = ReaderSynthesizer(reader, llm, streaming=True).synthesize(QUESTION, nodes())
        assert isinstance(streamed, StreamingResponse)
        pieces = list(streamed.response_gen)
        assert len(pieces) > 1
        assert "".join(pieces) == str(whole) == str(streamed)
        assert str(streamed) == str(whole)  # and again
        assert isinstance(whole, ReaderResponse)
        assert streamed.metadata is not None
        assert whole.metadata is not None
        mine, theirs = streamed.metadata["harness"], whole.metadata["harness"]
        assert {**mine, "run_id": 0} == {**theirs, "run_id": 0}
        assert streamed.citations == whole.citations  # type: ignore[attr-defined]  # it is ours


@pytest.mark.anyio
async def test_an_async_stream_is_the_whole_answer(server: OpenAIServer) -> None:  # 16, 17
    server.reply = reading_reply
    engine = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "stuff", openai(server), streaming=True
    )
    response = await engine.aquery(QUESTION)
    assert isinstance(response, AsyncStreamingResponse)
    pieces = [piece async for piece in response.async_response_gen()]
    assert len(pieces) > 1
    assert "".join(pieces) == ANSWER
    assert response.metadata is not None
    assert response.metadata["harness"]["calls"] == 1


def test_a_stream_without_an_answer_says_so_at_once(server: OpenAIServer) -> None:
    server.reply = lambda messages: "NOT_IN_DOCUMENT"
    response = ReaderSynthesizer("stuff", openai(server), streaming=True).synthesize(
        QUESTION, nodes()
    )
    assert list(response.response_gen) == ["Not found in the document."]  # type: ignore[union-attr,arg-type]  # it streams


def test_closing_a_stream_gives_up_its_request(server: OpenAIServer) -> None:  # 17
    server.reply = lambda messages: "word " * 400
    llm = GovernedLLM(openai(server), governor=Governor())
    response = ReaderSynthesizer("stuff", llm, streaming=True).synthesize(QUESTION, nodes())
    stream: Any = response.response_gen  # type: ignore[union-attr]  # it streams
    next(stream)
    stream.close()
    step = llm.trace.requests[0]
    assert llm.trace.ledger.held == 0
    assert step.ok
    assert step.tokens.provenance in ("estimated", "reported")  # the last piece may have been there


@pytest.mark.anyio
async def test_closing_an_async_stream_gives_up_its_request() -> None:  # 17
    class Endless(_Slow):
        async def asend(self, request: Request, /, *, on_text: Any = None) -> Reply:
            while True:
                on_text("word ")
                await asyncio.sleep(0.001)

    trace = Trace(Governor())
    synthesizer = ReaderSynthesizer("stuff", Endless(), streaming=True, trace=trace)
    response = await synthesizer.asynthesize(QUESTION, nodes())
    stream: Any = response.response_gen  # type: ignore[union-attr]  # it streams
    await anext(stream)
    await stream.aclose()
    assert trace.ledger.held == 0
    assert trace.requests[0].cancelled


def test_a_stream_that_nobody_reads_asks_nothing(server: OpenAIServer) -> None:  # 18
    ReaderSynthesizer("stuff", openai(server), streaming=True).synthesize(QUESTION, nodes())
    assert server.requests == []


# --- budgets ------------------------------------------------------------------------------------


def test_a_limit_ends_in_a_partial_answer_or_an_error(server: OpenAIServer) -> None:
    server.reply = reading_reply
    trace = Trace(Governor(max_calls=2))
    response = ReaderSynthesizer("skim", openai(server), trace=trace).synthesize(QUESTION, nodes())
    assert isinstance(response, ReaderResponse)
    assert response.partial
    assert response.answer is not None
    assert response.answer.notes["stop_reason"] == "calls"
    again = Trace(Governor(max_calls=2))
    with pytest.raises(RequestRefused) as refused:
        ReaderSynthesizer("skim", openai(server), trace=again, on_limit="error").synthesize(
            QUESTION, nodes()
        )
    assert refused.value.reason == "calls"
    assert again.raised == [refused.value]


def test_two_budgets_are_an_error_before_anything_is_sent(server: OpenAIServer) -> None:
    llm = GovernedLLM(openai(server), trace=Trace())
    with pytest.raises(BadSettingError, match="governed already"):
        ReaderSynthesizer("stuff", llm, trace=Trace())
    ReaderSynthesizer("stuff", llm, trace=llm.trace).synthesize(QUESTION, nodes())
    assert len(server.requests) == 1


def test_a_governed_llms_budget_is_the_readers(server: OpenAIServer) -> None:
    llm = GovernedLLM(openai(server), governor=Governor(max_calls=1))
    response = ReaderSynthesizer("stuff", llm).synthesize(QUESTION, nodes())
    assert isinstance(response, ReaderResponse)
    assert response.trace is llm.trace
    with governed_run(governor=Governor(max_calls=5)) as run:
        inside = ReaderSynthesizer("stuff", openai(server)).synthesize(QUESTION, nodes())
    assert isinstance(inside, ReaderResponse)
    assert inside.trace is run


@pytest.mark.parametrize("asynchronous", [False, True])
def test_swallowed_refusals_are_raised_at_the_end_of_the_run(
    server: OpenAIServer, asynchronous: bool
) -> None:  # 22
    llm = GovernedLLM(openai(server))
    engine = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "stuff", llm, on_limit="error"
    )
    sub = SubQuestionQueryEngine(
        _Questions(), ReaderSynthesizer("stuff", llm), [_tool(engine)], use_async=asynchronous,
        verbose=False,
    )  # fmt: skip
    trace = Trace(Governor(max_calls=0))
    with pytest.raises(RequestRefused), governed_run(trace):  # noqa: PT012 - the block is what is tested
        response = sub.query(QUESTION)
        assert "Empty Response" in str(response)
    assert trace.raised
    assert server.requests == []
    assert trace.spent_usd == 0


def test_refusals_in_llama_indexs_own_engines_are_listed_and_raised(
    server: OpenAIServer,
) -> None:  # 22
    llm = GovernedLLM(openai(server))
    engine = _embedded().as_query_engine(llm=llm)
    sub = SubQuestionQueryEngine(
        _Questions(),
        ReaderSynthesizer("stuff", llm),
        [_tool(engine)],
        use_async=False,
        verbose=False,
    )
    trace = Trace(Governor(max_calls=0))
    with pytest.raises(RequestRefused), governed_run(trace):
        sub.query(QUESTION)
    assert [refusal.reason for refusal in trace.refusals] == ["calls"]
    assert server.requests == []


def test_a_tool_that_is_tried_twice_costs_nothing_when_refused(server: OpenAIServer) -> None:  # 22
    from llama_index.core.tools.calling import call_tool

    engine = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "stuff", openai(server), on_limit="error"
    )
    trace = Trace(Governor(max_calls=0))
    with pytest.raises(RequestRefused), governed_run(trace):  # noqa: PT012 - the block is what is tested
        output = call_tool(_tool(engine), {"input": QUESTION})
        assert output.is_error
    assert (server.requests, trace.spent_usd) == ([], 0)


# --- nodes --------------------------------------------------------------------------------------


def test_nodes_are_chunks_as_they_are(script: Script) -> None:
    from harness_core.reading.spec import ReadSpec
    from harness_integrations.llama_index.nodes import hand_over

    tiny = nodes("One.", "Two.", "Three.")
    handed = hand_over(tiny, ReadSpec(), "Script")
    assert len(handed.chunks) == 3
    assert handed.owners == {1: 0, 2: 1, 3: 2}
    long = nodes("word " * 60_000, "Two.")
    cut = hand_over(long, ReadSpec(), "Script")
    assert len(cut.chunks) > 2
    assert set(cut.owners.values()) == {0, 1}
    assert list(cut.owners.values()).count(1) == 1


def test_odd_nodes_do_no_harm(script: Script) -> None:  # 48
    odd = [
        NodeWithScore(node=ImageNode(id_="same", image_path="/tmp/x.png")),
        NodeWithScore(node=TextNode(id_="same", text="Zwölf Boxkämpfer\r\njagen\r\n\U0001f600")),
        NodeWithScore(node=TextNode(id_="same", text="x" * 100)),
    ]
    response = ReaderSynthesizer("stuff", script).synthesize(QUESTION, odd)
    assert isinstance(response, ReaderResponse)
    assert len(response.source_nodes) == 3
    assert {one.source for one in response.citations} == {1, 2}


def test_ten_megabytes_are_handed_over_in_time() -> None:  # 48
    from harness_core.reading.spec import ReadSpec
    from harness_integrations.llama_index.nodes import hand_over, places_of

    text = "The harbour office counted ships. " * 300_000
    handed = hand_over(nodes(text), ReadSpec(), "Script")
    assert len(handed.chunks) > 100
    assert next(places_of("harbour office counted", text)) == (4, 26)


def test_an_engine_previews_what_it_would_send(server: OpenAIServer) -> None:
    engine = ReaderQueryEngine.from_documents(
        [one.node for one in nodes()], "map_reduce", openai(server)
    )
    estimate = engine.preview(QUESTION)
    assert (estimate.calls, estimate.chunks) == (3, 2)
    assert estimate.usd is not None
    assert estimate.usd > 0
    assert server.requests == []


def test_an_engine_reads_documents_an_index_or_a_retriever(script: Script) -> None:
    from llama_index.core import Document

    document = Document(text=f"{SHIP}\n\n{HARBOUR}", id_="d", metadata={"file_path": "/a/b.txt"})
    index = _embedded()
    for engine in (
        ReaderQueryEngine.from_documents([document], "stuff", script),
        ReaderQueryEngine.from_index(
            index, "stuff", script, retriever_kwargs={"similarity_top_k": 1}
        ),
        ReaderQueryEngine.from_retriever(index.as_retriever(), "stuff", script),
    ):
        assert str(engine.query(QUESTION)) == ANSWER
    assert "/a/" not in script.prompts[0]
    assert "b.txt" in script.prompts[0]
    with pytest.raises(BadSettingError):
        ReaderQueryEngine(ReaderSynthesizer("stuff", script))
