"""Cleaners, one by one, in their order, and how a document's text is found again in its blocks."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.documents import list_cleaners, register_cleaner
from harness_core.documents.cleaning.apply import clean_blocks
from harness_core.documents.cleaning.mapping import rewrite
from harness_core.documents.cleaning.registry import PRESETS, ordered_cleaners
from harness_core.errors import BadSettingError, CleanUnmappedWarning, UnknownMethodError

STANDARD = PRESETS["standard"]


def clean(text: str, *steps: str) -> str:
    return clean_blocks([text], steps or STANDARD)[0][0]


# (number, steps, given, expected)
CASES: list[tuple[str, tuple[str, ...], str, str]] = [
    ("C1", ("remove_numbers", "page_numbers"), "Page 3\ntext 4", "\ntext  "),
    ("C2", STANDARD, "Revenue was 45.2 in 2024", "Revenue was 45.2 in 2024"),
    ("C3", STANDARD, "aged 18-\n65 years", "aged 18-\n65 years"),
    ("C4", STANDARD, "a follow-\nup; follow-up", "a follow-up; follow-up"),
    ("C4", STANDARD, "an exam-\nple", "an example"),
    ("C5", STANDARD, "the HIV-\nAIDS epidemic", "the HIV-\nAIDS epidemic"),
    ("C5", STANDARD, "by LC-\nMS/MS analysis", "by LC-\nMS/MS analysis"),
    ("C5", STANDARD, "LC-\nMS/MS", "LC-\nMS/MS"),
    ("C5", STANDARD, "NO FURTHER LIA-\nBLE PARTY", "NO FURTHER LIABLE PARTY"),
    ("C5", STANDARD, "LIA-\nBLE", "LIABLE"),
    ("C5", STANDARD, "the Anglo-\nSaxon men", "the Anglo-\nSaxon men"),
    ("1.4.1", STANDARD, "exam- \r\n  ple", "example"),
    ("1.4.1", STANDARD, "exam\u2010\nple", "example"),
    ("1.4.1", STANDARD, "exam-\n\nple", "exam-\n\nple"),
    ("C8", ("captions",), "Table 2 shows that mortality fell", "Table 2 shows that mortality fell"),
    ("C8", ("captions",), "Table 2. Baseline", ""),
    ("C8", ("captions",), "Fig. S2a\nFIGURE 3: x\nTable 4 Costs\nChart 5 - all", "\n\n\n"),
    ("C8", ("captions",), "Table 2a\nTable 2 \u00e9tait", "\nTable 2 \u00e9tait"),
    ("C9", ("page_numbers",), "the number enrolled was\n1200.", "the number enrolled was\n1200."),
    ("C9", ("page_numbers",), "That was all.\n12.", "That was all.\n"),
    ("C9", ("page_numbers",), 'He said "no."\n12.', 'He said "no."\n'),
    ("C10", ("page_numbers",), "12\n45", "12\n45"),
    ("1.4", ("page_numbers",), "page 3 of 12\np. 4\n- 5 -\n[ 6 ]\n\u2014 7 \u2014", "\n\n\n\n"),
    ("1.4", ("page_numbers",), "Page three\n- 12345 -", "Page three\n- 12345 -"),
    ("C11", ("urls",), "see www.nasa.gov now https://a.b/c?d", "see  now "),
    ("1.4", ("emails",), "ask a.b@c.example now", "ask  now"),
    ("C14", STANDARD, "\U0001f468\u200d\U0001f469 \u0915\u094d\u200d\u0937",
     "\U0001f468\u200d\U0001f469 \u0915\u094d\u200d\u0937"),
    ("C15", ("ligatures",), "a \u2014 b \u2013 c", "a \u2014 b \u2013 c"),
    ("1.4", ("ligatures",), "\ufb01t \u201cq\u201d it\u2019s \u2026", 'fit "q" it\'s ...'),
    ("C16", ("remove_punctuation",), "d\u00e9j\u00e0, vu! \u0928\u092e\u0938\u094d\u0924\u0947.",
     "d\u00e9j\u00e0  vu  \u0928\u092e\u0938\u094d\u0924\u0947 "),
    ("C18", STANDARD, "1\u00a0200 units", "1\u00a0200 units"),
    ("1.4", ("control_chars",), "a\u200bb\u00adc\x07d\te", "abc d\te"),
    ("1.4", ("collapse_whitespace",), " a \t b \n \u3000 \n\n\n c ", "a b\n\nc"),
    ("1.4", ("ascii_only",), "Stra\u00dfe \u2014 \u00e9t\u00e9 \u6f22", "Strasse - ete  "),
    ("1.4", ("lowercase",), "TITLE I", "title i"),
    ("1.4", ("remove_numbers",), "a 12b345", "a  b "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "given_", "expected"),
    [pytest.param(*case[1:], id=f"{case[0]} {case[2][:24]!r}") for case in CASES],
)
def test_a_cleaner_does_what_it_says(steps: tuple[str, ...], given_: str, expected: str) -> None:
    assert clean(given_, *steps) == expected


def test_no_steps_clean_nothing() -> None:  # C17
    assert clean_blocks(["a  \u200b b"], [])[0] == ["a  \u200b b"]


def test_early_steps_run_first_and_the_log_says_what_each_removed() -> None:  # C1
    texts, log = clean_blocks(["Page 3\ntext  4"], ["collapse_whitespace", "", "page_numbers"])
    assert texts == ["text 4"]
    assert [(row["step"], row["stage"], row["chars_removed"]) for row in log] == [
        ("page_numbers", "early", 6),
        ("collapse_whitespace", "late", 2),
    ]


def test_the_default_steps_are_the_standard_preset() -> None:
    assert {cleaner.name for cleaner in ordered_cleaners(None)} == set(STANDARD)


def test_an_unknown_step_is_an_error_that_lists_what_there_is() -> None:
    with pytest.raises(UnknownMethodError, match="page_numbers"):
        clean_blocks(["a"], ["nope"])


def test_a_hyphen_written_in_another_block_is_kept() -> None:  # C4
    assert clean_blocks(["a well-known man", "the Well-\nknown case"], STANDARD)[0] == [
        "a well-known man",
        "the Well-known case",
    ]


def test_hyphenation_and_captions_take_linear_time() -> None:  # C5
    started = time.process_time()
    clean("a" * 400_000 + "-\nb " + "-" * 200_000 + " x-\n" * 50_000, "hyphenation", "captions")
    assert time.process_time() - started < 5


REFERENCES = "text of the study\n" * 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See References section for details\n" * 4, "See References section for details\n" * 4),
        (REFERENCES + "References\n1. A. Author\n2. B. Author", REFERENCES),
        (REFERENCES + "7. BIBLIOGRAPHY :\nA. Author", REFERENCES),
        ("References\n" + REFERENCES, "References\n" + REFERENCES),
        (REFERENCES + "## References\nA. Author", REFERENCES + "## References\nA. Author"),
    ],
)
def test_the_reference_list_goes_with_its_heading(text: str, expected: str) -> None:  # C6, C7
    assert clean(text, "references").strip() == expected.strip()


def test_running_heads_go_where_pages_are_known() -> None:  # C12
    body = ["alpha", "beta", "gamma"]
    texts = [
        f"ACME report\n{word} text here\nN/A\nN/A\nmore on {word}\n{n}"
        for n, word in enumerate(body)
    ]
    cleaned, _ = clean_blocks(texts, ["headers_footers"], {"pages": (1, 2, 3)})
    assert cleaned == [f"{word} text here\nN/A\nN/A\nmore on {word}" for word in body]


def test_running_heads_go_where_form_feeds_mark_the_pages() -> None:
    text = "\f".join(f"Head line\nfirst of {n} pages\nsecond text {n}x\nlast" for n in "abc")
    assert "Head line" not in clean(text, "headers_footers")
    assert "first of b pages" in clean(text, "headers_footers")


def test_repeated_values_inside_blocks_stay() -> None:  # C12
    texts = ["head\nYes\ntail one", "head two\nYes\ntail", "top\nYes\nend"]
    assert clean_blocks(texts, ["headers_footers"])[0] == texts


def test_short_lines_at_block_edges_go_where_pages_are_unknown() -> None:
    texts = [f"Draft copy\nparagraph {n} has its own words" for n in "abcd"]
    cleaned, _ = clean_blocks(texts, ["headers_footers"])
    assert cleaned == [f"paragraph {n} has its own words" for n in "abcd"]
    assert clean_blocks(texts[:2], ["headers_footers"])[0] == texts[:2]


# --- registration ---------------------------------------------------------------------------------


def test_a_registered_cleaner_is_listed_and_run() -> None:
    register_cleaner("shout", lambda text, opts: text.upper(), stage="late", description="Loud.")
    assert clean("quiet", "shout") == "QUIET"
    rows = list_cleaners()
    assert {"name", "stage", "scope", "default_on", "description"} == set(rows[0])
    assert [row["stage"] for row in rows] == sorted(row["stage"] for row in rows)
    assert next(row for row in rows if row["name"] == "shout")["description"] == "Loud."


@pytest.mark.parametrize("more", [{"stage": "middle"}, {"scope": "page"}])
def test_a_cleaner_of_no_known_stage_or_scope_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(BadSettingError):
        register_cleaner("odd", lambda text, opts: text, **more)


def test_options_reach_a_cleaner() -> None:
    register_cleaner("cut", lambda text, opts: text[: opts["width"]])
    assert clean_blocks(["abcdef"], ["cut"], {"width": 2})[0] == ["ab"]


# --- document scope -------------------------------------------------------------------------------


def test_a_document_cleaner_that_edits_part_of_a_block_leaves_the_rest() -> None:  # C13
    register_cleaner("drop", lambda text, opts: text.replace("bad\n", ""), scope="document")
    assert clean_blocks(["a\nbad\nb", "c", "bad\nd"], ["drop"])[0] == ["a\nb", "c", "d"]


def test_a_line_cut_short_stays_in_its_block() -> None:  # C13
    assert rewrite(["one two", "three"], lambda text: text[: text.index(" two")]) == ["one", ""]


def test_rewritten_lines_go_to_their_own_block() -> None:  # C13
    assert rewrite(["a\nb", "c"], str.upper) == ["A\nB", "C"]


def test_a_document_that_is_wholly_removed_is_empty_blocks() -> None:
    assert rewrite(["a", "b"], lambda text: "") == ["", ""]


def test_what_cannot_be_found_again_is_cleaned_block_by_block() -> None:
    register_cleaner("count", lambda text, opts: f"{len(text)}\nchars", scope="document")
    with pytest.warns(CleanUnmappedWarning, match="count"):
        texts, _ = clean_blocks(["abc", "de"], ["count"])
    assert texts == ["3\nchars", "2\nchars"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.sets(st.integers(0, 23)),
)
def test_dropped_lines_are_missed_in_their_own_block_alone(
    sizes: list[int], dropped: set[int]
) -> None:
    numbers = iter(range(24))
    blocks = [[f"line {next(numbers)}." for _ in range(size)] for size in sizes]
    gone = {f"line {number}." for number in dropped}

    def drop(text: str) -> str:
        return "\n".join(line for line in text.split("\n") if line not in gone)

    expected = ["\n".join(line for line in block if line not in gone) for block in blocks]
    assert rewrite(["\n".join(block) for block in blocks], drop) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("ab\n ", max_size=12), min_size=1, max_size=5))
def test_mapping_keeps_the_number_of_blocks(texts: list[str]) -> None:
    for change in (str.upper, str.strip, lambda text: text.replace("a", ""), lambda text: text[1:]):
        mapped = rewrite(texts, change)
        assert mapped is None or len(mapped) == len(texts)
