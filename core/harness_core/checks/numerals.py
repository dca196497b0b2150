# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""Numbers in Chinese numerals, and Roman ones after a word like "phase"."""

from collections.abc import Iterator

import regex

_ROMAN = regex.compile(
    r"""\b(?:phases?|stages?|grades?|types?|class(?:es)?|parts?|chapters?|levels?|tiers?|category
    |categories|volumes?|sections?|tables?|figures?|appendix|schedules?|fase|stadium|stade|stadio
    |estadio|stufe|klasse|classe|tipo|grado|grade|kapitel|tabelle|abschnitt|titre|titolo)
    [\s-]+ (?P<one>[IVXLCDM]+[ab]?)
    (?: \s?(?:[/\u2013-]|and|or|to)\s?(?P<one>[IVXLCDM]+[ab]?) )* (?!\p{L})""",
    regex.VERBOSE | regex.IGNORECASE,
)
_ROMAN_FORM = regex.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_HAN_DIGITS = {char: at for at, char in enumerate("零一二三四五六七八九")}
_HAN_DIGITS |= {"〇": 0, "两": 2, "兩": 2}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4}
_HAN_SCALES |= {"亿": 10**8, "億": 10**8, "兆": 10**12}
_HAN = "[零〇一二两兩三四五六七八九十百千万萬亿億兆]+"
_HAN_NUMBER = regex.compile(
    rf"(?<!\d\s?)(?:({_HAN}|百)分之)?({_HAN})(?:[点點]([零〇一二三四五六七八九]+))?"
)


def numerals(text: str) -> Iterator[float]:
    """The numbers that ``text`` writes in Chinese or Roman numerals."""
    yield from _roman(text)
    yield from _chinese(text)


def _roman(text: str) -> Iterator[float]:
    for label in _ROMAN.finditer(text):
        for numeral in label.captures("one"):
            bare = numeral.upper().rstrip("AB")
            if _ROMAN_FORM.fullmatch(bare):
                values = [_ROMAN_VALUES[char] for char in bare]
                yield sum(one if one == max(values[at:]) else -one for at, one in enumerate(values))


def _chinese(text: str) -> Iterator[float]:
    for below, above, decimals in (found.groups() for found in _HAN_NUMBER.finditer(text)):
        number = _han(above) + _decimals(decimals)
        yield number
        if below:
            yield number / (_han(below) or 1)


def _decimals(digits: str | None) -> float:
    return float("0." + "".join(str(_HAN_DIGITS[char]) for char in digits)) if digits else 0.0


def _han(numeral: str) -> float:
    if not any(char in _HAN_SCALES for char in numeral):
        return float("".join(str(_HAN_DIGITS[char]) for char in numeral))
    total = group = digit = 0
    for char in numeral:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
            continue
        scale = _HAN_SCALES[char]
        if scale < 10_000:
            group += (digit or 1) * scale
        else:
            over = total if total >= scale else 0
            total = over + (total - over + group + digit or 1) * scale
            group = 0
        digit = 0
    return float(total + group + digit)
