"""PDF files: paragraphs, table rows, headings, running heads, pages that hold no text."""

from pathlib import Path
from typing import Any

import pytest

from harness_core.documents import Document, ingest
from harness_core.errors import (
    BrokenDocumentError,
    EmptyDocumentError,
    EncryptedDocumentError,
    OcrUnavailableWarning,
)
from harness_core.example import example_document

NO_OCR = {"ocr": "never", "min_chars": 1}
LONG = "This line is long enough to reach the right edge of the column of text here"


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def kinds(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in document.blocks]


# --- a report as a word processor writes it -------------------------------------------------------


def test_a_report_reads_as_its_author_wrote_it(report: Path) -> None:
    document = ingest(report)
    first = [block for block in document.blocks if block.page == 2]
    assert [(block.kind, block.text[:24]) for block in first] == [
        ("heading", "Part 2"),
        ("body", "Opening 2. Instruments w"),
        ("body", "Closing 2. Instruments w"),
        ("table", "Plant | Units | Staff"),
        ("table", "Sheffield | 12,402 | 214"),
        ("table", "Leipzig with its branch "),
        ("body", "\u2022 first point of part 2,"),
    ]
    assert {block.section for block in first} == {"Part 2"}
    assert (document.stats["pages"], document.unread_pages) == (4, ())


def test_wrapped_lines_are_rejoined_word_by_word(report: Path) -> None:
    opening = next(text for text in texts(ingest(report)) if text.startswith("Opening 3."))
    line = (
        "Instruments were sold in every region of the country, and the margin on them improved as"
    )
    assert opening == f"Opening 3. {line} {line} {line} it had done before."


def test_a_wrapped_cell_stays_with_its_figures(report: Path) -> None:
    row = "Leipzig with its branch in the old harbour | 9,850 | 168"
    assert texts(ingest(report)).count(row) == 4


def test_running_heads_and_page_counts_are_no_text(report: Path) -> None:  # I32
    joined = ingest(report, "none").text
    assert "Halden Instruments, annual report" not in joined
    assert "of 4" not in joined


def test_the_raw_layout_keeps_every_line_and_knows_no_section(report: Path) -> None:
    document = ingest(report, {"layout": "raw", "clean": "none"})
    assert document.text.count("Halden Instruments, annual report") == 4
    assert {block.section for block in document.blocks} == {None}


def test_the_packaged_report_says_the_same_in_every_format() -> None:
    pdf, markdown, word = (ingest(example_document(form)) for form in ("pdf", "md", "docx"))
    titles = [[block.text.lstrip("# ") for block in document.blocks if block.kind == "heading"]
              for document in (pdf, markdown, word)]  # fmt: skip
    assert titles[0] == titles[1] == titles[2]
    prose = [block.text for block in markdown.blocks
             if block.kind == "body" and not block.text.startswith("- ")]  # fmt: skip
    assert len(prose) > 20
    for document in (pdf, word):
        whole = " ".join(texts(document))
        assert [text for text in prose if " ".join(text.split()) not in whole] == []
    rows = [[block.text for block in document.blocks if block.kind == "table"]
            for document in (pdf, word)]  # fmt: skip
    assert rows[0] == rows[1]


# --- paragraphs -----------------------------------------------------------------------------------


def test_a_wider_gap_parts_paragraphs_and_no_page_mark_enters_the_text(pdf: Any) -> None:  # I20
    page = [LONG, "and ends here.", "", "A second paragraph", "on two lines."]
    document = ingest(pdf([page, [LONG]]), NO_OCR)
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, f"{LONG} and ends here."),
        (1, "A second paragraph\non two lines."),
        (2, LONG),
    ]


def test_an_indent_or_a_short_last_line_parts_paragraphs(pdf: Any) -> None:
    indented = [(72, 760, LONG), (72, 748, f"{LONG[:-1]}."), (90, 736, "Next one begins here")]
    assert texts(ingest(pdf([indented]), NO_OCR)) == [f"{LONG} {LONG[:-1]}.", indented[2][2]]
    short = [LONG, "it ends.", LONG]
    assert texts(ingest(pdf([short], name="b.pdf"), NO_OCR)) == [f"{LONG} it ends.", LONG]


def test_list_items_are_blocks_of_their_own(pdf: Any) -> None:
    page = [LONG + ":", "\u2022 one", "\u2022 two", "1. three"]
    assert texts(ingest(pdf([page]), NO_OCR)) == page


def test_a_divided_word_is_rejoined_and_a_compound_is_not(pdf: Any) -> None:
    page = [
        "The exam-",
        "ple was 18-",
        "65 years; a follow-up is a follow-",
        "up and Anglo-",
        "Saxon",
    ]
    joined = ingest(pdf([page]), NO_OCR).text
    assert joined == "The example was 18-\n65 years; a follow-up is a follow-up and Anglo-\nSaxon"


def test_a_word_divided_between_pages_moves_back_alone(pdf: Any) -> None:
    document = ingest(pdf([[LONG + " exam-"], ["ple and more text", "here"]]), NO_OCR)
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, f"{LONG} example"),
        (2, "and more text here"),
    ]


def test_columns_are_read_one_after_the_other(pdf: Any) -> None:  # I31
    left = [(60, 760 - 12 * n, f"left words number {n} go on") for n in range(12)]
    right = [(320, 760 - 12 * n, f"right words number {n} go on") for n in range(12)]
    joined = ingest(pdf([left + right]), NO_OCR).text
    assert joined.index("left words number 11") < joined.index("right words number 0")
    assert " | " not in joined


def test_a_sideways_page_is_read_along_its_lines(tmp_path: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    path = tmp_path / "turned.pdf"
    drawing = canvas.Canvas(str(path), pagesize=(600, 800))
    drawing.setPageRotation(90)
    drawing.rotate(90)
    for at, line in enumerate([LONG, "and ends here.", "", "Region"]):
        drawing.drawString(50, -100 - 12 * at, line)
    drawing.drawString(300, -136, "12,400")
    drawing.save()
    assert texts(ingest(path, NO_OCR)) == [f"{LONG} and ends here.", "Region | 12,400"]


# --- tables ---------------------------------------------------------------------------------------


def test_a_row_drawn_cell_by_cell_is_one_line(pdf: Any) -> None:  # I31
    rows = [("Region", "Units", "2024"), ("North", "12,400", "3.1"), ("South", "9,850", "")]
    page = [
        (60 + 120 * column, 700 - 14 * at, cell)
        for at, row in enumerate(rows)
        for column, cell in enumerate(row)
    ]
    expected = ["Region | Units | 2024", "North | 12,400 | 3.1", "South | 9,850"]
    assert kinds(ingest(pdf([page]), NO_OCR)) == [("table", row) for row in expected]


def test_columns_of_figures_drawn_one_by_one_become_rows(pdf: Any) -> None:
    columns = [("Region", "North", "South"), ("Units", "12,400", "9,850")]
    page = [
        (60 + 140 * column, 700 - 14 * at, cell)
        for column, cells in enumerate(columns)
        for at, cell in enumerate(cells)
    ]
    assert texts(ingest(pdf([page]), NO_OCR)) == [
        "Region | Units", "North | 12,400", "South | 9,850",
    ]  # fmt: skip


def test_a_list_marker_is_no_cell(pdf: Any) -> None:
    page = [(60, 700, "1."), (90, 700, "The first point of the list")]
    assert texts(ingest(pdf([page]), NO_OCR)) == ["1. The first point of the list"]


def test_a_table_over_pages_keeps_its_edge_rows(pdf: Any) -> None:  # I32
    def page(start: int) -> list[tuple[float, float, str]]:
        rows = [("Region", "Units"), *((f"Town {n}", f"{n * 37}") for n in range(start, start + 5))]
        return [
            (60 + 160 * column, 760 - 14 * at, cell)
            for at, row in enumerate(rows)
            for column, cell in enumerate(row)
        ]

    found = texts(ingest(pdf([page(1), page(6), page(11)]), NO_OCR))
    assert found.count("Region | Units") == 3
    assert [row for row in found if row.startswith("Town")] == [
        f"Town {n} | {n * 37}" for n in range(1, 16)
    ]


# --- headings -------------------------------------------------------------------------------------


def test_standard_names_are_headings_and_the_end_of_a_sentence_is_not(pdf: Any) -> None:  # I33
    page = ["2.1 Methods", LONG, "led to these", "findings.", "", "R ESULTS", "All was well."]
    document = ingest(pdf([page]), NO_OCR)
    assert [(block.kind, block.section) for block in document.blocks] == [
        ("heading", "2.1 Methods"),
        ("body", "2.1 Methods"),
        ("heading", "R ESULTS"),
        ("body", "R ESULTS"),
    ]
    assert document.blocks[1].text.endswith("findings.")


def test_bookmarks_are_headings(pdf: Any) -> None:
    page = ["Costs and margins", LONG, "it ends.", "", "Other words"]
    document = ingest(pdf([page, [LONG]], bookmarks=[(0, "Costs and margins")]), NO_OCR)
    assert document.blocks[0].kind == "heading"
    assert {block.section for block in document.blocks} == {"Costs and margins"}


def test_a_table_of_contents_keeps_its_lines_and_heads_nothing(pdf: Any) -> None:
    page = ["1 Costs . . . . . . . . . . . . . . . 4", "2 Margins . . . . . . . . . . . . . . 9"]
    assert kinds(ingest(pdf([page]), NO_OCR)) == [("body", "\n".join(page))]


# --- pages without text ---------------------------------------------------------------------------


def test_pages_without_text_are_told_when_no_ocr_is_there(
    pdf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # I13, I14, I15
    from harness_core.documents import ocr

    monkeypatch.setattr(ocr, "available", lambda: False)
    path = pdf([[LONG, LONG], [], ["Cover"], []])
    with pytest.warns(OcrUnavailableWarning, match="2, 3, 4"):
        document = ingest(path)
    assert document.unread_pages == (2, 4)
    assert document.stats["pages"] == 4
    assert [name for name, _ in document.warnings] == ["OcrUnavailableWarning"]
    again = ingest(path)
    assert (again.unread_pages, again.warnings) == (document.unread_pages, document.warnings)


def test_a_page_that_holds_only_a_stamp_is_unread(pdf: Any) -> None:  # I16
    stamp = (60, 20, "RECEIVED REGISTRY")
    document = ingest(pdf([[LONG, LONG, stamp], [stamp], [stamp]]), NO_OCR)
    assert document.unread_pages == (2, 3)
    assert ingest(pdf([[LONG, stamp], [stamp], [stamp]]), {**NO_OCR, "layout": "raw"}
                  ).unread_pages == (2, 3)  # fmt: skip


def test_numbered_stamps_are_unread_too(pdf: Any) -> None:  # I16
    pages = [[LONG, LONG, (60, 20, "ABC000101")], [(60, 20, "ABC000102")], [(60, 20, "ABC000103")]]
    assert ingest(pdf(pages), NO_OCR).unread_pages == (2, 3)


def test_a_scan_without_ocr_is_refused_with_its_pages_counted(pdf: Any) -> None:
    with pytest.raises(EmptyDocumentError, match="2 page"):
        ingest(pdf([[], []]), {"ocr": "never"})


def test_trailing_pages_without_blocks_still_count(pdf: Any) -> None:  # I18
    document = ingest(pdf([[LONG, LONG], ["[ 2 ]"]]), {"min_chars": 1, "ocr": "never"})
    assert {block.page for block in document.blocks} == {1}
    assert document.stats["pages"] == 2


# --- files that cannot be read --------------------------------------------------------------------


def test_a_password_is_told(pdf: Any) -> None:
    encryption = pytest.importorskip("reportlab.lib.pdfencrypt").StandardEncryption
    path = pdf([[LONG]], encrypt=encryption("secret", "owner"))
    with pytest.raises(EncryptedDocumentError, match=r"made\.pdf"):
        ingest(path)
    open_ = pdf([[LONG]], name="open.pdf", encrypt=encryption("", "owner"))
    assert ingest(open_, NO_OCR).text == LONG


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"<html>not a pdf</html>", "no PDF"),
        (b"", "empty"),
        (b"PK\x03\x04....", "ZIP"),
        (b"%PDF-1.4\nbroken off", "damaged PDF"),
    ],
)
def test_what_is_no_pdf_is_named(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    with pytest.raises(BrokenDocumentError, match=found):
        ingest(path)


def test_documents_may_be_read_from_several_threads_at_once(report: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from harness_core.config import override

    def read(_: int) -> int:
        with override(cache_documents=False):
            return len(ingest(report).blocks)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, range(8))) == {28}
