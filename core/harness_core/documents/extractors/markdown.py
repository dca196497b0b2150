"""Markdown, line by line: headings are sections, fenced code and tables stay whole."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness_core.documents.extractors.text import read_text
from harness_core.documents.paragraphs import trim_end, trim_start, visible
from harness_core.documents.types import Block

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<title>\S.*)$")
_TABLE = re.compile(r"\s*\|.*\|")


def extract(path: Path, opts: Mapping[str, Any]) -> list[Block]:
    """The blocks of the file.

    Raises:
        BrokenDocumentError: the file is no text.
    """
    return list(markdown_blocks(read_text(path, opts)))


def markdown_blocks(text: str) -> Iterator[Block]:
    """Headings, code, tables and paragraphs, each with the heading it stands under."""
    section: str | None = None
    for kind, lines in _pieces(text):
        if kind == "heading":
            match = _HEADING.match(lines[0])
            section = _without_closing(match["title"] if match else lines[0]) or None
        content = trim_end("\n".join(lines))
        if kind != "code":
            content = trim_start(content)
        if visible(content):
            yield Block(text=content, section=section, kind=_kind(kind, content))


def _without_closing(title: str) -> str:
    title = title.strip()
    bare = title.rstrip("#")
    return bare.strip() if not bare or bare[-1] in " \t" else title


def _kind(kind: str, content: str) -> str:
    return "table" if kind == "body" and _TABLE.match(content) else kind


def _pieces(text: str) -> Iterator[tuple[str, list[str]]]:
    """(body | code | heading, lines) of each block, blank lines between blocks dropped."""
    lines = iter(text.split("\n"))
    prose: list[str] = []
    for line in lines:
        fence, heading = _FENCE.match(line), _HEADING.match(line)
        if visible(line) and not fence and not heading:
            prose.append(line)
            continue
        if prose:
            yield "body", prose
            prose = []
        if fence:
            yield "code", [line, *_fenced(lines, fence.group(1))]
        elif heading:
            yield "heading", [line]
    if prose:
        yield "body", prose


def _fenced(lines: Iterator[str], fence: str) -> Iterator[str]:
    """The lines up to the closing fence; without one, all that are left."""
    for line in lines:
        yield line
        if _closes(line, fence):
            return


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    indent = len(line) - len(line.lstrip(" "))
    return indent <= 3 and len(mark) >= len(fence) and not mark.strip(fence[0]) and bool(mark)
