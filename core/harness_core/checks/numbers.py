# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""The numbers that a text states, in whatever form it states them."""

import math
import unicodedata
from collections.abc import Iterator

import regex

from harness_core.checks.normalise import GROUP_SPACES
from harness_core.checks.number_words import by_word, spelled_numbers
from harness_core.checks.numerals import numerals

_SCALES = by_word("""
    12 dozen 1e2 hundred 1e3 k thousand tausend tsd mille mil mila duizend 1e5 lakh 1e7 crore
    1e6 m mn mm mio mln million millions millionen millón millon millones milhão milhões milione
    milioni miljoen 1e9 b bn mrd mld billion billions milliard milliards milliarde milliarden
    miliardo miliardi miljard bilhão bilhões 1e12 t tn trillion trillions
    1e1 十 1e2 百 1e3 千 1e4 万 萬 1e8 亿 億 1e12 兆
""")
_LETTERS = frozenset({"k", "m", "b", "t", "mm"})

_MARKS = rf"[.,'’·\u066b\u066c{GROUP_SPACES}]|[ ](?=\d{{3}}(?!\d))"
_DIGITS = rf"(?:(?<![\p{{L}}\p{{Nd}}.])[.,·]\d|\d)\d*(?:(?:{_MARKS})\d+)*"
_FRACTION_SIGN = r"[\u00bc-\u00be\u2150-\u215e]"
_NAMED = r"(?<!\p{L}-)"
_LABELLED = (
    r"(?<=\b(?:phase|stage|grade|type|level|class|mid|early|late|pre|post|sub|year|day|week|age"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\p{L}*)-)"
)
_BELOW = r"(?:\s(?P<above>\d{1,3}))?\s?[/\u2044]\s?(?P<below>\d{1,4})(?![\d/.,])"
_RAISED = r"[-+\u2212]?\d{1,3}|[\u207b\u207a]?[\u00b2\u00b3\u00b9\u2070-\u2079]+"
_PERCENT = (
    "%|％|٪|(?:per cent|percent|pct|prozent|por ciento|por cento|pour cent|per cento|procent)\\b"
)
_SCALED = "|".join(sorted(_SCALES, key=len, reverse=True))
_NUMBER = regex.compile(
    rf"""(?<![\p{{L}}\p{{M}}\p{{Nd}}]|\d[.,'’·]) (?:{_NAMED}|{_LABELLED})
    (?P<digits>{_DIGITS})
    (?: \s?(?P<vulgar>{_FRACTION_SIGN}) | {_BELOW} )?
    (?: e(?P<e>[-+\u2212]?\d{{1,3}})(?!\d) | \s?[x×·*]\s?10\s?(?:\^|\*\*)?\s?(?P<power>{_RAISED}) )?
    (?: (?P<gap>[\s-]?) (?P<scale>{_SCALED}) (?!\p{{Latin}}) )?
    (?P<share> \s?(?:{_PERCENT.replace(" ", "[ ]")}) )?""",
    regex.VERBOSE | regex.IGNORECASE,
)
_MONEY = regex.compile(r"\p{Sc}\s?$")
_VULGAR = regex.compile(rf"(?<!\d\s?){_FRACTION_SIGN}")
_GROUPED = regex.compile(rf"[1-9]\d{{0,2}}(?:([.,'’\u066c{GROUP_SPACES} ])\d{{3}})(?:\1\d{{3}})*")
_INDIAN = regex.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−", "0123456789-+-")


def read_numbers(text: str) -> set[float]:
    """The absolute values of all numbers that ``text`` states.

    A form that can be read in two ways ("1.204", "5 million", "12%") gives both values. Digits that
    are a part of a name ("COVID-19", "B12") are no numbers.
    """
    found = {*spelled_numbers(text), *numerals(text)}
    found.update(unicodedata.numeric(sign[0]) for sign in _VULGAR.finditer(text))
    for number in _NUMBER.finditer(text):
        money = _MONEY.search(text, max(0, number.start() - 2), number.start()) is not None
        found.update(_values(number, money=money))
    return {value for value in found if math.isfinite(value)}


def _values(number: "regex.Match[str]", *, money: bool) -> Iterator[float]:
    scale = _scale(number, money=money)
    for plain in _with_fraction(number):
        value = plain * _power(number["e"] or number["power"])
        yield value
        if scale:
            yield value * scale
        if number["share"]:
            yield value / 100


def _scale(number: "regex.Match[str]", *, money: bool) -> float:
    """What the word after a number multiplies it by. "5m" are metres unless it is money."""
    word = number["scale"] or ""
    glued = word in ("k", "K", "M", "B", "T") and not number["gap"]
    if word.lower() in _LETTERS and not (money or glued):
        return 0.0
    return _SCALES.get(word.lower(), 0.0)


def _with_fraction(number: "regex.Match[str]") -> Iterator[float]:
    values = list(_readings(number["digits"]))
    yield from values
    if number["vulgar"]:
        yield from (value + unicodedata.numeric(number["vulgar"]) for value in values)
    if not number["below"]:
        return
    below = float(number["below"])
    above = float(number["above"]) if number["above"] else None
    yield from (below,) if above is None else (above, below)
    if below:
        yield from (value / below if above is None else value + above / below for value in values)


def _power(exponent: str | None) -> float:
    return float(f"1e{exponent.translate(_SUPERSCRIPT)}") if exponent else 1.0


def _readings(digits: str) -> Iterator[float]:
    """What figures with marks in them may mean, grouping or decimals."""
    if " " in digits:
        for part in digits.split(" "):
            if not part.startswith("0"):
                yield from _readings(part)
    whole, decimals = _split_decimals(digits)
    if _GROUPED.fullmatch(whole) or _INDIAN.fullmatch(whole):
        yield float("".join(filter(str.isdigit, whole)) + decimals)
    marks = [char for char in digits if not char.isdigit()]
    if len(marks) == 1 and marks[0] in ".,·\u066b":
        before, after = digits.split(marks[0])
        yield float(f"{before}.{after}")
    elif not marks:
        yield float(digits)
    elif not (_GROUPED.fullmatch(whole) or _INDIAN.fullmatch(whole)):
        yield from (float(part) for part in regex.findall(r"\d+", digits))


def _split_decimals(digits: str) -> tuple[str, str]:
    """Figures with two kinds of mark, parted at the last of them: "1,204.5" or "1.204,5"."""
    last = max(digits.rfind(mark) for mark in ".,·\u066b")
    if last < 0 or digits.count(digits[last]) > 1 or not set(digits[:last]) - set("0123456789"):
        return digits, ""
    return digits[:last], f".{digits[last + 1 :]}"
