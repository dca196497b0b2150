"""Where a quotation may begin and end in its source without cutting a word or a number.

Every rule errs on the side of refusing: half a number, a range without one end or a number without
the sign, decimal or percent mark written to it is another number.
"""

import re
import unicodedata
from enum import Enum
from functools import cache

import regex

from harness_core.checks.normalise import GROUP_SPACES, UNSPACED, Normal


class Kind(Enum):
    """What a character is at the edge of a word or number."""

    DIGIT = "digit"
    LETTER = "letter"
    NUMERAL = "numeral"
    FORMAT = "format"
    OTHER = "other"


_DIGIT = regex.compile(
    r"[\p{Nd}\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u2079\u2080-\u2089\u2150-\u215f\u2189]"
)
_SUPERSCRIPT = frozenset("\u00b2\u00b3\u00b9\u2070\u2074\u2075\u2076\u2077\u2078\u2079")
_SPACED = regex.compile(rf"[[\p{{L}}\p{{M}}\p{{Nl}}]--[{UNSPACED}]]", regex.VERSION1)
NUMERALS = "〇零一二三四五六七八九十百千万萬亿億兆两兩"
"""Chinese numerals; a run of them, digits included, is one number."""

_PUNCTUATION_DASHES = "\u2014\u2015"
_EN_DASH = "\u2013"
_MINUS = "\u2212"
_OTHER_MINUS = "\ufe63\u207b\u208b\u2796\u02d7"
_BEARING = "<\u2264\u2265\u00b1\u2213"
_INNER = ".,/:'^\u00b7\u2219\u22c5\u00d7\u066b\u066c\u2044\u2215\u2236"
_MEASURE = "%\u2030\u2031\u00b0\u207a\u207b"
_NUMBER = re.compile(rf"(?:-+[$€£¥₹]?|[$€£¥₹])?[{re.escape(_INNER)}]?\d")
_THREE = re.compile(r"\d{3}(?!\d)")
_FRACTION = regex.compile(r"(?:\d{1,2}[/\u2044]\d{1,2}|[\u00bc-\u00be\u2150-\u215e])(?!\d)")
_CLEANED_WORD = regex.compile(r"(?:^|[\s(\[\"'])\p{Ll}{5,}$")
_LARGE = re.compile(r"\d{3}|\d{1,3},\d{3}")
_YEAR = re.compile(r"(?<![\d.,'-])(?:1[5-9]|20)\d\d$")
_NO_SENTENCE = (
    r"Kelvin|Celsius|Fahrenheit|Pascal|Hertz|Newton|Watt|Volt|Joule|Gray|Euro|Dollar|Pound|Franc|Yen"
    r"|Million|Billion|Trillion|Mio|Mrd|[KMGT]bps"
)
_SHORT_OPENING = "(?:A|I|An|As|At|By|He|If|In|It|No|On|So|To|We)"
_FOOTNOTE = regex.compile(
    rf"""\.\d{{1,3}}(?:[,\u2013-]\d{{1,3}})*
    (?: \s+(?!{_NO_SENTENCE})(?:\p{{Lu}}\p{{Ll}}{{2,}}|{_SHORT_OPENING}\s)
      | \s*$ )""",
    regex.VERBOSE,
)
_DATED = re.compile(r"\b(?:in|since|until|till|during|before|early|late|year)\s\d{4}$")
_NOT = re.compile(r"'t(?![^\W\d_])")
_QUANTITY = regex.compile(r"[\p{Nd}\p{No}][\s-]?(?:\p{L}{1,12}|%)$")
_PER = regex.compile(r"\s?[/\u2044\u2215]\s?\p{L}")
_LENGTH = regex.compile(r"[\p{Nd}\p{No}][\s-]?[munkcdμ\u00b5]?m$")
_RAISED = re.compile("[23\u00b2\u00b3\u207b]")
_SYLLABLES = re.compile("[가-힣]+")
_PARTICLE_WORDS = """
은 는 이 가 을 를 의 에 에서 에게 에게서 께 께서 한테 한테서 로 으로 로서 으로서 로써 으로써
로부터 으로부터 부터 까지 와 과 랑 이랑 하고 도 만 보다 처럼 같이 마다 에는 에도 에만 에서는
에서도 에게는 에게도 으로는 로는 으로도 로도 까지는 까지도 부터는 이나 나 이며 며
들 들이 들은 들을 들의 들에게 들과 들도
"""
_PARTICLES = frozenset(_PARTICLE_WORDS.split())


@cache
def kind(char: str) -> Kind:
    """What ``char`` is; letters of scripts that do not space their words are OTHER."""
    if _DIGIT.match(char):
        return Kind.DIGIT
    if char in NUMERALS:
        return Kind.NUMERAL
    if _SPACED.match(char):
        return Kind.LETTER
    return Kind.FORMAT if unicodedata.category(char) == "Cf" else Kind.OTHER


class Edges:
    """The edges of the words and numbers of one text."""

    def __init__(self, text: Normal) -> None:
        self.norm, self.kept = text

    def may_begin(self, at: int) -> bool:
        """Whether a piece may begin at ``at``."""
        norm = self.norm
        first = kind(norm[at])
        if first is Kind.LETTER:
            return self._word_begins(at)
        if first is Kind.DIGIT or _NUMBER.match(norm, at):
            return self._number_begins(at)
        before = self._before(at)
        return first is not Kind.NUMERAL or before < 0 or not _counts(norm[before])

    def may_end(self, end: int) -> bool:
        """Whether a piece may end before ``end``."""
        norm = self.norm
        last = kind(norm[end - 1])
        if self._unit_goes_on(end):
            return False
        if last is Kind.LETTER:
            return self._word_ends(end)
        if last is Kind.DIGIT:
            return self._number_ends(end)
        after = self._after(end)
        if norm[end - 1] in _INNER + "-" and self._is(end - 2, Kind.DIGIT):
            return not self._is(after, Kind.DIGIT)
        return last is not Kind.NUMERAL or after == len(norm) or not _counts(norm[after])

    def _before(self, at: int) -> int:
        at -= 1
        while at >= 0 and kind(self.norm[at]) is Kind.FORMAT:
            at -= 1
        return at

    def _after(self, end: int) -> int:
        while end < len(self.norm) and kind(self.norm[end]) is Kind.FORMAT:
            end += 1
        return end

    def _is(self, at: int, *kinds: Kind) -> bool:
        return 0 <= at < len(self.norm) and kind(self.norm[at]) in kinds

    def _hyphen(self, at: int) -> bool:
        """A hyphen, minus or en dash at ``at``; longer dashes are punctuation."""
        inside = 0 <= at < len(self.norm) and self.norm[at] == "-"
        return inside and self.kept[at] not in _PUNCTUATION_DASHES

    def _broken(self, at: int) -> bool:
        """White space at ``at`` that held a line break."""
        return 0 <= at < len(self.kept) and self.kept[at] == "\n"

    def _word_begins(self, at: int) -> bool:
        before = self._before(at)
        if self._is(before, Kind.LETTER):
            return False
        dash = self._before(before) if self._broken(before) else before
        return not (self._hyphen(dash) and self._is(self._before(dash), Kind.LETTER))

    def _word_ends(self, end: int) -> bool:
        after = self._after(end)
        if self._is(after, Kind.LETTER):
            return self._particle_follows(after)
        if _NOT.match(self.norm, after):
            return False
        if not self._hyphen(after):
            return True
        beyond = self._after(after + 1)
        return not self._is(
            self._after(beyond + 1) if self._broken(beyond) else beyond, Kind.LETTER
        )

    def _unit_goes_on(self, end: int) -> bool:
        """Whether the unit of a number at the end is but a part of one, as of mg/kg or m²."""
        tail = self.norm[max(0, end - 20) : end]
        per = _PER.match(self.norm, end) and _QUANTITY.search(tail)
        return bool(per or (_RAISED.match(self.norm, end) and _LENGTH.search(tail)))

    def _particle_follows(self, after: int) -> bool:
        rest = _SYLLABLES.match(self.norm, after)
        return (
            rest is not None
            and _SYLLABLES.match(self.norm, after - 1) is not None
            and rest[0] in _PARTICLES
            and not self._is(rest.end(), Kind.LETTER)
        )

    def _number_begins(self, at: int) -> bool:
        before = self._before(at)
        if before < 0:
            return True
        char = self.norm[before]
        if char == " ":
            return self._space_before(before, at)
        if _counts(char) or kind(char) is Kind.LETTER or char in _OTHER_MINUS + _BEARING:
            return False
        if char == "-":
            return not self._hyphen(before) or self._dash_is_punctuation(before, at)
        if char == ".":
            return self._stop_before(before, at)
        return char not in _INNER or not self._is(self._before(before), Kind.DIGIT)

    def _space_before(self, space: int, at: int) -> bool:
        before = self._before(space)
        if self._is(before, Kind.DIGIT):
            grouped = self.kept[space] in GROUP_SPACES and _THREE.match(self.norm, at)
            return not (grouped or _FRACTION.match(self.norm, at))
        if self._broken(space) and self._hyphen(before) and self.norm[before - 1 : before] != " ":
            return self._dash_is_punctuation(before, at)
        return before < 0 or self.kept[before] != _MINUS

    def _stop_before(self, stop: int, at: int) -> bool:
        before = self._before(stop)
        if self.norm[at] in ".,":
            return False
        return before >= 0 and (self.norm[before] == "." or self.norm[before].isalpha())

    def _dash_is_punctuation(self, dash: int, at: int) -> bool:
        before = self._before(dash)
        if before < 0 or self.norm[at] == "-":
            return False
        if self.kept[dash] == _EN_DASH:
            return self.norm[before].isalpha()
        if self.kept[dash] == "-" and self.kept[before] == "-":
            return True
        word = self.kept[max(0, dash - 40) : dash]
        return bool(_LARGE.match(self.norm, at) and _CLEANED_WORD.search(word))

    def _number_ends(self, end: int) -> bool:
        after = self._after(end)
        if after == len(self.norm):
            return True
        char = self.norm[after]
        if kind(char) is Kind.DIGIT:
            return self._is_footnote(end, after)
        if kind(char) in (Kind.LETTER, Kind.NUMERAL) or char in _MEASURE:
            return False
        if char == " ":
            grouped = self.kept[after] in GROUP_SPACES and _THREE.match(self.norm, after + 1)
            return not (grouped or _FRACTION.match(self.norm, after + 1))
        return not self._number_goes_on(after) or (char == "." and self._year_ends(end))

    def _number_goes_on(self, mark: int) -> bool:
        beyond = self._after(mark + 1)
        if self._hyphen(mark) and self._broken(beyond):
            beyond = self._after(beyond + 1)
        joins = self.norm[mark] in _INNER or self._hyphen(mark)
        return joins and self._is(beyond, Kind.DIGIT) and self.norm[beyond] not in _SUPERSCRIPT

    def _is_footnote(self, end: int, after: int) -> bool:
        number = re.search(r"\d*$", self.norm[max(0, end - 20) : end])
        plain = number is not None and number[0] not in ("", "10")
        return plain and self.norm[after] in _SUPERSCRIPT

    def _year_ends(self, end: int) -> bool:
        """A year before a full stop and the number of a footnote."""
        if not _YEAR.search(self.norm, max(0, end - 5), end):
            return False
        note = _FOOTNOTE.match(self.kept, end)
        at_the_end = note is not None and note.end() == len(self.kept)
        dated = _DATED.search(self.norm, max(0, end - 20), end)
        return note is not None and (not at_the_end or dated is not None)


def _counts(char: str) -> bool:
    return kind(char) in (Kind.DIGIT, Kind.NUMERAL)
