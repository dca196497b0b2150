"""The text of PDF pages as lines with a place, in the order in which the producer wrote them.

Text and line ends come from PDFium in one call a page; places are asked for a line at a time, so
that reading a page costs little more than its text alone.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from ctypes import byref, c_double, c_int, create_string_buffer
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

from harness_core.documents.decoding import signature
from harness_core.documents.running import CELL
from harness_core.errors import BrokenDocumentError, EncryptedDocumentError

PDFIUM: Final = threading.RLock()
"""PDFium may be used by one thread at a time."""

_PASSWORD, _SECURITY = 4, 5  # PDFium's error codes
_BREAK = re.compile("\r\n|[\r\n\x02\ufffe]")
_BLANK = re.compile(r" +")
_GAP = 0.9  # of the font size: a wider gap between two pieces of a line parts two cells
_MARKER = re.compile(
    r"(?:[\u2022\u2023\u25aa\u25ab\u25cf\u25cb\u25e6\uf0b7*\u2013\u2014-]"
    r"|\(?\w{1,3}[.)]|\d{1,2}(?:\.\d{1,2})*)\Z"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A cell of a line, or the whole of it; places in points from the left edge."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page: pieces from left to right, the baseline's height, the font size."""

    pieces: tuple[Piece, ...]
    text: str
    left: float
    right: float
    baseline: float
    size: float
    bold: bool = False

    @classmethod
    def of(cls, pieces: Sequence[Piece], baseline: float, size: float, *, bold: bool) -> Self:
        """The line made of ``pieces``, its cells told apart in its text."""
        text = CELL.join([piece.text for piece in pieces])
        return cls(tuple(pieces), text, pieces[0].left, pieces[-1].right, baseline, size, bold)


@dataclass(frozen=True, slots=True)
class Pages:
    """The lines of every page, and the bookmarks as (page from 0, title)."""

    lines: list[list[Line]]
    bookmarks: list[tuple[int, str]] = field(default_factory=list)


def opened(path: Path) -> Any:
    """The PDF; the caller holds ``PDFIUM`` and closes it.

    Raises:
        EncryptedDocumentError: it asks for a password.
        BrokenDocumentError: no PDF, or a damaged one.
    """
    import pypdfium2  # type: ignore[import-untyped]  # it ships no types

    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (_PASSWORD, _SECURITY):
            raise EncryptedDocumentError(f"{path.name} asks for a password") from None
        raise BrokenDocumentError(f"{path.name} {_what_it_is(path)}") from None


def _what_it_is(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(1024)
    found = signature(head)
    if found == "a PDF" or b"%PDF-" in head:
        return "is a damaged PDF"
    return f"is no PDF: it is {found or ('empty' if not head else 'something else')}"


def read_pages(path: Path) -> Pages:
    """The lines of every page.

    Raises:
        EncryptedDocumentError, BrokenDocumentError: as ``opened``; also a page that cannot be read.
    """
    import pypdfium2

    with PDFIUM:
        pdf = opened(path)
        try:
            pages = [_page_lines(pdf, number) for number in range(len(pdf))]
            return Pages(pages, list(_bookmarks(pdf)))
        except pypdfium2.PdfiumError as error:
            raise BrokenDocumentError(f"{path.name} is a damaged PDF: {error}") from None
        finally:
            pdf.close()


def _bookmarks(pdf: Any) -> Iterator[tuple[int, str]]:
    for mark in pdf.get_toc():
        target = mark.get_dest()
        index = None if target is None else target.get_index()
        if index is not None:
            yield index, mark.get_title()


def _page_lines(pdf: Any, number: int) -> list[Line]:
    page = pdf[number]
    try:
        text_page = page.get_textpage()
        try:
            return _level(list(_Reader(text_page, page.get_rotation()).lines()))
        finally:
            text_page.close()
    finally:
        page.close()


class _Reader:
    """Asks PDFium for the places of the lines of one page."""

    def __init__(self, text_page: Any, rotation: int) -> None:
        import pypdfium2.raw as pdfium  # type: ignore[import-untyped]  # it ships no types

        self._api = pdfium
        self._raw = text_page.raw
        self._text: str = text_page.get_text_range()
        self._rotation = rotation
        self._box = tuple(c_double() for _ in range(4))
        self._pointers = tuple(map(byref, self._box))
        self._matrix = pdfium.FS_MATRIX()
        self._flags = c_int()
        self._name = create_string_buffer(128)
        self._wide = not self._text.isascii() and max(self._text) > "\uffff"

    def lines(self) -> Iterator[Line]:
        start = 0
        for match in [*_BREAK.finditer(self._text), None]:
            end = match.start() if match else len(self._text)
            mark = "-" if match and match.group() in "\x02\ufffe" else ""
            text = self._text[start:end]
            if text.strip():
                yield self._line(start + len(text) - len(text.lstrip()), text.strip(), mark)
            start = match.end() if match else end

    def _line(self, start: int, text: str, mark: str) -> Line:
        first, last = self._char(start), self._char(start + len(text) - 1)
        spans = self._spans(first, last)
        self._api.FPDFText_GetCharOrigin(self._raw, first, *self._pointers[:2])
        baseline = self._turned(self._box[0].value, self._box[1].value)[1]
        middle = start + len(text) // 2
        size = self._size(self._char(middle - self._text[middle].isspace()))
        pieces = [Piece(text + mark, spans[0][0], spans[-1][1])]
        if len(spans) > 1 and any(b[0] - a[1] > _GAP * size for a, b in pairwise(spans)):
            pieces = self._cells(start, text + mark, pieces[0], size)
        bold = len(text) < 120 and self._bold(first) and self._bold(last)
        return Line.of(pieces, baseline, size, bold=bold)

    def _char(self, at: int) -> int:
        if self._wide:  # PDFium counts UTF-16 units
            at = len(self._text[:at].encode("utf-16-le")) // 2
        found: int = self._api.FPDFText_GetCharIndexFromTextIndex(self._raw, at)
        return max(found, 0)

    def _spans(self, first: int, last: int) -> list[tuple[float, float]]:
        """From where to where the text objects of a line reach."""
        count = self._api.FPDFText_CountRects(self._raw, first, last - first + 1)
        spans = []
        for number in range(count):
            self._api.FPDFText_GetRect(self._raw, number, *self._pointers)
            left, top, right, bottom = (value.value for value in self._box)
            ends = self._turned(left, bottom)[0], self._turned(right, top)[0]
            spans.append((min(ends), max(ends)))
        return spans or [(0.0, 0.0)]

    def _cells(self, start: int, text: str, whole: Piece, size: float) -> list[Piece]:
        """The line cut at its wide gaps; a list marker stays with its text."""
        pieces: list[Piece] = []
        begin, left = 0, whole.left
        for blank in _BLANK.finditer(text):
            gap = self._edge(start + blank.start() - 1)[1], self._edge(start + blank.end())[0]
            if gap[1] - gap[0] > _GAP * size:
                pieces.append(Piece(text[begin : blank.start()], left, gap[0]))
                begin, left = blank.end(), gap[1]
        pieces.append(Piece(text[begin:], left, whole.right))
        if len(pieces) == 2 and _MARKER.match(pieces[0].text):
            return [Piece(f"{pieces[0].text} {pieces[1].text}", whole.left, whole.right)]
        return pieces

    def _edge(self, at: int) -> tuple[float, float]:
        self._api.FPDFText_GetCharBox(self._raw, self._char(at), *self._pointers)
        left, right, bottom, top = (value.value for value in self._box)
        ends = self._turned(left, bottom)[0], self._turned(right, top)[0]
        return min(ends), max(ends)

    def _size(self, char: int) -> float:
        self._api.FPDFText_GetMatrix(self._raw, char, self._matrix)
        scale = (self._matrix.c**2 + self._matrix.d**2) ** 0.5
        return max(1.0, float(self._api.FPDFText_GetFontSize(self._raw, char)) * (scale or 1.0))

    def _bold(self, char: int) -> bool:
        self._api.FPDFText_GetFontInfo(self._raw, char, self._name, 128, self._flags)
        name = self._name.value.lower()
        return b"bold" in name or b"black" in name or b"heavy" in name

    def _turned(self, x: float, y: float) -> tuple[float, float]:
        """A place as it is seen on a page that is shown turned clockwise."""
        match self._rotation:
            case 90:
                return y, -x
            case 180:
                return -x, -y
            case 270:
                return -y, x
        return x, y


def _level(lines: list[Line]) -> list[Line]:
    """Lines that PDFium parted although one goes on right behind the other are one."""
    joined: list[Line] = []
    for line in lines:
        last = joined[-1] if joined else None
        if last is None or not _goes_on(last, line):
            joined.append(line)
            continue
        gap = line.left - last.right
        pieces = (*last.pieces, *line.pieces)
        if gap <= _GAP * last.size:
            blank = " " if gap > 0.15 * last.size else ""
            middle = Piece(
                last.pieces[-1].text + blank + line.pieces[0].text,
                last.pieces[-1].left,
                line.pieces[0].right,
            )
            pieces = (*last.pieces[:-1], middle, *line.pieces[1:])
        bold = last.bold and line.bold
        joined[-1] = Line.of(pieces, last.baseline, last.size, bold=bold)
    return joined


def _goes_on(last: Line, line: Line) -> bool:
    near = abs(last.baseline - line.baseline) < 0.3 * last.size
    return near and line.left > last.right - 0.2 * last.size
