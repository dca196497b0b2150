# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""Quotations and sources in one form, so that the same words are the same string.

Case, quote marks, dashes, kinds of space and full-width figures are folded; nothing else is: no
stemming, no accents stripped, no punctuation removed.
"""

import re
import unicodedata
from typing import NamedTuple

import regex

GROUP_SPACES = "\u00a0\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
"""Spaces that group the digits of one number."""
UNSPACED = (
    r"\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Bopomofo}\p{sc=Thai}\p{sc=Lao}"
    r"\p{sc=Khmer}\p{sc=Myanmar}\u30fc\uff70\u3005-\u3007"
)
"""Scripts that put no space between words, for use inside a character class."""

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_RUN = re.compile(rf"\s{{2,}}|[{_LINE_BREAKS[1:]}]")
_STACKED = regex.compile(r"\p{M}{64}")
_TRIMMED = " \"'….,;:、。：；"


class Normal(NamedTuple):
    """Folded text, and beside it, character for character, the text before folding.

    ``kept`` still has case, dashes and kinds of space; a line feed in it stands for white space
    that held a line break.
    """

    norm: str
    kept: str


def _folds() -> dict[int, str]:
    table = {ord(char): "'" for char in "\u2018\u2019\u201a\u201b\u2032\u2039\u203a"}
    table |= {ord(char): '"' for char in "\u201c\u201d\u201e\u201f\u2033«»「」『』"}
    table |= {ord(char): "-" for char in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"}
    wide = [0xFF02, 0xFF05, 0xFF07, *range(0xFF0B, 0xFF0F), *range(0xFF10, 0xFF1A)]
    wide += [*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)]
    table |= {code: chr(code - 0xFEE0) for code in wide}
    table |= {code: " " for code in range(0x3001) if chr(code).isspace()}
    # the one letter whose lower case has two characters, and the one whose depends on its neighbour
    return table | {0x130: "i", 0x3A3: "σ", 0x3C2: "σ"}


_FOLDS = _folds()


def composed(text: str) -> str:
    """``text`` in NFC, or as it is where marks are stacked so high that composing takes forever."""
    return text if text.isascii() or _STACKED.search(text) else unicodedata.normalize("NFC", text)


def unified(text: str) -> str:
    """``text`` with kinds of quote, dash, space and wide figure made one, case kept."""
    return text.translate(_FOLDS)


def folded(text: str) -> str:
    """``text`` unified and in lower case, one character for one."""
    return unified(text).lower()


def normalised(text: str) -> Normal:
    """``text`` as it is compared: composed, white space in single spaces, trimmed, folded."""
    kept = _RUN.sub(_single, composed(text)).strip()
    return Normal(folded(kept), kept)


def trimmed(piece: Normal) -> Normal:
    """``piece`` without the marks at its edges that are no part of what it says.

    A stop or comma written to the first digit stays (".45"), and so does a sign before a number.
    """
    start, end = 0, len(piece.norm)
    while True:
        begun = _left(piece, start, end)
        ended = _right(piece.norm, begun, end)
        if (begun, ended) == (start, end):
            return Normal(piece.norm[start:end], piece.kept[start:end])
        start, end = begun, ended


def _single(run: re.Match[str]) -> str:
    return "\n" if any(char in _LINE_BREAKS for char in run[0]) else " "


_SIGNED = re.compile(r"-+(?:[.,]|[$€£¥₹]\s?[.,]?)?\d")
_MINUS = re.compile(r"\u2212\s?[$€£¥₹]?\s?[.,]?\d")
_POINT = re.compile(r"[.,]\d")


def _left(piece: Normal, start: int, end: int) -> int:
    norm = piece.norm
    while start < end and norm[start] in _TRIMMED:
        if _POINT.match(norm, start, end) and (start == 0 or norm[start - 1] not in ".,"):
            return start
        start += 1
    if norm.startswith("-", start) and not (
        _SIGNED.match(norm, start, end) or _MINUS.match(piece.kept, start, end)
    ):
        while start < end and norm[start] == "-":
            start += 1
    return start


def _right(norm: str, start: int, end: int) -> int:
    while end > start and norm[end - 1] in _TRIMMED:
        end -= 1
    while end > start and norm[end - 1] == "-":
        end -= 1
    return end
