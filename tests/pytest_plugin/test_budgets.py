"""What a test run may spend."""

from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]
Recordings = Callable[[], dict[str, str]]

APP = """
import pytest
from harness_core import BaseClient, Governor, Reply, Trace, Usage, call, register_model

class Paid(BaseClient):
    model = "paid-model"
    def send(self, request, *, on_text=None):
        return Reply(ok=True, text="Yes.", usage=Usage(input=10, output=100))

@pytest.fixture(autouse=True)
def _priced():
    register_model("paid-model", context_window=1000, max_output=100, input_usd=0, output_usd=100)

def ask(harness_recording, times=1, **trace):
    client = harness_recording.client(Paid)
    for number in range(times):
        call(client, f"Question {number}", max_output=100, **trace).unwrap()
"""  # each reply costs one cent
MANY = """
@pytest.mark.parametrize("case", range(8))
def test_it(harness_recording, case): ask(harness_recording)
"""


def test_a_run_ends_at_its_budget_whatever_trace_is_used(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    own = "def test_own(harness_recording): ask(harness_recording, trace=Trace(Governor()))\n"
    pytester.makepyfile(test_app=APP + MANY + own)
    result = run("once", "--harness-max-cost=0.0301")
    result.assert_outcomes(passed=3, failed=6)
    result.stdout.fnmatch_lines(["*RequestRefused: the budget of this test run*max-cost*"])
    assert len(recordings()) == 3
    run("none").assert_outcomes(passed=3, failed=6)


def test_the_tests_under_one_marker_share_its_budget(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_app=APP
        + """
@pytest.mark.harness_budget(max_cost_usd=0.0201)
class TestTogether:
    @pytest.mark.parametrize("case", range(4))
    def test_it(self, harness_recording, case): ask(harness_recording)

def test_other(harness_recording): ask(harness_recording, 3)

@pytest.mark.harness_budget(max_cost_usd=0.0101)
def test_alone(harness_recording): ask(harness_recording, 2)
"""
    )
    run("once").assert_outcomes(passed=3, failed=3)


def test_workers_share_the_budget_of_the_run(
    run: Run, pytester: pytest.Pytester, recordings: Recordings
) -> None:
    pytester.makepyfile(test_app=APP + MANY)
    result = run("once", "-n", "2", "--harness-max-cost=0.0601", apart=True)
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] + outcomes["failed"] == 8
    assert 3 <= outcomes["passed"] <= 6
    assert len(recordings()) == outcomes["passed"]


def test_a_model_without_a_price_is_not_sent_under_a_budget(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_app=APP.replace('"paid-model"\n', '"gpt-nobody-knows"\n')
        + "def test_it(harness_recording): ask(harness_recording)\n"
    )
    result = run("once", "--harness-max-cost=5", "-W", "ignore")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no * price*"])


@pytest.mark.parametrize("marker", ["()", "(-1)", "(max_cost_usd='much')", "(True)"])
def test_a_marker_that_names_no_amount_is_an_error(
    run: Run, pytester: pytest.Pytester, marker: str
) -> None:
    pytester.makepyfile(
        test_app=APP
        + f"@pytest.mark.harness_budget{marker}\n"
        + "def test_it(harness_recording): ask(harness_recording)\n"
    )
    result = run("once")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*harness_budget(max_cost_usd=...) takes USD*"])


def test_a_replay_is_under_no_budget(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_app=APP + MANY)
    run("once").assert_outcomes(passed=8)
    run("none", "--harness-max-cost=0").assert_outcomes(passed=8)


def test_what_a_trace_spent_before_the_test_does_not_count(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_app=APP
        + """
SHARED = Trace(Governor())

@pytest.mark.harness_budget(max_cost_usd=0.0101)
def test_a(harness_recording): ask(harness_recording, trace=SHARED)

@pytest.mark.harness_budget(max_cost_usd=0.0101)
def test_b(harness_recording): ask(harness_recording, trace=SHARED)
"""
    )
    run("once").assert_outcomes(passed=2)
    assert run("none").ret == 0


def test_a_budget_holds_frameworks_too(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_app=APP
        + """
from tests.support.fake_chat import FakeChat

@pytest.mark.harness_budget(max_cost_usd=0.015)
def test_it(harness_recording):
    fake = FakeChat(model="paid-model", max_tokens=100, usage=(10, 100))
    model = harness_recording.chat_model(fake)
    model.invoke("one")
    model.invoke("two")
"""
    )
    result = run("once")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*GovernedRefusal: spending limit reached*"])
