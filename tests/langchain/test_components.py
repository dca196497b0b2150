"""Retriever, compressor, tool, embeddings and cache, each where LangChain expects one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.caches import BaseCache
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.globals import set_llm_cache
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import Generation
from langchain_openai import OpenAIEmbeddings

from harness_core import Governor, ResponseCache, Trace
from harness_integrations.langchain import (
    DocumentReader,
    GovernedEmbeddings,
    GovernedRefusal,
    ReaderCompressor,
    ReaderRetriever,
    TraceCache,
    create_reader_tool,
    govern,
)
from tests.langchain.test_middleware import Asking
from tests.support.fake_chat import FakeChat
from tests.support.tool_server import ToolServer

DOCS = [
    Document("Ann keeps three cats.", id="ann"),
    Document("Bob keeps two dogs and a cat.", id="bob"),
    Document("The weather is fine.", id="sun"),
]


class Words(Embeddings):
    """Two dimensions: cats and dogs."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(len(texts))
        return [[text.count("cat") + 0.1, text.count("dog") + 0.1] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


# --- retriever ----------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("search", ["bm25", "embedding", "blend"])
async def test_a_retriever_ranks_by_words_vectors_or_both(search: Any) -> None:  # 32
    one = ReaderRetriever(docs=DOCS, search=search, k=2, embeddings=Words())
    found = one.invoke("dogs")
    assert found[0].id == "bob"
    assert found[0].metadata["relevance_score"] >= found[1].metadata["relevance_score"]
    assert [doc.id for doc in await one.ainvoke("dogs")] == [doc.id for doc in found]
    assert len(one.invoke("dogs", k=1)) == 1
    assert "relevance_score" not in DOCS[1].metadata


def test_a_retrievers_vectors_are_made_once_and_governed() -> None:  # 32
    trace = Trace()
    words = Words()
    embeddings = GovernedEmbeddings(words, model="text-embedding-3-small", trace=trace)
    one = ReaderRetriever(docs=DOCS, search="embedding", embeddings=embeddings)
    one.invoke("dogs")
    one.invoke("cats")
    assert words.asked == [3, 1, 1]
    assert trace.calls == 3
    with pytest.raises(ValueError, match="needs embeddings"):
        ReaderRetriever(docs=DOCS, search="blend")
    assert ReaderRetriever(docs=[]).invoke("x") == []


# --- compressor ---------------------------------------------------------------------------------


def scoring(messages: Sequence[BaseMessage]) -> str:
    said = str(messages)
    score = 9 if "Bob" in said else 4 if "Ann" in said else 0
    return f'{{"score": {score}, "reason": "so"}}'


@pytest.mark.anyio
async def test_a_compressor_orders_documents_by_the_models_scores() -> None:
    trace = Trace()
    one = ReaderCompressor(llm=FakeChat(reply=scoring), top_n=2, trace=trace)
    found = one.compress_documents(DOCS, "Who keeps dogs?")
    assert [(doc.id, doc.metadata["relevance_score"]) for doc in found] == [
        ("bob", 9.0),
        ("ann", 4.0),
    ]
    assert [doc.id for doc in await one.acompress_documents(DOCS, "Who?")] == ["bob", "ann"]
    assert trace.calls == 6
    assert "_place" not in found[0].metadata
    assert list(one.compress_documents([], "Who?")) == []


def test_a_compressor_keeps_the_passages_that_were_copied() -> None:
    def copying(messages: Sequence[BaseMessage]) -> str:
        return "two dogs" if "Bob" in str(messages) else "NONE"

    one = ReaderCompressor(llm=FakeChat(reply=copying), reader="skim", trace=Trace())
    retriever = ContextualCompressionRetriever(
        base_compressor=one, base_retriever=ReaderRetriever(docs=DOCS)
    )
    assert [(doc.id, doc.page_content) for doc in retriever.invoke("dogs")] == [("bob", "two dogs")]


def test_a_compressor_raises_what_was_refused() -> None:
    trace = Trace(Governor(max_calls=1))
    fake = FakeChat(reply=scoring)
    with pytest.raises(GovernedRefusal):
        ReaderCompressor(llm=fake, trace=trace).compress_documents(DOCS, "Who?")
    assert len(fake.asked) == 1
    assert trace.raised


# --- tool ---------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_tool_answers_the_agent_and_keeps_the_evidence_beside_it() -> None:  # 26
    trace = Trace()
    reader = DocumentReader(FakeChat(), "stuff", trace=trace)
    told = create_reader_tool(reader, ReaderRetriever(docs=DOCS), name="weather")
    assert told.invoke({"question": "Who keeps dogs?"}) == "echo: Question: Who keeps dogs?"

    class Reading(Asking):
        def _call(self, messages: Any, message: Any) -> None:
            super()._call(messages, message)
            for call in message.tool_calls:
                call["args"] = {"question": "Who keeps dogs?"}

    model = Reading()
    app: Any = create_agent(model, [told])
    for state in (app.invoke({"messages": ["?"]}), await app.ainvoke({"messages": ["?"]})):
        message = next(one for one in state["messages"] if isinstance(one, ToolMessage))
        assert message.text == "echo: Question: Who keeps dogs?"
        assert message.artifact["citations"][0]["document_id"] == "bob"
    assert "document_id" not in str(model.asked[-1]["messages"][-1].content)


def test_a_partial_answer_says_so_to_the_agent() -> None:
    reader = DocumentReader(FakeChat(), "stuff", governor=Governor(max_calls=0))
    told = create_reader_tool(reader, ReaderRetriever(docs=DOCS))
    assert "Not everything was read" in told.invoke({"question": "Who?"})
    strict = DocumentReader(FakeChat(), "stuff", governor=Governor(max_calls=0), on_limit="error")
    with pytest.raises(GovernedRefusal):
        create_reader_tool(strict, ReaderRetriever(docs=DOCS)).invoke({"question": "Who?"})


@pytest.mark.anyio
async def test_a_tool_without_a_retriever_is_given_its_text() -> None:
    told = create_reader_tool(DocumentReader(FakeChat(), "stuff", trace=Trace()))
    given = {"question": "Who?", "text": "Bob keeps dogs."}
    assert set(told.args) == {"question", "text"}
    assert told.invoke(given) == await told.ainvoke(given) == "echo: Question: Who?"


# --- embeddings ---------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_embeddings_are_held_priced_and_recorded(server: ToolServer) -> None:
    trace = Trace(Governor(max_calls=3))
    bound = OpenAIEmbeddings(
        model="text-embedding-3-small", api_key="k", base_url=server.url,  # type: ignore[arg-type]  # a plain key is taken
        check_embedding_ctx_length=False, max_retries=5,
    )  # fmt: skip
    one = GovernedEmbeddings(bound, trace=trace)
    assert one.embed_documents(["a", "b"]) == bound.embed_documents(["a", "b"])
    server.queue(status=429)
    with pytest.raises(Exception, match="429"):
        one.embed_query("a")
    assert len(one.embed_query("a")) == 8
    with pytest.raises(GovernedRefusal):
        one.embed_query("b")
    assert [step.model for step in trace.steps] == ["text-embedding-3-small"] * 3
    assert len(server.requests) == 4  # one of them past the wrapper, for comparison
    assert trace.spent_usd > 0
    assert trace.raised


@pytest.mark.anyio
async def test_many_texts_go_out_in_several_requests() -> None:
    words, trace = Words(), Trace()
    one = GovernedEmbeddings(words, model="text-embedding-3-small", trace=trace)
    assert len(one.embed_documents(["cat"] * 150)) == 150
    assert len(await one.aembed_documents(["cat"] * 3)) == 3
    assert len(await one.aembed_query("cat")) == 2
    assert sorted(words.asked) == [1, 3, 22, 64, 64]
    assert trace.calls == 5
    assert one.embed_documents([]) == []


def test_embeddings_without_limits_say_how_to_name_them() -> None:
    with pytest.raises(TypeError, match="governed_run"):
        GovernedEmbeddings(Words(), model="x").embed_query("cat")


def test_text_that_is_no_unicode_is_embedded(tmp_path: Path) -> None:
    trace = Trace(path=tmp_path / "run.jsonl")
    one = GovernedEmbeddings(Words(), model="text-embedding-3-small", trace=trace)
    assert one.embed_query("a\ud800 cat\x00") == [1.1, 0.1]
    assert trace.calls == 1


def test_a_chain_with_embeddings_is_governed_with_a_cache_for_its_replies(tmp_path: Path) -> None:
    words, cache = Words(), ResponseCache(tmp_path / "cache")
    found = govern(words, governor=Governor(), response_cache=cache)
    assert isinstance(found, GovernedEmbeddings)
    assert found.bound is words


def test_vectors_are_the_models_own() -> None:
    fake = DeterministicFakeEmbedding(size=6)
    one = GovernedEmbeddings(fake, model="text-embedding-3-small", trace=Trace())
    assert one.embed_query("cat") == fake.embed_query("cat")


# --- cache --------------------------------------------------------------------------------------


def cache_at(path: Any) -> TraceCache:
    return TraceCache(ResponseCache(path / "replies.sqlite3"))


def test_what_a_cache_gives_is_a_copy_and_json_on_disk(tmp_path: Any) -> None:  # 37
    cache = cache_at(tmp_path)
    assert isinstance(cache, BaseCache)
    stored = [Generation(text="hi", generation_info={"a": 1})]
    cache.update("p", "m", stored)
    found, again = cache.lookup("p", "m"), cache.lookup("p", "m")
    assert found == again == stored
    assert found is not again
    assert b"pickle" not in (tmp_path / "replies.sqlite3").read_bytes()
    cache.cache.close()


def test_a_message_without_usage_can_be_read_again(tmp_path: Any) -> None:  # 37
    cache = cache_at(tmp_path)
    fake = FakeChat(usage=None, cache=cache)
    first, again = fake.invoke("hi"), fake.invoke("hi")
    assert (first.text, again.text, len(fake.asked)) == ("echo: hi", "echo: hi", 1)
    assert type(again).model_validate(again.model_dump()).text == "echo: hi"
    cache.cache.close()


def test_it_serves_a_whole_process(tmp_path: Any) -> None:  # 37
    cache = cache_at(tmp_path)
    set_llm_cache(cache)
    try:
        fake = FakeChat()
        assert fake.invoke("hi").text == fake.invoke("hi").text
        assert len(fake.asked) == 1
        cache.clear()
        fake.invoke("hi")
        assert len(fake.asked) == 2
    finally:
        set_llm_cache(None)
        cache.cache.close()
