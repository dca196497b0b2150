"""Running heads and feet of a text whose pages are known, marked by form feeds, or unknown."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from harness_core.config import read_number
from harness_core.documents.running import running_lines

Place = tuple[int, str]  # (line number in the text, line)


def headers_footers(text: str, opts: Mapping[str, Any]) -> str:
    """Drop lines at the edges of pages that recur.

    Options: ``header_max_chars`` (80 characters) and ``header_min_repeats`` (3, not under 3).
    """
    lines = text.split("\n")
    if len(lines) < 8:
        return text
    longest = int(read_number(opts.get("header_max_chars")) or 80)
    repeats = max(3, int(read_number(opts.get("header_min_repeats")) or 3))
    pages = _pages(lines, opts)
    if len(pages) >= 3:
        running = running_lines(
            [[line for _, line in page] for page in pages], min_pages=repeats, max_chars=longest
        )
        dropped = {pages[page][at][0] for page, at in running}
    elif pages:
        return text
    else:
        dropped = _at_block_edges(lines, longest, repeats)
    return "\n".join(line for at, line in enumerate(lines) if at not in dropped)


def _pages(lines: list[str], opts: Mapping[str, Any]) -> list[list[Place]]:
    """The lines page by page, as far as pages are known; else nothing."""
    known = opts.get("pages") or ()
    blocks: Sequence[str] = opts.get("blocks") or ()
    if any(page is not None for page in known) and len(known) == len(blocks):
        by_page, at = defaultdict[Any, list[Place]](list), 0
        for page, block in zip(known, blocks, strict=True):
            size = block.count("\n") + 1
            by_page[page].extend(enumerate(lines[at : at + size], at))
            at += size + 1  # the blank line between blocks
        return list(by_page.values())
    if not any("\f" in line for line in lines):
        return []
    pages: list[list[Place]] = [[]]
    for at, line in enumerate(lines):
        if "\f" in line:
            pages.append([])
        pages[-1].append((at, line.rpartition("\f")[2]))
    return pages


def _at_block_edges(lines: list[str], longest: int, repeats: int) -> set[int]:
    """Short lines that recur, each time first or last in their block."""
    keys = [" ".join(line.casefold().split()) for line in lines]
    edge = [
        bool(key) and (not all(keys[max(0, at - 1) : at + 2]) or at in (0, len(keys) - 1))
        for at, key in enumerate(keys)
    ]
    counts = Counter(key for key in keys if key)
    inside = {key for key, outer in zip(keys, edge, strict=True) if key and not outer}
    return {
        at
        for at, key in enumerate(keys)
        if key
        and counts[key] >= repeats
        and key not in inside
        and len(lines[at].strip()) <= longest
        and any(char.isalpha() for char in key)
    }
