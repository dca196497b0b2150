"""Running heads and feet: lines at the edge of pages that recur, or count the pages."""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

CELL: Final = " | "
_DIGITS = re.compile(r"\d+")
_END = re.compile(r"[.!?;,\u2026][\"')\]\u201d\u2019]*$")
_NOTE = re.compile(r"\s*(?:source|sources|note|notes)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    """A line near the top or the bottom of a page; ``outer`` is the outermost one."""

    page: int
    at: int
    text: str
    outer: bool


def running_lines(
    pages: Sequence[Sequence[str]],
    *,
    min_pages: int = 3,
    max_chars: int = 200,
    titles: AbstractSet[tuple[int, int]] = frozenset(),
) -> set[tuple[int, int]]:
    """(page, line), counted from 0, of the running lines. ``pages`` are lines from top to bottom.

    Only the two outermost lines at either edge are looked at, and only from 3 pages on. Lines set
    as ``titles`` run only where they recur as they are: "Chapter 2" counts no pages.
    """
    count = len(pages)
    if count < 3:
        return set()
    needed = max(min_pages, math.ceil(0.4 * count))
    alike, numbered = _groups(pages, max_chars)
    running = [group for group in alike if _recurs(group, count, needed)]
    running += [
        group
        for group in numbered
        if _recurs(group, count, needed)
        and _counts_pages(group)
        and not any((edge.page, edge.at) in titles for edge in group)
    ]
    return {(edge.page, edge.at) for group in running for edge in group}


def _groups(
    pages: Sequence[Sequence[str]], max_chars: int
) -> tuple[list[list[_Edge]], list[list[_Edge]]]:
    """Edge lines of the same text, and those of the same text but for their figures."""
    alike, numbered = _by_key(), _by_key()
    for foot, edge in _edges(pages, max_chars):
        if _is_table_header(pages[edge.page], edge):
            continue
        key = "".join(edge.text.casefold().split())
        alike[foot, key].append(edge)
        if _DIGITS.search(key):
            numbered[foot, _DIGITS.sub("#", key)].append(edge)
    return list(alike.values()), list(numbered.values())


def _by_key() -> defaultdict[tuple[bool, str], list[_Edge]]:
    return defaultdict(list)


def mostly_figures(text: str) -> bool:
    """Whether at least half of the cells of a line (of its words, without cells) are figures."""
    cells = text.split(CELL) if CELL in text else text.split()
    figures = sum(1 for cell in cells if cell and any(c.isdigit() for c in cell)
                  and sum(c.isalpha() for c in cell) <= 1)  # fmt: skip
    return bool(cells) and 2 * figures >= len(cells)


def _edges(pages: Sequence[Sequence[str]], max_chars: int) -> list[tuple[bool, _Edge]]:
    edges: list[tuple[bool, _Edge]] = []
    for page, lines in enumerate(pages):
        full = [at for at, line in enumerate(lines) if line.strip()]
        for foot, places in ((False, full[:2]), (True, full[::-1][:2])):
            edges.extend(
                (foot, _Edge(page=page, at=at, text=lines[at], outer=place == 0))
                for place, at in enumerate(places)
                if len(lines[at].strip()) <= max_chars
            )
    return edges


def _is_table_header(lines: Sequence[str], edge: _Edge) -> bool:
    """A row of cells above a row of as many cells with figures is a table's, not the page's."""
    below = next((line for line in lines[edge.at + 1 :] if line.strip()), "")
    cells = edge.text.count(CELL)
    return cells > 0 and below.count(CELL) == cells and mostly_figures(below)


def _recurs(group: list[_Edge], count: int, needed: int) -> bool:
    on = {edge.page for edge in group}
    if len(on) >= needed:
        return True
    numbers = {page + 1 for page in on}
    patterns = (
        set(range(2, count + 1)),
        set(range(2, count + 1, 2)),
        set(range(3, count + 1, 2)),
    )
    return len(on) >= 2 and numbers in patterns and all(map(_reads_like_head, group))


def _reads_like_head(edge: _Edge) -> bool:
    text = edge.text.strip()
    bare = _END.search(text) is None and not _NOTE.match(text)
    return edge.outer and bare and (not mostly_figures(text) or len(text.split()) == 1)


def _counts_pages(group: list[_Edge]) -> bool:
    """Whether one number of a line follows the page, and every other changing one only rises."""
    if any(_is_sentence(edge.text) for edge in group):
        return False
    by_page = {edge.page: edge for edge in reversed(group)}
    rows = [(page, by_page[page].text) for page in sorted(by_page)]
    numbers = [[int(run) for run in _DIGITS.findall(text)] for _, text in rows]
    steps = [b[0] - a[0] for a, b in pairwise(rows)]
    columns = list(zip(*numbers, strict=True))
    share = 1.0 if CELL in rows[0][1] and mostly_figures(rows[0][1]) else 0.5
    rises = [all(a <= b for a, b in pairwise(column)) for column in columns]
    follows = [
        sum(b - a == step for (a, b), step in zip(pairwise(column), steps, strict=True))
        >= share * len(steps)
        for column in columns
    ]
    return all(rises) and any(
        follow and _stands_apart(rows[0][1], at) for at, follow in enumerate(follows)
    )


def _is_sentence(text: str) -> bool:
    return len(text.split()) > 3 and text.rstrip().endswith((".", "!", "?"))


def _stands_apart(line: str, number: int) -> bool:
    """In a line of more than five words a page number stands at an end or in a short cell."""
    if len(line.split()) <= 5:
        return True
    place = [match.start() for match in _DIGITS.finditer(line)][number]
    cell_start = line.rfind(CELL, 0, place) + 1
    cell_end = line.find(CELL, place)
    cell = line[cell_start : cell_end if cell_end >= 0 else len(line)]
    ends = _DIGITS.match(line.strip()) and number == 0
    last = line.rstrip()[-1:].isdigit() and number == len(_DIGITS.findall(line)) - 1
    return bool(ends or last or (CELL in line and len(cell.split()) <= 3))
