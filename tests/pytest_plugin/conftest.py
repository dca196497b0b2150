"""A small project with tests of its own, run by pytest inside a test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np  # noqa: F401 - once per process: a run inside a test must not load it again
import pytest

import harness_integrations.pytest_plugin.recorder  # noqa: F401 - as above
from tests.support.openai_server import OpenAIServer

Run = Callable[..., pytest.RunResult]

TOML = """
[pytest]
addopts = --strict-markers -p no:cacheprovider -p no:codspeed
asyncio_mode = strict
asyncio_default_fixture_loop_scope = function
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the project's tests in this process: ``run("once", *arguments)``."""
    monkeypatch.delenv("CI", raising=False)
    pytester.makefile(".ini", pytest=TOML)

    def go(mode: str | None = None, *arguments: str, apart: bool = False) -> pytest.RunResult:
        chosen = [] if mode is None else [f"--harness-record={mode}"]
        given = ("-p", "harness_integrations.pytest_plugin", *chosen, *arguments)
        if not apart:
            return pytester.runpytest_inprocess(*given)
        root = Path(__file__).parents[2]
        monkeypatch.setenv("PYTHONPATH", f"{root / 'core'}:{root}")
        return pytester.runpytest_subprocess(*given, timeout=60)

    return go


@pytest.fixture
def recordings(pytester: pytest.Pytester) -> Callable[[], dict[str, str]]:
    """The recordings of the project so far: path and text."""

    def found() -> dict[str, str]:
        files = sorted(pytester.path.glob("recordings/**/*.jsonl"))
        return {str(one.relative_to(pytester.path)): one.read_text() for one in files}

    return found


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A provider on this machine."""
    with OpenAIServer() as running:
        yield running
