"""Every numbered case of answering over a collection has a test here that names it.

``AC01``, ``SEC01`` and their like stand in a comment beside the test; the filter vectors (``V01``)
are the parameters of two tests. Ids are written out as ranges, so that a new one is a decision.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine import test_acceptance_collections as collections
from tests.support.cases import comments_and_strings

NUMBERS: dict[str, list[range]] = {
    "AC": [range(1, 97)],
    "SEC": [
        range(1, 14), range(20, 30), range(30, 41), range(50, 57), range(60, 68), range(70, 77),
    ],
    "V": [
        range(1, 3), range(4, 9), range(10, 14), range(15, 17), range(18, 21), range(22, 25),
        range(26, 28), range(29, 36), range(37, 43), range(44, 46), range(47, 51), range(52, 55),
        range(56, 58), range(59, 63), range(64, 66), range(67, 70), range(71, 73),
    ],
}  # fmt: skip
LETTERED = {"AC": {"AC73b"}, "SEC": set[str](), "V": set[str]()}
_ID = re.compile(r"\b(?:AC|SEC)\d\d[a-z]?\b")


def _named() -> Iterator[str]:
    for path in set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)}:
        for is_comment, text in comments_and_strings(path):
            yield from _ID.findall(text) if is_comment else ()
    for test in (
        collections.test_a_filter_matches_over_http_what_it_matches,
        collections.test_a_filter_is_refused_over_http_with_its_reason,
    ):
        marks: list[Any] = test.pytestmark  # type: ignore[attr-defined]  # pytest puts it there
        yield from marks[0].args[1]


NAMED = frozenset(_named())


@pytest.mark.parametrize("name", NUMBERS)
def test_every_case_has_a_test_over_http(name: str) -> None:
    cases = {f"{name}{number:02}" for each in NUMBERS[name] for number in each} | LETTERED[name]
    assert sorted(cases - NAMED) == []
    assert sorted(one for one in NAMED - cases if re.fullmatch(rf"{name}\d+[a-z]?", one)) == []


def test_the_lists_are_whole() -> None:
    assert {name: sum(map(len, NUMBERS[name])) + len(LETTERED[name]) for name in NUMBERS} == {
        "AC": 97, "SEC": 56, "V": 56,
    }  # fmt: skip
