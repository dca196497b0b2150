"""Telling real quotations from altered ones: our two matchers beside difflib, rapidfuzz and regex.

    python -m bench.quotations

A matcher is right when it accepts true and OCR-damaged quotations and refuses those with another
number, without their denial, and invented ones. The text is generated; nothing is read or sent.
"""

import difflib
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import regex
from rapidfuzz.fuzz import partial_ratio

from harness_core.checks.quotations import is_verbatim, verify_quotation
from harness_core.checks.sources import Source

Accepts = Callable[[str], bool]
Judge = Callable[[str], Accepts]
"""Given the text, what decides about a quotation of it."""

KINDS = ("true", "ocr", "number", "denial", "invented")
WANTED = {"true": True, "ocr": True, "number": False, "denial": False, "invented": False}
_STEMS = [
    "bar",
    "cor",
    "den",
    "fel",
    "gam",
    "hol",
    "jur",
    "kel",
    "lom",
    "mar",
    "nor",
    "pal",
    "rin",
    "sal",
    "tor",
    "vel",
    "wim",
]
_ENDS = ["a", "en", "ic", "ion", "ous", "al", "ment", "er", "ity", "ing"]
_FUZZY_CHARS, _FUZZY_SECONDS = 3_000, 0.5
_LIKE = 90
_CHECKS = 100
_CERTAIN = ("true", "number", "denial", "invented")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A quotation and what was done to it."""

    kind: str
    text: str


def book(chars: int, *, seed: int = 7) -> list[str]:
    """Sentences of about 150 characters with figures, units and denials, ``chars`` in all."""
    dice = random.Random(seed)  # noqa: S311 - the same text every time
    sentences: list[str] = []
    length = 0
    while length < chars:
        sentence = _sentence(dice)
        sentences.append(sentence)
        length += len(sentence) + 1
    return sentences


def planted(sentences: Sequence[str], each: int, *, seed: int = 11) -> list[Planted]:
    """``each`` quotations of every kind, taken from all over the text."""
    dice = random.Random(seed)  # noqa: S311 - the same quotations every time
    found: list[Planted] = []
    for _ in range(each):
        one, two = dice.sample(range(len(sentences) - 1), 2)
        text = f"{sentences[one]} {sentences[one + 1]}"[:200].rsplit(" ", 1)[0]
        found += [
            Planted(kind="true", text=text),
            Planted(kind="ocr", text=_misread(text)),
            Planted(
                kind="number", text=re.sub(r"\d+", lambda n: str(int(n[0]) + 1), text, count=1)
            ),
            Planted(kind="denial", text=sentences[two].replace(" was not ", " was ", 1)),
            Planted(kind="invented", text=f"{_sentence(dice)} {_sentence(dice)}"[:200]),
        ]
    return found


def rows(chars: int = 1_000_000, each: int = 20) -> list[dict[str, Any]]:
    """One row per matcher: milliseconds per quotation, and the share it judged right, by kind.

    Ours meet their target when they are always right where the words are whole, and judge a hundred
    quotations sooner than difflib one.
    """
    judges: dict[str, tuple[Judge, int, int]] = {
        "verified (decides)": (by_verified, chars, each),
        "shadow (recorded)": (by_shadow, chars, each),
        "rapidfuzz partial_ratio": (_rapidfuzz, chars, each),
        "difflib longest match": (_difflib, chars, 1),
        f"regex fuzzy, {_FUZZY_CHARS} chars": (_regex, _FUZZY_CHARS, 1),
    }
    table = [{"what": name, **measured(*judge)} for name, judge in judges.items()]
    one_by_difflib = table[3]["ms"]
    for row in table[:2]:
        row["met"] = _CHECKS * row["ms"] < one_by_difflib and all(
            row[kind] == 1 for kind in _CERTAIN
        )
    return table


def measured(judge: Judge, chars: int, each: int) -> dict[str, Any]:
    """Milliseconds per quotation and the shares judged right, with ``each`` of every kind."""
    sentences = book(chars)
    quotations = planted(sentences, each)
    accepts = judge("\n".join(sentences))
    right = dict.fromkeys(KINDS, 0)
    start = time.process_time()
    for one in quotations:
        right[one.kind] += accepts(one.text) is WANTED[one.kind]
    spent = (time.process_time() - start) / len(quotations)
    shares = {kind: round(right[kind] / each, 3) for kind in KINDS}
    return {"chars": chars, "ms": round(1000 * spent, 3), **shares}


def _misread(text: str) -> str:
    """``text`` with letters inside of words misread."""
    text = re.sub(r"(?<=[a-z])m(?=[a-z])", "rn", text, count=2)
    return re.sub(r"(?<=[a-z])[li](?=[a-z])", "1", text, count=3)


def _sentence(dice: random.Random) -> str:
    words = [dice.choice(_STEMS) + dice.choice(_STEMS) + dice.choice(_ENDS) for _ in range(9)]
    year, patients = dice.randint(1900, 2020), dice.randint(100, 99_999)
    dose = f"{dice.randint(1, 900)}.{dice.randint(1, 9)} mg"
    return (
        f"In {year} the {words[0]} {words[1]} of {patients} patients in {words[2]} {words[3]} "
        f"was not {words[4]} at {dose}, {words[5]} {words[6]} {words[7]} {words[8]}."
    )


def by_verified(text: str) -> Accepts:
    source = Source(text)
    return lambda quotation: is_verbatim(quotation, source) is True


def by_shadow(text: str) -> Accepts:
    source = Source(text)
    return lambda quotation: verify_quotation(quotation, source).status in ("exact", "near")


def _rapidfuzz(text: str) -> Accepts:
    flat = " ".join(text.split())
    return lambda quotation: partial_ratio(quotation, flat, score_cutoff=_LIKE) >= _LIKE


def _difflib(text: str) -> Accepts:
    flat = " ".join(text.split())

    def accepts(quotation: str) -> bool:
        found = difflib.SequenceMatcher(None, flat, quotation, autojunk=False).find_longest_match()
        return 100 * found.size >= _LIKE * len(quotation)

    return accepts


def _regex(text: str) -> Accepts:
    flat = " ".join(text.split())

    def accepts(quotation: str) -> bool:
        budget = len(quotation) * (100 - _LIKE) // 100
        pattern = rf"(?:{regex.escape(quotation)}){{e<={budget}}}"
        try:
            return regex.search(pattern, flat, timeout=_FUZZY_SECONDS) is not None
        except TimeoutError:
            return False

    return accepts


if __name__ == "__main__":
    for row in rows():
        print("  ".join(f"{name}={value}" for name, value in row.items()))
