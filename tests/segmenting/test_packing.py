import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.config import override
from harness_core.models import count_tokens, set_tokenizer
from harness_core.segmenting.packing import Packing
from harness_core.segmenting.units import Origin, agreed, merged

WORDS = st.lists(
    st.lists(st.sampled_from(["ab", "cde", "f", "x" * 90, "End."]), min_size=1, max_size=40).map(
        " ".join
    ),
    max_size=12,
)


def _texts(packing: Packing, *units: str) -> list[str]:
    return [one.text for one in packing.pack(units)]


def _numbers(first: int, last: int) -> str:
    return " ".join(f"w{number}" for number in range(first, last + 1))


@pytest.mark.usefixtures("by_words")
def test_units_are_taken_while_they_fit() -> None:
    packing = Packing(cap=16, joiner=" ")
    first, second, third = _numbers(1, 8), _numbers(9, 16), _numbers(17, 18)
    assert _texts(packing, first, " ", second, third) == [f"{first} {second}", third]


@pytest.mark.usefixtures("by_words")
def test_the_chunk_after_is_never_joined_past_the_cap() -> None:
    units = [_numbers(1, 2), _numbers(3, 16), _numbers(17, 20)]
    packed = Packing(cap=16).pack(units)
    assert [one.tokens for one in packed] == [16, 4]
    assert [(one.first, one.last) for one in packed] == [(0, 1), (2, 2)]


@pytest.mark.usefixtures("by_words")
def test_a_unit_over_the_cap_is_split_and_its_pieces_keep_its_origin() -> None:
    origin = Origin(3, "Methods", 7)
    packed = Packing(cap=16).pack(["a", _numbers(1, 40)], [Origin(2), origin])
    assert [one.tokens for one in packed] == [1, 16, 16, 8]
    assert [one.origin for one in packed] == [Origin(2), origin, origin, origin]
    assert [one.first for one in packed] == [0, 1, 1, 1]


@pytest.mark.usefixtures("by_words")
def test_overlap_repeats_the_end_of_the_chunk_before_from_a_sentence_on() -> None:  # S8
    packing = Packing(cap=16, overlap=5, joiner=" ")
    units = ["One two three.", f"{_numbers(1, 9)}.", "Four five six.", f"{_numbers(10, 20)}."]
    packed = packing.pack(units)
    assert packed[0].text == f"One two three. {_numbers(1, 9)}. Four five six."
    assert packed[1].text == f"Four five six. {_numbers(10, 20)}."
    assert packed[1].text[packed[1].own :] == f"{_numbers(10, 20)}."
    assert packed[1].tokens == 14


@pytest.mark.usefixtures("by_words")
def test_overlap_shrinks_until_the_next_unit_fits_behind_it() -> None:
    packed = Packing(cap=16, overlap=10, joiner=" ").pack([_numbers(1, 16), _numbers(17, 30)])
    assert packed[1].text == f"w15 w16 {_numbers(17, 30)}"
    assert packed[1].tokens == 16


@pytest.mark.usefixtures("by_words")
def test_a_chunk_that_opens_with_another_pages_tail_has_no_page() -> None:  # S11
    units = [_numbers(1, 10), _numbers(11, 16), _numbers(17, 26)]
    origins = [Origin(2, "A", 1), Origin(3, "A", 2), Origin(4, "A", 3)]
    packed = Packing(cap=16, overlap=3, joiner=" ").pack(units, origins)
    assert packed[1].text.startswith("w14 w15 w16 w17")
    assert packed[1].origin == Origin(None, "A", None)


@pytest.mark.usefixtures("by_words")
def test_a_tail_that_reaches_two_units_back_is_of_both() -> None:
    units = [_numbers(1, 14), "w15", "w16", _numbers(17, 29)]
    origins = [Origin(2), Origin(2), Origin(3), Origin(3)]
    packing = Packing(cap=16, overlap=2, joiner=" ")
    assert [one.origin.page for one in packing.pack(units, origins)] == [None, None]
    one_word = Packing(cap=16, overlap=1, joiner=" ")
    assert [one.origin.page for one in one_word.pack(units, origins)] == [None, 3]


@pytest.mark.usefixtures("by_words")
def test_a_runt_joins_the_chunk_before_where_it_fits() -> None:
    units = [_numbers(1, 10), _numbers(11, 24), _numbers(25, 27)]
    packing = Packing(cap=16, joiner=" ")
    assert [one.tokens for one in packing.pack(units)] == [10, 14, 3]
    floored = Packing(cap=16, floor=12, joiner=" ")
    assert [one.tokens for one in floored.pack(units)] == [10, 14, 3]  # 14 + 3 is over the cap
    short = [_numbers(1, 10), _numbers(11, 23), _numbers(24, 24), _numbers(25, 40)]
    assert [one.tokens for one in floored.pack(short)] == [10, 14, 16]


def test_a_runt_is_merged_without_what_it_carried() -> None:  # S9
    def words(texts: list[str]) -> list[int]:
        return [len(text.split()) + 9 * ("W9" in text and "W1." in text) for text in texts]

    set_tokenizer("odd", words)
    with override(tokenizer="odd"):
        packing = Packing(cap=16, overlap=4, floor=10, joiner=" ")
        packed = packing.pack([_numbers(1, 12) + " W1.", "W9 w. A b."])
    merged_text = " ".join(one.text for one in packed)
    assert merged_text.count("W1.") == len(packed)


@pytest.mark.usefixtures("by_words")
def test_no_sentence_stands_twice_in_a_chunk() -> None:  # S9
    units = [f"Sentence number {n} is here." for n in range(1, 30)]
    for floor in (0, 5, 15, 20):
        for one in Packing(cap=20, overlap=8, floor=floor, joiner=" ").pack(units):
            found = one.text.replace("here.", "here.|").split("|")
            assert len(set(found)) == len(found)


def test_a_tokenizer_that_counts_joiners_needs_no_second_cut() -> None:  # S3
    def joiners_too(text: str) -> int:
        return len(text.split()) + 5 * text.count("\n\n")

    set_tokenizer("joiners", joiners_too)
    with override(tokenizer="joiners"):
        packed = Packing(cap=20, overlap=4).pack([_numbers(n, n + 4) for n in range(0, 100, 5)])
        assert all(joiners_too(one.text) == one.tokens <= 20 for one in packed)
        assert all(one.own for one in packed[1:])
        assert packed[0].last == 1  # 5 + 5 and a joiner; a third would make 25


def test_what_is_uncuttable_is_kept_over_the_cap() -> None:
    set_tokenizer("huge", lambda text: 50 * len(text))
    with override(tokenizer="huge"):
        assert [one.text for one in Packing(cap=20).pack(["abc"])] == ["a", "b", "c"]


@given(
    WORDS,
    st.tuples(st.integers(16, 60), st.integers(0, 50), st.integers(0, 60)),
    st.sampled_from(["\n\n", " ", "\n", ""]),
    st.sampled_from(["heuristic", "words", "chars"]),
)
@settings(max_examples=80, deadline=None)
def test_chunks_fit_keep_the_order_and_lose_nothing(
    units: list[str], sizes: tuple[int, int, int], joiner: str, tokenizer: str
) -> None:
    cap, overlap, floor = sizes
    with override(tokenizer=tokenizer):
        packed = Packing(cap=cap, overlap=overlap, floor=floor, joiner=joiner).pack(units)
        assert all(count_tokens(one.text) == one.tokens <= cap for one in packed)
    own = "".join("".join(one.text[one.own :].split()) for one in packed)
    if not floor:
        assert own == "".join("".join(unit.split()) for unit in units)
    assert [one.first for one in packed] == sorted(one.first for one in packed)


def test_origins_agree_or_are_unknown() -> None:  # S10
    assert agreed([Origin(1, "A", 1), Origin(1, "A", 2)]) == Origin(1, "A", None)
    assert agreed([Origin(1, "A", 1), Origin(2, None, None)]) == Origin(None, "A", 1)
    assert agreed([Origin(None, None, 1), Origin(2, "B", 1)]) == Origin(None, None, 1)
    assert merged(Origin(1, "A", 1), Origin(None, "A", 2)) == Origin(None, "A", None)
