"""Markdown: headings, fences, tables, paragraphs."""

import pytest

from harness_core.documents.extractors.markdown import markdown_blocks

Row = tuple[str, str | None, str]


def rows(text: str) -> list[Row]:
    return [(block.kind, block.section, block.text) for block in markdown_blocks(text)]


CASES: dict[str, tuple[str, list[Row]]] = {
    "I25 a heading with its text on the next line": (
        "## Methods\nWe measured.",
        [("heading", "Methods", "## Methods"), ("body", "Methods", "We measured.")],
    ),
    "I26 a comment in code is no heading": (
        "# Top\n\n```python\n# comment\n\nx = 1\n```\nafter",
        [
            ("heading", "Top", "# Top"),
            ("code", "Top", "```python\n# comment\n\nx = 1\n```"),
            ("body", "Top", "after"),
        ],
    ),
    "an unclosed fence runs to the end": (
        "~~~\n# not a heading\n\nstill code",
        [("code", None, "~~~\n# not a heading\n\nstill code")],
    ),
    "a shorter or other fence does not close": (
        "````\n```\n~~~~\n````\nout",
        [("code", None, "````\n```\n~~~~\n````"), ("body", None, "out")],
    ),
    "an info string holds no backtick": (
        "```a`b\ntext",
        [("body", None, "```a`b\ntext")],
    ),
    "closing hashes are no part of the section": (
        "  ### Deep heading ##\n\ntext\n#nospace",
        [
            ("heading", "Deep heading", "### Deep heading ##"),
            ("body", "Deep heading", "text\n#nospace"),
        ],
    ),
    "C# keeps its sign": ("# About C#", [("heading", "About C#", "# About C#")]),
    "seven hashes and a bare hash are text": (
        "####### no\n#",
        [("body", None, "####### no\n#")],
    ),
    "a table stays whole": (
        "intro\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nrest",
        [
            ("body", None, "intro"),
            ("table", None, "| a | b |\n|---|---|\n| 1 | 2 |"),
            ("body", None, "rest"),
        ],
    ),
    "a paragraph loses its first indent, code keeps it": (
        "   one\n  two  \n\n    ```\n",
        [("body", None, "one\n  two"), ("body", None, "```")],
    ),
    "nothing visible is nothing": ("\n \u00a0\n\n", []),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_markdown_is_cut_into_blocks(text: str, expected: list[Row]) -> None:
    assert rows(text) == expected


def test_long_blank_runs_take_linear_time() -> None:
    heading = "# a" + " " * 200_000 + "b"
    assert rows(heading)[0][1] == heading[2:]
