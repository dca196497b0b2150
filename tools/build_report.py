"""Write the packaged example report as PDF and DOCX from its Markdown, byte for byte the same.

    python tools/build_report.py [folder]

Without a folder the files beside report.md are rewritten. Needs reportlab and python-docx.
"""

import datetime
import io
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

DATA = Path(__file__).parent.parent / "core" / "harness_core" / "data"
COMPANY, TITLE = "Ardenvoe Ferries plc", "Annual Report 2025"
NAVY = (0.08, 0.2, 0.36)
PUBLISHED = datetime.datetime(2025, 12, 15, 9, 0, 0)  # without a zone, as Word keeps it

# Where a word may be broken at the end of a line. A report with no broken words would hide what
# an extractor does with them.
BREAKS = """
    ap-pren-tices ap-proached back-dated berth-ing book-ings bor-row-ings can-cel-la-tions
    char-tered com-mit-tee com-pared con-sid-ers de-pre-ci-a-tion deriv-a-tives dif-fi-cult
    div-i-dend div-i-dends em-ployed ex-pen-di-ture ex-plained fin-ished fol-lows gen-er-ated
    har-bour in-de-pen-dent in-stal-ments in-ter-est in-ter-im in-tru-sion li-a-bil-i-ties
    nev-er-the-less op-er-at-ing op-er-a-tions pas-sen-ger pas-sen-gers pro-ceeds punc-tu-al-ity
    quar-ries rec-og-nised rec-om-men-da-tions re-ceded re-main-ing re-place-ment rep-u-ta-tion
    sched-uled set-tle-ment suc-ces-sion time-table time-tables trail-ers un-ac-com-pa-nied
    un-changed un-dam-aged
"""
SOFT = {word.replace("-", ""): word.replace("-", "\u00ad") for word in BREAKS.split()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A heading (level 1 or 2), a paragraph, a bullet, a caption or a table."""

    kind: str
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


def parts(markdown: str) -> Iterator[Part]:
    """Read the little Markdown that the report uses."""
    for block in re.split(r"\n\s*\n", markdown.strip()):
        if heading := re.fullmatch(r"(#+) (.+)", block):
            yield Part(kind="heading", text=heading[2], level=len(heading[1]))
        elif block.startswith("|"):
            lines = [line for line in block.splitlines() if not re.fullmatch(r"[|-]+", line)]
            cells = (tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines)
            yield Part(kind="table", rows=tuple(cells))
        elif block.startswith("- "):
            yield from (Part(kind="bullet", text=line[2:]) for line in block.splitlines())
        else:
            kind = "caption" if re.match(r"Table \d+: ", block) else "paragraph"
            yield Part(kind=kind, text=block)


# --- PDF ----------------------------------------------------------------------------------------


def pdf(report: list[Part]) -> bytes:
    """The report on A4 with running header and footer."""
    # reportlab ships no types
    from reportlab.lib.pagesizes import A4  # type: ignore[import-untyped]
    from reportlab.lib.units import mm  # type: ignore[import-untyped]
    from reportlab.platypus import SimpleDocTemplate  # type: ignore[import-untyped]

    out = io.BytesIO()
    template = SimpleDocTemplate(
        out,
        pagesize=A4,
        leftMargin=32 * mm,
        rightMargin=32 * mm,
        topMargin=30 * mm,
        bottomMargin=27 * mm,
        title=f"{COMPANY}: {TITLE}",
        author=COMPANY,
        subject="A fictional report of an invented company",
        invariant=1,
        pageCompression=0,  # zlib builds differ in their bytes
    )
    template.build(_story(report), onFirstPage=_furniture, onLaterPages=_furniture)
    return out.getvalue()


def _furniture(canvas: Any, template: Any) -> None:
    left, right = template.leftMargin + 6, template.pagesize[0] - template.rightMargin - 6
    top, bottom = template.pagesize[1] - 54, 48
    canvas.saveState()
    canvas.setStrokeColorRGB(*NAVY)
    canvas.setLineWidth(0.6)
    canvas.line(left, top - 6, right, top - 6)
    canvas.setFont("Helvetica", 8)
    canvas.drawString(left, top, COMPANY)
    canvas.drawRightString(right, top, TITLE)
    canvas.drawCentredString((left + right) / 2, bottom, f"Page {template.page}")
    canvas.restoreState()


def _styles() -> dict[str, Any]:
    from reportlab.lib.colors import Color  # type: ignore[import-untyped]
    from reportlab.lib.enums import TA_JUSTIFY  # type: ignore[import-untyped]
    from reportlab.lib.styles import ParagraphStyle  # type: ignore[import-untyped]

    navy = Color(*NAVY)
    body = ParagraphStyle(
        "body",
        fontName="Times-Roman",
        fontSize=11,
        leading=14.5,
        spaceAfter=7,
        alignment=TA_JUSTIFY,
    )
    bold = ParagraphStyle("bold", fontName="Helvetica-Bold", keepWithNext=1)
    title = ParagraphStyle("title", bold, fontSize=18, leading=23, spaceAfter=12, textColor=navy)
    section = ParagraphStyle(
        "section", title, fontSize=13.5, leading=17, spaceBefore=11, spaceAfter=5
    )
    return {
        "heading1": title,
        "heading2": section,
        "paragraph": body,
        "bullet": ParagraphStyle("bullet", body, leftIndent=12, bulletIndent=2, spaceAfter=4),
        "caption": ParagraphStyle("caption", bold, fontSize=9, leading=12, spaceAfter=3),
    }


def _story(report: list[Part]) -> list[Any]:
    from reportlab.platypus import Paragraph, Spacer

    styles, story = _styles(), list[Any]()
    for part in report:
        if part.kind == "table":
            story += [_pdf_table(part.rows), Spacer(0, 10)]
            continue
        style = styles[f"heading{part.level}" if part.kind == "heading" else part.kind]
        text = escape(part.text)
        if part.kind in ("paragraph", "bullet"):
            text = re.sub(r"\w+", lambda word: SOFT.get(word[0], word[0]), text)
        story.append(Paragraph(text, style, bulletText="•" if part.kind == "bullet" else None))
    return story


def _pdf_table(rows: tuple[tuple[str, ...], ...]) -> Any:
    from reportlab.lib.colors import Color, white
    from reportlab.platypus import Table

    navy, pale = Color(*NAVY), Color(0.93, 0.95, 0.98)
    looks: list[tuple[Any, ...]] = [
        ("FONT", (0, 0), (-1, 0), "Helvetica-Bold", 8.5),
        ("FONT", (0, 1), (-1, -1), "Helvetica", 8.5),
        ("BACKGROUND", (0, 0), (-1, 0), navy),
        ("TEXTCOLOR", (0, 0), (-1, 0), white),
        ("ROWBACKGROUNDS", (0, 1), (-1, -1), [white, pale]),
        ("LINEBELOW", (0, -1), (-1, -1), 0.6, navy),
        ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
    ]
    looks += [("ALIGN", (column, 0), (column, -1), "RIGHT") for column in _numeric(rows)]
    if rows[-1][0] == "Total":
        looks.append(("FONT", (0, -1), (-1, -1), "Helvetica-Bold", 8.5))
    return Table(rows, repeatRows=1, hAlign="LEFT", style=looks)


def _numeric(rows: tuple[tuple[str, ...], ...]) -> list[int]:
    return [i for i, cell in enumerate(rows[1]) if re.fullmatch(r"-?[\d.,]+", cell)]


# --- DOCX ---------------------------------------------------------------------------------------


def docx(report: list[Part]) -> bytes:
    """The report with Word's own heading, list and table styles."""
    from docx import Document

    document = Document()
    document.sections[0].header.paragraphs[0].text = f"{COMPANY}\t\t{TITLE}"
    for part in report:
        match part.kind:
            case "heading":
                document.add_heading(part.text, level=part.level)
            case "bullet":
                document.add_paragraph(part.text, style="List Bullet")
            case "caption":
                document.add_paragraph(
                    part.text, style="Caption"
                ).paragraph_format.keep_with_next = True
            case "table":
                _docx_table(document, part.rows)
            case _:
                document.add_paragraph(part.text)
    known = document.core_properties
    known.title, known.author, known.last_modified_by = f"{COMPANY}: {TITLE}", COMPANY, COMPANY
    known.comments, known.revision = "A fictional report of an invented company", 1
    known.created = known.modified = PUBLISHED
    out = io.BytesIO()
    document.save(out)
    return _timeless(out.getvalue())


def _docx_table(document: Any, rows: tuple[tuple[str, ...], ...]) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH

    table = document.add_table(rows=len(rows), cols=len(rows[0]), style="Light Grid Accent 1")
    numeric = _numeric(rows)
    for cells, row in zip(rows, table.rows, strict=True):
        for i, text in enumerate(cells):
            row.cells[i].text = text
            if i in numeric:
                row.cells[i].paragraphs[0].alignment = WD_ALIGN_PARAGRAPH.RIGHT
    document.add_paragraph()


def _timeless(archive: bytes) -> bytes:
    """The same members in the same order, without the clock."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            new.writestr(member, old.read(name), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def main(folder: Path = DATA) -> None:
    """Write report.pdf and report.docx into ``folder``."""
    report = list(parts((DATA / "report.md").read_text(encoding="utf-8")))
    (folder / "report.pdf").write_bytes(pdf(report))
    (folder / "report.docx").write_bytes(docx(report))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
