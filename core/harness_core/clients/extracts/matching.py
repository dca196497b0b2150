"""Which unit answers a question best, and whether any does."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harness_core.clients.extracts.units import Unit
from harness_core.clients.extracts.words import content, stems

ENOUGH = 0.45
"""Share of a question's meaning that a unit must carry, itself or by what surrounds it."""

_AROUND = 0.6  # what a word of the surroundings counts beside one of the unit itself
_LESS = 0.6  # what is left of a score without the kind of answer, or without a name, asked for
_FIGURE = re.compile(
    r"\bhow (?!(?:do|does|did|is|are|was|were|can|could|should|will|would)\b)\w+"
    r"|\b(?:percent(?:age)?|proportion|number|amount|size|range|figure|total)\b", re.IGNORECASE
)  # fmt: skip
_COUNTED = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred"
    r"|dozen|half|quarter|third|twice|once|none|nobody|no one)\b", re.IGNORECASE
)  # fmt: skip
_DATE = re.compile(r"\bwhen\b|\b(?:what|which|on what) (?:date|day|month|year)\b", re.IGNORECASE)
_PERSON = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)
_MEASURE = re.compile(r"\bhow (?:big|fast|far|high|large|long|often|old|tall|wide|deep)\b", re.I)
_MONTHS = r"January|February|March|April|May|June|July|August|September|October|November|December"
_IS_DATE = re.compile(rf"\b(?:{_MONTHS})\b|\b(?:19|20)\d\d\b|\b\d{{1,2}}[.:]\d\d\b")
_IS_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w'\u2019-]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Question:
    """A question, read once: its words of meaning, what it names, what kind of answer it wants."""

    text: str

    @cached_property
    def words(self) -> list[str]:
        """The stems to look for; ``how long`` asks for a measure and is not looked for."""
        return list(dict.fromkeys((*content(_MEASURE.sub(" ", self.text)), *self.names)))

    @cached_property
    def names(self) -> list[str]:
        """Stems of capitalised words (the first word aside) and the numbers: all must occur."""
        found = re.findall(rf"(?<=\S )[A-Z][^\W_]+|{_NUMBER.pattern}", self.text)
        return stems(" ".join(found))

    def wants(self, unit: Unit) -> bool:
        """Whether the unit holds the kind of thing the question asks for."""
        text = unit.text
        if _DATE.search(self.text):
            return bool(_IS_DATE.search(text))
        if _PERSON.search(self.text):
            return bool(_IS_NAME.search(text))
        if _FIGURE.search(self.text):
            asked = set(_NUMBER.findall(self.text))
            return bool(set(_NUMBER.findall(text)) - asked) or bool(_COUNTED.search(text))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A unit, how much of the question it carries (0 to 1), and its rank among the others."""

    unit: Unit
    covered: float
    score: float

    @property
    def enough(self) -> bool:
        """Whether the unit can be the answer."""
        return self.covered >= ENOUGH


def matches(question: str, units: Sequence[Unit]) -> list[Match]:
    """The units that share a word with the question, best first."""
    asked = Question(question)
    if not units or not asked.words:
        return []
    own = [stems(f"{unit.head} {unit.text}") for unit in units]
    around = [stems(unit.around) for unit in units]
    said = [{*near, *far} for near, far in zip(own, around, strict=True)]
    known = set().union(*said).issuperset(asked.names)
    query = " ".join(asked.words)
    near, far = _bm25(own, query), _bm25(around, query)
    found = []
    for place, unit in enumerate(units):
        covered = _covered(asked.words, set(own[place]), said[place])
        if covered == 0.0:
            continue
        score = (near[place] + _AROUND * far[place]) * (0.5 + covered)
        score *= 1.0 if asked.wants(unit) else _LESS
        score *= 1.0 if said[place].issuperset(asked.names) else _LESS
        found.append(Match(unit=unit, covered=covered if known else 0.0, score=score))
    return sorted(found, key=lambda match: (-match.score, match.unit.place))


def _covered(words: Sequence[str], own: set[str], said: set[str]) -> float:
    """0 unless the unit itself shares a word: what surrounds it never answers alone."""
    if own.isdisjoint(words):
        return 0.0
    shares = (1.0 if word in own else _AROUND if word in said else 0.0 for word in words)
    return sum(shares) / len(words)


def _bm25(texts: Sequence[Sequence[str]], query: str) -> list[float]:
    from harness_core.ranking.bm25 import BM25

    return [float(score) for score in BM25([" ".join(text) for text in texts]).scores(query)]


def told(match: Match | None) -> str:
    """A few words on why a unit was taken, for a reply that gives reasons."""
    if match is None:
        return "no sentence shares a word with the question"
    return f"the closest sentence carries {match.covered:.0%} of the question's words"
