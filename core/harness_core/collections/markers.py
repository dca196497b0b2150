"""Citations in an answer: the model's labels become markers, and nothing else does.

Excerpts are labelled by numbers that no file can know beforehand. A marker that the model wrote
itself can only be copied from a file or from the request, so it goes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from harness_core.checks.citations import cited
from harness_core.checks.quotations import is_verbatim
from harness_core.ranking.sentences import sentence_spans
from harness_core.ranking.terms import terms

_MARKER = re.compile(r" ?\[\[\s{0,9}SRC\s{0,9}:[^\[\]]{0,40}\]{1,2}", re.IGNORECASE)
_OPENING = re.compile(r"\[\[(?=\s*SRC\s*:)", re.IGNORECASE)
_LABEL = re.compile(r"[ \t]?\[chunks?\s[^\[\]]{0,400}(?:\]|(?=\[)|\Z)", re.IGNORECASE)
_PLACED = re.compile(r"\x00(\d+)\x00")
_RUN = re.compile(r"(?:[ \t]*\x00\d+\x00)+")
_AFTER_STOP = re.compile(r"([.!?\u3002\uff01\uff1f\u2026]+)((?:[ \t]*\x00\d+\x00)+)(?=\s|\Z)")
_IMAGE = re.compile(
    r"[ \t]?!\[[^\[\]]{0,400}\]\([^()\s]{0,2000}[^()]{0,400}\)|[ \t]?<img\b[^<>]{0,2000}>", re.I
)
_AUTOLINK = re.compile(r"[ \t]?<(https?://[^<>\s]{1,2000})>", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s\"'<>()]{1,2000}", re.IGNORECASE)
_ENOUGH: Final = 0.7  # of a sentence's words in one excerpt, for it to be marked by repair


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """An answer with its markers: ``order`` are the excerpts cited, by first appearance."""

    text: str
    order: tuple[int, ...] = ()
    unknown: int = 0
    removed: int = 0
    repaired: int = 0
    uncited: int = 0


def without_markers(text: str) -> str:
    """A text without markers, each with the blank before it; nor does taking one out make one."""
    return _OPENING.sub("[ [", _MARKER.sub("", text))


def marked(text: str, excerpts: Mapping[int, str]) -> Marked:
    """The answer with a marker for each citation of an excerpt that was sent, by its label."""
    plain = without_markers(text.replace("\0", "\ufffd"))
    plain, removed = _without_links(plain, excerpts.values())
    unknown = 0

    def placed(found: re.Match[str]) -> str:
        nonlocal unknown
        citations = cited(found[0])
        known = [one for one in citations.ids if one in excerpts]
        unknown += len(citations.ids) - len(known) + len(citations.unparsed)
        return "".join(f"\0{one}\0" for one in known)

    labelled = _before_stops(_LABEL.sub(placed, plain))
    repaired = uncited = 0
    if not _PLACED.search(labelled):
        labelled, repaired, uncited = _repaired(labelled, excerpts)
    order = tuple(dict.fromkeys(int(found[1]) for found in _PLACED.finditer(labelled)))
    numbers = {one: place for place, one in enumerate(order, 1)}
    said = _RUN.sub(lambda run: _markers(run, numbers), labelled)
    return Marked(
        text=said.strip(), order=order, unknown=unknown, removed=removed, repaired=repaired,
        uncited=uncited,
    )  # fmt: skip


def ref(number: int) -> str:
    """The name of a source, from 1: at least four digits."""
    return f"SRC:{number:04d}"


def _markers(run: re.Match[str], numbers: Mapping[int, int]) -> str:
    """The markers of labels in a row, a blank before them unless they begin a line."""
    each = dict.fromkeys(int(found[1]) for found in _PLACED.finditer(run[0]))
    begins = run.start() == 0 or run.string[run.start() - 1] == "\n"
    return ("" if begins else " ") + "".join(f"[[{ref(numbers[one])}]]" for one in each)


def _before_stops(text: str) -> str:
    """Labels after a sentence's stop put before it."""
    return _AFTER_STOP.sub(lambda found: found[2] + found[1], text)


def _without_links(text: str, excerpts: Iterable[str]) -> tuple[str, int]:
    """No remote image, and no link that no excerpt holds: a reader's browser would call there."""
    known, removed = "\n".join(excerpts), 0

    def kept(found: re.Match[str]) -> str:
        nonlocal removed
        urls = _URL.findall(found[0])
        if urls and all(url in known for url in urls):
            return found[0]
        removed += 1
        return ""

    return _AUTOLINK.sub(kept, _IMAGE.sub(kept, text)), removed


def _repaired(text: str, excerpts: Mapping[int, str]) -> tuple[str, int, int]:
    """Each sentence with the label of the excerpt that says it, if one does."""
    said, end, repaired, uncited = [], 0, 0, 0
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        said.append(text[end:stop])
        end = stop
        found = _support(sentence, excerpts)
        if found is None:
            uncited += 1
        else:
            repaired += 1
            said.append(f"\0{found}\0")
    said.append(text[end:])
    return _before_stops("".join(said)), repaired, uncited


def _support(sentence: str, excerpts: Mapping[int, str]) -> int | None:
    words = set(terms(sentence, 3))
    if not words:
        return None
    shares = {one: len(words & set(terms(text, 3))) / len(words) for one, text in excerpts.items()}
    best = max(shares, key=lambda one: shares[one], default=None)
    if best is None or not shares[best]:
        return None
    return best if shares[best] >= _ENOUGH or is_verbatim(sentence, excerpts[best]) else None
