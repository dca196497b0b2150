"""Whoever listens to a trace hears of every step and refusal, and can spoil none."""

import threading
from pathlib import Path
from typing import Any

import pytest

from harness_core.calls.api import call
from harness_core.calls.branches import Branch
from harness_core.calls.governor import Governor, Refusal
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.errors import ListenerWarning

Heard = list[Step | Refusal]


def test_each_step_and_refusal_is_heard_once_in_order() -> None:
    heard: Heard = []
    trace = Trace(Governor(max_calls=1), listener=heard.append)
    trace.note("before")
    call(MockClient(), "One?", trace=trace)
    call(MockClient(), "Two?", trace=trace)
    assert heard == [*trace.steps, *trace.refusals]


def test_a_step_is_kept_before_it_is_heard_and_no_lock_is_held(tmp_path: Path) -> None:
    seen: list[tuple[int, ...]] = []

    def listen(_entry: Step | Refusal) -> None:
        counted: list[int] = []
        other = threading.Thread(target=lambda: counted.append(len(trace.steps)))
        other.start()
        other.join(5)
        seen.append((*counted, len(Trace.load(tmp_path / "run.jsonl").steps)))

    trace = Trace(path=tmp_path / "run.jsonl", listener=listen)
    for _ in range(2):
        call(MockClient(), "Well?", trace=trace)
    assert seen == [(1, 1), (2, 2)]


def test_a_listener_that_fails_is_a_warning_and_loses_nothing() -> None:
    def fail(_entry: Step | Refusal) -> None:
        raise KeyError("no collector")

    trace = Trace(Governor(max_calls=1), listener=fail)
    with pytest.warns(ListenerWarning, match="KeyError: 'no collector'"):
        reply = call(MockClient(lambda _m: "fine"), "Well?", trace=trace)
    with pytest.warns(ListenerWarning):
        call(MockClient(), "Well?", trace=trace)
    assert reply.text == "fine"
    assert (len(trace.steps), len(trace.refusals)) == (1, 1)


def test_the_steps_of_a_branch_are_heard_under_the_numbers_of_its_trace() -> None:
    heard: list[Any] = []
    trace = Trace(listener=heard.append)
    call(MockClient(), "One?", trace=trace)
    call(MockClient(), "Two?", trace=Branch(trace))
    assert [step.step for step in heard] == ["1", "2"]
