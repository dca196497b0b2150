"""Running heads and feet among the lines of pages."""

import pytest

from harness_core.documents.running import mostly_figures, running_lines

BODY = ["Alpha begins here", "and then goes on", "with more to say", "until it ends there"]


def pages(*edges: tuple[str, str]) -> list[list[str]]:
    """Pages of distinct text between a first and a last line (blank: none)."""
    return [
        [line for line in (top, *(f"{line} {'abcdefgh'[n]}" for line in BODY), bottom) if line]
        for n, (top, bottom) in enumerate(edges)
    ]


def dropped(found: list[list[str]]) -> list[str]:
    return [found[page][at] for page, at in sorted(running_lines(found))]


CASES: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "the same line on every page": (
        [("ACME  report", ""), ("Acme report", ""), ("ACME REPORT", "")],
        ["ACME  report", "Acme report", "ACME REPORT"],
    ),
    "on two pages only": ([("ACME report", ""), ("ACME report", "")], []),
    "every page but the first of a short document": (
        [("", ""), ("Annual report", ""), ("Annual report", "")],
        ["Annual report", "Annual report"],
    ),
    "even pages": (
        [("", ""), ("Left head", ""), ("", ""), ("Left head", "")],
        ["Left head", "Left head"],
    ),
    "a pattern of sentences is none": (
        [("", ""), ("It rose again.", ""), ("It rose again.", "")],
        [],
    ),
    "I32 a page count": (
        [("", f"Page {n} of 12") for n in (1, 2, 3)],
        ["Page 1 of 12", "Page 2 of 12", "Page 3 of 12"],
    ),
    "bare page numbers": ([("", str(n)) for n in (7, 8, 9)], ["7", "8", "9"]),
    "numbers that do not follow the pages": ([("", f"Item {n}") for n in (9, 4, 31)], []),
    "a sentence with a number is no foot": (
        [("", f"This is the text of page {n}.") for n in (1, 2, 3)],
        [],
    ),
    "a number inside a long line": (
        [(f"In year {n} of the long plan costs fell", "") for n in (1, 2, 3)],
        [],
    ),
    "a page number in its own cell": (
        [(f"The annual report of the ACME company | {n} | draft", "") for n in (1, 2, 3)],
        [f"The annual report of the ACME company | {n} | draft" for n in (1, 2, 3)],
    ),
    "I32 a note under two tables": (
        [("", ""), ("", "Source: own data"), ("", "Source: own data")],
        [],
    ),
}


@pytest.mark.parametrize(("edges", "expected"), CASES.values(), ids=CASES.keys())
def test_only_lines_that_run_are_dropped(edges: list[tuple[str, str]], expected: list[str]) -> None:
    assert dropped(pages(*edges)) == expected


def test_a_table_header_repeated_over_its_rows_is_kept() -> None:  # I32
    table = [
        ["Region | Units", f"North | {n}5", f"words {n} below", f"{n} more"] for n in (1, 4, 2)
    ]
    assert running_lines(table) == set()


def test_lines_in_the_middle_of_a_page_are_never_dropped() -> None:
    words = ("ab", "cd"), ("ef", "gh"), ("ij", "kl")
    assert dropped([[*top, "same", *bottom] for top, bottom in words]) == []


def test_a_title_that_counts_is_no_running_head() -> None:
    chapters = pages(*((f"Chapter {n}", "") for n in (1, 2, 3)))
    assert len(running_lines(chapters)) == 3
    assert running_lines(chapters, titles={(0, 0), (1, 0), (2, 0)}) == set()


@pytest.mark.parametrize(
    ("line", "expected"),
    [("North | 12 | 4", True), ("12,400 9", True), ("North and south", False), ("", False)],
)
def test_a_row_of_figures_is_told_from_words(line: str, expected: bool) -> None:
    assert mostly_figures(line) is expected
