"""Web pages: runs, headings, data tables by row, layout tables like the page."""

from pathlib import Path

import pytest

from harness_core.documents import ingest
from harness_core.documents.extractors.html import html_blocks
from harness_core.errors import BrokenDocumentError


def rows(page: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in html_blocks(page)]


CASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "I27 text in div and span is kept once": (
        "<div>one <span>two</span></div>three",
        [("body", "one two"), ("body", "three")],
    ),
    "I27 a paragraph in a list item is not read twice": (
        "<ul><li><p>item</p></li><li>bare</li></ul>",
        [("body", "item"), ("body", "bare")],
    ),
    "I27 h5 and h6 are headings": (
        "<h5>Small <i>one</i></h5><h6>Smaller</h6>",
        [("heading", "Small one"), ("heading", "Smaller")],
    ),
    "br is a line end, source blanks fold, no-break space stays": (
        "a<br>b \n  c\u00a0d",
        [("body", "a\nb c\u00a0d")],
    ),
    "what no reader sees is left out, what follows it is not": (
        "<p>a</p><script>x()</script>b<nav>menu</nav>c<!-- no -->d<svg><text>e</text></svg>",
        [("body", "a"), ("body", "bcd")],
    ),
    "pre keeps its lines": ("<pre>\nx = 1\n  y</pre>", [("code", "x = 1\n  y")]),
    "I28 a data table is a block a row, th included": (
        "<table><caption>Cap</caption><tr><th>A</th><th>B</th></tr>"
        "<tr><td><h3>Head</h3></td><td><p>1</p></td></tr><tr><td></td><td>2</td></tr></table>",
        [("body", "Cap"), ("table", "A | B"), ("table", "Head | 1"), ("table", " | 2")],
    ),
    "a nested table follows the row that holds it": (
        "<table><tr><td>a</td><td>b<table><tr><td>n</td><td>m</td></tr></table>c</td></tr>"
        "<tr><td>d</td><td>e</td></tr></table>",
        [("table", "a | b c"), ("table", "n | m"), ("table", "d | e")],
    ),
    "text outside the cells comes before the rows": (
        "<table><tr><td>x</td><td>y</td></tr><tr>loose</tr></table>",
        [("body", "loose"), ("table", "x | y")],
    ),
    "I28 a single cell with paragraphs lays out the page": (
        "<table><tr><td><h2>T</h2><p>one</p><p>two</p></td></tr></table>",
        [("heading", "T"), ("body", "one"), ("body", "two")],
    ),
    "I28 stacked cells of paragraphs lay out the page": (
        "<table><tr><td>menu</td><td>head</td></tr><tr><td><p>one</p><p>two</p></td></tr></table>",
        [("body", "menu"), ("body", "head"), ("body", "one"), ("body", "two")],
    ),
    "I28 a grid whose one cell is most of the page lays it out": (
        "<table><tr><td>a</td><td><h1>T</h1>A long text beside the heading.</td></tr>"
        "<tr><td>b</td><td>c</td></tr></table>",
        [
            ("body", "a"), ("heading", "T"), ("body", "A long text beside the heading."),
            ("body", "b"), ("body", "c"),
        ],
    ),
    "a row inside a cell ends it": (
        "<table><tr><td>a<div><tr>b<td>c</td></tr></div></td><td>d</td></tr></table>",
        [("body", "b"), ("table", "a"), ("table", "c"), ("table", "d")],
    ),
    "a page of comments is empty": ("<!-- nothing -->", []),
    "an xml declaration and control characters do no harm": (
        '<?xml version="1.0" encoding="utf-8"?><html><body><p>a\x01b</p></body></html>',
        [("body", "a b")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("page", "expected"), CASES.values(), ids=CASES.keys())
def test_a_page_is_cut_into_blocks(page: str, expected: list[tuple[str, str]]) -> None:
    assert rows(page) == expected


def test_a_data_table_leaves_the_section_alone() -> None:  # I28
    page = "<h1>Top</h1><table><tr><td><h2>v</h2></td><td>1</td></tr></table><p>after</p>"
    assert [block.section for block in html_blocks(page)] == ["Top"] * 3


def test_a_page_nested_too_deeply_is_refused_instead_of_losing_its_rest() -> None:
    with pytest.raises(BrokenDocumentError, match="nested too deeply"):
        html_blocks("<div>" * 3000 + "x" + "</div>" * 3000 + "<p>rest</p>")


def test_deep_pages_are_read_whole() -> None:
    page = "<div>" * 1500 + "x" + "</div>" * 1500 + "<p>rest</p>"
    assert rows(page) == [("body", "x"), ("body", "rest")]


def test_many_rows_are_many_blocks() -> None:
    page = "<table>" + "<tr><td>a</td><td>1</td></tr>" * 3000 + "</table>"
    assert len(html_blocks(page)) == 3000


def test_a_file_is_read_in_its_own_charset(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(
        '<meta charset="windows-1251"><p>Привет, это текст страницы.</p>'.encode("cp1251")
    )
    assert ingest(path).blocks[0].text == "Привет, это текст страницы."
