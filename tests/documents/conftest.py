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
    mine, theirs = dict(cleaners._registered), dict(extractors._registered)
    yield
    cleaners._registered.clear()
    cleaners._registered.update(mine)
    extractors._registered.clear()
    extractors._registered.update(theirs)


@pytest.fixture
def pdf(tmp_path: Path) -> MakePdf:
    """A PDF of pages, each a list of (x, y, text) or of text lines from the top."""
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")

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


PLANT = "Leipzig with its branch in the old harbour"
LINE = "Instruments were sold in every region of the country, and the margin on them improved as"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pages as a word processor lays them out: title, justified text, table, list, foot."""
    sizes = pytest.importorskip("reportlab.lib.pagesizes")
    looks = pytest.importorskip("reportlab.lib.styles")
    parts = pytest.importorskip("reportlab.platypus")

    path = tmp_path_factory.mktemp("report") / "report.pdf"
    styles = looks.getSampleStyleSheet()
    text = looks.ParagraphStyle(
        "text", parent=styles["BodyText"], alignment=4, fontName="Times-Roman"
    )

    def frame(canvas: Any, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 800, "Halden Instruments, annual report")
        canvas.drawRightString(520, 30, f"Page {document.page} of 4")

    story: list[Any] = []
    for page in range(1, 5):
        story += [
            parts.Paragraph(f"Part {page}", styles["Heading1"]),
            parts.Paragraph(f"Opening {page}. {LINE} {LINE} {LINE} it had done before.", text),
            parts.Paragraph(f"Closing {page}. {LINE} {LINE} nobody had thought it would.", text),
            parts.Table(
                [
                    ["Plant", "Units", "Staff"],
                    ["Sheffield", f"12,40{page}", "214"],
                    [parts.Paragraph(PLANT, text), "9,850", "168"],
                ],
                colWidths=[110, 90, 90],
            ),
            parts.Paragraph(f"first point of part {page}, long enough to fill one line of text "
                    f"on the page and to go on with {page} more words.", styles["Bullet"],
                      bulletText="\u2022"),
            parts.PageBreak(),
        ]  # fmt: skip
    document = parts.SimpleDocTemplate(str(path), pagesize=sizes.A4)
    document.build(story, onFirstPage=frame, onLaterPages=frame)
    return path
