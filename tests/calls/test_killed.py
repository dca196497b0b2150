"""A run that is killed in the middle: its trace loads, says so, and is gone on with."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.models import register_model
from harness_core.pipeline import read
from harness_core.reading.spec import ReadSpec
from harness_core.report import check_trace
from harness_core.segmenting.chunks import new_chunks
from tests.calls.conftest import MODELS

CHUNKS = [f"Part {n}. Revenue of unit {n} was {n}.5 million." for n in range(1, 7)]
QUESTION, REPLY = "What was revenue?", "Revenue was 45.2 million."
LIMIT, KILLED_AT, REQUESTS = 0.05, 4, len(CHUNKS) + 1


def the_run(path: Path, client: MockClient, *, width: int = 1, **more: Any) -> Trace:
    trace = Trace(Governor(max_cost_usd=LIMIT), path=path, **more)
    spec = ReadSpec("map_reduce", model="priced", max_concurrency=width, max_chunk_tokens=50)
    answer = read(new_chunks(CHUNKS), QUESTION, client, spec, trace=trace)
    assert REPLY in answer.answer
    assert not answer.partial
    return trace


def run_until_killed(path: Path, width: int) -> None:
    """What the subprocess does: it kills itself while a request is on its way."""
    facts = {"context_window": 128_000, "max_output": 4096, **MODELS["priced"]}
    register_model("priced", **facts)  # type: ignore[arg-type]  # the table's values fit their names
    sent: list[int] = []

    def answer(_messages: Any) -> str:
        sent.append(1)
        if len(sent) == KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        return REPLY

    the_run(path, MockClient(answer, concurrent=width > 1), width=width)


@pytest.fixture(params=[1, 3])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The trace of a run that was killed while its fourth request was on its way."""
    path, root = tmp_path / "run.jsonl", Path(__file__).parents[2]
    code = f"from {__name__} import *; run_until_killed(Path(sys.argv[1]), {request.param})"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{root / 'core'}{os.pathsep}{root}"},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    return path


def test_it_loads_and_says_what_is_missing(killed: Path) -> None:
    trace = Trace.load(killed)
    landed = len(trace.requests)
    assert trace.incomplete
    assert landed < KILLED_AT <= landed + trace.lost_holds
    assert f"incomplete: {trace.lost_holds} request(s)" in str(trace)
    problems = check_trace(killed)
    assert len(problems) == trace.lost_holds
    assert all("was sent and its reply never landed" in problem for problem in problems)


def test_it_resumes_without_paying_finished_requests_again(killed: Path, tmp_path: Path) -> None:
    before = Trace.load(killed)
    finished = {(step.label, step.replay_key) for step in before.requests}
    client = MockClient(lambda _m: REPLY)
    trace = the_run(killed, client, resume=True)
    assert len(client.calls()) == REQUESTS - len(before.requests)
    new = trace.requests[len(before.requests) :]
    assert not finished & {(step.label, step.replay_key) for step in new}
    whole = the_run(tmp_path / "whole.jsonl", MockClient(lambda _m: REPLY))
    assert sorted(s.replay_key for s in trace.requests) == sorted(
        s.replay_key for s in whole.requests
    )


def test_what_never_landed_is_charged_at_its_bound_so_the_limit_holds(
    killed: Path, tmp_path: Path
) -> None:
    before = Trace.load(killed)
    landed = sum(step.budget_pico or 0 for step in before.requests) / 1e12
    assert before.spent_usd > landed > 0
    trace = the_run(killed, MockClient(lambda _m: REPLY), resume=True)
    whole = the_run(tmp_path / "whole.jsonl", MockClient(lambda _m: REPLY))
    assert trace.spent_usd == pytest.approx(before.spent_usd - landed + whole.spent_usd)
    assert trace.spent_usd <= LIMIT
