"""Which numbered excerpts a text cites, as in ``[chunk 3]`` or ``[chunks 1, 2 and 5-7, p. 4]``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_PLURALS = {"chunk": "chunks?", "study": "stud(?:y|ies)"}
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_WIDEST_RANGE = 1000
_LOCATOR = r"(?:pp?\.|pages?\b|pp?(?=\s*\d)|para\.|paragraphs?\b|sec\.|sections?\b|lines?\b|§)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citations:
    """What a text cites: ``ids`` without repeats, in order of appearance.

    ``unparsed`` are the brackets that open like a citation and cannot be read, without repeats.
    """

    ids: tuple[int, ...] = ()
    unparsed: tuple[str, ...] = ()


def cited(text: str, word: str = "chunk") -> Citations:
    """The citations in ``text``. ``word`` is the label's word in the singular.

    Ids may be listed; a range stands for every id in it, or for its two ends when they are more
    than 1,000 apart. A locator after the ids ("p. 12", "§ 3") is passed over.
    """
    opening, marker = _patterns(word.lower())
    ids: dict[int, None] = {}
    unparsed: dict[str, None] = {}
    for found in opening.finditer(text):
        marked = marker.fullmatch(found[0])
        if marked is None:
            unparsed[found[0]] = None
        else:
            ids.update(dict.fromkeys(_ids(marked["ids"])))
    return Citations(ids=tuple(ids), unparsed=tuple(unparsed))


@cache
def _patterns(word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    label = _PLURALS.get(word, f"{re.escape(word)}s?")
    one = rf"[0-9]{{1,18}}(?:\s*[{_DASHES}]\s*(?:{label}\s+)?[0-9]{{1,18}})?"
    between = r"(?:\s*(?:,\s*(?:and\b|&)?|[;&])\s*|\s+and\s+)"
    ids = rf"{one}(?:{between}(?:{label}\s+)?{one})*+"
    locator = rf"[\s,;:]*+{_LOCATOR}(?:(?!{label}\s+[0-9])[^\]])*"
    marker = rf"\[{label}\s+(?P<ids>{ids})(?:{locator})?\s*\]"
    opening = rf"\[{label}\s[^\[\]]*(?:\]|(?=\[))"
    return re.compile(opening, re.IGNORECASE), re.compile(marker, re.IGNORECASE)


def _ids(listed: str) -> Iterator[int]:
    for found in re.finditer(rf"([0-9]+)(?:\s*[{_DASHES}]\D*?([0-9]+))?", listed):
        first, last = int(found[1]), int(found[2] or found[1])
        low, high = sorted((first, last))
        yield from range(low, high + 1) if high - low <= _WIDEST_RANGE else (first, last)
