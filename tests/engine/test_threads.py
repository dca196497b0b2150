"""What may take long has threads of its own: whoever waits in it keeps nobody else waiting."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from anyio import CapacityLimiter

from tests.collections.meanings import embedder, meant
from tests.engine.conftest import QUICK
from tests.support.engine import World, path_of, world
from tests.support.processes import until

MANY = 45  # more than all requests have threads together


@pytest.fixture
def crowd() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MANY) as pool:
        yield pool


def _answers_others(
    w: World, crowd: Sequence[Future[httpx.Response]], line: CapacityLimiter
) -> None:
    """Check that while all of the crowd wait in their own line others are answered."""
    until(lambda: line.statistics().tasks_waiting + line.borrowed_tokens == len(crowd))
    assert w.request("GET", "/namespaces").status_code == 200
    assert w.request("GET", path_of("docs", "")).status_code == 200
    assert not any(one.done() for one in crowd)


def test_writers_in_line_keep_no_reader_waiting(own: World, crowd: ThreadPoolExecutor) -> None:
    def add(number: int) -> httpx.Response:
        body = {"path": f"/{number}.txt", "text": "One of many."}
        return own.request("POST", path_of("docs", "/files"), json=body)

    with own.engine.store.database._writing:  # type: ignore[attr-defined]  # it is the embedded one
        added = [crowd.submit(add, number) for number in range(MANY)]
        _answers_others(own, added, own.app.service.writes)
    assert {one.result().status_code for one in added} <= {202, 503}


def test_searches_in_line_keep_no_one_else_waiting(
    tmp_path: Path, crowd: ThreadPoolExecutor
) -> None:
    asked, go = threading.Event(), threading.Event()

    def slowly(texts: list[str]) -> list[list[float]]:
        asked.set()
        go.wait(20)
        return meant(texts)

    go.set()
    with world(tmp_path, settings=QUICK, names=("docs",), embedder=embedder(slowly)) as w:
        go.clear()

        def search(_: int) -> httpx.Response:
            return w.request("POST", path_of("docs", ":search"), json={"query": "harbour"})

        found = [crowd.submit(search, number) for number in range(MANY)]
        try:
            _answers_others(w, found, w.app.service.lookups)
        finally:
            go.set()
        assert {one.result().status_code for one in found} == {200}
