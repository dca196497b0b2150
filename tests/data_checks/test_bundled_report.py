import json
import re
import runpy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from harness_core.errors import BadSettingError
from harness_core.example import Format, example_document

ROOT = Path(__file__).parents[2]
TEXTS = {"report": Path(example_document("md")), "second": ROOT / "tests" / "data" / "second.md"}
STOP = set(
    """a an and are as at be been by did do does for from had has have how in is it its long many
    much no not of on or that the them these they this to was were what when where which who why
    will with would""".split()  # noqa: SIM905 - a list of words reads better as words
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    id: str
    question: str
    answerable: bool
    answer: str
    page: int | None
    section: str | None


def questions(text: str) -> list[Question]:
    rows = json.loads((ROOT / "tests" / "data" / f"{text}_questions.json").read_text("utf-8"))
    return [Question(**row | {"answer": row["answer"] or ""}) for row in rows]


ALL = [pytest.param(text, q, id=q.id) for text in TEXTS for q in questions(text)]
ANSWERABLE = [param for param in ALL if cast(Question, param.values[1]).answerable]
UNANSWERABLE = [param for param in ALL if param not in ANSWERABLE]
REPORT = [pytest.param(q, id=q.id) for q in questions("report") if q.answerable]


def says(text: str, answer: str) -> bool:
    """Whether the answer stands in the text as a whole word or figure."""
    return bool(re.search(rf"(?<![\w.,]){re.escape(answer)}(?!\w|[.,]\d)", text))


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower())) - STOP


def sections(markdown: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", markdown, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@cache
def pdf_pages() -> list[str]:
    from pypdfium2 import PdfDocument  # type: ignore[import-untyped]  # it ships no types

    with PdfDocument(example_document("pdf")) as pdf:
        return [page.get_textpage().get_text_range() for page in pdf]


def flat(text: str) -> str:
    """One line; U+FFFE is how pdfium writes a hyphen that broke a word."""
    return re.sub(r"\s+", " ", text.replace("\ufffe", ""))


@cache
def docx_text() -> str:
    from docx import Document

    document = Document(example_document("docx"))
    lines = [paragraph.text for paragraph in document.paragraphs]
    for table in document.tables:
        lines += [" ".join(cell.text for cell in row.cells) for row in table.rows]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "answerable", "unanswerable"), [("report", 15, 5), ("second", 10, 4)]
)
def test_each_text_has_its_questions(text: str, answerable: int, unanswerable: int) -> None:
    asked = questions(text)
    assert [q.answerable for q in asked] == [True] * answerable + [False] * unanswerable
    assert len({q.id for q in asked}) == len({q.question for q in asked}) == len(asked)


@pytest.mark.parametrize(("text", "q"), ANSWERABLE)
def test_the_answer_stands_in_its_section_and_in_no_other(text: str, q: Question) -> None:
    markdown = TEXTS[text].read_text(encoding="utf-8")
    assert [name for name, body in sections(markdown).items() if says(body, q.answer)] == [
        q.section
    ]


@pytest.mark.parametrize(("text", "q"), ANSWERABLE)
def test_the_question_shares_words_with_the_line_that_answers_it(text: str, q: Question) -> None:
    markdown = TEXTS[text].read_text(encoding="utf-8")
    (line,) = [line for line in markdown.splitlines() if says(line, q.answer)]
    assert len(words(line) & words(q.question)) >= 2
    assert q.question.rstrip("?").lower() not in line.lower()
    assert not says(q.question, q.answer)


@pytest.mark.parametrize(("text", "q"), UNANSWERABLE)
def test_a_question_without_an_answer_shares_at_most_one_word_with_the_text(
    text: str, q: Question
) -> None:
    assert (q.answer, q.page, q.section) == ("", None, None)
    assert len(words(TEXTS[text].read_text(encoding="utf-8")) & words(q.question)) <= 1


@pytest.mark.parametrize("q", REPORT)
def test_the_answer_stands_on_its_page_of_the_pdf_and_in_the_word_file(q: Question) -> None:
    pages = [number for number, page in enumerate(pdf_pages(), 1) if says(flat(page), q.answer)]
    assert pages == [q.page]
    assert says(docx_text(), q.answer)


def test_all_formats_hold_the_same_words_in_the_same_order() -> None:
    source = Path(example_document("md")).read_text(encoding="utf-8")
    body = [re.sub(r"^.*\r?\n.*\r?\n", "", page) for page in pdf_pages()]  # header, page number
    in_pdf = re.findall(r"\w+", flat(" ".join(body)))
    assert in_pdf == re.findall(r"\w+", source)
    assert sorted(re.findall(r"\w+", docx_text())) == sorted(in_pdf)


def test_the_pdf_looks_like_a_report() -> None:
    pages = pdf_pages()
    assert len(pages) == 4
    for number, page in enumerate(pages, 1):
        assert page.startswith(f"Ardenvoe Ferries plc Annual Report 2025\r\nPage {number}\r\n")
    assert sum(page.count("\ufffe") for page in pages) >= 3  # words broken at the end of a line


def test_the_word_file_has_headings_by_style_and_real_tables() -> None:
    from docx import Document

    document = Document(example_document("docx"))
    styles = [cast(Any, paragraph.style).name for paragraph in document.paragraphs]
    markdown = Path(example_document("md")).read_text(encoding="utf-8")
    assert styles.count("Heading 1") == 1
    assert styles.count("Heading 2") == len(sections(markdown)) == 9
    assert [len(table.rows) for table in document.tables] == [6, 5, 7, 7]


def test_building_the_report_again_gives_the_same_bytes(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "tools" / "build_report.py"))["main"](tmp_path)
    for name in ("report.pdf", "report.docx"):
        assert (tmp_path / name).read_bytes() == (
            Path(example_document()).parent / name
        ).read_bytes()


def test_the_example_is_a_pdf_unless_asked_otherwise() -> None:
    assert example_document() == example_document("pdf")
    assert Path(example_document()).read_bytes().startswith(b"%PDF-")
    assert Path(example_document("docx")).read_bytes().startswith(b"PK")


@pytest.mark.parametrize("format", ["txt", "PDF", "", "../report.pdf"])
def test_an_example_in_another_format_is_refused(format: str) -> None:  # noqa: A002
    with pytest.raises(BadSettingError, match="pdf, md, docx"):
        example_document(cast(Format, format))
