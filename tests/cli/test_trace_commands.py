"""``harness trace``: what it prints, and its exit codes."""

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness_core import (
    ExtractiveClient,
    Governor,
    MockClient,
    Reply,
    Trace,
    answer_document,
    call,
    example_document,
    flush_caches,
)
from harness_integrations.cli.app import app

QUESTION = "How big was the deficit of the pension scheme?"


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["trace", command, *map(str, arguments)])


def record(name: str, question: str = QUESTION) -> Trace:
    flush_caches()
    trace = Trace(path=name)
    answer = answer_document(
        example_document("md"), question, "needle", client=ExtractiveClient(), trace=trace
    )
    Path(name).with_suffix(".answer.json").write_text(answer.to_json())
    trace.close()
    return trace


@pytest.fixture(autouse=True)
def _in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def test_two_recordings_of_one_test_differ_in_nothing() -> None:
    record("a.jsonl")
    record("b.jsonl")
    done = run("diff", "a.jsonl", "b.jsonl")
    assert (done.exit_code, done.output) == (0, "")
    told = run("diff", "a.jsonl", "b.jsonl", "--json")
    assert told.exit_code == 0
    assert json.loads(told.stdout)["changed"] == []


def test_one_changed_word_is_shown_and_exits_1() -> None:
    record("a.jsonl")
    record("b.jsonl", QUESTION.replace("big", "large"))
    done = run("diff", "a.jsonl", "b.jsonl")
    assert done.exit_code == 1
    assert "How big was" in done.stdout
    assert "How large was" in done.stdout
    (change,) = json.loads(run("diff", "a.jsonl", "b.jsonl", "--json").stdout)["changed"]
    assert change["label"] == "retrieve.answer"


def test_steps_lists_those_that_asked_no_model() -> None:
    trace = record("a.jsonl")
    rows = json.loads(run("steps", "a.jsonl", "--json").stdout)
    assert [row["step"] for row in rows] == [step.step for step in trace.steps]
    assert {row["kind"] for row in rows} == {"local", "chat"}
    assert "ingest" in run("steps", "a.jsonl").stdout


def test_grep_names_number_label_and_place() -> None:
    record("a.jsonl")
    (row,) = [r for r in json.loads(run("grep", "£5\\.9 MILLION", "a.jsonl", "--json").stdout)
              if r["where"] == "reply"]  # fmt: skip
    assert row["label"] == "retrieve.answer"
    assert "£5.9 million" in row["text"]
    assert f"{row['step']} retrieve.answer reply: " in run("grep", "£5.9", "a.jsonl").stdout
    assert run("grep", "no such text", "a.jsonl").exit_code == 1
    bad = run("grep", "(", "a.jsonl")
    assert (bad.exit_code, bad.stdout) == (2, "")
    assert "no regular expression" in bad.stderr


def test_check_exits_0_for_a_whole_file_and_1_with_its_faults() -> None:
    record("a.jsonl")
    assert (run("check", "a.jsonl").exit_code, run("check", "a.jsonl").output) == (0, "")
    assert run("check", "a.answer.json").exit_code == 0
    Path("torn.jsonl").write_bytes(Path("a.jsonl").read_bytes()[:-9])
    done = run("check", "torn.jsonl")
    assert done.exit_code == 1
    assert "torn" in done.stdout
    assert json.loads(run("check", "torn.jsonl", "--json").stdout)["problems"]


def test_export_writes_each_form() -> None:
    trace = record("a.jsonl")
    spans = json.loads(run("export", "a.jsonl", "--to", "otlp-json").stdout)
    assert len(spans["resourceSpans"][0]["scopeSpans"][0]["spans"]) == len(trace.steps) + 1
    assert "pension" not in json.dumps(spans)
    assert "pension" in run("export", "a.jsonl", "--to", "otlp-json", "--content").stdout
    done = run("export", "a.jsonl", "--to", "csv", "-o", "a.csv")
    assert (done.exit_code, done.output) == (0, "")
    assert len(list(csv.DictReader(io.StringIO(Path("a.csv").read_text())))) == 1
    told = json.loads(run("export", "a.jsonl", "--to", "html", "-o", "a.html", "--json").stdout)
    assert told == {"file": "a.html"}
    assert "<h2>Answer" not in Path("a.html").read_text()


def test_the_page_of_an_answer_shows_its_evidence() -> None:
    record("a.jsonl")
    page = run("export", "a.answer.json", "--to", "html").stdout
    assert "<h2>Answer</h2>" in page
    assert "<mark>" in page


def test_an_export_that_cannot_be_written_or_is_unknown_exits_2() -> None:
    record("a.jsonl")
    assert run("export", "a.jsonl", "--to", "csv", "-o", "none/a.csv").exit_code == 2
    assert run("export", "a.jsonl", "--to", "pdf").exit_code == 2


def test_redact_writes_a_copy_that_says_nothing_and_may_still_replay() -> None:
    record("a.jsonl")
    assert run("redact", "a.jsonl", "-o", "bare.json").exit_code == 0
    assert "pension" not in Path("bare.json").read_text()
    assert run("check", "bare.json").exit_code == 0
    assert run("redact", "a.jsonl", "-o", "bare.json").exit_code == 2, "it exists already"
    told = run("redact", "a.jsonl", "-o", "kept.json", "--keep-replies", "--json")
    assert json.loads(told.stdout) == {"file": "kept.json"}
    arguments = ["replay", "kept.json", example_document("md"), QUESTION]
    again = CliRunner().invoke(app, arguments)
    assert "£5.9 million" in again.stdout


def test_refusals_are_said_by_show() -> None:
    trace = Trace(Governor(max_calls=1), path="a.jsonl")
    for _ in range(2):
        call(MockClient(lambda _m: Reply(ok=True, text="x")), "Well?", trace=trace)
    done = run("show", "a.jsonl")
    assert "refused (calls)" in done.stderr
    assert json.loads(run("cost", "a.jsonl", "--json").stdout)[0]["calls"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "none.jsonl"), ("cost", "none.jsonl"), ("steps", "none.jsonl"),
        ("diff", "none.jsonl", "none.jsonl"), ("grep", "x", "none.jsonl"), ("check", "none.jsonl"),
        ("export", "none.jsonl", "--to", "html"), ("redact", "none.jsonl", "-o", "x.json"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True])
def test_a_missing_file_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], as_json: bool
) -> None:
    done = run(*arguments, *(["--json"] if as_json else []))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
