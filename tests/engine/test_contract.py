"""What holds of any collection, wherever it is: in the library, in an app, over HTTP, elsewhere.

``ENGINE_URL``, ``ENGINE_KEY`` and ``ENGINE_COLLECTION`` (namespace/name) name one elsewhere,
without access control; what is asked of it costs credits.
"""

import os
import re
from typing import Any

import httpx
import pytest

from harness_core.collections.contract import AnswerResult
from harness_core.collections.faults import FilterError, NotFoundError, UnauthenticatedError
from harness_integrations.engine.client import EngineClient
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.targets import Target, target_of
from tests.support.engine import World, cite

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),  # the frameworks' own
]
ELSEWHERE = os.environ.get("ENGINE_URL")
MARKER = re.compile(r"\[\[(SRC:[0-9]{4,})\]\]")
QUESTION = "What is said about the harbour?"


@pytest.fixture
def _no_network(_no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the endpoint elsewhere be reached, and nothing else."""
    if ELSEWHERE is not None:
        monkeypatch.undo()


@pytest.fixture(params=["library", "app", "http", "elsewhere"])
def client(request: pytest.FixtureRequest, served: World) -> EngineClient | None:
    """Who asks; None for the library."""
    served.model.write = lambda one: cite(one, 1, 0) if one.task and one.task.excerpts else "x"
    if request.param == "elsewhere":
        if ELSEWHERE is None:
            pytest.skip("ENGINE_URL names no endpoint elsewhere")
        return EngineClient(ELSEWHERE, os.environ["ENGINE_KEY"])
    if request.param == "library":
        return None
    if request.param == "http":
        return EngineClient(served.url, served.keys["K"])
    app = httpx.ASGITransport(ServiceApp(served.engine, work=False))
    return EngineClient("http://app", served.keys["K"], async_transport=app)


@pytest.fixture
def docs(client: EngineClient | None, served: World) -> Target:
    """The collection, as the adapters ask it."""
    if client is None:
        return target_of(served.collection("docs"))
    place = os.environ["ENGINE_COLLECTION"] if client.base_url == ELSEWHERE else "acme/docs"
    return target_of(client.collection(*place.split("/")))


async def _asked(docs: Target, **more: Any) -> AnswerResult:
    return await docs.aanswer({"query": QUESTION, **more})


async def test_markers_and_sources_agree(docs: Target) -> None:  # AC87
    result = await _asked(docs)
    markers = list(dict.fromkeys(MARKER.findall(result.answer)))
    refs = [one.ref for one in result.sources]
    assert refs == [f"SRC:{number:04d}" for number in range(1, len(refs) + 1)]
    assert markers == refs[: len(markers)]
    assert [one.ref for one in result.sources if one.cited] == markers
    uncited = [one.score for one in result.sources[len(markers) :]]
    assert uncited == sorted(uncited, reverse=True)
    places = [(s.span.file_id, s.span.unit, s.span.start, s.span.end) for s in result.sources]
    assert len(set(places)) == len(places)


async def test_sources_have_their_members(docs: Target) -> None:  # AC87
    result = await _asked(docs, effort="medium")
    assert (bool(result.request_id), result.effort) == (True, "medium")
    assert result.usage.credits >= 0
    for one in result.sources:
        assert one.path
        assert one.content_type
        assert one.span.unit == "file" or (one.span.start or 0) < (one.span.end or 0)


async def test_modes_leave_out_what_they_say(docs: Target) -> None:  # AC87
    cited = await _asked(docs, sources="cited")
    assert all(one.cited for one in cited.sources)
    none = await _asked(docs, sources="none")
    assert none.sources == []
    assert MARKER.findall(none.answer) == []


async def test_a_filter_that_matches_nothing_leaves_nothing(docs: Target) -> None:  # AC87
    nothing = {"field": "path", "op": "eq", "value": "/no/such/file"}
    result = await _asked(docs, filter=nothing)
    assert result.sources == []
    assert not MARKER.findall(result.answer)


async def test_a_filter_that_is_none_is_a_fault_of_its_class(docs: Target) -> None:  # AC87
    bad: Any
    for bad in ({"field": "path", "op": "near", "value": "/a"}, {"and": []}):
        with pytest.raises(FilterError) as caught:
            await _asked(docs, filter=bad)
        assert caught.value.retryable is False


async def test_who_may_not_ask_is_told_no_more(client: EngineClient | None) -> None:  # AC87
    if client is None:
        pytest.skip("the library has no keys")
    with pytest.raises(NotFoundError) as caught:
        await _asked(target_of(client.collection("no-such-space", "docs")))
    assert caught.value.request_id
    with pytest.raises(UnauthenticatedError):
        await _asked(target_of(client.with_key("no-such-key").collection("acme", "docs")))
