# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""What a quotation is made of: passages, and the pieces that elisions leave of them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain

import regex

from harness_core.checks.normalise import Normal, normalised, trimmed

_DOTS = r"(?:\.{3,}+|…|\.(?:\s\.){2,}+)"
_ELISION = rf"(?:[\[(]\s*+(?:{_DOTS}|\.\.)\s*+[\])]|{_DOTS})++"
_ELISIONS = re.compile(_ELISION)
_ELIDED_AT_END = re.compile(rf"{_ELISION}[\s\"'”’»)\].,;:]*$")
_ELIDED_AT_START = re.compile(rf"[\s\"'“‘«(\[]*?{_ELISION}")
_EDGE = 100
_BLANK_LINES = re.compile(r"\n\s*\n")
_LINES = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_BULLET = re.compile(r"[•‣⁃◦∙●○■□▪▫➢➤✓✔]\s*|[-*+]\s+")
_LABEL = re.compile(r"\([A-Za-z]\)\s+|[A-Za-z]\)\s+")
_NUMBERED = re.compile(r"\(?([1-9]\d?)[.)]\s+")
_SENTENCE_OVER = regex.compile(r"[.!?;:…。！？；：．｡][\"'”’»)\]}」』）】*_]*$")
_OPENING_QUOTE = ('"', "“", "„", "«", "「", "『", "＂")
_CAPITAL = regex.compile(r"['‘(\[*_]*\p{Lu}")
_BETWEEN_QUOTES = re.compile(r"(?<=[\"”»」』])(?:\s*+[,;])?\s++(?=[\"“„«「『])")
_CONTENT = regex.compile(r"[\p{L}\p{N}]")
_BOLD = regex.compile(
    r"(?<![\p{L}\p{N}*])\*\*(?![\s*])((?:(?!\*\*|\n\s*\n)[\s\S])+?)(?<!\s)\*\*(?![\p{L}\p{N}*])"
)


class Join(IntEnum):
    """How a passage follows the one before: a wrapped line, set apart, or after an elision."""

    WRAP = 0
    APART = 1
    ELIDED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One stretch of a quotation. ``pieces`` are what is to be found of it, in order."""

    text: str
    pieces: tuple[Normal, ...]
    join: Join


def split_passages(quotation: str) -> list[Passage]:
    """The passages of ``quotation`` that have something to find, each with its join."""
    found: list[Passage] = []
    pending, elided = Join.WRAP, False
    for text, join in _apart(_lines(_LINES.sub("\n", quotation))):
        broken = elided or _ELIDED_AT_START.match(text, 0, _EDGE)
        pending = max(pending, Join.ELIDED if broken else join)
        elided = _ELIDED_AT_END.search(text[-_EDGE:]) is not None
        if pieces := _pieces(text):
            found.append(Passage(text=text, pieces=pieces, join=pending))
            pending = Join.WRAP
    return found


def joined(lines: Sequence[Passage]) -> Passage:
    """The lines of one passage, as written."""
    if len(lines) == 1:
        return lines[0]
    text = " ".join(line.text for line in lines)
    return Passage(text=text, pieces=_pieces(text), join=lines[0].join)


def whole_piece(text: str, *, trim: bool = True) -> Normal | None:
    """``text`` as one piece; None when there is nothing in it to find."""
    piece = trimmed(normalised(text)) if trim else normalised(text)
    return piece if _CONTENT.search(piece.norm) else None


def without_bold(text: str) -> str:
    """``text`` without paired double asterisks; a star after a number is no bold."""
    return _BOLD.sub(r"\1", text)


def has_elision(text: str) -> bool:
    """Whether ``text`` leaves something out within itself."""
    return _ELISIONS.search(text) is not None


def _pieces(text: str) -> tuple[Normal, ...]:
    pieces = (whole_piece(part) for part in _ELISIONS.split(text))
    return tuple(piece for piece in pieces if piece is not None)


def _lines(quotation: str) -> Iterator[tuple[str, Join]]:
    """Lines joined to passages; a list marker is cut off."""
    listed = _List()
    for block in _BLANK_LINES.split(quotation):
        passage, join, previous = "", Join.APART, ""
        for line in filter(None, map(str.strip, block.split("\n"))):
            fresh = not previous or _SENTENCE_OVER.search(previous) is not None
            rest = listed.unmarked(line, fresh=fresh)
            begins = fresh or rest is not None or line.startswith(_OPENING_QUOTE)
            if begins or _CAPITAL.match(line):
                if passage:
                    yield passage, join
                passage, join = rest if rest is not None else line, Join(begins)
            else:
                passage = f"{passage} {line}"
            previous = line
        if passage:
            yield passage, join


class _List:
    """The list that a quotation may be inside of."""

    def __init__(self) -> None:
        self.number, self.inside = 0, False

    def unmarked(self, line: str, *, fresh: bool) -> str | None:
        """``line`` without its list marker; None when it has none."""
        marker = _BULLET.match(line) or self._label(line, fresh) or self._numbered(line, fresh)
        if marker is None:
            return None
        self.inside = True
        return line[marker.end() :]

    def _label(self, line: str, fresh: bool) -> re.Match[str] | None:
        return _LABEL.match(line) if fresh or self.inside else None

    def _numbered(self, line: str, fresh: bool) -> re.Match[str] | None:
        marker = _NUMBERED.match(line)
        number = int(marker[1]) if marker else 0
        if not (number == self.number + 1 > 1 or (number == 1 and fresh)):
            return None
        self.number = number
        return marker


def _apart(lines: Iterable[tuple[str, Join]]) -> Iterator[tuple[str, Join]]:
    """Split where one quotation closes and the next opens."""
    return chain.from_iterable(
        ((text, Join.APART if at else join) for at, text in enumerate(_BETWEEN_QUOTES.split(line)))
        for line, join in lines
    )
