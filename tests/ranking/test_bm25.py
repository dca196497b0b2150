import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi  # type: ignore[import-untyped] # it ships no types

from harness_core.ranking import BM25
from harness_core.ranking.terms import terms


def naive(texts: list[str], query: str) -> list[float]:
    documents = [terms(text) for text in texts]
    filled = [len(words) for words in documents if words]
    mean = sum(filled) / len(filled) if filled else 1
    scores = []
    for words in documents:
        score = 0.0
        for term in set(terms(query)):
            n, f = sum(term in other for other in documents), words.count(term)
            idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
            score += idf * f * 2.5 / (f + 1.5 * (0.25 + 0.75 * len(words) / mean))
        scores.append(score)
    return scores


TEXT = st.lists(st.sampled_from(["alpha", "beta", "gamma", "x", "delta!", "日本語"])).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT, max_size=6), TEXT)
def test_it_equals_a_naive_reading_of_the_formula(texts: list[str], query: str) -> None:
    assert BM25(texts).scores(query) == pytest.approx(naive(texts, query))


def test_the_matching_sentence_comes_first() -> None:  # core 148
    index = BM25(["Staff grew.", "Revenue was 45.2 million.", "Vendors may fail."])
    scores = index.scores("What was the revenue?")
    assert int(np.argmax(scores)) == 1
    assert list(scores > 0) == [False, True, False]


@pytest.mark.parametrize("texts", [[], [""], ["", "..."]])
def test_nothing_to_index_scores_zero(texts: list[str]) -> None:
    assert list(BM25(texts).scores("anything")) == [0.0] * len(texts)


def test_a_query_without_terms_or_without_known_ones_scores_zero() -> None:
    index = BM25(["one text", "another text"])
    assert not index.scores("?").any()
    assert not index.scores("unknown").any()


def test_a_word_in_every_text_still_counts_above_zero() -> None:
    assert (BM25(["growth here"]).scores("growth") > 0).all()
    assert (BM25(["growth here", "growth there"]).scores("growth") > 0).all()


@pytest.mark.parametrize("text", ["Выручка выросла", "日本語の文"])
def test_other_scripts_are_found(text: str) -> None:  # core 147
    assert BM25(["plain words", text]).scores(text)[1] > 0


def test_it_agrees_with_rank_bm25_once_that_has_the_same_idf() -> None:
    dice = random.Random(7)  # noqa: S311 - text, no secret
    words = [f"word{n}" for n in range(300)]
    texts = [" ".join(dice.choices(words, range(300, 0, -1), k=60)) for _ in range(200)]
    other = BM25Okapi([text.split() for text in texts], k1=1.5, b=0.75)
    known = {word: sum(word in text.split() for text in texts) for word in other.idf}
    other.idf = {word: math.log(1 + (200 - n + 0.5) / (n + 0.5)) for word, n in known.items()}
    query = " ".join(words[:12])
    assert BM25(texts).scores(query) == pytest.approx(other.get_scores(query.split()))
