"""The lines of PDF pages become paragraphs, headings and table rows."""

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from harness_core.documents.extractors.pdf_headings import (
    body_size,
    has_leader,
    is_named,
    stands_out,
)
from harness_core.documents.extractors.pdf_lines import Line
from harness_core.documents.extractors.pdf_rows import (
    Group,
    continues_row,
    is_beside,
    row_texts,
    wraps_into_row,
)
from harness_core.documents.types import Block

_BULLET = re.compile(
    r"(?:[\u2022\u2023\u25aa\u25ab\u25cf\u25cb\u25e6\uf0b7]|[-*\u2013] |\(?\d{1,3}[.)] )"
)
_SENTENCE_END = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")
_HYPHEN_END = re.compile(r"[^\W\d_][-\u2010\u2011]$")
_WORD = re.compile(r"\S+\s*")
_ALIKE = 0.13  # of the font size: words in another font are often a little smaller
_WIDE = "\u2e80"  # from here on scripts write no blanks between words


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a document is set: size of body text, usual line distance, titles of a page."""

    body: float
    leading: float
    titles: frozenset[str] = frozenset()


def setting_of(pages: Sequence[Sequence[Line]]) -> Setting:
    """Measured on the lines that reach the right edge: their successors continue a paragraph."""
    ratios: list[float] = []
    for lines in pages:
        edge = max((line.right for line in lines), default=0.0)
        for above, below in pairwise(lines):
            ratio = (above.baseline - below.baseline) / above.size
            alike = abs(above.size - below.size) < _ALIKE * above.size
            if alike and above.right > 0.85 * edge and 0.8 < ratio < 3:
                ratios.append(ratio)
    leading = statistics.median(ratios) if ratios else 1.25
    return Setting(body=body_size(pages), leading=min(max(leading, 1.0), 2.6))


class PageBlocks:
    """Cuts one page into blocks."""

    def __init__(self, lines: Sequence[Line], setting: Setting) -> None:
        self._lines = lines
        self._setting = setting
        self._edges: dict[int, float] = {}
        for line in lines:
            if len(line.pieces) == 1:
                place = _place(line)
                self._edges[place] = max(self._edges.get(place, 0.0), line.right)

    def blocks(self, page: int, *, headings: bool) -> Iterator[Block]:
        """The blocks of the page, without sections."""
        for group in self._groups():
            if group.row:
                for row in row_texts(group):
                    yield Block(text=row, page=page, kind="table")
            elif headings and self._is_heading(group.lines):
                text = " ".join(line.text for line in group.lines)
                yield Block(text=text, page=page, kind="heading")
            else:
                yield Block(text=self._joined(group.lines), page=page)

    def _groups(self) -> Iterator[Group]:
        group: Group | None = None
        for line in self._lines:
            if group is not None and self._continues(group, line):
                group.add(line)
                continue
            if group is not None:
                yield group
            group = Group(line)
        if group is not None:
            yield group

    def _continues(self, group: Group, line: Line) -> bool:
        last = group.lines[-1]
        if is_beside(group, line):
            return True
        down = last.baseline - line.baseline
        if abs(last.size - line.size) > _ALIKE * last.size or not 0 < down <= self._reach(group):
            return False
        if group.row:
            return continues_row(group, line)
        if len(line.pieces) > 1:
            return wraps_into_row(group, line)
        return not self._starts_paragraph(group.lines, line)

    def _reach(self, group: Group) -> float:
        """How far below the group its next line may stand."""
        lines = group.lines
        usual = 1.25 * self._setting.leading * lines[-1].size
        if len(lines) > 1 and not group.row:
            return min(usual, 1.3 * (lines[0].baseline - lines[1].baseline))
        return usual

    def _starts_paragraph(self, group: list[Line], line: Line) -> bool:
        last, first = group[-1], group[0]
        ended = _SENTENCE_END.search(last.text) is not None
        named = self._named(line) and (ended or not line.text[0].islower())
        if named or (len(group) == 1 and self._named(last)):
            return True
        if _BULLET.match(line.text) or last.bold != line.bold:
            return True
        indent = line.left - last.left
        step = 0.8 * line.size
        hanging = len(group) > 1 and abs(line.left - first.left) < 2 < step < -indent
        if hanging or (indent > step and ended and not _BULLET.match(first.text)):
            return True
        return ended and not line.text[0].islower() and self._broke(last, line)

    def _named(self, line: Line) -> bool:
        return is_named(line.text, self._setting.titles)

    def _is_heading(self, group: list[Line]) -> bool:
        text = " ".join(line.text for line in group)
        return is_named(text, self._setting.titles) or stands_out(group, self._setting.body)

    def _broke(self, above: Line, below: Line) -> bool:
        """Whether the next word would have fitted: the line was ended on purpose."""
        if has_leader(above.text):
            return True
        edges, place = self._edges, _place(above)
        edge = max(edges.get(place - 1, 0.0), edges.get(place, 0.0), edges.get(place + 1, 0.0))
        room = edge - above.right
        if room < below.size:
            return False
        word = _WORD.match(below.text)
        share = len(word.group().rstrip()) / len(below.text) if word else 1.0
        return room > share * (below.right - below.left) + 0.5 * below.size

    def _joined(self, group: list[Line]) -> str:
        parts = [group[0].text]
        for above, below in pairwise(group):
            if above.text[-1] in "-\u2010\u2011" or self._broke(above, below):
                parts.append("\n")  # the hyphenation cleaner decides; or a line of its own
            elif not (above.text[-1] >= _WIDE and below.text[0] >= _WIDE):
                parts.append(" ")
            parts.append(below.text)
        return "".join(parts)


def _place(line: Line) -> int:
    return round(line.left / 36)


def with_sections(blocks: Sequence[Block]) -> list[Block]:
    """Each block under the heading above it, over page breaks."""
    section: str | None = None
    placed: list[Block] = []
    for block in blocks:
        section = block.text if block.kind == "heading" else section
        placed.append(replace(block, section=section))
    return placed


def rejoin(blocks: Sequence[Block]) -> list[Block]:
    """A word divided between two body blocks: the blocks join, over a page only the word moves."""
    joined: list[Block] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if last is None or not _divided(last, block):
            joined.append(block)
        elif last.page == block.page:
            joined[-1] = replace(last, text=f"{last.text}\n{block.text}")
        else:
            word = _WORD.match(block.text)
            end = word.end() if word else 0
            joined[-1] = replace(last, text=f"{last.text}\n{block.text[:end].rstrip()}")
            if block.text[end:]:
                joined.append(replace(block, text=block.text[end:]))
    return joined


def _divided(last: Block, block: Block) -> bool:
    body = last.kind == block.kind == "body"
    return body and _HYPHEN_END.search(last.text) is not None and block.text[0].islower()
