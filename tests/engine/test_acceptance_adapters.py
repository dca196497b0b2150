"""The frameworks' own objects against the library, our service, another server, a recording."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumps
from llama_index.core.schema import MetadataMode

from harness_core.collections.contract import BODY_BYTES, AnswerResult
from harness_core.collections.faults import (
    CollectionEmptyError,
    CollectionNotReadyError,
    TemporarilyUnavailableError,
)
from harness_core.errors import AuthError, BadSettingError
from harness_integrations.engine.client import (
    Capability,
    EngineClient,
    RemoteCollection,
    UnlistedSourceWarning,
)
from harness_integrations.engine.faults import ProtocolError, TransportError
from harness_integrations.langchain.collections import AnswerCollection, CollectionRetriever
from harness_integrations.llama_index.collections import CollectionQueryEngine
from harness_integrations.llama_index.collections import CollectionRetriever as NodeRetriever
from tests.support.cassettes import ADDRESS, cassette
from tests.support.engine import DOCS, World, citing, error_of, put
from tests.support.foreign import EXAMPLE, Foreign, fault

QUESTION = "What about the harbour?"
KEY = "key-of-the-recording"
RECORDED = {"query": "What emptied the pool?", "sources": "cited", "effort": "medium"}
READS_SPANS: tuple[Capability, ...] = ("answer", "read_spans")


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
    with EngineClient(served.url, served.keys["K"], capabilities=READS_SPANS) as made:
        yield made


@pytest.fixture(params=["library", "http"])
def docs(request: pytest.FixtureRequest, served: World, client: EngineClient) -> Any:
    """The same collection, in this process and over HTTP."""
    here = request.param == "library"
    return served.collection("docs") if here else client.collection("acme", "docs")


def _foreign(server: Foreign, **more: Any) -> RemoteCollection:
    client = EngineClient(server.url, KEY, sleep=lambda _: None, **more)
    return client.collection("acme", "incident-logs")


# --- one answer, three ways -------------------------------------------------------------------


def recorded_collection(w: World) -> str:
    """What the recording was made of."""
    put(
        w.space.create_collection("incident-logs"), "/reports/incident.txt",
        "The pool of connections was exhausted at 09:14; checkout stalled for six minutes.",
    )  # fmt: skip
    w.model.write = lambda request: (
        "The pool was emptied at 09:14 [chunk {0}]. Checkout stalled [chunk {0}].".format(
            *[label for label, _ in request.task.excerpts]  # type: ignore[union-attr]  # an answering request has one
        )
    )
    return "incident-logs"


def exchanged(address: str, key: str = KEY) -> AnswerResult:
    """What the recording is of."""
    with EngineClient(address, key) as client:
        asking = AnswerCollection(client.collection("acme", "incident-logs"))
        return asking.invoke(RECORDED)


def _same(result: AnswerResult) -> Any:
    """A result but for the ids that every store draws anew."""
    told = result.model_dump(exclude={"trace", "notes", "request_id"})
    for source in told["sources"]:
        assert source["span"].pop("file_id").startswith("fil_")
    return told


def test_library_service_and_recording_give_the_same_result(own: World) -> None:  # AC87
    name = recorded_collection(own)
    here = AnswerCollection(own.collection(name)).invoke(RECORDED)
    there = exchanged(own.url, own.keys["K"])
    with cassette("collection_answer") as tape:
        kept = exchanged(ADDRESS.removesuffix("/v1"))
    assert tape.all_played
    assert _same(here) == _same(there) == _same(kept)
    assert kept.sources[0].span.end == 81


# --- LangChain --------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LangChain's callbacks know no other
async def test_each_way_of_calling_opens_one_run(docs: Any) -> None:  # AC88
    asking, runs = AnswerCollection(docs), Runs()
    config: Any = {"callbacks": [runs]}
    answer = asking.invoke(QUESTION, config)
    assert (await asking.ainvoke(QUESTION, config)).answer == answer.answer
    assert [one.answer for one in asking.batch([QUESTION], config)] == [answer.answer]
    assert [one.answer for one in asking.stream(QUESTION, config)] == [answer.answer]
    assert runs.seen == ["start", "end"] * 4


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_fault_ends_the_run_as_an_error(
    served: World, client: EngineClient
) -> None:  # AC88
    for void in (served.collection("void"), client.collection("acme", "void")):
        asking, runs = AnswerCollection(void), Runs()
        config: Any = {"callbacks": [runs]}
        with pytest.raises(CollectionEmptyError) as caught:
            asking.invoke(QUESTION, config)
        assert caught.value.retryable is False
        with pytest.raises(CollectionEmptyError):
            await asking.ainvoke(QUESTION, config)
        assert runs.seen == ["start", "error"] * 2


def test_the_retriever_gives_places_with_their_text(docs: Any) -> None:  # AC89
    found = CollectionRetriever(docs, k=2).invoke("harbour bridge")
    assert len(found) == 2
    for one in found:
        span = one.metadata["span"]
        assert one.page_content == DOCS[one.metadata["path"]][span["start"] : span["end"]]
        assert one.id == f"{span['file_id']}:chars:{span['start']}-{span['end']}"
        assert one.metadata["score"] > 0


def test_an_answer_as_places_names_its_citations(client: EngineClient) -> None:  # AC89
    found = CollectionRetriever(client.collection("acme", "docs")).invoke("harbour bridge")
    assert {one.page_content for one in found} == set(DOCS.values())
    assert all({"ref", "path", "span", "score", "cited"} <= set(one.metadata) for one in found)
    assert [one.metadata["ref"] for one in found] == ["SRC:0001", "SRC:0002", "SRC:0003"]
    assert [one.metadata["cited"] for one in found] == [True, False, False]


def test_without_texts_nothing_is_given_in_silence(served: World) -> None:  # AC89
    with EngineClient(served.url, served.keys["K"]) as foreign:
        collection = foreign.collection("acme", "docs")
        for asking in (
            lambda: CollectionRetriever(collection).invoke("harbour"),
            lambda: NodeRetriever(collection).retrieve("harbour"),
            lambda: CollectionQueryEngine(collection).query("harbour"),
        ):
            with pytest.raises(BadSettingError, match="allow_empty_text"):
                asking()
        assert served.model.requests == []
        found = CollectionRetriever(collection, allow_empty_text=True).invoke("harbour")
    assert [one.page_content for one in found] == [""] * len(DOCS)


# --- LlamaIndex -------------------------------------------------------------------------------


def test_a_response_names_its_sources(served: World, docs: Any) -> None:  # AC90
    served.model.write = citing("May", "1931")
    response = CollectionQueryEngine(docs).query(QUESTION)
    assert str(response) == "Of May [[SRC:0001]]. Of 1931 [[SRC:0002]]."
    nodes: Any = response.source_nodes
    assert [one.metadata["ref"] for one in nodes] == ["SRC:0001", "SRC:0002", "SRC:0003"]
    assert [one.metadata["path"] for one in nodes] == ["/plan.md", "/naive.txt", "/incident.txt"]
    assert [one.node.text for one in nodes] == [DOCS[one.metadata["path"]] for one in nodes]
    assert all(0 < one.score <= 1 for one in nodes)
    metadata = response.metadata
    assert metadata is not None
    assert metadata["request_id"].startswith("req_")
    assert (metadata["effort"], metadata["usage"]) == ("medium", {"credits": 1})
    shown = nodes[0].node.get_content(MetadataMode.LLM)
    assert "SRC:" not in shown
    assert "fil_" not in shown


@pytest.mark.anyio
async def test_awaiting_does_not_hold_the_loop(docs: Any) -> None:  # AC90
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        response = await CollectionQueryEngine(docs).aquery(QUESTION)
        group.cancel_scope.cancel()
    assert [one.metadata["ref"] for one in response.source_nodes] == [
        "SRC:0001", "SRC:0002", "SRC:0003"
    ]  # fmt: skip
    assert ticks > 3


# --- other servers ----------------------------------------------------------------------------

BUSY = (503, fault("temporarily_unavailable", retryable=True, retry_after_seconds=1))
FOR_GOOD = (503, fault("temporarily_unavailable", reason="budget"))
FAILED = (409, fault("collection_not_ready"))
TOLD = (200, EXAMPLE)


def _by_langchain(collection: RemoteCollection) -> str:
    return str(AnswerCollection(collection).invoke(QUESTION).answer)


def _by_llama_index(collection: RemoteCollection) -> str:
    return str(CollectionQueryEngine(collection, allow_empty_text=True).query(QUESTION))


ADAPTERS = pytest.mark.parametrize("ask", [_by_langchain, _by_llama_index])


@ADAPTERS
def test_what_may_help_is_asked_again_once(ask: Any) -> None:  # AC91
    with Foreign(BUSY, TOLD) as server:
        assert ask(_foreign(server)) == EXAMPLE["answer"]
        assert len(server.asked) == 2


@ADAPTERS
@pytest.mark.parametrize(
    ("answer", "kind"),
    [(FOR_GOOD, TemporarilyUnavailableError), (FAILED, CollectionNotReadyError)],
)
def test_what_cannot_help_is_raised_at_once(ask: Any, answer: Any, kind: Any) -> None:  # AC91
    with Foreign(answer) as server:
        with pytest.raises(kind) as caught:
            ask(_foreign(server))
        assert len(server.asked) == 1
    assert caught.value.retryable is False


@ADAPTERS
def test_a_page_of_a_proxy_is_a_transport_error(ask: Any) -> None:  # AC92
    page = (502, "<h1>Bad gateway heliotrope</h1>")
    with Foreign(page, page, page) as server:
        with pytest.raises(TransportError) as caught:
            ask(_foreign(server))
        assert len(server.asked) == 3
    assert caught.value.retryable
    assert "heliotrope" not in str(caught.value)


def test_bodies_go_out_as_plain_utf8(
    served: World, client: EngineClient, received: list[list[int]]
) -> None:  # AC93
    served.model.write = citing("1931")
    turns = [{"role": "user", "content": "\U0001f600" * 32_000}] * 32
    asked = {"query": "x", "history": turns}
    assert AnswerCollection(client.collection("acme", "docs")).invoke(asked).sources
    assert 4_096_000 < sum(received[0]) < 4_100_000
    escaped = json.dumps(asked).encode()
    assert 12_200_000 < len(escaped) < 12_400_000
    assert len(escaped) > BODY_BYTES
    assert error_of(served.ask(raw=escaped)) == (413, "request_too_large")


def test_nothing_written_of_an_adapter_holds_the_key(served: World) -> None:  # AC94 SEC56
    docs = EngineClient(served.url, "heliotrope").collection("acme", "docs")
    theirs: list[Any] = [
        AnswerCollection(docs, principals=["user:heliotrope"]),
        CollectionRetriever(docs),
        CollectionQueryEngine(docs),
        NodeRetriever(docs),
    ]
    for one in (docs.client, docs, *theirs):
        assert "heliotrope" not in repr(one) + str(one)
    for one in theirs[:2]:
        assert "heliotrope" not in dumps(one)
    packed = pickle.dumps(AnswerCollection(docs))
    assert b"heliotrope" not in packed
    with pytest.raises(AuthError, match="with_key"):
        pickle.loads(packed).invoke(QUESTION)  # noqa: S301 - our own bytes


@ADAPTERS
def test_a_newer_server_may_say_more(ask: Any) -> None:  # AC95
    source = {**EXAMPLE["sources"][0], "span": {"file_id": "f", "unit": "slides"}, "note": "n"}
    newer = {**EXAMPLE, "effort": "extreme", "confidence": 0.5, "sources": [source]}
    with Foreign((200, newer), (200, newer)) as server:
        assert ask(_foreign(server)) == EXAMPLE["answer"]
        result = AnswerCollection(_foreign(server)).invoke(QUESTION)
    assert (result.effort, result.extra) == ("extreme", {"confidence": 0.5})
    assert (result.sources[0].span.unit, result.sources[0].extra) == ("slides", {"note": "n"})


@ADAPTERS
def test_a_marker_without_a_source_is_said(ask: Any) -> None:  # AC96
    broken = (200, {**EXAMPLE, "sources": []})
    with Foreign(broken, broken) as server:
        with pytest.warns(UnlistedSourceWarning, match="SRC:0001"):
            assert ask(_foreign(server)) == EXAMPLE["answer"]
        with pytest.raises(ProtocolError):
            ask(_foreign(server, strict=True))
