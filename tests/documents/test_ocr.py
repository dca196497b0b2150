"""Pages and images read by OCR: which pages, and what happens where it fails."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from harness_core.documents import ingest, ocr
from harness_core.documents.extractors import image as images
from harness_core.errors import (
    BrokenDocumentError,
    DocxMediaSkippedWarning,
    MissingDepError,
    OcrFailedWarning,
)

LONG = "This page was born digital and has a text layer of its own, long enough to count"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> list[str | Exception]:
    """An engine that says these things, one a picture."""
    says: list[str | Exception] = []

    def recognise(picture: Any, language: str) -> str | Exception:
        assert language == "eng"
        assert picture.size[0] > 100
        return says.pop(0) if says else "recognised text of a page"

    monkeypatch.setattr(ocr, "available", lambda: True)
    monkeypatch.setattr(ocr, "recognise", recognise)
    return says


SPEC = {"min_chars": 1, "ocr_dpi": 36, "parallel": False}


def test_only_pages_without_enough_text_are_recognised(pdf: Any, engine: Any) -> None:  # I13
    document = ingest(pdf([[], [LONG], ["thin"]]), SPEC)
    assert [(block.page, block.kind, block.text) for block in document.blocks] == [
        (1, "ocr", "recognised text of a page"),
        (2, "body", LONG),
        (3, "ocr", "recognised text of a page"),
    ]
    assert document.unread_pages == ()


@pytest.mark.parametrize("threshold", [float("inf"), 1000])
def test_the_threshold_decides(pdf: Any, engine: Any, threshold: float) -> None:
    document = ingest(pdf([[LONG]]), {**SPEC, "ocr_min_chars": threshold})
    assert [block.kind for block in document.blocks] == ["ocr"]


def test_never_recognises_nothing(pdf: Any, engine: Any) -> None:
    document = ingest(pdf([[LONG], []]), {**SPEC, "ocr": "never"})
    assert (document.text, document.unread_pages) == (LONG, (2,))


def test_a_page_whose_ocr_fails_keeps_its_text(pdf: Any, engine: Any) -> None:  # I17
    engine += [ValueError("no such language"), RuntimeError("time is up")]
    with pytest.warns(OcrFailedWarning) as caught:
        document = ingest(pdf([[LONG], []]), {**SPEC, "ocr": "always"})
    assert len(caught) == 2
    assert document.text == LONG
    assert document.unread_pages == (2,)
    assert [name for name, _ in document.warnings] == ["OcrFailedWarning"] * 2


def test_recognised_pages_come_in_order_at_any_width(pdf: Any, engine: Any) -> None:
    engine += ["alpha page", "beta page", "gamma page"]
    document = ingest(pdf([[]] * 3), SPEC)
    assert document.text == "alpha page\n\nbeta page\n\ngamma page"
    wide = ingest(pdf([[]] * 6, name="b.pdf"), {**SPEC, "parallel": True, "layout": "raw"})
    assert [block.page for block in wide.blocks] == [1, 2, 3, 4, 5, 6]


def test_an_image_without_the_program_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"")
    monkeypatch.setattr(ocr, "available", lambda: False)
    with pytest.raises(MissingDepError, match="tesseract"):
        ingest(path)


def test_an_image_that_is_none_is_named(tmp_path: Path, engine: Any) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"%PDF-1.7")
    with pytest.raises(BrokenDocumentError, match="a PDF"):
        ingest(path)


def test_every_frame_of_an_image_is_a_page(tmp_path: Path, engine: Any) -> None:
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "a.tiff"
    frames = [image.new("L", (200, 100), 255 - n) for n in range(2)]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    document = ingest(path, SPEC)
    assert [(block.page, block.kind) for block in document.blocks] == [(1, "ocr"), (2, "ocr")]
    assert len(images._frames(path)) == 2


def test_images_of_a_word_file_are_recognised_within_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    from harness_core.documents.extractors import docx

    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "word/document.xml",
            '<w:d xmlns:w="w"><w:body><w:p><w:r><w:t>body text</w:t></w:r></w:p></w:body></w:d>',
        )
        archive.writestr("word/media/1.png", b"x" * 200)
        archive.writestr("word/media/2.png", b"x" * 800)
    monkeypatch.setattr(docx, "ocr_available", lambda: True)
    monkeypatch.setattr(docx, "recognise", lambda data, language: f"picture of {len(data)}")
    monkeypatch.setattr(docx, "_LIMIT", 900)
    with pytest.warns(DocxMediaSkippedWarning):
        document = ingest(path, SPEC)
    assert [(block.kind, block.section, block.text) for block in document.blocks] == [
        ("body", None, "body text"),
        ("ocr", "[embedded images]", "picture of 200"),
    ]


# --- with the program -----------------------------------------------------------------------------


@pytest.mark.service
@pytest.mark.skipif(shutil.which("tesseract") is None, reason="needs the program tesseract")
def test_a_scanned_page_is_read(tmp_path: Path, report: Path) -> None:
    pypdfium2 = pytest.importorskip("pypdfium2")
    pytest.importorskip("pytesseract")
    scan = tmp_path / "scan.pdf"
    source = pypdfium2.PdfDocument(report)
    page = source[1]
    page.render(scale=3).to_pil().convert("L").save(scan, resolution=216)
    page.close()
    source.close()
    document = ingest(scan)
    assert "Sheffield" in document.text
    assert "Instruments were sold in every region" in document.text.replace("\n", " ")
    assert (document.unread_pages, document.blocks[0].page) == ((), 1)
    with pytest.warns(OcrFailedWarning), pytest.raises(Exception, match="OCR"):
        ingest(scan, {"ocr_lang": "zzz"})
