"""Word files: headings in any language, table rows, footnotes, text boxes, tracked changes."""

import contextlib
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_core.documents import ingest
from harness_core.documents.extractors import docx as word
from harness_core.documents.extractors.docx_symbols import symbol
from harness_core.errors import (
    BrokenDocumentError,
    EncryptedDocumentError,
    HarnessError,
    TooLargeError,
)

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
STRICT = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
SPEC = {"min_chars": 1, "ocr": "never"}


def p(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


Make = Callable[..., Path]


@pytest.fixture
def docx(tmp_path: Path) -> Make:
    def make(body: str, *, names: str = W, name: str = "a.docx", **parts: str) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            root = f"<w:document {names} {MC} {M}><w:body>{body}</w:body></w:document>"
            archive.writestr("word/document.xml", root)
            for part, text in parts.items():
                archive.writestr(f"word/{part}.xml", f"<w:{part} {names}>{text}</w:{part}>")
        return path

    return make


def rows(path: Path) -> list[tuple[str, str | None, str]]:
    return [(block.kind, block.section, block.text) for block in ingest(path, SPEC).blocks]


STYLES = """
<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:basedOn w:val="Mitte"/></w:style>
<w:style w:styleId="Mitte"><w:name w:val="Mitte"/><w:basedOn w:val="Oben"/></w:style>
<w:style w:styleId="Oben"><w:name w:val="Oben"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
<w:style w:styleId="A"><w:name w:val="A"/><w:basedOn w:val="B"/></w:style>
<w:style w:styleId="B"><w:name w:val="B"/><w:basedOn w:val="A"/></w:style>
"""


def test_headings_are_found_by_name_level_and_inheritance(docx: Make) -> None:  # I29
    level = "<w:pPr><w:outlineLvl w:val='0'/></w:pPr>"
    body = (
        p("Eins", "berschrift1") + p("Zwei", "Kapitel") + p("loop", "A") + p("Drei", "Heading7")
        + f"<w:p>{level}<w:r><w:t>Vier</w:t></w:r></w:p>"
    )  # fmt: skip
    assert rows(docx(body, styles=STYLES)) == [
        ("heading", "Eins", "Eins"),
        ("heading", "Zwei", "Zwei"),
        ("body", "Zwei", "loop"),
        ("heading", "Drei", "Drei"),
        ("heading", "Vier", "Vier"),
    ]


def test_a_table_is_a_block_a_row_with_nested_rows_after(docx: Make) -> None:  # I29
    nested = f"<w:tbl><w:tr><w:tc>{p('n')}</w:tc><w:tc>{p('m')}</w:tc></w:tr></w:tbl>"
    cell = f"<w:sdt><w:sdtContent><w:tc>{p('9,850')}</w:tc></w:sdtContent></w:sdt>"
    body = (
        f"<w:tbl><w:tr><w:tc>{p('Leipzig')}{p('works')}</w:tc>{cell}<w:tc>{nested}{p('x')}</w:tc>"
        f"</w:tr><w:tr><w:tc>{p('')}</w:tc></w:tr></w:tbl>"
    )
    assert rows(docx(body)) == [
        ("table", None, "Leipzig works | 9,850 | x"),
        ("table", None, "n | m"),
    ]


def test_footnotes_follow_the_paragraph_that_cites_them(docx: Make) -> None:  # I29
    notes = (
        '<w:footnote w:type="separator" w:id="0"><w:p><w:r><w:t>---</w:t></w:r></w:p></w:footnote>'
        + "".join(f'<w:footnote w:id="{n}">{p(f"note {n}")}</w:footnote>' for n in (1, 2, 3))
    )
    cite = '<w:p><w:r><w:t>Cited</w:t><w:footnoteReference w:id="{}"/></w:r></w:p>'
    body = p("Top", "Title") + cite.format(2) + cite.format(1) + cite.format(2) + p("end")
    assert rows(docx(body, footnotes=notes))[1:] == [
        ("body", "Top", "Cited"),
        ("footnote", "Top", "[Footnote 1] note 2"),
        ("body", "Top", "Cited"),
        ("footnote", "Top", "[Footnote 2] note 1"),
        ("body", "Top", "Cited"),
        ("body", "Top", "end"),
        ("footnote", None, "[Footnote 3] note 3"),
    ]


def test_a_text_box_is_read_once_after_its_anchor(docx: Make) -> None:  # I29
    box = f"<w:txbxContent>{p('in the box')}</w:txbxContent>"
    choice = (
        f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent>"
    )
    body = f"<w:p><w:r><w:t>anchor</w:t>{choice}</w:r><w:r><w:t> text</w:t></w:r></w:p>{p('end')}"
    assert [text for _, _, text in rows(docx(body))] == ["anchor text", "in the box", "end"]


RUNS = {
    "I29 a no-break hyphen": ("<w:t>10</w:t><w:noBreakHyphen/><w:t>15%</w:t>", "10-15%"),
    "I29 a symbol": (
        '<w:t>p </w:t><w:sym w:font="Symbol" w:char="F0A3"/><w:t> 0.05</w:t>',
        "p \u2264 0.05",
    ),
    "tabs and breaks are blanks": ("<w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t>", "a b c"),
    "an equation": ("<m:oMath><m:r><m:t>E=mc</m:t></m:r></m:oMath>", "E=mc"),
    "deleted and moved text": (
        "<w:t>kept</w:t><w:delText>gone</w:delText></w:r>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:r><w:t> on</w:t>",
        "kept on",
    ),
    "inserted text": ("<w:t>a</w:t></w:r><w:ins><w:r><w:t>b</w:t></w:r></w:ins><w:r>", "ab"),
}


@pytest.mark.parametrize(("runs", "expected"), RUNS.values(), ids=RUNS.keys())
def test_runs_become_text(docx: Make, runs: str, expected: str) -> None:
    assert rows(docx(f"<w:p><w:r>{runs}</w:r></w:p>")) == [("body", None, expected)]


def test_both_namespaces_read_alike(docx: Make) -> None:
    body = p("Head", "Title") + p("text")
    assert rows(docx(body)) == rows(docx(body, names=STRICT, name="b.docx"))


@pytest.mark.parametrize(
    ("font", "code", "expected"),
    [
        ("Symbol", "F061", "\u03b1"), ("Symbol", "B3", "\u2265"), ("Wingdings", "F0FC", " "),
        ("Arial", "2192", "\u2192"), ("Symbol", "zz", " "),
    ],
)  # fmt: skip
def test_symbols_are_characters(font: str, code: str, expected: str) -> None:
    assert symbol(font, code) == expected


def test_a_file_of_the_usual_library_is_read(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Results", 1)
    document.add_paragraph("Revenue rose to 45.2 million.")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        (cell for row in table.rows for cell in row.cells), ("a", "b", "1", "2"), strict=True
    ):
        cell.text = text
    document.save(str(tmp_path / "made.docx"))
    assert rows(tmp_path / "made.docx") == [
        ("heading", "Results", "Results"),
        ("body", "Results", "Revenue rose to 45.2 million."),
        ("table", "Results", "a | b"),
        ("table", "Results", "1 | 2"),
    ]


# --- sizes and damage -----------------------------------------------------------------------------


def test_only_the_parts_that_hold_text_are_unpacked(
    docx: Make, monkeypatch: pytest.MonkeyPatch
) -> None:  # I30
    path = docx(p("text of the document"))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/embeddings/huge.bin", b"\0" * 2_000_000)
    opened: list[str] = []
    real = zipfile.ZipFile.open

    def spy(self: zipfile.ZipFile, name: Any, *args: Any, **more: Any) -> Any:
        opened.append(name if isinstance(name, str) else name.filename)
        return real(self, name, *args, **more)

    monkeypatch.setattr(zipfile.ZipFile, "open", spy)
    assert ingest(path, SPEC).text == "text of the document"
    assert opened == ["word/document.xml"]


def test_too_much_text_is_refused_by_its_listed_size(
    docx: Make, monkeypatch: pytest.MonkeyPatch
) -> None:  # I30
    monkeypatch.setattr(word, "_LIMIT", 100)
    with pytest.raises(TooLargeError):
        ingest(docx(p("text " * 50)), SPEC)


def test_what_is_no_word_file_is_named(tmp_path: Path, docx: Make) -> None:
    path = tmp_path / "b.docx"
    path.write_bytes(b"%PDF-1.7 hello")
    with pytest.raises(BrokenDocumentError, match="a PDF"):
        ingest(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(EncryptedDocumentError):
        ingest(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.xml", "<a/>")
    with pytest.raises(BrokenDocumentError, match=re.escape("word/document.xml")):
        ingest(path)
    shutil.copy(docx("<w:p>"), path)
    with pytest.raises(BrokenDocumentError, match="damaged"):
        ingest(path)


def test_damage_anywhere_is_told_by_class(docx: Make) -> None:
    path = docx("".join(p(f"paragraph {n} of the file") for n in range(200)))
    whole = path.read_bytes()
    for at in range(0, len(whole), 23):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with contextlib.suppress(HarnessError):
            ingest(path, SPEC)
