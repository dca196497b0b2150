"""Web pages: runs of text between block elements, headings as sections, data tables by row."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_core.documents.decoding import decode_html, require_text
from harness_core.documents.extractors.html_tables import BLOCKS, HEADINGS, layout_tables, walk
from harness_core.documents.paragraphs import visible
from harness_core.documents.running import CELL
from harness_core.documents.types import Block
from harness_core.errors import BrokenDocumentError

_SPACE = re.compile(r"[ \t\n\r\f]+")
_EDGES = re.compile(r" ?\n ?")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*>")
_OUTSIDE_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f]")


def extract(path: Path, opts: Mapping[str, Any]) -> list[Block]:
    """The blocks of the page; ``opts["charset"]`` is what a server said about it.

    Raises:
        BrokenDocumentError: the file is no text.
    """
    data = path.read_bytes()
    require_text(data, path.name)
    return html_blocks(decode_html(data, opts.get("charset")))


def html_blocks(page: str) -> list[Block]:
    """The blocks of a page given as text.

    Raises:
        BrokenDocumentError: the page is nested so deeply that the parser drops a part of it.
    """
    from lxml import etree, html  # type: ignore[import-untyped]  # lxml ships no types

    page = _OUTSIDE_XML.sub(" ", _DECLARATION.sub("", page))  # lxml refuses both in a str
    if not visible(page):
        return []
    parser = html.HTMLParser(huge_tree=True, remove_comments=False, encoding="utf-8")
    try:
        root = html.document_fromstring(page.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, ValueError):  # a page of comments alone has no element
        return []
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise BrokenDocumentError("the page is nested too deeply to be read whole")
    body = root.find("body")
    top = root if body is None else body
    reader = _Reader(layout=layout_tables(top))
    for event, element, text in walk(top):
        reader.take(event, element, text)
    reader.end_run()
    return reader.blocks


@dataclass(slots=True)
class _Grid:
    """A data table being read: loose text first, then rows, each followed by nested rows."""

    loose: list[Block] = field(default_factory=list)
    rows: list[Block] = field(default_factory=list)
    after: list[Block] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    in_cell: bool = False


@dataclass(slots=True)
class _Reader:
    layout: set[Any]
    blocks: list[Block] = field(default_factory=list)
    section: str | None = None
    run: list[str] = field(default_factory=list)
    grids: list[_Grid] = field(default_factory=list)
    outer_runs: list[list[str]] = field(default_factory=list)
    whole: Any = None  # the heading or <pre> being read: blocks inside do not end its run

    def take(self, event: str, element: Any, text: str) -> None:
        tag = element.tag
        if event == "text":
            self.run.append(text if self._in_pre() else _SPACE.sub(" ", text))
        elif tag == "br":
            self.run.append("\n" if event == "start" else "")
        elif tag == "table" and (self.grids or element not in self.layout):
            self._start_grid() if event == "start" else self._end_grid()
        elif self.grids:
            self._in_grid(event, tag)
        elif tag in BLOCKS:
            self._block(event, element)

    def _in_pre(self) -> bool:
        return self.whole is not None and self.whole.tag == "pre"

    def _block(self, event: str, element: Any) -> None:
        if self.whole is not None:
            if event == "end" and element is self.whole:
                self.whole = None
                self.end_run("code" if element.tag == "pre" else "heading")
            else:
                self.run.append(" ")
            return
        self.end_run()
        if event == "start" and (element.tag in HEADINGS or element.tag == "pre"):
            self.whole = element

    def end_run(self, kind: str = "body") -> None:
        """Close the run of text being read; what can be seen of it is a block."""
        text = "".join(self.run)
        self.run.clear()
        if kind == "code":
            text = text.strip("\n").rstrip()
        elif kind == "heading":
            text = _flat(text)
        else:
            text = _EDGES.sub("\n", re.sub(" {2,}", " ", text)).strip(" \n")
        if not visible(text):
            return
        if kind == "heading":
            self.section = text
        target = self.grids[-1].loose if self.grids else self.blocks
        target.append(Block(text=text, section=self.section, kind=kind))

    def _start_grid(self) -> None:
        if self.grids:
            self.outer_runs.append(self.run)
            self.run = []
        elif self.whole is None:
            self.end_run()
        self.grids.append(_Grid())

    def _end_grid(self) -> None:
        self._end_row()
        self.end_run()
        grid = self.grids.pop()
        found = grid.loose + grid.rows
        if not self.grids:
            self.blocks.extend(found)
            return
        self.run = self.outer_runs.pop()
        self.run.append(" ")
        outer = self.grids[-1]
        (outer.after if outer.in_cell else outer.loose).extend(found)

    def _in_grid(self, event: str, tag: str) -> None:
        grid = self.grids[-1]
        if tag in ("td", "th"):
            self._end_cell()
            grid.in_cell = event == "start"
        elif tag in ("tr", "thead", "tbody", "tfoot"):
            self._end_row()
        elif tag in BLOCKS and grid.in_cell:
            self.run.append(" ")
        elif tag in BLOCKS:
            self.end_run()

    def _end_cell(self) -> None:
        grid = self.grids[-1]
        if grid.in_cell:
            grid.cells.append(_flat("".join(self.run)))
            self.run.clear()
            grid.in_cell = False
        else:
            self.end_run()

    def _end_row(self) -> None:
        self._end_cell()
        grid = self.grids[-1]
        text = CELL.join(grid.cells)
        if any(map(visible, grid.cells)):
            grid.rows.append(Block(text=text, section=self.section, kind="table"))
        grid.rows.extend(grid.after)
        grid.cells, grid.after = [], []


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip(" ")
