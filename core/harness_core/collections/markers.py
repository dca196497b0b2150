"""Citations in an answer: the model's labels become markers, and nothing else does.

Excerpts are labelled by numbers that no file can know beforehand. A marker that the model wrote
itself can only be copied from a file or from the request, so it goes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.checks.citations import cited
from harness_core.checks.quotations import is_verbatim
from harness_core.ranking.sentences import sentence_spans
from harness_core.ranking.terms import terms

# the blank after ! or < stays: what follows would become an image or a link with it
_MARKER = re.compile(r"(?:(?<![!<]) )?\[\[\s{0,9}SRC\s{0,9}:[^\[\]]{0,40}\]{1,2}", re.IGNORECASE)
_OPENING = re.compile(r"\[\[(?=\s*SRC\s*:)", re.IGNORECASE)
_LABEL = re.compile(r"[ \t]?\[chunks?\s[^\[\]]{0,400}(?:\]|(?=\[)|\Z)", re.IGNORECASE)
_PLACED = re.compile(r"\x00(\d+)\x00")
# each begins at the start of a run and gives nothing back, or a long run would be read from anew
_RUN = re.compile(r"(?<![ \t])(?:[ \t]*+\x00\d+\x00)++")
_STOPS = r"[.!?\u3002\uff01\uff1f\u2026]"
_AFTER_STOP = re.compile(rf"(?<!{_STOPS})({_STOPS}++)((?:[ \t]*+\x00\d+\x00)++)(?=\s|\Z)")
_CALLS = re.compile(
    r"[ \t]?(?:!\[[^\[\]]{0,400}\]\([^()]{0,2400}\)|<img\b[^<>]{0,2000}>|"
    r"<https?://[^<>\s]{1,2000}>)"
    r"|(?<!!)!++(?=\[)|(?<!<)<++(?=(?:img|image)\b|https?:)",  # what is left of other forms
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[ \t]?(?:!\[[^\[\]<]*\]\(|<)(https?://[^\s\"'<>()]+)[)>]", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s\"'<>()]{1,2000}", re.IGNORECASE)
_APART: Final = frozenset(("", *" \t\n.,;:)"))  # with these no new image or link can come about
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


def marked(text: str, excerpts: Mapping[int, str], refuted: frozenset[int] = frozenset()) -> Marked:
    """The answer with a marker for each citation of an excerpt that was sent, by its label.

    A citation of a ``refuted`` excerpt goes, and its sentence stays.
    """
    plain = without_markers(text.replace("\0", "\ufffd"))
    unknown = 0

    def placed(found: re.Match[str]) -> str:
        nonlocal unknown
        citations = cited(found[0])
        known = [one for one in citations.ids if one in excerpts]
        unknown += len(citations.ids) - len(known) + len(citations.unparsed)
        return "".join(f"\0{one}\0" for one in known if one not in refuted)

    labelled = _before_stops(_LABEL.sub(placed, plain))
    repaired = uncited = 0
    if not _PLACED.search(labelled):
        sound = {one: text for one, text in excerpts.items() if one not in refuted}
        labelled, repaired, uncited = _repaired(labelled, sound)
    labelled, removed = _without_links(labelled, [excerpts[one] for one in _order(labelled)])
    order = _order(labelled)
    numbers = {one: place for place, one in enumerate(order, 1)}
    said = _RUN.sub(lambda run: _markers(run, numbers), labelled)
    return Marked(
        text=said.strip(), order=order, unknown=unknown, removed=removed, repaired=repaired,
        uncited=uncited,
    )  # fmt: skip


def ref(number: int) -> str:
    """The name of a source, from 1: at least four digits."""
    return f"SRC:{number:04d}"


def _order(labelled: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(found[1]) for found in _PLACED.finditer(labelled)))


def _markers(run: re.Match[str], numbers: Mapping[int, int]) -> str:
    """The markers of labels in a row, a blank before them unless they begin a line."""
    each = dict.fromkeys(int(found[1]) for found in _PLACED.finditer(run[0]))
    begins = run.start() == 0 or run.string[run.start() - 1] == "\n"
    return ("" if begins else " ") + "".join(f"[[{ref(numbers[one])}]]" for one in each)


def _before_stops(text: str) -> str:
    """Labels after a sentence's stop put before it."""
    return _AFTER_STOP.sub(lambda found: found[2] + found[1], text)


def _without_links(text: str, cited: Sequence[str]) -> tuple[str, int]:
    """Nothing that a reader's browser calls by itself, but for URLs that a cited excerpt holds."""
    urls = {url for one in cited for url in _URL.findall(one)}
    known, removed = urls | {url.rstrip(".,;:!?") for url in urls}, 0

    def kept(found: re.Match[str]) -> str:
        nonlocal removed
        plain = _PLAIN.fullmatch(found[0])
        if plain and plain[1] in known:
            return found[0]
        removed += 1
        return "" if text[found.end() : found.end() + 1] in _APART else " "

    return _CALLS.sub(kept, text), removed


def _repaired(text: str, excerpts: Mapping[int, str]) -> tuple[str, int, int]:
    """Each sentence with the label of the excerpt that says it, if one does."""
    said, end, repaired, uncited = [], 0, 0, 0
    words = {one: frozenset(terms(text, 3)) for one, text in excerpts.items()}
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        said.append(text[end:stop])
        end = stop
        found = _support(sentence, excerpts, words)
        if found is None:
            uncited += 1
        else:
            repaired += 1
            said.append(f"\0{found}\0")
    said.append(text[end:])
    return _before_stops("".join(said)), repaired, uncited


def _support(
    sentence: str, excerpts: Mapping[int, str], known: Mapping[int, frozenset[str]]
) -> int | None:
    words = set(terms(sentence, 3))
    if not words:
        return None
    shares = {one: len(words & held) / len(words) for one, held in known.items()}
    best = max(shares, key=lambda one: shares[one], default=None)
    if best is None or not shares[best]:
        return None
    return best if shares[best] >= _ENOUGH or is_verbatim(sentence, excerpts[best]) else None
