"""Small files of every format, made for the test at hand."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_core.documents.cleaning import registry as cleaners
from harness_core.documents.extractors import registry as extractors

Text = tuple[float, float, str]  # (x, y from the bottom, text)
MakePdf = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_registrations() -> Iterator[None]:
    """What a test registers is gone after it."""
    kept = dict(cleaners._registered), dict(extractors._registered)
    yield
    for registry, before in zip((cleaners._registered, extractors._registered), kept, strict=True):
        registry.clear()
        registry.update(before)  # type: ignore[arg-type]  # each registry gets its own back


@pytest.fixture
def pdf(tmp_path: Path) -> MakePdf:
    """A PDF of pages, each a list of (x, y, text) or of text lines from the top."""
    from reportlab.pdfgen import canvas

    def make(
        pages: Sequence[Sequence[Text | str]],
        *,
        name: str = "made.pdf",
        bookmarks: Sequence[tuple[int, str]] = (),
        **options: Any,
    ) -> Path:
        path = tmp_path / name
        drawing = canvas.Canvas(str(path), **options)
        for number, page in enumerate(pages):
            drawing.setFont("Helvetica", 10)
            for at, line in enumerate(page):
                x, y, text = (72, 760 - 12 * at, line) if isinstance(line, str) else line
                drawing.drawString(x, y, text)
            for place, title in bookmarks:
                if place == number:
                    drawing.bookmarkPage(title)
                    drawing.addOutlineEntry(title, title, 0)
            drawing.showPage()
        drawing.save()
        return path

    return make


LINE = "Instruments were sold in every region of the country, and the margin on them improved as"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pages as a word processor lays them out: title, justified text, table, list, foot."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
    from reportlab.pdfgen.canvas import Canvas
    from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Table

    path = tmp_path_factory.mktemp("report") / "report.pdf"
    styles = getSampleStyleSheet()
    text = ParagraphStyle("text", parent=styles["BodyText"], alignment=4, fontName="Times-Roman")

    def frame(canvas: Canvas, document: SimpleDocTemplate) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 800, "Halden Instruments, annual report")
        canvas.drawRightString(520, 30, f"Page {document.page} of 4")

    story: list[Flowable] = []
    for page in range(1, 5):
        story += [
            Paragraph(f"Part {page}", styles["Heading1"]),
            Paragraph(f"Opening {page}. {LINE} {LINE} {LINE} it had done before.", text),
            Paragraph(f"Closing {page}. {LINE} {LINE} nobody had thought it would.", text),
            Table(
                [
                    ["Plant", "Units", "Staff"],
                    ["Sheffield", f"12,40{page}", "214"],
                    [Paragraph("Leipzig with its branch in the old harbour", text), "9,850", "168"],
                ],
                colWidths=[110, 90, 90],
            ),
            Paragraph("first point, which is long enough to fill a line of text on this page "
                      "and goes on.", styles["Bullet"], bulletText="\u2022"),
            PageBreak(),
        ]  # fmt: skip
    SimpleDocTemplate(str(path), pagesize=A4).build(story, onFirstPage=frame, onLaterPages=frame)
    return path
