"""``govern`` reaches every model of a chain, or says which ones it cannot reach."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.chains.retrieval import create_retrieval_chain
from langchain_classic.retrievers import ContextualCompressionRetriever, MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListLLM
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import START, MessagesState, StateGraph

from harness_core import Governor, Trace
from harness_integrations.langchain import (
    DocumentReader,
    GovernedEmbeddings,
    ReaderCompressor,
    ReaderRetriever,
    UngovernedError,
    UngovernedWarning,
    create_reader_tool,
    govern,
)
from tests.support.fake_chat import FakeChat

PROMPT = ChatPromptTemplate.from_messages([("human", "{input}")])
STUFF = ChatPromptTemplate.from_messages([("human", "{input} {context}")])
DOCS = [Document("Ann has three cats."), Document("Bob has two dogs.")]
FIELD = ConfigurableField(id="which")

CHAINS: dict[str, Callable[[FakeChat], Any]] = {
    "sequence": lambda model: PROMPT | model | StrOutputParser(),
    "map": lambda model: RunnableParallel(a=PROMPT | model, b=PROMPT | model),
    "assign": lambda model: RunnablePassthrough.assign(a=PROMPT | model),
    "branch": lambda model: RunnableBranch((lambda _: True, PROMPT | model), PROMPT | model),
    "binding": lambda model: PROMPT | model.bind(stop=["x"]).with_config(tags=["y"]),
    "retry": lambda model: PROMPT | model.with_retry(wait_exponential_jitter=False),
    "fallbacks": lambda model: PROMPT | model.with_fallbacks([model]),
    "tools": lambda model: PROMPT | model.bind_tools([tool(len)]),
    "each": lambda model: RunnableLambda(lambda given: [given]) | (PROMPT | model).map(),
    "alternatives": lambda model: PROMPT | model.configurable_alternatives(FIELD, other=model),
    "fields": lambda model: PROMPT | model.configurable_fields(temperature=FIELD),
    "stuff chain": lambda model: create_retrieval_chain(
        ReaderRetriever(docs=DOCS), create_stuff_documents_chain(model, STUFF)
    ),
    "multi query": lambda model: create_retrieval_chain(
        MultiQueryRetriever.from_llm(ReaderRetriever(docs=DOCS), model),
        create_stuff_documents_chain(model, STUFF),
    ),
    "compressor": lambda model: create_retrieval_chain(
        ContextualCompressionRetriever(
            base_compressor=ReaderCompressor(llm=model), base_retriever=ReaderRetriever(docs=DOCS)
        ),
        DocumentReader(model, "stuff"),
    ),
    "reader": lambda model: (
        RunnablePassthrough.assign(context=lambda _: DOCS)
        | DocumentReader(model, "stuff", on_limit="error")
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_every_model_of_a_chain_is_under_the_budget(chain: str) -> None:  # 17
    fake = FakeChat(reply=lambda _: '{"score": 7, "reason": "near"}')
    open_trace, closed = Trace(), Trace(Governor(max_calls=0))
    ungoverned = CHAINS[chain](fake)
    govern(ungoverned, trace=open_trace).invoke({"input": "cats?"})
    assert len(open_trace.requests) == len(fake.asked) > 0
    before = len(fake.asked)
    with pytest.raises(RuntimeError, match=r"call cap reached|would need"):
        govern(ungoverned, trace=closed).invoke({"input": "cats?"})
    assert len(fake.asked) == before
    ungoverned.invoke({"input": "cats?"})  # the chain that was given is as it was
    assert len(fake.asked) > before


HIDDEN = FakeChat()


def asks(said: Any) -> str:
    return str(HIDDEN.invoke(str(said)).text)


def store() -> InMemoryVectorStore:
    return InMemoryVectorStore.from_documents(DOCS, DeterministicFakeEmbedding(size=4))


def graph() -> Any:
    made = StateGraph(MessagesState)
    made.add_node("ask", lambda state: {"messages": []})
    made.add_edge(START, "ask")
    return made.compile()


UNREACHABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "lambda": (lambda: PROMPT | FakeChat() | RunnableLambda(asks), "FakeChat inside the function"),
    "completion model": (lambda: PROMPT | FakeListLLM(responses=["a"]), "completion model"),
    "made at run time": (
        lambda: PROMPT | init_chat_model(configurable_fields=("model",)),
        "made at run time",
    ),
    "vector store": (lambda: store().as_retriever(), "embeddings of InMemoryVectorStore"),
    "graph": (lambda: RunnablePassthrough() | graph(), "build it from governed models"),
}


@pytest.mark.parametrize("what", UNREACHABLE)
def test_what_cannot_be_reached_is_listed(what: str) -> None:  # 17
    make, said = UNREACHABLE[what]
    with pytest.raises(UngovernedError, match=said) as caught:
        govern(make(), trace=Trace())
    assert len(caught.value.found) == 1


def test_going_on_all_the_same_warns_and_is_noted_in_the_trace() -> None:
    trace = Trace()
    with pytest.warns(UngovernedWarning, match="inside the function"):
        governed = govern(PROMPT | FakeChat() | RunnableLambda(asks), trace=trace, strict=False)
    assert trace.steps[0].label == "ungoverned"
    governed.invoke({"input": "x"})
    assert len(trace.requests) == 1


def test_a_function_without_a_model_in_it_is_no_obstacle() -> None:
    trace = Trace()
    chain = PROMPT | FakeChat() | RunnableLambda(lambda message: str(message.text).upper())
    assert govern(chain, trace=trace).invoke({"input": "hi"}) == "ECHO: HI"


def test_a_reader_tool_counts_by_its_readers_budget() -> None:
    trace = Trace()
    one = create_reader_tool(DocumentReader(FakeChat(), "stuff", trace=trace))
    assert govern(one, trace=trace).invoke({"question": "cats?", "text": "Ann has cats."})
    with pytest.raises(UngovernedError, match="inside the function 'answer'"):
        govern(create_reader_tool(DocumentReader(FakeChat(), "stuff")), trace=trace)


def test_a_store_with_governed_embeddings_is_reached() -> None:
    embeddings = GovernedEmbeddings(
        DeterministicFakeEmbedding(size=4), model="text-embedding-3-small", trace=Trace()
    )
    made = InMemoryVectorStore.from_documents(DOCS, embeddings)
    assert govern(made.as_retriever(), trace=embeddings.trace).invoke("cats")
    assert [step.label for step in embeddings.trace.requests] == ["embed.documents", "embed.query"]


def test_without_a_budget_the_run_around_a_call_is_the_budget() -> None:
    from harness_core import governed_run

    chain = govern(PROMPT | FakeChat())
    with governed_run(governor=Governor(max_calls=1)) as run:
        chain.invoke({"input": "hi"})
    assert len(run.steps) == 1
    with pytest.raises(TypeError, match="governed_run"):
        chain.invoke({"input": "hi"})
