"""A degradation ends no answer, however the process treats warnings; it is told on the answer."""

import warnings
from collections.abc import Iterator

import pytest

from harness_core import EmbedFallbackWarning, MockClient, Reply
from harness_core.collections import Collection, Collections
from harness_core.errors import recording_warnings, warn
from tests.collections.conftest import excerpts_of
from tests.collections.meanings import beside, embedder

ASK = {"query": "Which pump was repaired?", "effort": "high"}


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def unscored(messages: list[dict[str, str]], params: dict[str, object]) -> object:
    if params["label"] == "rerank.score":
        return Reply.failed("no", status=500)
    label, text = excerpts_of(messages[-1]["content"] + messages[1]["content"])[0]
    return f"{text[:20]} [chunk {label}]."


@pytest.fixture
def degraded(engine: Collections, docs: Collection) -> Collection:
    client = MockClient(unscored, concurrent=True)
    return beside(engine, client=client).namespace("acme").collection("docs")


def test_an_answer_is_given_where_warnings_are_errors(degraded: Collection) -> None:
    result = degraded.answer(ASK)
    assert result.found
    assert "rerank" in result.partial_reasons
    assert [name for name, _ in result.warnings] == ["RerankDegradedWarning"]
    assert "warnings" not in result.wire()


@pytest.mark.anyio
async def test_an_awaited_one_too(degraded: Collection) -> None:
    assert "rerank" in (await degraded.aanswer(ASK)).partial_reasons


def test_a_file_is_ready_where_warnings_are_errors(engine: Collections) -> None:
    def down(_texts: list[str]) -> object:
        raise OSError("down")

    target = beside(engine, embedder=embedder(down)).namespace("acme").create_collection("x")
    assert target.add("/a.txt", "The pump.").status == "ready"
    assert target.search({"query": "pump"}).partial_reasons == ["embedder"]


def test_elsewhere_a_warning_that_is_an_error_is_raised() -> None:
    with recording_warnings() as heard, pytest.raises(EmbedFallbackWarning):
        warn(EmbedFallbackWarning("so"))
    assert len(heard) == 1
    with recording_warnings(raised=False) as heard:
        with recording_warnings() as inner:
            warn(EmbedFallbackWarning("so"))
        assert len(inner) == len(heard) == 1
    with pytest.raises(EmbedFallbackWarning):
        warn(EmbedFallbackWarning("so"))
