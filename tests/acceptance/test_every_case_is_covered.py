"""Every numbered case of the behaviour lists has a test that names it, or a reason not to.

A test names its cases in a comment or in the id of a parameter: ``core 133`` of the list of the
core's behaviour, ``readers 27`` of the readers', ``I25`` of the lists of documents (I ingesting,
C cleaning, S segmenting, R recipes, P comparing, L limits). Lists of other parts number their
cases on their own.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cases import comments_and_strings

TESTS = Path(__file__).parents[1]

LISTS: dict[str, int] = {
    "core": 157, "readers": 192, "I": 39, "C": 18, "S": 31, "R": 14, "P": 14, "L": 14,
}  # fmt: skip

LEFT_OUT_BY_THE_LIST = {f"readers {number}" for number in (141, 144, 146, 147, 152, 154, 158)}

WITHOUT_A_TEST: dict[str, str] = {
    "core 60": "an entry of the cache is JSON in a database: nothing in it can be evaluated",
    "core 93": "one ledger for all workers decides a parallel batch as a sequential one",
    "core 116": "a trace is loaded as objects, never as a table",
    "core 122": "every step holds what was asked; files of another package are not read",
    "core 152": "workers are threads of this process; no batch is shipped",
    "core 154": "a run has one progress line, whatever it holds",
    "readers 163": "evidence always has a kind",
    "readers 177": "a parallel read is held to its limits as it goes, not at its worst case",
    "readers 178": "as 177",
    "readers 182": "a request carries neither its client nor a price",
    "readers 183": "a parallel level is refused request by request, as a sequential one is",
    "R3": "one recipe is asked for at a time; list_recipes() gives all",
}

LETTERED_ROOMS = {
    "calls", "checks", "cli", "comparison", "documents", "pipeline", "readers", "segmenting",
}  # fmt: skip

_NUMBERS = re.compile(r"\b(core|readers) (\d+(?:(?:, | and )\d+)*)")
_LETTERS = re.compile(r"\b([ICSRPL]\d+)\b")


def _named() -> Iterator[str]:
    for path in set(TESTS.rglob("*.py")) - {Path(__file__)}:
        lettered = path.relative_to(TESTS).parts[0] in LETTERED_ROOMS
        for is_comment, text in comments_and_strings(path):
            for name, numbers in _NUMBERS.findall(text) if is_comment or len(text) < 100 else ():
                yield from (f"{name} {number}" for number in re.findall(r"\d+", numbers))
            if lettered and (is_comment or _LETTERS.match(text, 1)):
                yield from _LETTERS.findall(text if is_comment else text.split()[0])


NAMED = frozenset(_named())


def _case(name: str, number: int) -> str:
    return f"{name} {number}" if len(name) > 1 else f"{name}{number}"


@pytest.mark.parametrize("name", LISTS)
def test_every_case_is_tested_or_has_its_reason(name: str) -> None:
    cases = {_case(name, number) for number in range(1, LISTS[name] + 1)} - LEFT_OUT_BY_THE_LIST
    assert sorted(cases - NAMED - WITHOUT_A_TEST.keys()) == []
    assert sorted(cases & NAMED & WITHOUT_A_TEST.keys()) == [], "a reason beside a test"
