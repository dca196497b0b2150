"""The words of a text in any script, as they are indexed and matched."""

import re

import regex

_ASCII = re.compile(r"[a-z0-9]+")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_SCRIPTS = (
    r"\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}"
    r"\p{Script=Khmer}\p{Script=Myanmar}"
)
_UNSPACED = regex.compile(rf"([{_SCRIPTS}][{_SCRIPTS}\p{{Lm}}\p{{M}}]*)")


def terms(text: str, min_length: int = 2) -> list[str]:
    """Lower-case words of at least ``min_length`` characters, in order.

    Scripts written without spaces give overlapping pairs of characters, whatever ``min_length``.
    """
    lower = text.lower()
    if lower.isascii():
        return [word for word in _ASCII.findall(lower) if len(word) >= min_length]
    found: list[str] = []
    for word in _WORD.findall(lower):
        if word.isascii() or _UNSPACED.search(word) is None:
            found += [word] if len(word) >= min_length else []
        else:
            found += _mixed(word, min_length)
    return found


def _mixed(word: str, min_length: int) -> list[str]:
    found: list[str] = []
    for place, part in enumerate(_UNSPACED.split(word)):
        if place % 2:  # what the pattern captured
            found += [part[i : i + 2] for i in range(len(part) - 1)] or [part]
        elif len(part) >= min_length:
            found.append(part)
    return found
