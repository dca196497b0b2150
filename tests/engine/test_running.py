"""Time, turns, clients that leave, failures inside, and stopping."""

import logging
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
import pytest

from harness_core import OpenAIClient
from harness_core.client import BaseClient, OnText
from harness_core.collections import EFFORTS, Budgets, Collections
from harness_core.collections.contract import BODY_BYTES
from harness_core.messages import Reply, Request
from harness_integrations.engine.service.settings import Clock, ServiceSettings
from tests.engine.conftest import QUICK
from tests.support.engine import Scripted, World, cite, path_of, world
from tests.support.openai_server import OpenAIServer

HUNDREDTHS = Budgets(answer=0.45, image=0.45, soft=0.05, call=0.2, margin=0.01)


async def _hundredths(seconds: float) -> None:
    await anyio.sleep(seconds / 100)


SCALED = replace(QUICK, clock=Clock(sleep=_hundredths))


class Slow(Scripted):
    """A model that awaits a time before it writes, by label."""

    def __init__(self, seconds: float, only: str = "") -> None:
        super().__init__()
        self.write = lambda r: '{"score": 7}' if r.label.endswith("score") else cite(r, 0)
        self.seconds, self.only = seconds, only

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        if self.only in request.label:
            await anyio.sleep(self.seconds)
        return self.send(request)


@contextmanager
def _slow(folder: Path, model: BaseClient, **more: Any) -> Iterator[World]:
    settled: dict[str, Any] = {"settings": SCALED, "budgets": HUNDREDTHS, "client": model} | more
    with world(folder, names=("docs",), **settled) as made:
        yield made


def _unavailable(response: httpx.Response, reason: str, *, retryable: bool) -> None:
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (503, "temporarily_unavailable")
    assert (error["details"]["reason"], error["retryable"]) == (reason, retryable)
    later = error["details"].get("retry_after_seconds")
    assert response.headers.get("retry-after") == (None if later is None else str(later))


def test_a_model_that_takes_too_long_is_given_up(tmp_path: Path) -> None:  # AC72
    with _slow(tmp_path, Slow(0.6)) as w:
        _unavailable(w.ask(), "deadline", retryable=True)


@pytest.mark.parametrize("image", [False, True])
def test_the_whole_run_has_a_hard_end(tmp_path: Path, image: bool) -> None:  # AC72
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await anyio.sleep(0.05 if seconds >= 45 else 60)

    settings = replace(QUICK, clock=Clock(sleep=sleep))
    with _slow(tmp_path, Slow(30), settings=settings, budgets=Budgets()) as w:
        png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501
        picture: Any = {"query_image": {"data": png, "media_type": "image/png"}} if image else {}
        _unavailable(w.ask(**picture), "deadline", retryable=True)
        assert (90.0 if image else 45.0) in slept


@pytest.mark.filterwarnings("ignore::harness_core.errors.RerankDegradedWarning")
def test_a_slow_grading_falls_back_to_the_first_ranking(tmp_path: Path) -> None:  # AC73
    with _slow(tmp_path, Slow(0.44, only="score"), settings=QUICK) as w:
        w.ask()  # what is loaded at the first question takes its own time
        response = w.ask(effort="high")
        assert response.status_code == 200
        assert "rerank" in response.headers["x-answer-partial"].split(",")


@pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")
def test_no_request_starts_after_the_soft_end(tmp_path: Path) -> None:  # AC73b
    model = Slow(0.15)
    with _slow(tmp_path, model) as w:
        for place in range(12):
            w.collection("docs").add(f"/more{place}.txt", f"The harbour, part {place}, happened.")
        response = w.ask(effort="high")
    if response.status_code == 200:
        assert "deadline" in response.headers["x-answer-partial"]
    else:
        _unavailable(response, "deadline", retryable=True)


def test_a_cap_of_no_requests_is_the_budget(tmp_path: Path) -> None:  # AC74
    efforts = {name: replace(plan, max_calls=0) for name, plan in EFFORTS.items()}
    with _slow(tmp_path, Scripted(), efforts=efforts) as w:
        _unavailable(w.ask(), "budget", retryable=False)


def test_a_rate_limit_that_passes_is_waited_out(tmp_path: Path) -> None:  # AC75
    with OpenAIServer(reply=lambda messages: "It happened.") as provider:
        provider.queue(2, status=429, headers={"Retry-After": "0"})
        client = OpenAIClient("gpt-4.1-mini", base_url=provider.url, api_key="test-key")
        with _slow(tmp_path, client, budgets=Budgets(), settings=QUICK) as w:
            response = w.ask()
        assert response.status_code == 200, response.text
        assert len(provider.requests) == 3


def test_a_wrong_provider_key_is_not_the_askers_affair(tmp_path: Path) -> None:  # AC76
    with OpenAIServer() as provider:
        provider.queue(9, status=401, body={"error": {"message": "key heliotrope is wrong"}})
        client = OpenAIClient("gpt-4.1-mini", base_url=provider.url, api_key="test-key")
        with _slow(tmp_path, client, budgets=Budgets(), settings=QUICK) as w:
            response = w.ask()
    _unavailable(response, "model_unavailable", retryable=False)
    assert "heliotrope" not in response.text


def test_a_bug_is_an_error_without_its_story(
    own: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # AC77
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("heliotrope")

    monkeypatch.setattr("harness_core.collections.service.Collection.aanswer", broken)
    with caplog.at_level(logging.INFO, logger="harness_integrations.engine"):
        response = own.ask()
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (500, "internal_error")
    assert error["request_id"] in caplog.text
    assert "heliotrope" not in response.text
    assert "Traceback" in caplog.text
    assert own.keys["K"] not in caplog.text  # SEC56


class Held(Scripted):
    """A model that says when it was asked, and waits to be let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.left, self.go = threading.Event(), threading.Event(), anyio.Event()

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        self.requests.append(request)
        self.asked.set()
        try:
            await self.go.wait()
        finally:
            self.left.set()
        return self.send(request)


def _raw(w: World, head: str, body: bytes = b"", *, key: str = "K") -> socket.socket:
    url = httpx.URL(w.url)
    connection = socket.create_connection((url.host, url.port or 80), timeout=30)
    lines = f"POST {path_of('docs')} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    token = f"authorization: Bearer {w.keys[key]}\r\n" if key in w.keys else ""
    connection.sendall((lines + token + head + "\r\n\r\n").encode() + body)
    return connection


def _all(connection: socket.socket) -> bytes:
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


def test_nothing_more_is_asked_once_the_client_left(tmp_path: Path) -> None:  # AC78 SEC73
    model = Held()
    body = b'{"query":"And?","history":[{"role":"user","content":"Earlier."}]}'
    with _slow(tmp_path, model, budgets=Budgets(), settings=QUICK) as w:
        connection = _raw(w, f"content-length: {len(body)}", body)
        assert model.asked.wait(10)
        connection.close()
        assert model.left.wait(10)
    assert len(model.requests) == 1
    assert w.app.service.slots.taken == 0


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
            _unavailable(response, "capacity", retryable=True)
        assert w.request("GET", "/health", None).json() == {"status": "ok"}
        model.go.set()
        _kick(w)
        assert sorted(one.result().status_code for one in asked)[:2] == [200, 200]


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
        connection = _raw(w, "content-length: 500", b'{"query":')
        with closing(connection):
            told = _all(connection)
        assert told.startswith(b"HTTP/1.1 400")
        assert b"connection: close" in told.lower()
        assert w.app.service.slots.taken == 0
        assert w.model.requests == []


def test_a_body_that_keeps_dribbling_is_ended(tmp_path: Path) -> None:  # SEC74
    moments = chain([0.0, 1.0], repeat(61.0))
    settings = replace(QUICK, clock=Clock(now=lambda: next(moments)))
    with _slow(tmp_path, Scripted(), settings=settings) as w:
        connection = _raw(w, "transfer-encoding: chunked")
        with closing(connection):
            connection.sendall(b"1\r\n \r\n")
            assert _all(connection).startswith(b"HTTP/1.1 400")


def test_a_declared_length_over_the_limit_is_refused_unread(served: World) -> None:  # AC64
    with closing(_raw(served, f"content-length: {BODY_BYTES + 1}")) as connection:
        told = _all(connection)
    assert told.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in told.lower()


def test_without_a_key_no_byte_is_read(served: World) -> None:  # AC65
    with closing(_raw(served, "content-length: 20000000", key="none")) as connection:
        connection.settimeout(10)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401")


def test_a_body_without_length_is_cut_at_the_limit(served: World) -> None:  # AC63
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    sent = 0
    with closing(_raw(served, "transfer-encoding: chunked")) as connection:
        try:
            for _ in range(320):
                connection.sendall(piece)
                sent += 1
        except OSError:
            pass
        told = _all_but_reset(connection)
    assert told.startswith(b"HTTP/1.1 413")
    assert sent < 320


def _all_but_reset(connection: socket.socket) -> bytes:
    pieces = b""
    try:
        while piece := connection.recv(65_536):
            pieces += piece
    except ConnectionResetError:
        pass
    return pieces


def test_what_is_no_http_is_answered_in_the_same_form(served: World) -> None:
    url = httpx.URL(served.url)
    with socket.create_connection((url.host, url.port or 80), timeout=10) as connection:
        connection.sendall(b"GARBAGE\r\n\r\n")
        told = _all(connection)
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


def test_answers_stay_whole_while_files_come_and_go(own: World) -> None:  # AC85
    docs = own.collection("docs")

    def ask(_: int) -> int:
        response = own.ask()
        ids = {one["span"]["file_id"] for one in response.json().get("sources", [])}
        assert len(ids) == len(response.json()["sources"])
        return response.status_code

    with ThreadPoolExecutor(5) as pool:
        codes = pool.map(ask, range(20))
        for place in range(5):
            docs.delete(docs.add(f"/x{place}.txt", f"What happened, part {place}.").id)
        assert set(codes) == {200}


def test_settings_are_the_contracts_own() -> None:
    settings = ServiceSettings()
    assert (settings.answer_seconds, settings.image_seconds) == (45.0, 90.0)
    assert (settings.body_pause_seconds, settings.body_seconds) == (30.0, 60.0)
