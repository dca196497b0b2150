"""A token estimate that needs no vocabulary and is the same on every machine.

Two readings of the ASCII part are compared line by line, and the larger one counts: words by their
length, and the pieces that a GPT-4 style pre-tokenizer would cut. Everything else is priced by the
code point. All costs are whole numbers of 1/780 token, so a sum is exact in any order.
"""

import re
from collections.abc import Callable
from typing import Final

TOKEN: Final = 780
"""Units of one token: the smallest in which 1/4, 1/3, 1/1.3, 1.15 and 6.5 tokens are whole."""

_BLANK = " \t\r\n"
_NORMAL = re.compile(r"[!-/:-@\[-`{-~]*[A-Za-z][a-z]*[!-/:-@\[-`{-~]*")
_PIECES = re.compile(
    r"'(?:[sdmtSDMT]|[lL][lL]|[vVrR][eE])"
    r"|[^\r\n0-9A-Za-z]?[A-Za-z]+"
    r"|[0-9]{1,3}"
    r"| ?[^\s0-9A-Za-z]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+",
    re.ASCII,
)
_WORDS = re.compile(r"\S+", re.ASCII)
_BREAKS = re.compile(r"(\n+)")
_UNEVEN = ("  ", " \n", "\n ", "\t", "\r", "\f", "\v")
_ASCII = re.compile(r"[\x00-\x7f]+")
_OTHER = re.compile(r"[^\x00-\x7f]+")


class _Costs(dict[str, int]):
    """Costs of the strings seen so far: text repeats its words, and a look-up is cheap."""

    def __init__(self, cost: Callable[[str], int]) -> None:
        super().__init__()
        self.cost = cost

    def __missing__(self, part: str) -> int:
        found = self.cost(part)
        if len(part) <= 32:
            if len(self) >= 65_536:
                self.clear()
            self[part] = found
        return found


def _word_cost(word: str) -> int:
    if _NORMAL.fullmatch(word):
        return max(TOKEN, len(word) * 195)  # 4 characters a token
    return len(word) * 600  # 1.3 characters a token


def _piece_cost(piece: str) -> int:
    first, last, size = piece[0], piece[-1], len(piece)
    if last.isalpha():
        led = 0 if first.isalpha() else 1 if first in " '" else 2
        return max(TOKEN, (size - led - 4) * 260)
    if last.isdigit() or not piece.strip(" \t\n\r\f\v"):
        return TOKEN
    return max(TOKEN, size * 260)


def _bare_cost(part: str) -> int:
    return sum(map(_piece, _PIECES.findall(part)))


_word = _Costs(_word_cost).__getitem__
_piece = _Costs(_piece_cost).__getitem__
_bare = _Costs(_bare_cost).__getitem__
_spaced = _Costs(lambda part: _bare_cost(f" {part}")).__getitem__


def estimate_tokens(text: str) -> int:
    """Estimated tokens of ``text``: 0 when blank (space, tab, line breaks), else at least 4.

    The three tokens of framing in each estimate make a sum of parts larger than the whole.
    """
    if not text.strip(_BLANK):
        return 0
    units = 0
    if not text.isascii():
        other = "".join(_OTHER.findall(text))
        astral = len(other.encode("utf-16-le", "surrogatepass")) // 2 - len(other)
        units = 5070 * astral + 897 * (len(other) - astral)
        text = "".join(_ASCII.findall(text))
    units += _even_units(text) if _is_even(text) else _ascii_units(text)
    return -(-units // TOKEN) + 3


def _is_even(text: str) -> bool:
    """Whether single spaces and line breaks are all that separates words."""
    uneven = any(map(text.__contains__, _UNEVEN))
    return bool(text) and not uneven and text[0] not in _BLANK and text[-1] not in _BLANK


def _even_units(text: str) -> int:
    """``_ascii_units`` of even text, by whole words: no piece crosses the space before a word."""
    total = carried = 0
    lines = _BREAKS.split(text) if "\n" in text else [text]
    for line, breaks in zip(lines[::2], [*lines[1::2], ""], strict=True):
        parts = line.split(" ")
        words = sum(map(_word, parts))
        if taken := not line[-1].isalnum():
            parts[-1] += breaks  # punctuation takes the line breaks after it into its piece
        total += max(words, carried + _bare(parts[0]) + sum(map(_spaced, parts[1:])))
        piece = TOKEN if breaks and not taken else 0
        alone = len(breaks) > 1  # the piece opens an empty line, else the next one
        total, carried = (total + piece, 0) if alone else (total, piece)
    return total


def _ascii_units(text: str) -> int:
    words = [sum(map(_word, _WORDS.findall(line))) for line in text.split("\n")]
    parts, line = [0] * len(words), 0
    for piece in _PIECES.findall(text):
        if "\n" in piece:
            parts[line + (piece[0] == "\n")] += _piece(piece)  # a newline opens its line
            line += piece.count("\n")
        else:
            parts[line] += _piece(piece)
    return sum(map(max, words, parts))
