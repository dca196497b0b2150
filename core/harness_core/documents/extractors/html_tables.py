"""Which tables of a page hold data and which only lay it out, told in one pass over the page."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
BLOCKS: Final = HEADINGS | {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "form", "header",
    "hgroup", "hr", "html", "legend", "li", "main", "menu", "ol", "p", "pre", "section", "summary",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
SKIPPED: Final = frozenset({
    "footer", "head", "nav", "noscript", "script", "select", "style", "svg", "template", "title",
})  # fmt: skip
_LISTS: Final = frozenset({"ul", "ol", "dl", "menu", "dir"})
_GRID: Final = frozenset({"td", "th", "tr", "tbody", "thead", "tfoot", "caption", "body", "html"})


@dataclass(slots=True)
class _Cell:
    header: bool
    paragraphs: int = 0  # innermost block elements; a list or a nested table counts as one
    headings: int = 0
    chars: int = 0
    heading_chars: int = 0

    @property
    def mixed(self) -> bool:
        """A heading beside other content."""
        return self.headings > 0 and self.chars > self.heading_chars


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=list)
    open: bool = False  # whether a cell is being read

    @property
    def cells(self) -> list[_Cell]:
        return [cell for row in self.rows for cell in row]


def layout_tables(root: Any) -> set[Any]:
    """The tables under ``root`` that are read like the page around them."""
    return {element for element, table in _measured(root) if _lays_out(table)}


def _lays_out(table: _Table) -> bool:
    cells = table.cells
    if len(cells) == 1:
        return cells[0].paragraphs > 0
    body = [cell for cell in cells if not cell.header]
    stacked = sum(len(row) > 1 for row in table.rows) <= 1 and len(body) == len(cells)
    if stacked and any(cell.paragraphs >= 2 for cell in body):
        return True
    total = sum(cell.chars for cell in cells)
    mixed = [cell for cell in body if cell.mixed]
    return len(mixed) == 1 and 2 * mixed[0].chars >= total


def walk(root: Any) -> Iterator[tuple[str, Any, str]]:
    """(start | end | text, element, text) in document order, without what no reader sees."""
    from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

    walker = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walker:
        if event == "start" and element.tag in SKIPPED:
            walker.skip_subtree()
        elif event == "start":
            yield "start", element, ""
            if element.text:
                yield "text", element, element.text
        else:
            if event == "end" and element.tag not in SKIPPED:
                yield "end", element, ""
            if element.tail and element is not root:
                yield "text", element.getparent(), element.tail


def _measured(root: Any) -> Iterator[tuple[Any, _Table]]:
    open_tables: list[_Table] = []
    parents: list[bool] = []  # per open block: whether it holds another block
    lists = headings = 0
    for event, element, text in walk(root):
        tag, table = element.tag, open_tables[-1] if open_tables else None
        cell = table.rows[-1][-1] if table is not None and table.open else None
        if event == "text":
            if cell is not None:
                cell.chars += (size := len(text.strip()))
                cell.heading_chars += size if headings else 0
            continue
        change = 1 if event == "start" else -1
        lists += change if tag in _LISTS else 0
        headings += change if tag in HEADINGS else 0
        if event == "start":
            _enter(tag, table, open_tables, parents)
            continue
        leaf = tag in BLOCKS and parents and not parents.pop()
        if tag == "table":
            done = open_tables.pop()
            yield element, done
            _count_nested(open_tables, done)
        elif table is not None and tag in ("td", "th"):
            table.open = False
        elif cell is not None and not lists and (tag in _LISTS or (leaf and tag not in _GRID)):
            cell.paragraphs += 1
            cell.headings += tag in HEADINGS


def _enter(tag: str, table: _Table | None, open_tables: list[_Table], parents: list[bool]) -> None:
    if tag in BLOCKS:
        if parents:
            parents[-1] = True
        parents.append(False)
    if tag == "table":
        open_tables.append(_Table())
    elif table is not None and tag == "tr":
        table.rows.append([])
        table.open = False  # a row inside a cell ends it
    elif table is not None and tag in ("td", "th"):
        if not table.rows:
            table.rows.append([])
        table.rows[-1].append(_Cell(header=tag == "th"))
        table.open = True


def _count_nested(open_tables: list[_Table], nested: _Table) -> None:
    if open_tables and open_tables[-1].open:
        cell = open_tables[-1].rows[-1][-1]
        cell.paragraphs += 1
        cell.chars += sum(inner.chars for inner in nested.cells)
