"""Which lines of a PDF are headings: bookmarks, standard section names, larger or bold type."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from harness_core.documents.extractors.pdf_lines import Line

_NUMBERING = re.compile(
    r"(?:(?:\d+(?:\.\d+)*|[ivxlc]+|[a-z])[.):]?\s+|\d+(?:\.\d+)*[.)]\s*)(?=\S)", re.I
)
_STANDARD: Final = frozenset({
    "abstract", "summary", "executivesummary", "introduction", "background", "method", "methods",
    "materialsandmethods", "methodology", "results", "findings", "discussion", "conclusion",
    "conclusions", "limitations", "recommendations", "references", "bibliography",
    "acknowledgement", "acknowledgements", "acknowledgment", "acknowledgments", "appendix",
    "appendices",
})  # fmt: skip
_APPENDIX = re.compile(r"appendix[a-z\d]{1,2}\Z")
_CLOSED = re.compile(r"[.!?,;]$")
_CAPTION = re.compile(r"\s*(?:table|tab\.|figure|fig\.|exhibit|chart)\s*\w*\d", re.IGNORECASE)
_LARGER = 1.12  # times the size of body text
_LONGEST = 160  # characters
_LONGEST_NAME = 50  # of a standard name with its numbering and wide spacing


def title_keys(text: str) -> tuple[str, str]:
    """A heading without case, spacing and closing punctuation; and without its numbering too.

    Both, for the first letter of "R ESULTS" in small capitals is no numbering.
    """
    text = text.strip()
    return _key(text), _key(_NUMBERING.sub("", text, count=1) if _NUMBERING.match(text) else text)


def _key(text: str) -> str:
    return "".join(text.split()).casefold().strip(".:;,!?")


def body_size(pages: Iterable[Sequence[Line]]) -> float:
    """The font size of most characters."""
    sizes = Counter[float]()
    for lines in pages:
        for line in lines:
            sizes[round(line.size * 2) / 2] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def is_title(line: Line, body: float) -> bool:
    """Whether a line is set so much larger than body text that it heads a page's own text."""
    return line.size >= (_LARGER if line.bold else 1.3) * body and len(line.pieces) == 1


def has_leader(text: str) -> bool:
    """Whether a line has a row of dots between a title and its page, as a table of contents has."""
    return ". . . ." in text or "....." in text


def is_named(text: str, bookmarks: frozenset[str]) -> bool:
    """Whether a line is only a bookmark's title or a standard section name."""
    if len(text) > (_LONGEST if bookmarks else _LONGEST_NAME) or not text:
        return False
    keys = title_keys(text)
    if not bookmarks.isdisjoint(keys):
        return True
    if _CLOSED.search(text):
        return False
    return any(key in _STANDARD or _APPENDIX.match(key) for key in keys)


def stands_out(lines: Sequence[Line], body: float) -> bool:
    """Whether a group of lines is set like a heading: larger than body text, or bold and short."""
    text = " ".join(line.text for line in lines)
    if len(text) > _LONGEST or len(lines) > 3 or _CLOSED.search(text) or _CAPTION.match(text):
        return False
    if has_leader(text) or not any(char.isalpha() for char in text):
        return False
    if all(line.size >= _LARGER * body for line in lines):
        return True
    bold = all(line.bold and line.size >= 0.95 * body for line in lines)
    return bold and len(text) <= 100 and not text.endswith(":") and not text[0].islower()
