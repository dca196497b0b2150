"""What each mode sends, answers and keeps."""

import json
from collections.abc import Callable

import pytest

from harness_core import Trace

Run = Callable[..., pytest.RunResult]
Recordings = Callable[[], dict[str, str]]

ASKS = """
from harness_core import MockClient, call

SENT = []

def make():
    return MockClient(lambda messages: SENT.append(1) or "It carries {passengers}.")

def test_it(harness_recording):
    client = harness_recording.client(make)
    for question in {questions}:
        assert call(client, question).unwrap().text == "It carries {expected}."
    assert len(SENT) == {sent}
"""
PATH = "recordings/test_app/test_it.jsonl"


def app(
    pytester: pytest.Pytester, *questions: str, sent: int, passengers: int = 12, expected: int = 12
) -> None:
    body = ASKS.format(
        questions=list(questions), sent=sent, passengers=passengers, expected=expected
    )
    pytester.makepyfile(test_app=body)


def test_a_test_is_recorded_once_and_replayed_from_then_on(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    app(pytester, "How many?", sent=1)
    run("once").assert_outcomes(passed=1)
    kept = recordings()
    assert list(kept) == [PATH]
    app(pytester, "How many?", sent=0, passengers=99)
    for mode in ("once", "none", "new", "new_episodes"):
        run(mode).assert_outcomes(passed=1)
    assert recordings() == kept


def test_all_records_anew(run: Run, pytester: pytest.Pytester, recordings: Recordings) -> None:
    app(pytester, "How many?", sent=1)
    run("once").assert_outcomes(passed=1)
    app(pytester, "How many?", sent=1, passengers=99, expected=99)
    run("all").assert_outcomes(passed=1)
    assert "carries 99" in recordings()[PATH]
    assert "carries 12" not in recordings()[PATH]


def test_new_adds_what_is_missing_and_keeps_what_is_there(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    app(pytester, "How many?", sent=1)
    run("once").assert_outcomes(passed=1)
    before = recordings()[PATH]
    app(pytester, "How many?", "And how fast?", sent=1)
    run("new").assert_outcomes(passed=1)
    after = recordings()[PATH]
    assert after.startswith(before)
    app(pytester, "And how fast?", "How many?", sent=0)
    run("none").assert_outcomes(passed=1)


def test_none_sends_nothing_and_says_how_to_record(run: Run, pytester: pytest.Pytester) -> None:
    app(pytester, "How many?", sent=1)
    result = run("none")
    result.assert_outcomes(failed=1, errors=0)
    result.stdout.fnmatch_lines(
        [
            "*there is no recording *recordings/test_app/test_it.jsonl*",
            '*pytest "test_app.py::test_it" --harness-record=once*',
        ]
    )


def test_the_default_is_once_and_on_ci_none(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(pytester, "How many?", sent=1)
    monkeypatch.setenv("CI", "true")
    run().assert_outcomes(failed=1)
    monkeypatch.setenv("CI", "false")
    run().assert_outcomes(passed=1)


def test_recording_twice_gives_the_same_bytes_which_are_a_trace(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(
        test_app="""
        from harness_core import MockClient, answer_document, example_document

        def test_it(harness_recording):
            client = harness_recording.client(MockClient(lambda messages: "It carries 12."))
            for recipe in ("fast", "needle"):
                answer_document(example_document("md"), "How many?", recipe, client=client)
        """
    )
    run("all").assert_outcomes(passed=1)
    first = recordings()[PATH]
    run("all").assert_outcomes(passed=1)
    assert recordings()[PATH] == first
    lines = [json.loads(line) for line in first.splitlines()]
    assert lines[0]["trace"] == 1
    for word in ("run_id", "started", "seconds", "config", str(pytester.path), "response_id"):
        assert word not in first
    trace = Trace.load(pytester.path / PATH)
    assert len(trace.requests) == sum("replay_key" in line for line in lines)
    run("none", "--harness-strict").assert_outcomes(passed=1)


def test_a_test_that_sends_nothing_needs_no_recording(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(test_app="def test_it(harness_recording): harness_recording.client()")
    run("none").assert_outcomes(passed=1)
    pytester.makepyfile(
        test_app="""
        from harness_core import MockClient

        def test_it(harness_recording):
            harness_recording.client(MockClient)
        """
    )
    run("once").assert_outcomes(passed=1)
    assert recordings() == {}


def test_what_was_paid_for_is_kept_when_the_test_fails(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    app(pytester, "How many?", sent=7)
    run("once").assert_outcomes(failed=1)
    assert "carries 12" in recordings()[PATH]
