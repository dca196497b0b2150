"""The body of a Word file: paragraphs, tables, text boxes and notes, in reading order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import Element

from harness_core.documents.extractors.docx_styles import Styles
from harness_core.documents.extractors.docx_symbols import symbol
from harness_core.documents.paragraphs import visible
from harness_core.documents.running import CELL
from harness_core.documents.types import Block

_SPACE = re.compile(r"[ \t\n\r]+")
_GONE: Final = frozenset({"moveFrom", "del", "Fallback", "pPr", "rPr", "tblPr", "delText"})
_SPACES: Final = frozenset({"tab", "br", "cr", "ptab"})
_NOTES: Final = {"footnoteReference": "Footnote", "endnoteReference": "Endnote"}


def plain_names(root: Element) -> None:
    """Strip namespaces: the transitional and the strict ones then read alike."""
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
        for name in [name for name in element.attrib if name[0] == "{"]:
            element.attrib[name.rpartition("}")[2]] = element.attrib.pop(name)


@dataclass(slots=True)
class _Found:
    """What a paragraph or a cell is made of: its text, and what is read after it."""

    text: list[str] = field(default_factory=list)
    boxes: list[Element] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def line(self) -> str:
        return _SPACE.sub(" ", "".join(self.text)).strip(" ")


class Body:
    """Reads one document; notes are numbered by their first citation."""

    def __init__(
        self, *, styles: Styles, footnotes: Element | None, endnotes: Element | None
    ) -> None:
        self._styles = styles
        self._notes = {"Footnote": _notes(footnotes), "Endnote": _notes(endnotes)}
        self._numbers: dict[tuple[str, str], int] = {}
        self._section: str | None = None

    def blocks(self, document: Element) -> Iterator[Block]:
        """Every block of the document; notes nobody cites come last, without a section."""
        body = document.find("body")
        yield from self._content(document if body is None else body)
        self._section = None
        for label, notes in self._notes.items():
            for note in notes:
                if (label, note) not in self._numbers:
                    yield from self._note(label, note)

    def _content(self, parent: Element) -> Iterator[Block]:
        for child in parent:
            if child.tag == "p":
                yield from self._paragraph(child)
            elif child.tag == "tbl":
                yield from self._table(child)
            elif child.tag not in _GONE:
                yield from self._content(child)  # content controls, insertions, custom XML

    def _paragraph(self, paragraph: Element) -> Iterator[Block]:
        found = _Found()
        _collect(paragraph, found)
        text = found.line()
        heading = self._styles.is_heading(paragraph.find("pPr")) and visible(text)
        if heading:
            self._section = text
        yield Block(text=text, section=self._section, kind="heading" if heading else "body")
        yield from self._after(found)

    def _after(self, found: _Found) -> Iterator[Block]:
        for label, note in found.notes:
            if (label, note) not in self._numbers:
                yield from self._note(label, note)
        for box in found.boxes:
            yield from self._content(box)

    def _note(self, label: str, note: str) -> Iterator[Block]:
        self._numbers[label, note] = number = 1 + sum(kind == label for kind, _ in self._numbers)
        text = self._notes[label].get(note, "")
        if visible(text):
            yield Block(text=f"[{label} {number}] {text}", section=self._section, kind="footnote")

    def _table(self, table: Element) -> Iterator[Block]:
        for row in _through_controls(table, "tr"):
            cells: list[str] = []
            whole, nested = _Found(), list[Element]()
            for cell in _through_controls(row, "tc"):
                found = _Found()
                _collect(cell, found, nested)
                cells.append(found.line())
                whole.boxes += found.boxes
                whole.notes += found.notes
            if any(map(visible, cells)):
                yield Block(text=CELL.join(cells), section=self._section, kind="table")
            yield from self._after(whole)
            for inner in nested:
                yield from self._table(inner)


def _through_controls(parent: Element, wanted: str) -> Iterator[Element]:
    """The rows of a table or the cells of a row, those inside content controls included."""
    for child in parent:
        if child.tag == wanted:
            yield child
        elif child.tag not in _GONE and child.tag not in ("tbl", "p"):
            yield from _through_controls(child, wanted)


def _collect(element: Element, found: _Found, nested: list[Element] | None = None) -> None:
    """Gather text, text boxes, note citations and, in a cell, nested tables."""
    for child in element:
        tag = child.tag
        if tag == "t":
            found.text.append(child.text or "")
        elif tag == "txbxContent":
            found.boxes.append(child)
        elif tag == "tbl" and nested is not None:
            nested.append(child)
        elif tag in _NOTES:
            found.notes.append((_NOTES[tag], child.get("id", "")))
        elif tag not in _GONE:
            _collect_inner(child, found, nested)


def _collect_inner(child: Element, found: _Found, nested: list[Element] | None) -> None:
    sign = _sign(child)
    if sign is not None:
        found.text.append(sign)
        return
    _collect(child, found, nested)
    if child.tag == "p":
        found.text.append(" ")


def _sign(element: Element) -> str | None:
    """The character an empty element stands for."""
    if element.tag in _SPACES:
        return " "
    if element.tag == "noBreakHyphen":
        return "-"
    if element.tag == "sym":
        return symbol(element.get("font", ""), element.get("char", ""))
    return None


def _notes(root: Element | None) -> dict[str, str]:
    """The text of each note by id; separators are no notes."""
    found: dict[str, str] = {}
    for note in () if root is None else root:
        if note.tag in ("footnote", "endnote") and note.get("type", "normal") == "normal":
            text = _Found()
            _collect(note, text)
            found[note.get("id", "")] = text.line()
    return found
