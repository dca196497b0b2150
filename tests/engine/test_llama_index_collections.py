"""Collections in LlamaIndex."""

from collections.abc import Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from harness_core.collections.faults import CollectionEmptyError
from harness_core.collections.filters import compile_filter
from harness_core.errors import BadSettingError
from harness_integrations.engine.client import EngineClient
from harness_integrations.llama_index.collections import (
    CollectionQueryEngine,
    CollectionRetriever,
    collection_filter,
)
from tests.support.engine import DOCS, World, cite

QUESTION = "What about the harbour?"


@pytest.fixture
def client(served: World) -> Iterator[EngineClient]:
    with EngineClient(served.url, served.keys["K"], capabilities=["answer", "read_spans"]) as made:
        yield made


def test_a_response_names_its_sources(served: World, client: EngineClient) -> None:  # AC90
    served.model.write = lambda request: cite(request, 1, 0)
    responses = [
        CollectionQueryEngine(one).query(QUESTION)
        for one in (served.collection("docs"), client.collection("acme", "docs"))
    ]
    for response in responses:
        assert str(response) == "Fact 1 [[SRC:0001]]. Fact 0 [[SRC:0002]]."
        nodes: Any = response.source_nodes
        assert [one.metadata.get("ref") for one in nodes] == ["SRC:0001", "SRC:0002", "SRC:0003"]
        assert [one.node.text for one in nodes] == [DOCS[one.metadata["path"]] for one in nodes]
        assert all(one.node.end_char_idx == len(one.node.text) for one in nodes)
        assert response.metadata is not None
        assert {"request_id", "effort", "credits"} <= set(response.metadata)
        shown = nodes[0].node.get_content(MetadataMode.LLM)
        assert "SRC:" not in shown
        assert "fil_" not in shown
    first, second = responses
    assert [one.node_id for one in first.source_nodes] == [
        one.node_id for one in second.source_nodes
    ]


@pytest.mark.anyio
async def test_awaiting_does_not_hold_the_loop(served: World, client: EngineClient) -> None:  # AC90
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await anyio.lowlevel.checkpoint()

    for one in (served.collection("docs"), client.collection("acme", "docs")):
        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            response = await CollectionQueryEngine(one).aquery(QUESTION)
            group.cancel_scope.cancel()
        assert len(response.source_nodes) == len(DOCS)
        assert ticks > 3
        ticks = 0
        assert await CollectionRetriever(one).aretrieve("harbour bridge")


def test_the_retriever_gives_nodes_best_first(served: World) -> None:
    nodes = CollectionRetriever(served.collection("docs"), similarity_top_k=2).retrieve(
        "harbour bridge"
    )
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
