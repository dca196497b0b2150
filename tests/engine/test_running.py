"""Taking turns, slow bodies, what is no HTTP, and stopping."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import anyio
import httpx

from harness_core.client import BaseClient
from harness_core.collections import Budgets, Collections
from harness_integrations.engine.service.settings import Clock, ServiceSettings
from tests.engine.conftest import QUICK
from tests.support.engine import Held, Scripted, World, path_of, unavailable, world
from tests.support.processes import until
from tests.support.sockets import everything, post

HUNDREDTHS = Budgets(answer=0.45, image=0.45, soft=0.05, call=0.2, margin=0.01)


async def _hundredths(seconds: float) -> None:
    await anyio.sleep(seconds / 100)


SCALED = replace(QUICK, clock=Clock(sleep=_hundredths))


@contextmanager
def _slow(folder: Path, model: BaseClient, **more: Any) -> Iterator[World]:
    settled: dict[str, Any] = {"settings": SCALED, "budgets": HUNDREDTHS, "client": model} | more
    with world(folder, names=("docs",), **settled) as made:
        yield made


def test_too_many_at_once_are_told_to_come_back(tmp_path: Path) -> None:  # SEC72
    model = Held()
    settings = replace(QUICK, running=1, waiting=1)
    with (
        _slow(tmp_path, model, settings=settings, budgets=Budgets()) as w,
        ThreadPoolExecutor(8) as pool,
    ):
        asked = [pool.submit(w.ask) for _ in range(8)]
        assert model.asked.wait(10)
        refused = [one.result() for one in _first_done(asked, 6)]
        for response in refused:
            unavailable(response, "capacity", retryable=True)
        assert w.request("GET", "/health", None).json() == {"status": "ok"}
        model.go.set()
        _kick(w)
        assert sorted(one.result().status_code for one in asked)[:2] == [200, 200]


def test_the_time_in_line_counts(tmp_path: Path) -> None:
    model, now = Held(), [0.0]
    settings = replace(QUICK, running=1, waiting=1, clock=Clock(now=lambda: now[0]))
    budgets = Budgets(clock=lambda: now[0])
    with (
        _slow(tmp_path, model, settings=settings, budgets=budgets) as w,
        ThreadPoolExecutor(2) as pool,
    ):
        first = pool.submit(w.ask)
        assert model.asked.wait(10)
        second = pool.submit(w.ask)
        until(lambda: w.app.service.slots.taken == 2)
        now[0] += 41  # of 45 seconds, the last 5 of which begin nothing
        model.go.set()
        _kick(w)
        assert first.result().status_code == 200
        unavailable(second.result(), "deadline", retryable=True)
        assert model.requests[1:] == model.requests[:1]  # sent once: held, then answered


def _first_done(futures: list[Any], count: int) -> list[Any]:
    done: list[Any] = []
    landed = threading.Semaphore(0)

    def land(one: Any) -> None:
        done.append(one)
        landed.release()

    for future in futures:
        future.add_done_callback(land)
    for _ in range(count):
        assert landed.acquire(timeout=10)
    return list(done[:count])


def _kick(w: World) -> None:
    """Wake the loop: an event that was set from another thread is seen at its next turn."""
    w.request("GET", "/health", None)


def test_a_body_a_byte_at_a_time_is_ended(tmp_path: Path) -> None:  # SEC74
    with _slow(tmp_path, Scripted()) as w:
        connection = post(w, "content-length: 500", body=b'{"query":')
        with closing(connection):
            told = everything(connection)
        assert told.startswith(b"HTTP/1.1 400")
        assert b"connection: close" in told.lower()
        assert w.app.service.slots.taken == 0
        assert w.model.requests == []


def test_a_body_that_keeps_dribbling_is_ended(tmp_path: Path) -> None:  # SEC74
    moments = chain([0.0, 1.0], repeat(61.0))
    settings = replace(QUICK, clock=Clock(now=lambda: next(moments)))
    with _slow(tmp_path, Scripted(), settings=settings) as w:
        connection = post(w, "transfer-encoding: chunked")
        with closing(connection):
            connection.sendall(b"1\r\n \r\n")
            assert everything(connection).startswith(b"HTTP/1.1 400")


def test_what_is_no_http_is_answered_in_the_same_form(served: World) -> None:
    url = httpx.URL(served.url)
    with socket.create_connection((url.host, url.port or 80), timeout=10) as connection:
        connection.sendall(b"GARBAGE\r\n\r\n")
        told = everything(connection)
    assert told.startswith(b"HTTP/1.1 400")
    assert b'"code":"invalid_request"' in told
    assert b"x-engine-request-id: req_" in told


def test_stopping_lets_an_answer_finish_and_loses_no_file(tmp_path: Path) -> None:
    model = Held()
    with ThreadPoolExecutor(1) as pool:
        with _slow(tmp_path, model, budgets=Budgets(), settings=QUICK) as w:
            added = w.request(
                "POST", path_of("docs", "/files"), json={"path": "/late.txt", "text": "Late."}
            )
            asked = pool.submit(w.ask)
            assert model.asked.wait(10)
            _kick(w)
            threading.Timer(0.05, model.go.set).start()
        assert asked.result().status_code == 200
    assert added.status_code == 202
    with closing(Collections(tmp_path / "engine.db", client=Scripted())) as again:
        assert again.process() == 1
        late = again.namespace("acme").collection("docs").file(added.json()["id"])
        assert late.status == "ready"


def test_settings_are_the_contracts_own() -> None:
    settings = ServiceSettings()
    assert (settings.answer_seconds, settings.image_seconds) == (45.0, 90.0)
    assert (settings.body_pause_seconds, settings.body_seconds) == (30.0, 60.0)
    budgets = Budgets()
    assert (budgets.answer, budgets.image, budgets.soft, budgets.call) == (45.0, 45.0, 5.0, 20.0)
