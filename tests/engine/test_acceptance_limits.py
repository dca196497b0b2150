"""Bytes and seconds: what is not read, what is not waited for, and what a failure tells."""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness_core import OpenAIClient, ResponseCache, Trace
from harness_core.client import BaseClient, OnText
from harness_core.collections import EFFORTS, AnswerCache, Budgets
from harness_core.collections.contract import BODY_BYTES
from harness_core.messages import Reply, Request
from harness_integrations.engine.service.settings import Clock
from tests.engine.conftest import QUICK
from tests.support.engine import Held, Scripted, World, error_of, unavailable, world
from tests.support.images import image, png
from tests.support.openai_server import OpenAIServer
from tests.support.sockets import everything, post, pushed

PIECE = 65_536
HUNDREDTHS = Budgets(answer=0.45, image=0.45, soft=0.05, call=0.2, margin=0.01)


# --- bytes ------------------------------------------------------------------------------------


def test_a_body_without_length_is_cut_at_the_limit(
    served: World, received: list[list[int]]
) -> None:  # AC63
    chunk = b"10000\r\n" + b" " * PIECE + b"\r\n"
    with closing(post(served, "transfer-encoding: chunked")) as connection:
        sent = pushed(connection, chunk, 320)
        told = everything(connection)
    assert told.startswith(b"HTTP/1.1 413")
    assert b'"code":"request_too_large"' in told
    assert b"connection: close" in told.lower()
    assert sent < 320
    assert sum(received[0][:-1]) <= BODY_BYTES < sum(received[0])


def test_a_declared_length_over_the_limit_is_refused_unread(
    served: World, received: list[list[int]]
) -> None:  # AC64
    with closing(post(served, f"content-length: {BODY_BYTES + 1}")) as connection:
        told = everything(connection)
    assert told.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in told.lower()
    assert received == [[]]


def test_without_a_key_no_byte_is_read(served: World, received: list[list[int]]) -> None:  # AC65
    with closing(post(served, "content-length: 20000000", key=None)) as connection:
        pushed(connection, b" " * PIECE, 306)
        told = everything(connection)
    assert told.startswith(b"HTTP/1.1 401")
    assert received == [[]]


# --- seconds ----------------------------------------------------------------------------------


class Taking(Scripted):
    """A model whose requests take seconds, by the end of their label: a hundredth of each.

    Its clock counts these seconds, or as many of them as it was given, and nothing else: a slow
    machine changes nothing.
    """

    def __init__(self, **seconds: float) -> None:
        super().__init__()
        self.seconds, self.now = seconds, 0.0
        self.begun: list[tuple[str, float]] = []

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        stage, begun = request.label.rpartition(".")[2], self.now
        self.begun.append((stage, begun))
        seconds = self.seconds.get(stage, 0.0)
        allowed = 100 * (anyio.current_effective_deadline() - anyio.current_time())
        try:
            await anyio.sleep(seconds / 100)
        finally:
            self.now = max(self.now, begun + min(seconds, allowed))
        return self.send(request)

    def stages(self) -> list[str]:
        """The stages that were begun."""
        return [stage for stage, _ in self.begun]


@contextmanager
def _with(folder: Path, model: BaseClient, **more: Any) -> Iterator[World]:
    with world(folder, names=("docs",), **{"settings": QUICK, "client": model, **more}) as made:
        yield made


@pytest.mark.parametrize("picture", [False, True], ids=["plain", "image"])
def test_a_model_that_takes_too_long_is_given_up(tmp_path: Path, picture: bool) -> None:  # AC72
    more: dict[str, Any] = {"query_image": image(png())} if picture else {}
    slow = Taking(answer=6_000, image=6_000)
    with _with(tmp_path, slow, vision=slow, budgets=HUNDREDTHS) as w:
        began = time.monotonic()
        unavailable(w.ask(**more), "deadline", retryable=True)
        assert time.monotonic() - began < 30  # half of what the model takes


@pytest.mark.parametrize("picture", [False, True], ids=["plain", "image"])
def test_the_whole_run_has_a_hard_end(tmp_path: Path, picture: bool) -> None:  # AC72
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await anyio.sleep(0.05 if seconds >= 45 else 60)

    slow = Taking(answer=6_000, image=6_000)
    settings = replace(QUICK, clock=Clock(sleep=sleep))
    more: dict[str, Any] = {"query_image": image(png())} if picture else {}
    with _with(tmp_path, slow, vision=slow, settings=settings) as w:
        unavailable(w.ask(**more), "deadline", retryable=True)
    assert (90.0 if picture else 45.0) in slept
    assert (90.0 in slept) is picture


def test_a_slow_grading_falls_back_to_the_first_ranking(tmp_path: Path) -> None:  # AC73
    model = Taking(score=44)
    budgets = replace(HUNDREDTHS, clock=lambda: model.now / 100)
    with _with(tmp_path, model, budgets=budgets) as w:
        response = w.ask(effort="high", query="harbour bridge")
        first = w.request("POST", "/namespaces/acme/collections/docs:search", json={
            "query": "harbour bridge"}).json()["results"]  # fmt: skip
    assert response.status_code == 200
    assert response.json()["effort"] == "high"
    assert "rerank" in response.headers["x-answer-partial"].split(",")
    stage, begun = model.begun[-1]
    assert stage == "answer"
    assert begun == pytest.approx(20, abs=3)
    scores = {one["path"]: one["score"] for one in response.json()["sources"]}
    assert {one["path"]: one["score"] for one in first}.items() <= scores.items()


def test_no_request_starts_after_the_soft_end(tmp_path: Path) -> None:  # AC73b
    model = Taking(score=15, answer=15)
    budgets = replace(HUNDREDTHS, clock=lambda: model.now / 100)
    with _with(tmp_path, model, budgets=budgets) as w:
        for place in range(12):
            w.collection("docs").add(f"/more{place}.txt", f"The harbour, part {place}, happened.")
        response = w.ask(effort="high")
    assert model.stages() == ["score"] * 12
    assert sorted({begun for _, begun in model.begun}) == [0.0, 15.0, 30.0]
    unavailable(response, "deadline", retryable=True)


# --- failures ---------------------------------------------------------------------------------


def test_a_cap_of_no_requests_is_the_budget(tmp_path: Path, traces: list[Trace]) -> None:  # AC74
    efforts = {name: replace(plan, max_calls=0) for name, plan in EFFORTS.items()}
    model = Scripted()
    with _with(tmp_path, model, efforts=efforts) as w:
        unavailable(w.ask(), "budget", retryable=False)
    assert model.requests == []
    assert (traces[0].calls, [one.reason for one in traces[0].refusals]) == (0, ["calls"])


def test_a_rate_limit_that_passes_is_waited_out(tmp_path: Path, traces: list[Trace]) -> None:
    with OpenAIServer(reply=lambda messages: "It happened.") as provider:  # AC75
        provider.queue(2, status=429, headers={"Retry-After": "0"})
        client = OpenAIClient("gpt-4.1-mini", base_url=provider.url, api_key="test-key")
        with _with(tmp_path, client) as w:
            response = w.ask()
    assert response.status_code == 200, response.text
    assert len(provider.requests) == 3
    assert [step.attempts for step in traces[0].requests] == [3]


def test_a_wrong_provider_key_is_not_the_askers_affair(tmp_path: Path) -> None:  # AC76
    with OpenAIServer() as provider:
        provider.queue(9, status=401, body={"error": {"message": "key heliotrope is wrong"}})
        client = OpenAIClient("gpt-4.1-mini", base_url=provider.url, api_key="test-key")
        with _with(tmp_path, client) as w:
            response = w.ask()
    unavailable(response, "model_unavailable", retryable=False)
    assert "heliotrope" not in response.text + str(response.headers)


def test_a_bug_is_an_error_without_its_story(
    own: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # AC77
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("heliotrope")

    monkeypatch.setattr("harness_core.collections.service.Collection.aanswer", broken)
    with caplog.at_level(logging.INFO, logger="harness_integrations.engine"):
        response = own.ask()
    assert error_of(response) == (500, "internal_error")
    error = response.json()["error"]
    assert error["retryable"] is False
    assert error["request_id"] in caplog.text
    assert "heliotrope" not in response.text
    assert "Traceback" not in response.text
    assert "Traceback" in caplog.text
    assert own.keys["K"] not in caplog.text  # SEC56


def test_nothing_more_is_asked_once_the_client_left(tmp_path: Path) -> None:  # AC78 SEC73
    model, cache, answers = Held(), ResponseCache(tmp_path / "cache.db"), AnswerCache()
    body = b'{"query":"And?","history":[{"role":"user","content":"Earlier."}]}'
    with _with(tmp_path, model.with_cache(cache), answer_cache=answers) as w:
        connection = post(w, f"content-length: {len(body)}", body=body)
        assert model.asked.wait(10)
        connection.close()
        assert model.left.wait(10)
    assert len(model.requests) == 1
    assert w.app.service.slots.taken == 0
    assert (cache.stats().entries, len(answers)) == (0, 0)
