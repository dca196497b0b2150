"""The passage of a cited source that supports what is said with its marker."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from harness_core.collections.contract import Highlight, Match, Source, Span
from harness_core.collections.retrieval import Found
from harness_core.ranking.sentences import sentence_spans
from harness_core.ranking.terms import terms

HIGHLIGHT_CHARS: Final = 300

_MARKER = re.compile(r" ?\[\[(SRC:[0-9]{4,})\]\]")


def with_matches(
    answer: str,
    sources: Sequence[Source],
    excerpts: Mapping[str, Found],
    quoted: Mapping[str, Sequence[str]],
) -> list[Source]:
    """The sources, each cited one with a passage of its excerpt, word for word.

    It is the first of the model's quotations (``quoted``, by ref, checked before) that stands there
    as it is, else the sentence that shares most words with the sentences that cite the source.
    """
    claims = _claims(answer)
    return [
        one.model_copy(
            update={
                "matches": _matches(one, excerpts[one.ref].passage.text, claims[one.ref], quoted)
            }
        )
        if one.cited
        else one
        for one in sources
    ]


def _claims(answer: str) -> dict[str, str]:
    """What is said, by the ref it is said with."""
    claims: dict[str, str] = defaultdict(str)
    for start, stop in sentence_spans(answer):
        sentence = answer[start:stop]
        for name in set(_MARKER.findall(sentence)):
            claims[name] += _MARKER.sub("", sentence) + "\n"
    return claims


def _matches(
    source: Source, excerpt: str, claim: str, quoted: Mapping[str, Sequence[str]]
) -> list[Match] | None:
    place = _quotation(excerpt, quoted.get(source.ref, ())) or _sentence(excerpt, claim)
    if place is None or source.span.start is None:
        return None
    start, stop = place
    first = source.span.start
    span = Span(file_id=source.span.file_id, unit="chars", start=first + start, end=first + stop)
    return [Match(span=span, text=excerpt[start:stop], highlight=_highlight(excerpt, start, stop))]


def _quotation(excerpt: str, quotations: Sequence[str]) -> tuple[int, int] | None:
    found = ((excerpt.find(text), len(text)) for text in map(str.strip, quotations) if text)
    return next(((start, start + size) for start, size in found if start >= 0), None)


def _sentence(excerpt: str, claim: str) -> tuple[int, int] | None:
    words = set(terms(claim))
    shared = {
        (start, stop): len(words & set(terms(excerpt[start:stop])))
        for start, stop in sentence_spans(excerpt)
    }
    best = max(shared, key=lambda place: shared[place], default=None)
    return best if best is not None and shared[best] else None


def _highlight(excerpt: str, start: int, stop: int) -> Highlight:
    """About 300 characters around the passage, and where it stands in them."""
    size = min(stop - start, HIGHLIGHT_CHARS)
    first = max(0, start - (HIGHLIGHT_CHARS - size) // 2)
    text = excerpt[first : first + HIGHLIGHT_CHARS]
    return Highlight(text=text, match_ranges=[(start - first, start - first + size)])
