"""One suite of tests with our pytest plugin and with vcrpy: time, size, who catches what.

Both suites are recorded against a server on this machine and played back by pytest itself, in
processes of their own; then the app, the order of its requests, the SDK or the key changes.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.openai_server import OpenAIServer

ROOT = Path(__file__).parents[1]
TESTS = 40
KEY = "acme-key-0123456789abcdef"  # of no provider's shape: known by its header alone

APP = """
import asyncio, os
from langchain_openai import ChatOpenAI

PROMPT = "Notes of day {day}: {notes} How many passengers did the {word} carry?"
NOTES = "The harbour office counted ships, cargo and weather. " * 12

def make():
    return ChatOpenAI(
        model="gpt-4o-mini", temperature=0, max_retries=0, base_url=os.environ["BENCH_URL"],
        api_key="unused", default_headers={"X-Acme-Key": os.environ["BENCH_KEY"]}
        | ({"X-Stainless-New": os.environ["BENCH_SDK"]} if "BENCH_SDK" in os.environ else {}),
    )

def ask(model, day):
    word = os.environ.get("BENCH_WORD", "ferry")
    return model.invoke(PROMPT.format(day=day, notes=NOTES, word=word)).text

async def ask_both(model):
    slow = os.environ.get("BENCH_FIRST", "0")
    async def one(number):
        if number != slow:
            await asyncio.sleep(0.02)
        return (await model.ainvoke(f"Say the number {number} and no more")).text
    return await asyncio.gather(one("0"), one("1"))
"""
OURS = f"""
import asyncio, pytest, app

@pytest.mark.parametrize("day", range({TESTS}))
def test_day(harness_recording, day):
    assert f"day {{day}}" in app.ask(harness_recording.chat_model(app.make), day)

def test_both(harness_recording):
    first, second = asyncio.run(app.ask_both(harness_recording.chat_model(app.make)))
    assert ("number 0" in first, "number 1" in second) == (True, True)
"""
THEIRS = f"""
import asyncio, os, pytest, vcr, app

def cassette(name):
    more = dict(match_on=["method", "uri", "body"]) if os.environ.get("BENCH_BODY") else {{}}
    mode = os.environ["BENCH_MODE"]
    return vcr.use_cassette(f"cassettes/{{name}}.yaml", record_mode=mode, **more)

@pytest.mark.parametrize("day", range({TESTS}))
def test_day(day):
    with cassette(day):
        assert f"day {{day}}" in app.ask(app.make(), day)

def test_both():
    with cassette("both"):
        first, second = asyncio.run(app.ask_both(app.make()))
    assert ("number 0" in first, "number 1" in second) == (True, True)
"""
FAKE = f"""
import asyncio, pytest, app
from langchain_core.language_models import FakeListChatModel

@pytest.mark.parametrize("day", range({TESTS}))
def test_day(day):
    assert f"day {{day}}" in app.ask(FakeListChatModel(responses=[f"Of day {{day}}."]), day)

def test_both():
    first, second = asyncio.run(app.ask_both(FakeListChatModel(responses=["number 0", "number 1"])))
    assert ("number 0" in first, "number 1" in second) == (True, True)
"""
CHANGES = {
    "the prompt changes by one word": {"BENCH_WORD": "steamer"},
    "two requests swap order under gather": {"BENCH_FIRST": "1"},
    "the SDK's headers change": {"BENCH_SDK": "2"},
}
RIGHT = {
    "the prompt changes by one word": "fails",
    "two requests swap order under gather": "passes",
    "the SDK's headers change": "passes",
    "a key in the header is in the files": "no",
}


class Suite:
    """One way of recording the suite: its folder, and how pytest is called in it."""

    def __init__(self, folder: Path, test: str, files: str, *, url: str) -> None:
        self.folder = folder
        self.files = files
        folder.mkdir()
        (folder / "app.py").write_text(APP)
        (folder / "test_app.py").write_text(test)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -q\n")
        path = os.pathsep.join([str(ROOT / "core"), str(ROOT), str(folder)])
        self.environment = {
            "PATH": os.environ.get("PATH", ""), "PYTHONPATH": path, "BENCH_URL": url,
            "BENCH_KEY": KEY, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }  # fmt: skip

    def run(self, mode: str, *tests: str, **changed: str) -> subprocess.CompletedProcess[str]:
        """Run the suite, or some of its tests, with something changed."""
        given = (
            ["-p", "harness_integrations.pytest_plugin", f"--harness-record={mode}"]
            if self.files == "jsonl"
            else []
        )
        return subprocess.run(
            [sys.executable, "-m", "pytest", *given, *tests],
            cwd=self.folder,
            env={**self.environment, "BENCH_MODE": mode, **changed},
            capture_output=True,
            text=True,
            check=False,
        )

    def seconds(self) -> float:
        """Seconds of a test in a replay, by pytest's own clock, but for the one that imports."""
        self.run("none", "--junit-xml=times.xml", "-o", "junit_family=xunit2")
        times = re.findall(
            r'<testcase [^>]*time="([\d.]+)"', (self.folder / "times.xml").read_text()
        )
        seconds = sorted(map(float, times))[:-1]
        return sum(seconds) / len(seconds)

    def texts(self) -> list[str]:
        """The recordings."""
        return [path.read_text() for path in self.folder.rglob(f"*.{self.files}")]


def rows() -> list[dict[str, Any]]:
    """A row per measure: what this package does, and vcrpy as it comes and with bodies matched."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        OpenAIServer(reply=_said) as server,
    ):
        url = server.url
        ours = Suite(Path(folder) / "ours", OURS, "jsonl", url=url)
        theirs = Suite(Path(folder) / "theirs", THEIRS, "yaml", url=url)
        strict = Suite(Path(folder) / "strict", THEIRS, "yaml", url=url)
        strict.environment["BENCH_BODY"] = "1"
        fake = Suite(Path(folder) / "fake", FAKE, "none", url=url)
        suites = {
            "ours": ours, "vcrpy": theirs, "vcrpy, body matched": strict, "FakeListChatModel": fake,
        }  # fmt: skip
        for name, suite in suites.items():
            done = suite.run("once")
            if done.returncode:
                raise RuntimeError(f"{name} could not be recorded:\n{done.stdout[-2000:]}")
        return [*_sizes(suites), *_changes(suites)]


def _sizes(suites: dict[str, Suite]) -> list[dict[str, Any]]:
    seconds = {name: suite.seconds() * 1e3 for name, suite in suites.items()}
    sizes = {name: sum(map(len, suite.texts())) / 1e3 for name, suite in suites.items()}
    return [
        {"what": "replay, ms per test", **seconds},
        {"what": f"size of {TESTS + 1} recordings, kB", **sizes},
    ]


def _changes(suites: dict[str, Suite]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for what, changed in CHANGES.items():
        went = {name: _went(suite.run("none", **changed)) for name, suite in suites.items()}
        found.append(_judged(what, went))
    leaks = {
        name: "yes" if any(KEY in text for text in suite.texts()) else "no"
        for name, suite in suites.items()
    }
    return [*found, _judged("a key in the header is in the files", leaks)]


def _judged(what: str, went: dict[str, str]) -> dict[str, Any]:
    right = RIGHT[what]
    met = went["ours"].startswith(right)
    return {"what": what, **went, "right": right, "met": met}


def _went(done: subprocess.CompletedProcess[str]) -> str:
    counts = {
        word: int(count)
        for count, word in re.findall(
            r"(\d+) (passed|failed|errors?)", done.stdout.splitlines()[-1]
        )
    }
    bad = sum(count for word, count in counts.items() if word != "passed")
    return f"fails ({bad} of {bad + counts.get('passed', 0)})" if bad else "passes"


def _said(messages: Sequence[dict[str, Any]]) -> str:
    asked = json.dumps(messages[-1].get("content"))
    named = re.search(r"(day \d+|number \d+)", asked)
    return f"You asked of {named[1] if named else 'nothing'}: the ferry carried 120 passengers."
