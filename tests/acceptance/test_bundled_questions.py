"""The bundled report, and a text of another kind, answered without a language model."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_core import Answer, ExtractiveClient, answer_document, example_document

DATA = Path(__file__).parents[1] / "data"
SMALL_CHUNKS = 120


def questions(name: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((DATA / f"{name}_questions.json").read_text("utf-8"))
    return listed


def asked(source: str, question: dict[str, Any]) -> Answer:
    return answer_document(
        source, question["question"], "needle", client=ExtractiveClient(), max_tokens=SMALL_CHUNKS
    )


def holds(answer: Answer, question: dict[str, Any]) -> bool:
    return question["answer"] in " ".join(answer.answer.split())


def on_its_page(answer: Answer, question: dict[str, Any]) -> bool:
    """Whether evidence from the page that states the answer states it."""
    return any(
        row.page == question["page"] and question["answer"] in " ".join(row.text.split())
        for row in answer.evidence
    )


@pytest.fixture(scope="module")
def report() -> list[tuple[dict[str, Any], Answer]]:
    pdf = example_document("pdf")
    return [(question, asked(pdf, question)) for question in questions("report")]


def test_the_report_answers_with_the_sentence_and_its_page(
    report: list[tuple[dict[str, Any], Answer]],
) -> None:
    right = [
        question["id"]
        for question, answer in report
        if question["answerable"] and holds(answer, question) and on_its_page(answer, question)
    ]
    assert len(right) >= 12, right


def test_what_the_report_does_not_say_is_not_answered(
    report: list[tuple[dict[str, Any], Answer]],
) -> None:
    found = [q["id"] for q, answer in report if not q["answerable"] and answer.found]
    assert found == []


def test_no_answer_about_the_report_is_partial_or_costs_anything(
    report: list[tuple[dict[str, Any], Answer]],
) -> None:
    for _, answer in report:
        assert (answer.partial, answer.warnings, answer.totals().usd) == (False, [], 0)
        assert answer.totals().calls == 1


def test_a_text_of_another_kind_does_about_as_well() -> None:
    source = str(DATA / "second.md")
    rows = [(question, asked(source, question)) for question in questions("second")]
    right = [q["id"] for q, answer in rows if q["answerable"] and holds(answer, q)]
    found = [q["id"] for q, answer in rows if not q["answerable"] and answer.found]
    assert len(right) >= 8, right
    assert found == []
