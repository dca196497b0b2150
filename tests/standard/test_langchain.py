"""LangChain's own suites over our objects: live against a loopback server, then replayed."""

# The order matters: the replayed classes answer from what the live class has recorded, and the
# server is down by then.

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import BaseCache
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import (
    AsyncCacheTestSuite,
    ChatModelIntegrationTests,
    RetrieversIntegrationTests,
    SyncCacheTestSuite,
    ToolsIntegrationTests,
)
from langchain_tests.unit_tests import ChatModelUnitTests, ToolsUnitTests

from harness_core import ExtractiveClient, Governor, ResponseCache, Trace
from harness_core.collections import Collections, in_this_process
from harness_integrations.langchain import (
    AnswerCollection,
    CollectionRetriever,
    DocumentReader,
    GovernedChatModel,
    ReaderRetriever,
    TraceCache,
    create_reader_tool,
)
from harness_integrations.langchain.testing import ReplayChatModel
from tests.support.tool_server import ToolServer

SERVER = ToolServer()
TRACE = Trace(Governor(max_calls=None, max_cost_usd=5.0))
NOWHERE = "http://127.0.0.1:9/v1"
DOCUMENTS = [
    Document(f"Note {number}: the bridge was built in {1900 + number}.") for number in range(9)
]


def bound(base_url: str, **params: Any) -> ChatOpenAI:
    known = {"model": "gpt-4o-mini", "api_key": "test-key", "base_url": base_url}
    return ChatOpenAI(**{**known, **params})


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    with SERVER:
        yield


class Governed(GovernedChatModel):
    """Takes the suites' settings, as a chat model of its own would."""

    def __init__(self, **params: Any) -> None:
        own = {name: params.pop(name) for name in list(params) if name in type(self).model_fields}
        if "bound" in own:
            super().__init__(**own)
            return
        url = params.pop("base_url", NOWHERE)
        super().__init__(bound(url, **params, **_version(own)), trace=TRACE, **own)


class Replayed(ReplayChatModel):
    """The recording of the live class, told what model it was made with."""

    def __init__(self, **params: Any) -> None:
        own = {name: params.pop(name) for name in list(params) if name in type(self).model_fields}
        params.pop("base_url", None)
        super().__init__(TRACE, like=bound(NOWHERE, **params, **_version(own)), **own)


class Bare(ReplayChatModel):
    """The recording alone: no model it was made with, no provider's package."""

    def __init__(self, **params: Any) -> None:
        own = {name: params.pop(name) for name in list(params) if name in type(self).model_fields}
        super().__init__(TRACE, **own)


def _version(own: dict[str, Any]) -> dict[str, Any]:
    return {"output_version": own["output_version"]} if "output_version" in own else {}


class Live(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return Governed

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"base_url": SERVER.url}

    @property
    def model_override_value(self) -> str:
        return "gpt-4o"

    @property
    def supports_json_mode(self) -> bool:
        return True


class TestGoverned(Live):
    """Live."""


class Unsent(Live):
    @pytest.fixture(autouse=True)
    def _nothing_is_sent(self) -> Iterator[None]:
        before = len(SERVER.requests)
        yield
        assert len(SERVER.requests) == before


class TestReplayed(Unsent):
    """From the recording of the class above, with nobody at the other end."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return Replayed


class TestBare(Unsent):
    """From the recording alone."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return Bare


class TestGovernedUnit(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return Governed

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return {}, {}, {}


class TestReplayedUnit(TestGovernedUnit):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return Replayed


class TestBareUnit(TestGovernedUnit):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return Bare


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return ReaderRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"docs": DOCUMENTS}

    @property
    def retriever_query_example(self) -> str:
        return "When was the bridge built?"


class TestSyncCache(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self, tmp_path: Any) -> BaseCache:
        return TraceCache(ResponseCache(tmp_path / "replies.sqlite3"))


class TestAsyncCache(AsyncCacheTestSuite):
    @pytest.fixture
    async def cache(self, tmp_path: Any) -> BaseCache:
        return TraceCache(ResponseCache(tmp_path / "replies.sqlite3"))


class ReaderTool:
    @property
    def tool_constructor(self) -> BaseTool:
        model = GovernedChatModel(bound(SERVER.url), trace=Trace())
        return create_reader_tool(DocumentReader(model, "stuff"), ReaderRetriever(docs=DOCUMENTS))

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": "When was the bridge built?"}


class TestToolUnit(ReaderTool, ToolsUnitTests):
    pass


class TestTool(ReaderTool, ToolsIntegrationTests):
    pass


@pytest.fixture(scope="class")
def notes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A collection of the documents, as the class's own."""
    place: Path = tmp_path_factory.mktemp("notes") / "notes.sqlite3"
    engine = Collections(place, client=ExtractiveClient(), ingestion=in_this_process)
    engine.create_namespace("acme")
    request.cls.collection = engine.namespace("acme").create_collection("notes")
    for number, document in enumerate(DOCUMENTS):
        request.cls.collection.add(f"/{number}.txt", document.page_content)
    yield
    engine.close()


@pytest.mark.usefixtures("notes")
class TestCollectionRetriever(RetrieversIntegrationTests):
    collection: Any

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CollectionRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"collection": self.collection}

    @property
    def retriever_query_example(self) -> str:
        return "When was the bridge built?"


class CollectionTool:
    collection: Any

    @property
    def tool_constructor(self) -> BaseTool:
        return AnswerCollection(self.collection).as_tool()

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": "When was the bridge built?"}


@pytest.mark.usefixtures("notes")
class TestCollectionToolUnit(CollectionTool, ToolsUnitTests):
    pass


@pytest.mark.usefixtures("notes")
class TestCollectionTool(CollectionTool, ToolsIntegrationTests):
    pass
