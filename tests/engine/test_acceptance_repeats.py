"""The same question again: from a cache, from a recording, and by somebody else."""

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness_core import ReplayClient, ReplayMissError, ResponseCache, Trace
from harness_core.collections import AnswerCache
from harness_core.messages import Request
from tests.engine.conftest import QUICK
from tests.support.engine import Scripted, World, again, error_of, world
from tests.support.images import image, png

HISTORY = [
    {"role": "user", "content": "Which bridge?"},
    {"role": "assistant", "content": "The one of the harbour [[SRC:0002]]."},
]
QUESTIONS: dict[str, dict[str, Any]] = {
    "bare": {"query": "What happened in the harbour?"},
    "history": {"query": "When did it become green?", "history": HISTORY, "sources": "cited"},
    "high": {"query": "What happened in the harbour?", "effort": "high", "history": HISTORY},
    "image": {"query": "What is this?", "query_image": image(png())},
}


def _body(response: httpx.Response) -> bytes:
    """The body as it came, but for the request's id."""
    assert response.status_code == 200, response.text
    return response.content.replace(response.json()["request_id"].encode(), b"")


@pytest.mark.parametrize("name", ["bare", "history", "high"])
def test_a_repeat_with_a_cache_pays_nothing(
    tmp_path: Path, traces: list[Trace], name: str
) -> None:  # AC80
    client = Scripted()
    cached = client.with_cache(ResponseCache(tmp_path / "cache.db"))
    with world(tmp_path, settings=QUICK, names=("docs",), client=cached) as w:
        first = w.ask(**QUESTIONS[name])
        paid = len(client.requests)
        second = w.ask(**QUESTIONS[name])
    assert _body(second) == _body(first)
    assert len(client.requests) == paid > 0
    assert [(one.calls, one.cached) for one in traces] == [(paid, 0), (paid, paid)]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_recorded_answer_replays_to_the_byte(
    served: World, traces: list[Trace], tmp_path: Path, name: str
) -> None:  # AC81
    recorded = served.ask(**QUESTIONS[name])
    kept = traces[0].save(tmp_path / "trace.json")
    with again(served, client=ReplayClient(kept), vision=None) as replaying:
        assert _body(replaying.ask(**QUESTIONS[name])) == _body(recorded)


def test_a_replay_of_something_else_is_a_miss_that_is_named(
    served: World, traces: list[Trace], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # AC82
    asked = QUESTIONS["history"]
    assert served.ask(**asked).status_code == 200
    replay = ReplayClient(traces[0].save(tmp_path / "trace.json"))
    first, second = HISTORY
    changed = {**asked, "history": [{**first, "content": "Which Bridge?"}, second]}
    with again(served, client=replay) as replaying:
        with caplog.at_level(logging.ERROR, logger="harness_integrations.engine"):
            response = replaying.ask(**changed)
        with pytest.raises(ReplayMissError, match=r"answer\.rewrite"):
            replaying.collection("docs").answer(changed)
    assert error_of(response) == (500, "internal_error")
    assert response.json()["error"]["retryable"] is False
    assert "ReplayMissError" in caplog.text
    assert "answer.rewrite" in caplog.text
    assert [one["label"] for one in replay.missed()] == ["answer.rewrite"] * 2


def test_a_kept_answer_is_given_to_those_who_see_the_same(
    tmp_path: Path, traces: list[Trace]
) -> None:  # AC83 SEC61
    def quoting(request: Request) -> str:
        assert request.task is not None
        return " ".join(f"{text} [chunk {label}]" for label, text in request.task.excerpts)

    with world(tmp_path, settings=QUICK, names=("secure",), answer_cache=AnswerCache()) as w:
        w.model.write = quoting
        ann, twice, team, bob, eve = (
            w.ask("secure", query="canary", principals=[who]).json()
            for who in ("user:ann", "user:ann", "group:eng", "user:bob", "user:eve")
        )
        other_key = w.ask("secure", key="Q", query="canary", principals=["user:ann"]).json()
    hits = [
        [step.detail["hit"] for step in trace.steps if step.detail and "hit" in step.detail]
        for trace in traces
    ]
    assert hits == [[False], [True], [True], [False], [False], [False]]
    assert len(w.model.requests) == 4
    assert ann["answer"] == twice["answer"] == team["answer"] == other_key["answer"]
    assert len({one["answer"] for one in (ann, bob, eve)}) == 3
    for one in (bob, eve):
        assert "heliotrope" not in str(one)
    assert [one["usage"]["credits"] for one in (ann, twice, team, bob)] == [1, 0, 0, 1]
