"""What a blank is, and where a paragraph ends."""

import re
from typing import Final

BLANKS: Final = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Space, tab and the Unicode spaces, as the inside of a character class."""

_BREAK = re.compile(rf"\n[{BLANKS}]*\n[{BLANKS}\n]*")
_VISIBLE = re.compile(rf"[^{BLANKS}\s\u2028\u2029]")
_OUTER = " \t\r\n\f\v\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def visible(text: str) -> bool:
    """Whether anything of ``text`` can be seen."""
    return _VISIBLE.search(text) is not None


def trim_end(text: str) -> str:
    """``text`` without blanks and line ends behind it."""
    return text.rstrip(_OUTER)


def trim_start(text: str) -> str:
    """``text`` without blanks and line ends before it."""
    return text.lstrip(_OUTER)


def paragraphs(text: str) -> list[str]:
    """The paragraphs of ``text``, split at blank lines; a list in any case, perhaps empty."""
    return [trim_end(part) for part in _BREAK.split(text) if visible(part)]
