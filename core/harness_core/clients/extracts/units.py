"""Excerpts cut into what can be quoted: sentences, and table rows with the heads of columns."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

_BULLET = re.compile(r"[ \t]*(?:[-*+\u2022\u2023\u25aa\u2013]|\d{1,2}[.)])[ \t]+")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_LABEL = re.compile(r"\[[^\]\n]{1,200}\]")
_RULE = re.compile(r"[\s|:+=-]+")
_ENDED = re.compile(r"[.!?;:,\"\u201d\u00bb)\]]$")
_NUMBERED = re.compile(r"^(?:[^\W\d_]+ )?[\d.]+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_FIGURE = re.compile(r"(?<![^|,;\t])\s*-?\d[\d.]*\s*(?![^|,;\t])")
_DELIMITER = re.compile(r"[,;\t](?=\S)")
_CELL = 200  # characters of a table's cell, at the most


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A sentence or a row, word for word, and what surrounds it.

    ``head`` is the head row of its table; ``around`` are words that tell what it is about: the
    heading above, the caption, the sentence before.
    """

    text: str
    source: int | None = None
    head: str = ""
    around: str = ""
    place: int = 0

    @property
    def shown(self) -> str:
        """The unit as it can be read alone."""
        return f"{self.head}\n{self.text}" if self.head else self.text


def units(excerpts: Iterable[tuple[int | None, str]]) -> list[Unit]:
    """Every unit of the excerpts, in order."""
    found = [unit for source, text in excerpts for unit in _of_text(source, text)]
    return [replace(unit, place=place) for place, unit in enumerate(found)]


def _of_text(source: int | None, text: str) -> Iterator[Unit]:
    heading = before = ""
    found = False
    for block in _blocks(text):
        if isinstance(block, list):
            yield from _rows(block, source, f"{heading} {before}")
            found = True
        elif _is_heading(block):
            heading, before = _HEADING.sub("", block), ""
        else:
            for sentence in _sentences(block):
                yield Unit(text=sentence, source=source, around=f"{heading} {before}")
                before = sentence
                found = True
    if heading and not found:
        yield Unit(text=heading, source=source)


def _blocks(text: str) -> Iterator[str | list[str]]:
    """Paragraphs as text, tables as lists of rows; a blank line inside a table ends no table."""
    prose: list[str] = []
    rows: list[str] = []
    for line in [*text.splitlines(), ""]:
        if _is_row(line):
            yield from _joined(prose)
            rows.append(line.strip())
            continue
        if line.strip() and rows:
            yield rows
            rows = []
        if (
            not line.strip()
            or _BULLET.match(line)
            or _HEADING.match(line)
            or _LABEL.fullmatch(line)
        ):
            yield from _joined(prose)
        if line.strip():
            prose.append(line.strip())
        if _HEADING.match(line) or _LABEL.fullmatch(line.strip()):
            yield from _joined(prose)
    yield from _joined(prose)
    if rows:
        yield rows


def _joined(prose: list[str]) -> Iterator[str | list[str]]:
    if prose:
        yield list(prose) if _are_values(prose) else " ".join(prose)
        prose.clear()


def _are_values(lines: list[str]) -> bool:
    """Whether lines are the rows of a CSV: few words, and as many values in each.

    The first and the last are not looked at: a chunk may begin and end within a row.
    """
    inner = lines[1:-1]
    values = {len(_DELIMITER.findall(line)) + 1 for line in inner}
    few = all(len(line.split()) <= 3 * max(values) for line in inner)
    return len(inner) > 1 and len(values) == 1 and max(values) > 1 and few


def _is_row(line: str) -> bool:
    """Whether a line is cells; sentences that a cut joined to a row are prose."""
    if line.strip().startswith("|"):
        return line.strip() != "|"
    cells = line.split(" | ")
    return len(cells) > 1 and max(map(len, cells)) <= _CELL


def _is_heading(block: str) -> bool:
    """Marked as one, or short, without an end and without a figure of its own."""
    if _HEADING.match(block) or _LABEL.fullmatch(block):
        return True
    if len(block.split()) > 12 or _BULLET.match(block) or _ENDED.search(block):
        return False
    return not re.search(r"\d", _NUMBERED.sub("", block))


def _rows(rows: list[str], source: int | None, around: str) -> Iterator[Unit]:
    rows = [row for row in rows if not _RULE.fullmatch(row)]
    head = rows[0] if len(rows) > 1 and not _FIGURE.search(_YEAR.sub("", rows[0])) else ""
    for number, row in enumerate(rows):
        if number or not head or _has_figures(row):
            yield Unit(text=row, source=source, head=head if number else "", around=around)


def _has_figures(row: str) -> bool:
    """Whether a first row is data already: a table cut by a page has no head."""
    return bool(re.search(r"\d", _YEAR.sub("", row)))


def _bullet(block: str) -> int:
    mark = _BULLET.match(block)
    return mark.end() if mark else 0


def _sentences(block: str) -> list[str]:
    from harness_core.ranking.sentences import sentences

    return [one.strip() for one in sentences(block[_bullet(block) :]) if one.strip()]
