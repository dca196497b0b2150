"""The heuristic against its check values, and against a slow reading of its rules."""

import math
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.models import heuristic
from harness_core.models.heuristic import estimate_tokens

PUNCTUATION = re.escape(string.punctuation)
PIECE = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\na-zA-Z0-9]?[a-zA-Z]+|[0-9]{1,3}"
    r"| ?[^\sa-zA-Z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    re.ASCII,
)


def word_tokens(word: str) -> float:
    normal = re.fullmatch(rf"[{PUNCTUATION}]*[a-zA-Z][a-z]*[{PUNCTUATION}]*", word)
    return max(1, len(word) / 4) if normal else len(word) / 1.3


def piece_tokens(piece: str) -> float:
    if piece[-1].isalpha():
        led = 0 if piece[0].isalpha() else 1 if piece[0] in " '" else 2
        return max(1, (len(piece) - led - 4) / 3)
    if piece[-1].isdigit() or not piece.strip():
        return 1
    return max(1, len(piece) / 3)


def slow_estimate(text: str) -> int:
    if not text.strip(" \t\r\n"):
        return 0
    plain = "".join(c for c in text if ord(c) < 128)
    by_word = [sum(map(word_tokens, re.findall(r"\S+", line))) for line in plain.split("\n")]
    by_piece = [0.0] * len(by_word)
    for match in PIECE.finditer(plain):
        at = match.start() + (match[0][0] == "\n")
        by_piece[plain.count("\n", 0, at)] += piece_tokens(match[0])
    total = sum(map(max, by_word, by_piece))
    total += sum(6.5 if ord(c) >= 0x10000 else 1.15 for c in text if ord(c) >= 128)
    return math.ceil(round(total, 6)) + 3


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \t\r\n", 0),  # core 133
        ("the quick brown fox", 8),
        ("Revenue was 45.2 million dollars.", 13),
        ("Revenue rose to 45.2 million dollars in fiscal 2024.", 20),
        ("482", 6),
        ("1,204", 7),
        ("12 | 34 | 56", 10),
        ("日本語日本語日本", 13),
        (" ".join(["the quick brown fox jumps over the lazy dog"] * 20), 198),
        (" ".join("0123456789" * 60), 1202),
    ],
)
def test_the_check_values(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_blank_before_words_changes_nothing() -> None:  # core 133
    assert estimate_tokens(" the quick brown fox") == estimate_tokens("the quick brown fox")


def test_no_break_spaces_alone_count() -> None:  # core 134
    assert estimate_tokens("\u00a0\u00a0") == 6


def test_the_estimate_is_of_the_joined_text_and_no_sum_of_parts() -> None:
    assert estimate_tokens("one two") < estimate_tokens("one") + estimate_tokens("two")


WORDS = ["a", "word", "Word", "unbelievably", "don't", "x1y", "12345", "7", "é", "語", "😀"]
MARKS = [" ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\r\n", "\v", "\u00a0"]
MARKS += [".", "...", '"', "(", "'s", "'", "-"]
PARTS = st.sampled_from(WORDS + MARKS)


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTS, max_size=24).map("".join))
def test_it_equals_a_slow_reading_of_the_rules(text: str) -> None:
    assert estimate_tokens(text) == slow_estimate(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(max_codepoint=0x7F), max_size=60))
def test_whole_words_and_pieces_give_the_same_where_both_apply(text: str) -> None:
    if heuristic._is_even(text):
        assert heuristic._even_units(text) == heuristic._ascii_units(text)


@pytest.mark.parametrize("run", ["a", " ", "\n", "^", "'", " \n", "a b "])
def test_long_runs_take_linear_time(run: str) -> None:
    assert estimate_tokens(run * 100_000 + "x") > 0


def test_seen_words_do_not_pile_up_without_limit() -> None:
    costs = heuristic._Costs(len)
    for number in range(65_540):
        costs[str(number)]
    assert len(costs) < 65_536
    assert costs["x" * 33] == 33
    assert "x" * 33 not in costs
