"""Sentences of a text in many scripts, in linear time."""

import re

import regex

_ABBREVIATED = re.compile(
    r"\b(?:Mrs?|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|cf|al|Fig|Eq|No|Inc|Ltd|Co)\.$"
)
_LONGEST = 8  # characters back from a full stop that tell an abbreviation, one before it included
_STARTS = r"""["'\xbf\xa1\p{Ps}\p{Pi}]?[\p{Lu}\p{Lt}\p{Lo}\p{Nd}]"""
_BOUNDARY = regex.compile(
    rf"([.!?\u061f\u06d4\u0964\u0965])[ \t]++(?={_STARTS})"  # Arabic, Urdu, Devanagari marks
    r"""|([\u3002\uff01\uff1f]++["'\p{Pe}\p{Pf}]*+)"""  # ideographic and full-width ones
    r"|\n\n+"
)


def sentences(text: str) -> list[str]:
    """The sentences of ``text``, trimmed, none empty.

    A sentence ends at a closing mark before a space and a letter that is not lower-case (or a
    digit), after a full-width mark, and at an empty line; not after a common abbreviation, and not
    at a single line break.
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence in ``text``, in characters."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        mark = match.start() + 1
        if match[1] == "." and _ABBREVIATED.search(text[max(0, mark - _LONGEST) : mark]):
            continue
        _add(spans, text, start, mark if match[1] else match.end())
        start = match.end()
    _add(spans, text, start, len(text))
    return spans


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    part = text[start:end]
    if kept := part.strip():
        start += len(part) - len(part.lstrip())
        spans.append((start, start + len(kept)))
