"""``harness compare``, and what ``harness ask`` says of premises and quotations."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_core import Trace, example_document
from harness_integrations.cli.app import app

QUESTION = "How many passengers can the Dunlin carry?"
REPORT = str(example_document("md"))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def compared(*options: object) -> dict[str, Any]:
    done = run("compare", REPORT, QUESTION, "--json", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_comparison_is_a_table_with_the_answers_and_the_bill() -> None:
    done = run("compare", REPORT, QUESTION)
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2][:4] == ["recipe", "segmenter", "chunks", "reader"]
    assert [line[0] for line in lines[3:6]] == ["fast", "needle", "thorough"]
    assert [line[0] for line in lines[6:9]] == ["fast:", "needle:", "thorough:"]
    assert "extractive default" in done.stderr
    assert "$0.0000 across extractive" in done.stderr


def test_json_holds_the_rows_and_the_answers_and_is_all_that_is_printed() -> None:
    found = compared("--recipes", "fast, skim", "--correct", "212", "--correct", "passengers")
    assert [row["recipe"] for row in found["rows"]] == ["fast", "paragraph+skim"]
    assert list(found["answers"]) == ["fast", "paragraph+skim"]
    assert all(row["correct"] in (True, False) for row in found["rows"])
    assert "correct" not in compared("--recipes", "fast")["rows"][0]


def test_chunks_are_as_large_as_asked_for() -> None:
    small, large = (compared("--chunk-tokens", size)["rows"][0] for size in (300, 4000))
    assert small["chunks"] > large["chunks"]
    assert "max_tokens=300" in small["settings"]


def test_the_run_is_recorded() -> None:
    found = compared("--trace", "run.jsonl")
    loaded = Trace.load("run.jsonl")
    assert len(loaded.requests) == sum(row["calls"] for row in found["rows"])
    assert {step.recipe for step in loaded.requests} == {"fast", "needle", "thorough"}


def test_a_recipe_that_a_limit_stops_is_a_row_with_its_reason() -> None:
    done = run("compare", REPORT, QUESTION, "--max-calls", 1, "--recipes", "fast,thorough")
    assert done.exit_code == 0
    assert "above the cap of 1" in done.stdout


def test_limits_that_let_nothing_through_are_exit_code_3() -> None:
    done = run("compare", REPORT, QUESTION, "--max-calls", 0, "--recipes", "fast,thorough")
    assert done.exit_code == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--recipes", "fast,nope"), "nope"),
        (("--recipes", "auto"), "auto"),
        (("--recipes", ","), "recipe"),
        (("--correct", " "), "correct"),
        (("--max-cost", "-1"), "max_cost_usd"),
    ],
)
def test_bad_use_is_one_clear_line_and_exit_code_2(options: tuple[str, ...], said: str) -> None:
    done = run("compare", REPORT, QUESTION, *options)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_ask_checks_the_premise_when_told_to() -> None:
    def asked(*options: str) -> dict[str, Any]:
        done = run("ask", REPORT, QUESTION, "--recipe", "fast", "--json", *options)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    checked, plain = asked("--premise"), asked()
    assert checked["premise"] is None
    assert "premise" not in plain
    labels = [step["label"] for step in checked["trace"]["steps"]]
    assert "read.premise" in labels
    prompts = [str(step.get("prompt")) for found in (checked, plain)
               for step in found["trace"]["steps"] if step["label"] == "stuff.answer"]  # fmt: skip
    assert prompts[0] != prompts[1]


def test_ask_checks_every_quotation_when_told_to() -> None:
    def asked(*options: str) -> list[Any]:
        done = run("ask", REPORT, QUESTION, "--recipe", "fast", "--json", *options)
        return [row["verified"] for row in json.loads(done.stdout)["evidence"]]

    assert asked("--verify")
    assert all(asked("--verify"))
    assert set(asked()) == {None}
