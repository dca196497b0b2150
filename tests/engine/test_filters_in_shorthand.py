"""Dicts in shorthand where the adapters take filters."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_integrations.langchain import collections as langchain
from harness_integrations.llama_index import collections as llama_index
from tests.support.engine import World, world

QUESTION = "What about the harbour?"
FILTER = {"team": {"$in": ["db", "web"]}, "file.path": {"$prefix": "/b"}}


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("teams")
    with world(folder, names=("docs",)) as made:
        docs = made.collection("docs")
        docs.set_fields({"team": "text"})
        for path, team in (("/a.txt", "db"), ("/b.txt", "db"), ("/bc.txt", "ops")):
            docs.add(path, f"The harbour of {path}.", metadata={"team": team})
        yield made


def _invoked(docs: Any, asked: Any) -> list[str]:
    result = langchain.AnswerCollection(docs, filter=asked).invoke(QUESTION)
    return [one.path for one in result.sources]


def _configured(docs: Any, asked: Any) -> list[str]:
    config: Any = {"configurable": {"filter": asked}}
    result = langchain.AnswerCollection(docs).invoke(QUESTION, config)
    return [one.path for one in result.sources]


def _put_in(docs: Any, asked: Any) -> list[str]:
    result = langchain.AnswerCollection(docs).invoke({"query": QUESTION, "filter": asked})
    return [one.path for one in result.sources]


def _found(docs: Any, asked: Any) -> list[str]:
    found = langchain.CollectionRetriever(docs, filter=asked).invoke(QUESTION)
    return [one.metadata["path"] for one in found]


def _queried(docs: Any, asked: Any) -> list[str]:
    response = llama_index.CollectionQueryEngine(docs, filters=asked).query(QUESTION)
    return [one.metadata["path"] for one in response.source_nodes]


def _retrieved(docs: Any, asked: Any) -> list[str]:
    nodes = llama_index.CollectionRetriever(docs, filters=asked).retrieve(QUESTION)
    return [one.metadata["path"] for one in nodes]


WAYS: list[Callable[[Any, Any], list[str]]] = [
    _invoked, _configured, _put_in, _found, _queried, _retrieved,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_dict_filters_wherever_a_filter_is_taken(
    teams: World, way: Callable[[Any, Any], list[str]]
) -> None:
    docs = teams.collection("docs")
    assert way(docs, FILTER) == ["/b.txt"]
    assert way(docs, {"field": "path", "op": "eq", "value": "/bc.txt"}) == ["/bc.txt"]
    with pytest.raises(ValueError, match="regex"):
        way(docs, {"team": {"$regex": "^d"}})
