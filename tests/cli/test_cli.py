"""The command line, end to end on the bundled report with the extractive default."""

import io
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness_core import Trace, example_document, flush_caches, override
from harness_core.calls.progress import Progress
from harness_integrations.cli.app import app
from harness_integrations.cli.console import progress_bar
from tests.support.openai_server import OpenAIServer

REPORT = example_document("pdf")
QUESTION = "How big was the deficit of the pension scheme?"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(autouse=True)
def _as_in_a_pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def test_ask_prints_the_answer_and_says_what_answered() -> None:
    done = run("ask", REPORT, QUESTION, "--recipe", "needle", "--chunk-tokens", 120)
    assert done.exit_code == 0
    assert "£5.9 million" in done.stdout
    assert "extractive default" in done.stderr
    assert "$0.0000" in done.stderr


def test_a_recording_replays_to_the_same_answer_with_sockets_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = run("ask", REPORT, QUESTION, "--recipe", "needle", "--trace", "run.jsonl")

    def refuse(*args: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    again = run("replay", "run.jsonl", REPORT, QUESTION)
    assert (again.exit_code, again.stdout) == (0, asked.stdout)


@pytest.mark.parametrize("recipe", ["fast", "thorough", "precise", "survey", "narrative", "auto"])
def test_recipe_reader_and_settings_come_from_the_recording(recipe: str) -> None:
    asked = run("ask", REPORT, QUESTION, "--recipe", recipe, "--trace", "run.jsonl",
                "--chunk-tokens", 400, "--json")  # fmt: skip
    again = run("replay", "run.jsonl", REPORT, QUESTION, "--json")
    assert again.exit_code == 0, again.stderr
    first, second = json.loads(asked.stdout), json.loads(again.stdout)
    for field in ("answer", "reader", "chunks_used", "evidence", "signature"):
        assert first[field] == second[field]


def test_one_changed_word_is_a_replay_miss_with_exit_code_4() -> None:
    run("ask", REPORT, QUESTION, "--recipe", "needle", "--trace", "run.jsonl")
    missed = run("replay", "run.jsonl", REPORT, QUESTION.replace("big", "large"))
    assert missed.exit_code == 4
    assert "no recorded reply" in missed.stderr
    assert missed.stdout == ""


def test_an_existing_trace_is_an_error_unless_it_is_resumed() -> None:
    first = run("ask", REPORT, QUESTION, "--recipe", "thorough", "--trace", "run.jsonl")
    steps = len(Trace.load("run.jsonl").steps)
    assert run("ask", REPORT, QUESTION, "--trace", "run.jsonl").exit_code == 2
    flush_caches()  # as in the new process that resumes
    again = run("ask", REPORT, QUESTION, "--recipe", "thorough", "--trace", "run.jsonl", "--resume")
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert len(Trace.load("run.jsonl").steps) == steps


def test_a_limit_that_lets_nothing_through_is_exit_code_3() -> None:
    refused = run("ask", REPORT, QUESTION, "--recipe", "thorough", "--max-calls", 1)
    assert refused.exit_code == 3
    assert "max_calls" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ask", "no_such.pdf", QUESTION), "no_such.pdf"),
        (("ask", ".", QUESTION), "folder"),
        (("ask", REPORT, "   "), "question"),
        (("ask", REPORT, QUESTION, "--recipe", "nope"), "nope"),
        (("ask", REPORT, QUESTION, "--reader", "nope"), "nope"),
        (("ask", REPORT, QUESTION, "--cache", "."), "directory"),
        (("ask", REPORT, QUESTION, "--model", "langchain:gpt"), "langchain:provider:model"),
        (("replay", "no_such.jsonl", REPORT, QUESTION), "no_such.jsonl"),
        (("trace", "show", "no_such.jsonl"), "no_such.jsonl"),
        (("ask", REPORT, QUESTION, "--reader", "screen"), "criteria"),
        (("ask", REPORT, QUESTION, "--reader", "extract"), "fields"),
        (("ask", "https://example.com/report.pdf", QUESTION), "allow_urls"),
        (("ask", REPORT), "Missing argument"),
    ],
)
def test_bad_use_is_one_clear_line_and_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", REPORT, QUESTION, "--json"),
        ("estimate", REPORT, QUESTION, "--json"),
        ("models", "--json"),
        ("recipes", "--json"),
        ("readers", "--json"),
    ],
)
def test_json_is_all_that_is_printed(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == 0
    json.loads(done.stdout)
    assert done.stderr == ""


def test_trace_show_and_cost_read_a_recording() -> None:
    run("ask", REPORT, QUESTION, "--recipe", "thorough", "--trace", "run.jsonl")
    shown = run("trace", "show", "run.jsonl")
    assert "map.answer" in shown.stdout
    bill = json.loads(run("trace", "cost", "run.jsonl", "--json").stdout)
    assert [(row["model"], row["usd"]) for row in bill] == [("extractive", 0)]
    assert json.loads(run("trace", "show", "run.jsonl", "--json").stdout)["steps"]


def test_a_cache_answers_a_repeat() -> None:
    run("ask", REPORT, QUESTION, "--cache", "replies.sqlite3")
    again = run("ask", REPORT, QUESTION, "--cache", "replies.sqlite3")
    assert "1 cached" in again.stderr


def test_a_model_is_named_with_its_limit_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OpenAIServer(reply=lambda messages: "The deficit was £5.9 million.") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with override(api_base=server.url):
            done = run("ask", REPORT, QUESTION, "--model", "gpt-4o-mini", "--recipe", "fast",
                       "--max-cost", "0.5")  # fmt: skip
        assert len(server.requests) == 1
    assert done.exit_code == 0
    assert done.stderr.startswith("model gpt-4o-mini; spends at most $0.5\n")
    assert "sk-test" not in done.stderr + done.stdout


def test_a_model_without_a_key_is_an_error_before_the_document_is_read() -> None:
    done = run("ask", REPORT, QUESTION, "--model", "gpt-4o-mini")
    assert done.exit_code == 2
    assert "OPENAI_API_KEY" in done.stderr


def test_a_partial_answer_is_printed_with_its_reasons_and_exit_code_0() -> None:
    with override(max_tokens_total=3500):
        done = run("ask", REPORT, QUESTION, "--recipe", "thorough")
    assert done.exit_code == 0
    assert "£5.9 million" in done.stdout
    assert "partial: stopped at the limit of 3500 tokens" in done.stderr


def test_nothing_found_in_what_a_limit_let_through_is_exit_code_3() -> None:
    with override(max_tokens_total=2500):
        done = run("ask", REPORT, "Who painted the portrait in the lobby?", "--recipe", "thorough")
    assert done.exit_code == 3
    assert done.stdout == "Not found in the part of the document that was read.\n"
    assert "partial: stopped at the limit of 2500 tokens" in done.stderr


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def drawn(terminal: Terminal) -> list[str]:
    """The lines put on a terminal, without the codes that move the cursor."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    return [line.rstrip() for line in re.split(r"[\r\n]+", plain) if line.strip()]


@pytest.mark.parametrize(("spent", "said"), [(0.0125, "$0.0125"), (None, "cost unknown")])
def test_progress_is_one_line_that_fits_the_terminal_and_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, spent: float | None, said: str
) -> None:  # core 153, 155
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name in ("CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for columns in ("80", "30"):
        monkeypatch.setenv("COLUMNS", columns)
        with progress_bar() as heard:
            assert heard is not None
            heard(Progress("map.answer", 1, 4, spent))
        lines = drawn(terminal)
        assert all(len(line) <= int(columns) for line in lines)
        assert terminal.getvalue().endswith("\x1b[2K")  # the line is cleared
        if columns == "80":
            assert any("map.answer" in line and "1/4" in line and said in line for line in lines)
        terminal.seek(0)
        terminal.truncate()


def test_a_pipe_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, ci in ((io.StringIO(), ""), (Terminal(), "1")):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("CI", ci)
        with progress_bar() as heard:
            assert heard is None


def test_without_the_extra_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['typer'] = None\nfrom harness_integrations.cli import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "harness-integrations[cli]" in done.stderr


def test_an_estimate_of_a_paid_model_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = run(
        "estimate", REPORT, QUESTION, "--model", "gpt-4o-mini", "--recipe", "thorough", "--json"
    )
    assert done.exit_code == 0, done.stderr
    assert 0 < json.loads(done.stdout)["usd"] < json.loads(done.stdout)["worst_usd"]
    assert run("ask", REPORT, QUESTION, "--model", "gpt-4o-mini").exit_code == 2


def test_the_chunks_that_an_answer_cites_are_named_first() -> None:
    done = run("ask", REPORT, QUESTION, "--recipe", "needle", "--chunk-tokens", 120)
    cited = re.search(r"\[(chunk \d+)\]", done.stdout)
    assert cited is not None
    assert f"evidence: {cited[1]} (p.3" in done.stderr


def test_requests_that_failed_are_no_answer_about_the_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OpenAIServer() as server:
        server.queue(status=401, body={"error": {"message": "Incorrect API key provided"}})
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        with override(api_base=server.url):
            done = run("ask", REPORT, QUESTION, "--model", "gpt-4o-mini", "--recipe", "fast")
    assert done.exit_code == 1
    assert "Incorrect API key" in done.stderr


def test_an_interrupted_run_says_how_it_goes_on_and_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupts(messages: object) -> str:
        if len(server.requests) == 2:
            signal.raise_signal(signal.SIGINT)
        return "The deficit was £5.9 million."

    asked = ("ask", REPORT, QUESTION, "--model", "gpt-4o-mini", "--recipe", "narrative",
             "--chunk-tokens", 400, "--trace", "run.jsonl")  # fmt: skip
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    with OpenAIServer(reply=interrupts) as server, override(api_base=server.url):
        stopped = run(*asked)
        assert stopped.exit_code == 130
        assert stopped.stderr.endswith("interrupted; --trace run.jsonl --resume goes on with it\n")
        before = len(Trace.load("run.jsonl").requests)
        assert run(*asked, "--resume").exit_code == 0
    assert 0 < before < len(Trace.load("run.jsonl").requests)
