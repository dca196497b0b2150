"""Words divided at a line end are rejoined; compounds keep their hyphen."""

import re
from collections.abc import Mapping
from typing import Any

from harness_core.documents.paragraphs import BLANKS

_DIVISION = re.compile(rf"(?<=[^\W\d_])([-\u2010\u2011])[{BLANKS}]*\r?\n[{BLANKS}]*(?=[^\W\d_])")
_INSIDE = re.compile(r"(?<=[^\W\d_])[-\u2010\u2011](?=[^\W\d_])")
_HEAD = re.compile(r"[^\W\d_]{1,60}")
_TAIL = re.compile(r"[^\W\d_]{1,60}\Z")
_LETTERS = re.compile(r"[^\W\d_]")
_NEAR = 120  # characters in which the nearest letters of a side are looked for

Pair = tuple[str, str]


def hyphenation(text: str, opts: Mapping[str, Any]) -> str:
    """Rejoin a word at a line end unless the document writes it with a hyphen elsewhere."""
    if "\n" not in text or not _DIVISION.search(text):
        return text
    memo = opts.get("memo")
    memo = {} if memo is None else memo
    if "hyphenated" not in memo:
        memo["hyphenated"] = _hyphenated(opts.get("blocks") or (text,))
    return _DIVISION.sub(lambda match: _joint(match, memo["hyphenated"]), text)


def _joint(match: re.Match[str], hyphenated: frozenset[Pair]) -> str:
    text = match.string
    left, right = _tail(text, match.start()), _head(text, match.end())
    if not right[0].islower() and not _capitals(text, match, left, right):
        return match.group()
    return match.group(1) if (left.lower(), right.lower()) in hyphenated else ""


def _capitals(text: str, match: re.Match[str], left: str, right: str) -> bool:
    """Whether a division between capitals is one, and no compound of two abbreviations."""
    if len(left) < 2 or not left.isupper() or not right.isupper():
        return False
    end = match.end() + len(right)
    if end < len(text) and text[end] in "/&-\u2010\u2011":
        return False
    start = match.start() - len(left)
    before = _LETTERS.findall(text[max(0, start - _NEAR) : start])[-12:]
    after = _LETTERS.findall(text[end : end + _NEAR])[:12]
    return (
        _set_in_capitals(before)
        or _set_in_capitals(after)
        or not any(letter.islower() for letter in (*before, *after))
    )


def _set_in_capitals(letters: list[str]) -> bool:
    upper = sum(letter.isupper() for letter in letters)
    return upper >= 5 and sum(letter.islower() for letter in letters) <= 1


def _hyphenated(blocks: tuple[str, ...]) -> frozenset[Pair]:
    return frozenset(
        (_tail(block, match.start()).lower(), _head(block, match.end()).lower())
        for block in blocks
        for match in _INSIDE.finditer(block)
    )


def _head(text: str, at: int) -> str:
    match = _HEAD.match(text, at)
    return match.group() if match else ""


def _tail(text: str, end: int) -> str:
    match = _TAIL.search(text[max(0, end - 60) : end])
    return match.group() if match else ""
