"""The tokens of a text that may not differ by one character: numbers, units and negations."""

import regex

from harness_core.checks.negation import negations
from harness_core.checks.normalise import folded
from harness_core.checks.units import UNIT, unit_name

_FIGURES = (
    r"(?:\d{1,3}(?:[ ,.'\u066c]\d{3})+(?!\d)(?:[.,\u00b7\u066b]\d+)?"
    r"|[.,]?\d+(?:[.,:/\u00b7\u066b\u2044]\d+)*)"
)
_NUMBER = regex.compile(
    rf"""(?P<compare>[<>=\u2264\u2265\u2248~±\u2213]{{0,2}})\s?
    (?P<sign>(?<![\p{{L}}\p{{N}}\-])[-+]\s?(?=[\p{{Sc}}\d.,]))?
    (?P<currency>\p{{Sc}})?\s?
    (?P<figures>{_FIGURES}[\u00bc-\u00be\u2150-\u215e]?|[\u00bc-\u00be\u2150-\u215e])
    (?P<power>\^[-+]?\d+|[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+)?
    (?P<unit>[ -]?(?:{UNIT}))?""",
    regex.VERBOSE | regex.IGNORECASE,
)
_GROUPED = regex.compile(r"\d{1,3}(?:([ ,'\u066c])\d{3})(?:\1\d{3})*(?:[.\u00b7]\d+)?")

_GROUPING = regex.compile(r"[ ,'\u066c]")
_POINT = regex.compile(r"(?<=\d)[\u00b7\u066b]|^,|(?<=^\d+),(?=\d+$)")


def critical_tokens(cased: str) -> list[str]:
    """Numbers with sign, comparison and currency, their units, and negations, in order.

    Digits between letters of one word are letters. Grouping marks and forms of the decimal point
    make no difference; a unit's case does where it changes the unit.
    """
    found = [(at, f"not:{word}") for at, word in negations(folded(cased))]
    for number in _NUMBER.finditer(cased):
        start, end = number.span("figures")
        if not (cased[start - 1 : start].isalpha() and cased[end : end + 1].isalpha()):
            found.append((start, _number(number)))
    return [token for _, token in sorted(found)]


def _number(found: "regex.Match[str]") -> str:
    parts = {name: (value or "").strip() for name, value in found.groupdict().items()}
    unit = unit_name(parts["unit"].removeprefix("-"))
    figures = _plain(parts["figures"])
    return f"{parts['compare']}{parts['sign']}{parts['currency']}{figures}{parts['power']} {unit}"


def _plain(figures: str) -> str:
    if _GROUPED.fullmatch(figures):
        figures = _GROUPING.sub("", figures)
    figures = _POINT.sub(".", figures)
    return f"0{figures}" if figures.startswith(".") else figures
