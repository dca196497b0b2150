"""Text as the shadow matcher compares it: damage of extraction undone where it changes nothing."""

import re

import regex

from harness_core.checks.normalise import composed, unified

_LETTERS = str.maketrans({
    "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st",
    "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "µ": "μ", "\u00ad": None, "\u200b": None,
    "İ": "I", "\u2028": "\n", "\u2029": "\n", "\r": "\n", "\x85": "\n", "\f": "\n", "\v": "\n",
})  # fmt: skip
_SPACES = re.compile(r"[^\S\n]+")
_BREAK = regex.compile(
    r"(?P<hyphen>(?<=\p{L})[-\u2010\u2011\u2013]) ?\n[ \n]*(?=\p{Ll})|[ \n]*\n[ \n]*"
)


class Folded:
    """Folded text: ``norm`` without case, ``cased`` with it, character for character.

    ``breaks`` are the places in it where a line ended: between the halves of a word whose hyphen
    was taken out, or at the space that stands for the line break.
    """

    def __init__(self, text: str) -> None:
        spaced = _SPACES.sub(" ", composed(text).translate(_LETTERS))
        parts: list[str] = []
        breaks: list[int] = []
        at = length = 0
        for found in _BREAK.finditer(spaced):
            parts += (spaced[at : found.start()], "" if found["hyphen"] else " ")
            length += found.start() - at
            breaks.append(length)
            length += not found["hyphen"]
            at = found.end()
        parts.append(spaced[at:])
        self.cased = unified("".join(parts))
        self.norm = self.cased.lower()
        self.breaks = frozenset(breaks)
