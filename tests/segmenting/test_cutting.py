import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.config import override
from harness_core.models import count_tokens
from harness_core.segmenting.cutting import (
    hard_split,
    longest,
    split_characters,
    tail,
    tail_words,
)

TEXTS = st.text(
    alphabet=st.sampled_from([*"abcXYZ019 .,;!?\n\t-/", "é", "。", "電", "子", "😀", "ж"]),
    max_size=400,
)


@pytest.fixture
def probes() -> list[int]:
    return []


def test_the_longest_run_is_found_in_a_few_looks(probes: list[int]) -> None:
    def measure(count: int) -> int:
        probes.append(count)
        return 3 + count

    fit = longest(measure, lambda count: 4 * count, 1_000_000, 100)
    assert fit.units == 97
    assert len(probes) <= 4


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 300))
@settings(max_examples=100, deadline=None)
def test_the_longest_run_is_the_longest(costs: list[int], cap: int) -> None:
    sums = [sum(costs[:count]) for count in range(len(costs) + 1)]
    fit = longest(lambda count: sums[count], lambda count: count, len(costs), cap)
    assert fit.units == max(count for count, cost in enumerate(sums) if cost <= cap)
    assert fit.tokens == (sums[fit.units] if fit.units else 0)


def test_a_long_run_of_little_cost_takes_few_looks(probes: list[int]) -> None:
    def measure(count: int) -> int:
        probes.append(count)
        return 1

    assert longest(measure, lambda count: count, 1_000_000, 400).units == 1_000_000
    assert len(probes) < 20


@pytest.mark.usefixtures("by_words")
def test_whole_sentences_then_words_then_characters() -> None:
    assert hard_split("One two. Three four. Five six.", 4) == ["One two. Three four.", "Five six."]
    assert hard_split("One two three four five. Six.", 3) == ["One two three", "four five.", "Six."]
    assert hard_split("fits", 3) == ["fits"]


def test_a_word_over_the_cap_is_cut_between_characters() -> None:
    with override(tokenizer="chars"):
        assert hard_split("ab " + "x" * 20, 2) == ["ab", "x" * 8, "x" * 8, "xxxx"]


def test_white_space_inside_a_piece_is_kept() -> None:
    with override(tokenizer="words"):
        assert hard_split("a\tb\n c  d e", 3) == ["a\tb\n c", "d e"]


@given(TEXTS, st.integers(16, 60))
@settings(max_examples=60, deadline=None)
def test_every_piece_fits_and_nothing_is_lost(text: str, cap: int) -> None:
    pieces = hard_split(text, cap)
    assert all(count_tokens(piece) <= cap for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert "".join(split_characters(text, cap)) == text


@pytest.mark.usefixtures("by_words")
@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("One two. Three four.", 9, "One two. Three four."),
        ("One two. Three four. Five six.", 4, "Three four. Five six."),  # S8
        ("One two three. Four five six.", 2, "five six."),
        ("One two.", 0, ""),
        ("one", 1, "one"),
    ],
)
def test_a_tail_is_whole_sentences_else_words(text: str, most: int, kept: str) -> None:
    assert tail(text, most) == kept


def test_a_tail_of_text_without_spaces_is_cut_between_characters() -> None:
    assert tail("x" * 400, 20) == "x" * len(tail("x" * 400, 20)) != ""
    kept = tail("電子文書管理" * 50, 20)
    assert kept
    assert ("電子文書管理" * 50).endswith(kept)
    assert count_tokens(kept) <= 20


def test_a_tail_of_long_words_is_nothing() -> None:
    assert tail("short " + "w" * 300, 8) == ""


@pytest.mark.usefixtures("by_words")
def test_words_at_the_end_are_counted() -> None:
    assert tail_words("a b c d", 2) == 2
    assert tail_words("a b c d", -1) == 0


HOSTILE = {
    "base64": "QUJDRGVm" * 60_000,
    "no spaces": "電子文書管理" * 60_000,
    "one line": "alpha beta gamma " * 60_000,
    "spaces": ("x" + " " * 3000) * 150,
    "dense and sparse": ("x1y2z3" * 400 + " " * 3000) * 80,
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []

    def count(text: str) -> int:
        sizes.append(len(text))
        return count_tokens(text)

    monkeypatch.setattr("harness_core.segmenting.cutting.count_tokens", count)
    return sizes


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_characters_counted_are_a_small_multiple_of_the_text(
    kind: str, counted: list[int]
) -> None:
    text = HOSTILE[kind]
    pieces = hard_split(text, 400)
    assert max(map(count_tokens, pieces)) <= 400
    assert sum(counted) < 12 * len(text)
