"""Late cleaners that look at characters."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

import regex

from harness_core.documents.paragraphs import BLANKS

_BLANK_LINE = re.compile(rf"^[{BLANKS}]+$", re.MULTILINE)
_PUNCTUATION = regex.compile(r"[^\w\s\p{M}]")
_RUN = re.compile(r"[ \t]+")
_INVISIBLE: Final = dict.fromkeys((0x200B, 0x200E, 0x200F, 0xFEFF, 0x00AD))
_CONTROLS: Final = {code: " " for code in range(32) if chr(code) not in "\t\n\r"}
_LIGATURES: Final = str.maketrans(
    {
        "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl",
        "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"',
        "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2026": "...",
    }
)  # fmt: skip
_PLAIN: Final = str.maketrans(
    {
        "\u00df": "ss", "\u00e6": "ae", "\u00c6": "AE", "\u00f8": "o", "\u00d8": "O",
        "\u0142": "l", "\u0141": "L", "\u0153": "oe", "\u0152": "OE", "\u00f0": "d", "\u00d0": "D",
        "\u00fe": "th", "\u00de": "Th", "\u0111": "d", "\u0110": "D", "\u0131": "i",
        "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-",
        "\u20ac": "EUR", "\u00a3": "GBP", "\u00ab": '"', "\u00bb": '"', "\u2022": "*",
    }
)  # fmt: skip


def collapse_whitespace(text: str, _opts: Mapping[str, Any]) -> str:
    """Fold blanks, trim lines, at most one blank line; a no-break space in a line stays."""
    text = _RUN.sub(" ", _BLANK_LINE.sub("", text))
    text = text.replace(" \n", "\n").replace("\n ", "\n")
    return re.sub(r"\n{3,}", "\n\n", text).strip(" \t\r\n")


def control_chars(text: str, _opts: Mapping[str, Any]) -> str:
    """Drop invisible characters, C0 controls become a space; joiners of scripts stay."""
    return text.translate(_INVISIBLE).translate(_CONTROLS)


def ligatures(text: str, _opts: Mapping[str, Any]) -> str:
    """Expand ligatures and the ellipsis, straighten quotes; dashes stay."""
    return text if text.isascii() else text.translate(_LIGATURES)


def remove_numbers(text: str, _opts: Mapping[str, Any]) -> str:
    """Replace each run of digits by a space."""
    return re.sub(r"\d+", " ", text)


def remove_punctuation(text: str, _opts: Mapping[str, Any]) -> str:
    """Replace what is neither a letter, a mark, a digit nor a blank by a space."""
    return str(_PUNCTUATION.sub(" ", text))


def ascii_only(text: str, _opts: Mapping[str, Any]) -> str:
    """Transliterate to ASCII; what has no equivalent becomes a space."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_LIGATURES).translate(_PLAIN))
    bare = "".join(char for char in plain if not unicodedata.combining(char))
    return "".join(char if char.isascii() else " " for char in bare)


def lowercase(text: str, _opts: Mapping[str, Any]) -> str:
    """Lower-case, whatever the locale."""
    return text.lower()
