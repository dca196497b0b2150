"""Rows of tables in a PDF: the pieces of one row, wrapped cells included, become one line."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_core.documents.extractors.pdf_lines import Line, Piece
from harness_core.documents.running import CELL

_LINES = 8  # a cell of more lines is a column of the page


@dataclass(slots=True)
class _Column:
    left: float
    right: float
    cells: list[tuple[float, str]] = field(default_factory=list)  # (baseline, text)


class Group:
    """Lines that belong together: a paragraph, a heading, or a row where text stands side by side.

    ``low`` and ``high`` are its outermost baselines, ``right`` its right edge.
    """

    __slots__ = ("high", "lines", "low", "right", "row")

    def __init__(self, line: Line) -> None:
        self.lines = [line]
        self.row = len(line.pieces) > 1
        self.low = self.high = line.baseline
        self.right = line.right

    def add(self, line: Line) -> None:
        """Take one more line."""
        self.row = self.row or len(line.pieces) > 1 or line.left > self.lines[-1].right
        self.lines.append(line)
        self.low, self.high = min(self.low, line.baseline), max(self.high, line.baseline)
        self.right = max(self.right, line.right)


def is_beside(group: Group, line: Line) -> bool:
    """Whether ``line`` stands right of the group, at its height: a further cell of the row."""
    near = 0.35 * line.size
    if line.baseline < group.low - near or line.baseline > group.high + near:
        return False
    if len(group.lines) > _LINES:
        return False
    if line.left > group.right + 0.5 * line.size:
        return True
    return group.row and line.left >= group.lines[-1].pieces[-1].left - line.size


def continues_row(group: Group, line: Line) -> bool:
    """Whether ``line``, close below a row, is the rest of a wrapped cell of it."""
    if len(line.pieces) > 1:
        return False
    columns = _columns(group)
    under = next((one for one in columns if abs(one.left - line.left) < 0.5 * line.size), None)
    if under is None or not any(char.isalpha() for char in under.cells[-1][1]):
        return False
    return line.text[0].islower() or (under is not columns[0] and len(under.cells[-1][1]) > 15)


def wraps_into_row(group: Group, line: Line) -> bool:
    """Whether the lines above a row are the beginning of its first cell."""
    aligned = abs(group.lines[-1].left - line.left) < 0.5 * line.size
    short = len(group.lines) <= 3 and group.right < line.pieces[1].left
    return aligned and short and line.text[0].islower()


def row_texts(group: Group) -> list[str]:
    """The row; several where whole columns were written one after the other."""
    columns = _columns(group)
    if _written_by_column(columns):
        cells = [[text for _, text in column.cells] for column in columns]
        return [CELL.join(row) for row in zip(*cells, strict=True)]
    return [CELL.join(" ".join(text for _, text in one.cells) for one in columns)]


def _columns(group: Group) -> list[_Column]:
    columns: list[_Column] = []
    pieces = [(line.baseline, piece) for line in group.lines for piece in line.pieces]
    for baseline, piece in sorted(pieces, key=lambda placed: -placed[0]):
        column = next((one for one in columns if _overlaps(one, piece)), None)
        if column is None:
            column = _Column(piece.left, piece.right)
            columns.append(column)
        column.cells.append((baseline, piece.text))
        column.left, column.right = min(column.left, piece.left), max(column.right, piece.right)
    return sorted(columns, key=lambda column: column.left)


def _overlaps(column: _Column, piece: Piece) -> bool:
    return piece.left < column.right and column.left < piece.right


def _written_by_column(columns: Sequence[_Column]) -> bool:
    """Several lines in each column, at the same heights, with a column of figures among them."""
    heights = [[round(baseline / 2) for baseline, _ in column.cells] for column in columns]
    if len(columns) < 2 or len(heights[0]) < 2 or any(one != heights[0] for one in heights):
        return False
    return any(
        2 * sum(any(char.isdigit() for char in text) for _, text in column.cells)
        >= len(column.cells)
        for column in columns[1:]
    )
