"""Early cleaners that look at lines and words: page numbers, captions, addresses, references."""

import re
from collections.abc import Mapping
from typing import Any

_ONLY_PAGE = re.compile(
    r"\s*(?:(?:page|p\.)\s*\d+(?:\s+of\s+\d+)?|[-\u2013\u2014]\s*\d{1,4}\s*[-\u2013\u2014]"
    r"|\[\s*\d{1,4}\s*\])\s*",
    re.IGNORECASE,
)
_NUMBER_STOP = re.compile(r"\s*\d{1,4}\.\s*")
_SENTENCE_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)\]}\u00bb]*\s*$")
_CAPTION = re.compile(
    r"\s*(?i:figure|fig\.?|table|tbl\.?|exhibit|chart)\s*[Ss]?\d+[A-Za-z]?"
    r"(?:\s*$|\s*[.:|)\u2013\u2014]|\s-\s|\s+(?P<word>[^\W\d_]))"
)
_URL = re.compile(r"(?:https?://|www\.)\S*", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_REFERENCES = re.compile(
    r"^[ \t]*(?:(?:\d{1,3}(?:\.\d{1,3})*|[IVXLC]{1,7}|[A-Z])[.)]?[ \t]+)?"
    r"(?:references|bibliography|works[ \t]+cited)[ \t:]*$",
    re.IGNORECASE | re.MULTILINE,
)


def page_numbers(text: str, _opts: Mapping[str, Any]) -> str:
    """Blank lines that are only a page number; a bare number may be a table's and stays."""
    lines = text.split("\n")
    return "\n".join(
        "" if _is_page_number(line, lines[at - 1] if at else "") else line
        for at, line in enumerate(lines)
    )


def _is_page_number(line: str, before: str) -> bool:
    if len(line) > 200 or not line:
        return False
    if _ONLY_PAGE.fullmatch(line):
        return True
    runs_on = bool(before.strip()) and not _SENTENCE_END.search(before[-20:])
    return _NUMBER_STOP.fullmatch(line) is not None and not runs_on


def captions(text: str, _opts: Mapping[str, Any]) -> str:
    """Blank lines that caption a figure or a table; a sentence about one stays."""
    return "\n".join("" if _is_caption(line) else line for line in text.split("\n"))


def _is_caption(line: str) -> bool:
    match = _CAPTION.match(line)
    return match is not None and (match["word"] is None or match["word"].isupper())


def urls(text: str, _opts: Mapping[str, Any]) -> str:
    """Remove web addresses up to the next blank."""
    return _URL.sub("", text)


def emails(text: str, _opts: Mapping[str, Any]) -> str:
    """Remove mail addresses."""
    return _EMAIL.sub("", text) if "@" in text else text


def references(text: str, _opts: Mapping[str, Any]) -> str:
    """Cut from the heading of the reference list on, if it stands past 40 % of the text."""
    for match in _REFERENCES.finditer(text):
        if match.start() >= 0.4 * len(text):
            return text[: match.start()]
    return text
