import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.config import override, setting
from harness_core.errors import BadSettingError, UnknownMethodError
from harness_core.models import (
    count_many,
    count_tokens,
    current_tokenizer,
    encodings,
    provenance,
    set_tokenizer,
    truncate_tokens,
    upper_bytes,
)
from harness_core.models.tokenizers import MARKER

PROSE = "The company sold 12,400 units in Sheffield.\n\n  Its staff of 214 grew by a tenth. " * 30


# --- choosing -----------------------------------------------------------------------------------


def test_a_tokenizer_is_chosen_by_name_and_the_former_one_is_returned() -> None:
    assert set_tokenizer("words") == "heuristic"
    assert (current_tokenizer(), setting("tokenizer")) == ("words", "words")
    assert count_tokens("three short words") == 3
    assert set_tokenizer("heuristic") == "words"


def test_an_unknown_tokenizer_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(UnknownMethodError, match=r"'nope'.*chars, heuristic, tiktoken, words"):
        set_tokenizer("nope")
    with override(tokenizer="nope"), pytest.raises(UnknownMethodError):
        count_tokens("text")
    assert current_tokenizer() == "heuristic"


@pytest.mark.parametrize("name", ["", "  ", "heuristic"])
def test_a_function_needs_a_name_of_its_own(name: str) -> None:
    with pytest.raises(BadSettingError):
        set_tokenizer(name, len)


def test_a_function_of_one_text_or_of_a_list_can_be_registered() -> None:
    set_tokenizer("one", lambda text: len(text.split("-")))
    assert count_tokens("a-b-c") == 3
    assert count_many(["a-b", "", None, "a"]) == [2, 0, 0, 1]
    calls: list[list[str]] = []

    def lengths(texts: list[str]) -> list[int]:
        calls.append(texts)
        return [len(text) for text in texts]

    set_tokenizer("all", lengths)
    assert count_many(["ab", " ", "abc"]) == [2, 0, 3]
    assert calls[-1] == ["ab", "abc"]


@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [1, -1], [1.5, 2], ["1", "2"]])
def test_wrong_counts_of_a_registered_function_are_an_error(counts: list[object]) -> None:
    set_tokenizer("wrong", lambda _: counts)  # type: ignore[arg-type] # on purpose
    with pytest.raises(BadSettingError, match="'wrong'"):
        count_many(["a", "b"])


# --- counting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["heuristic", "words", "chars", "tiktoken"])
@pytest.mark.parametrize("text", ["", None, "  \n\t\r\n", b""])
def test_blank_or_missing_text_is_no_tokens(
    name: str, text: str | bytes | None
) -> None:  # core 133
    with override(tokenizer=name):
        assert count_tokens(text) == 0


def test_chars_are_a_quarter_rounded_up() -> None:
    with override(tokenizer="chars"):
        assert count_many(["abcd", "abcde"]) == [1, 2]


def test_bytes_that_are_no_utf8_are_counted_one_by_one() -> None:  # core 135
    assert count_tokens("naïve".encode()) == count_tokens("naïve")
    assert count_tokens(b"\xff\xfe\xfd") == math.ceil(3 * 1.15) + 3
    with override(tokenizer="chars"):
        assert count_tokens(b"\xff" * 9) == 3


def test_a_lone_surrogate_is_counted() -> None:
    for name in ("heuristic", "words", "chars", "tiktoken"):
        with override(tokenizer=name):
            assert count_tokens("a\ud800b") > 0


def test_long_texts_are_counted_like_short_ones() -> None:
    assert count_tokens(" ".join("a" * 40_000)) == 40_003


def test_bytes_bound_any_byte_level_tokenizer() -> None:
    texts = [PROSE, "日本語", "😀" * 5, " " * 50 + "x", "a\ud800b"]
    with override(tokenizer="tiktoken"):
        assert all(count_tokens(text) <= upper_bytes(text) for text in texts)
    assert upper_bytes("aé語😀") == 10


# --- tiktoken -----------------------------------------------------------------------------------


def test_text_that_spells_a_special_token_is_plain_text() -> None:  # core 136
    with override(tokenizer="tiktoken"):
        assert count_tokens("<|endoftext|>", "gpt-4") > 1


def test_without_a_model_the_larger_of_two_encodings_counts() -> None:  # core 136
    text = "日本語のテキスト, naïve text, 12345"
    with override(tokenizer="tiktoken"):
        old, new = count_tokens(text, "gpt-4"), count_tokens(text, "gpt-4o")
        assert old != new
        assert count_tokens(text) == max(old, new) == count_tokens(text, "claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-5.6-terra", "o200k_base"),
        ("openai:gpt-4o-mini", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("o3", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("olmo-2", None),
        ("claude-sonnet-4-5", None),
        (None, None),
    ],
)
def test_openai_models_have_their_own_encoding(model: str | None, name: str | None) -> None:
    assert encodings.encoding_name(model) == name
    assert provenance("tiktoken", model) == ("counted" if name else "estimated")
    assert provenance(None, model) == "estimated"


def test_a_million_spaces_are_counted() -> None:
    with override(tokenizer="tiktoken"):
        assert count_tokens(" " * 1_000_000 + "x", "gpt-4o") > 1000


def test_an_encoding_that_cannot_be_loaded_is_an_error_that_names_it() -> None:
    with pytest.raises(BadSettingError, match="'no_such_base' cannot be loaded"):
        encodings.count_encoded("text", "no_such_base")


class PanicException(BaseException):
    """What a panic in tiktoken looks like from Python."""


class Panicking:
    def encode_ordinary(self, text: str) -> list[int]:
        if len(text) > 10:
            raise PanicException
        return list(range(len(text)))


class Broken:
    def encode_ordinary(self, text: str) -> list[int]:
        raise KeyboardInterrupt


def test_a_panic_is_met_with_smaller_pieces() -> None:
    assert encodings._count(Panicking(), "x" * 45) == 45  # type: ignore[arg-type] # a fake
    with pytest.raises(KeyboardInterrupt):
        encodings._count(Broken(), "x")  # type: ignore[arg-type] # a fake


# --- cutting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [None, math.nan, 0, -3])
def test_no_room_keeps_nothing(n: float | None) -> None:
    assert truncate_tokens(PROSE, n) == ""


def test_what_fits_or_has_infinite_room_is_unchanged() -> None:  # core 138
    assert truncate_tokens(PROSE, math.inf) is PROSE
    assert truncate_tokens("a few words", 50) == "a few words"


def test_prose_is_cut_after_a_whole_word_with_its_line_breaks() -> None:  # core 137
    cut = truncate_tokens(PROSE, 60)
    kept = cut.removesuffix(MARKER)
    assert cut.endswith(MARKER)
    assert PROSE.startswith(kept)
    assert PROSE[len(kept)].isspace()
    assert "\n\n  " in kept
    assert 48 < count_tokens(cut) <= 60


@pytest.mark.parametrize("text", ["日本語" * 400, "QmFzZTY0" * 300])
def test_a_run_without_spaces_is_cut_inside(text: str) -> None:  # core 137
    cut = truncate_tokens(text, 100)
    assert 80 < count_tokens(cut) <= 100
    assert text.startswith(cut.removesuffix(MARKER))


def test_a_long_word_after_short_ones_is_cut_inside() -> None:
    cut = truncate_tokens("see: " + "x9" * 500, 60, "")
    assert cut.startswith("see: x9x9")


def test_a_short_word_is_never_cut_when_others_fit() -> None:
    assert truncate_tokens("alpha beta gamma delta epsilon", 7, "") == "alpha beta gamma"


def test_a_marker_of_half_the_room_is_left_out() -> None:  # core 138
    assert count_tokens(MARKER) >= 12 / 2
    cut = truncate_tokens(PROSE, 12)
    assert cut
    assert PROSE.startswith(cut)


def test_little_of_a_long_text_is_looked_at() -> None:
    seen: list[int] = []

    def count(text: str) -> int:
        seen.append(len(text))
        return len(text.split())

    set_tokenizer("watched", count)
    truncate_tokens("word " * 100_000, 20, "")
    assert sorted(seen)[-2] <= 512  # all but the first look at the whole


TEXTS = st.text(alphabet="ab Z9.\n\t語😀-", max_size=200)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(0, 60), st.sampled_from([MARKER, "", " [...]"]))
@pytest.mark.parametrize("name", ["heuristic", "words", "chars", "tiktoken"])
def test_a_cut_is_a_prefix_and_never_over(name: str, text: str, n: int, marker: str) -> None:
    with override(tokenizer=name):
        cut = truncate_tokens(text, n, marker)
        assert count_tokens(cut) <= n
        assert text.startswith((cut, cut.removesuffix(marker)))
