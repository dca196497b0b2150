"""Labels become markers, and nothing else does."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.collections.markers import marked, ref, without_markers

SENT = {100000000001: "The pump was repaired in March.", 100000000002: "The valve was closed."}
ONE, TWO = SENT
MARKER = re.compile(r"\[\[SRC:([0-9]{4,})\]\]")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"So it is [chunk {TWO}].", "So it is [[SRC:0001]]."),
        (f"So it is. [chunk {TWO}]", "So it is [[SRC:0001]]."),
        (f"So it is.[chunk {TWO}] And [chunk {ONE}]", "So it is [[SRC:0001]]. And [[SRC:0002]]"),
        (f"So [chunks {TWO}, {ONE}, {TWO}].", "So [[SRC:0001]][[SRC:0002]]."),
        (f"So [Chunk {ONE}, p. 3] (yes).", "So [[SRC:0001]] (yes)."),
        (f"A [chunk {ONE}][chunk 5]. B [chunk {ONE}]!", "A [[SRC:0001]]. B [[SRC:0001]]!"),
        (f"- a  b\n    code [chunk 5]\n[chunk {ONE}] c", "- a  b\n    code\n[[SRC:0001]] c"),
        (f"A [[SRC:0042]] b [[ src : 7 ]] [chunk {ONE}]", "A b [[SRC:0001]]"),
        (f"A [[SRC:[[SRC:0001]]0002]] [chunk {ONE}]", "A [ [SRC:0002]] [[SRC:0001]]"),
    ],
)
def test_labels_are_numbered_by_first_appearance(said: str, shown: str) -> None:
    assert marked(said, SENT).text == shown


def test_unknown_labels_are_dropped_and_counted() -> None:
    found = marked(f"A [chunk {ONE}] b [chunk 12] c [chunk x].", SENT)
    assert found.text == "A [[SRC:0001]] b c."
    assert found.unknown == 2


def test_an_answer_without_citations_is_marked_by_what_says_it() -> None:
    found = marked("The pump was repaired in March. Nobody knows why it broke.", SENT)
    assert found.text == "The pump was repaired in March [[SRC:0001]]. Nobody knows why it broke."
    assert (found.repaired, found.uncited) == (1, 1)


def test_an_image_or_link_that_no_excerpt_holds_is_removed() -> None:  # SEC24
    said = f"Look ![x](https://evil.example/?q=1) <https://evil.example> now [chunk {ONE}]."
    found = marked(said, SENT)
    assert (found.text, found.removed) == ("Look now [[SRC:0001]].", 2)
    kept = marked(f"See <https://a.example/b> [chunk {ONE}].", {ONE: "https://a.example/b"})
    assert kept.text == "See <https://a.example/b> [[SRC:0001]]."


def test_a_ref_has_at_least_four_digits() -> None:
    assert [ref(1), ref(12345)] == ["SRC:0001", "SRC:12345"]


PIECES = st.sampled_from([
    "word", " ", ".", f"[chunk {ONE}]", f"[chunk {TWO}]", "[chunk 9]", "[[SRC:0001]]", "[[SRC:",
    "[[", "]]", "0001", "src:", "\n", "[chunk", "\0", f"\0{ONE}\0", "[", "SRC", ":",
])  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
def test_markers_are_exactly_the_cited_sources_in_order(said: str) -> None:
    found = marked(said, SENT)
    numbers = [int(number) for number in MARKER.findall(found.text)]
    assert list(dict.fromkeys(numbers)) == list(range(1, len(found.order) + 1))
    assert set(found.order) <= set(SENT)
    assert not MARKER.search(without_markers(found.text))
    if f"[chunk {ONE}" not in said and f"[chunk {TWO}" not in said:
        assert found.order == ()  # nothing else cites; none of these words is in an excerpt


def test_hostile_answers_take_linear_time() -> None:  # SEC75
    started = time.perf_counter()
    for text in ("[" * 10**6, "[[SRC:" * 10**4, "![" * 10**4, "[chunk " * 10**4):
        marked(text, SENT)
    assert time.perf_counter() - started < 20
