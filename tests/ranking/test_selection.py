import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from harness_core.errors import DimMismatchError
from harness_core.ranking import arrange, blend, select, similarities, spread

NAN = math.nan
SCORES = st.lists(st.floats(-5, 5) | st.just(NAN) | st.just(-math.inf), max_size=8)
X, Y, XY = [1.0, 0.0], [0.0, 1.0], [0.8, 0.6]


def cosine(a: ArrayLike, b: ArrayLike) -> float:
    return float(similarities(np.atleast_2d(np.asarray(a, dtype=float)), b)[0])


# --- similarity ---------------------------------------------------------------------------------


def test_a_cosine_is_of_directions() -> None:
    assert cosine([2, 0], [5, 0]) == 1
    assert cosine(X, Y) == 0
    assert cosine(X, XY) == pytest.approx(0.8)


@pytest.mark.parametrize("vector", [[0.0, 0.0], [NAN, 1.0], [math.inf, 0.0]])
def test_a_vector_without_direction_is_like_nothing(vector: list[float]) -> None:
    assert cosine(vector, X) == cosine(X, vector) == 0


def test_vectors_of_different_lengths_cannot_be_compared() -> None:
    with pytest.raises(DimMismatchError, match="2 and 3"):
        cosine(X, [1, 2, 3])
    with pytest.raises(DimMismatchError):
        similarities(np.ones((4, 2)), [1.0])


def test_words_and_vectors_count_half_each() -> None:
    assert list(blend(np.array([1.0, 0.0]), np.array([2.0, 6.0]))) == [0.5, 0.5]


@pytest.mark.parametrize("scores", [[3.0, 3.0], [NAN, 1.0], [math.inf, 0.0]])
def test_scores_that_tell_nothing_apart_count_the_same(scores: list[float]) -> None:
    assert list(blend(np.array([1.0, 0.0]), np.array(scores))) == [0.75, 0.25]
    assert blend(np.zeros(0), np.zeros(0)).size == 0


# --- diversity ----------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(SCORES, st.integers(0, 9), st.sampled_from([1.0, 2.0, NAN, math.inf]), st.booleans())
def test_relevance_alone_is_the_top_k(
    scores: list[float], k: int, diversity: float, with_vectors: bool
) -> None:  # readers 74
    vectors = np.random.default_rng(1).normal(size=(len(scores), 3)) if with_vectors else None
    finite = [i for i, score in enumerate(scores) if math.isfinite(score)]
    top = sorted(finite, key=lambda i: -scores[i])[:k]
    assert select(scores, vectors, k, diversity) == top
    assert select(scores, None, k, 0.5) == top


def test_how_many_are_picked() -> None:  # readers 75
    vectors = np.array([X, Y, XY])
    assert select([1, 2, 3], vectors, 0, 0.5) == []
    assert select([1, 2, 3], vectors, -1, 0.5) == []
    assert sorted(select([1, 2, 3], vectors, 9, 0.5)) == [0, 1, 2]
    assert sorted(select([1, 2, 3], vectors, 3, 0.0)) == [0, 1, 2]
    assert select([NAN, -math.inf, math.inf], vectors, 2, 0.5) == []
    assert select([], np.zeros((0, 2)), 2, 0.5) == []


def test_novelty_alone_starts_with_the_best_and_goes_elsewhere() -> None:  # readers 76
    assert select([0.9, 0.8, 0.1], np.array([X, XY, Y]), 2, 0.0) == [0, 2]


@pytest.mark.parametrize("diversity", [1.0, 0.7, 0.0])
def test_a_candidate_that_is_not_eligible_is_never_picked(diversity: float) -> None:  # readers 77
    assert sorted(select([0.5, NAN, 0.4], np.array([X, Y, X]), 3, diversity)) == [0, 2]


@pytest.mark.parametrize("vectors", [np.ones((2, 2)), np.ones(3), [1, 2, 3], "no"])
def test_vectors_of_the_wrong_shape_leave_relevance_alone(vectors: object) -> None:  # readers 78
    assert select([1, 3, 2], vectors, 2, 0.0) == [1, 2]


def test_rows_that_are_not_finite_do_not_stop_the_choice() -> None:  # readers 79, 80
    broken = np.array([[NAN, NAN], X, X])
    assert select([0.9, 0.8, 0.7], broken, 3, 0.5) == [0, 1, 2]
    assert sorted(select([1, 2, 3], np.full((3, 2), NAN), 3, 0.5)) == [0, 1, 2]


def test_the_length_of_vectors_does_not_matter() -> None:  # readers 81
    rows = np.array([X, XY, Y])
    assert select([0.9, 0.89, 0.6], rows * 30, 2, 0.5) == [0, 2]
    assert select([0.9, 0.89, 0.6], rows, 2, 0.5) == [0, 2]
    assert len(select([4, 3, 2, 1], np.array([X, [0.0, 0.0], XY, Y]), 4, 0.5)) == 4


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 6), st.floats(0, 0.99), st.integers(0, 10**6))
def test_it_equals_a_naive_choice(n: int, diversity: float, seed: int) -> None:
    dice = np.random.default_rng(seed)
    scores, rows = dice.normal(size=n), dice.normal(size=(n, 3))
    picked = [int(np.argmax(scores))]
    while len(picked) < n:
        left = [i for i in range(n) if i not in picked]
        picked.append(max(left, key=lambda i: diversity * scores[i] - (1 - diversity) * max(
            cosine(rows[i], rows[j]) for j in picked)))  # fmt: skip
    assert select(scores, rows, n, diversity) == picked


# --- order --------------------------------------------------------------------------------------


def test_the_best_stand_at_the_edges() -> None:  # readers 82
    assert arrange([1, 2, 3, 4, 5, 6], "edges") == [1, 3, 5, 6, 4, 2]
    assert arrange([1, 2, 3, 4, 5], "edges") == [1, 3, 5, 4, 2]
    assert arrange([2, 1], "edges") == [2, 1]


def test_reading_order_sorts_and_other_names_change_nothing() -> None:  # readers 82
    assert arrange([3, 1, 2], "document") == [1, 2, 3]
    assert arrange([3, 1, 2], "relevance") == arrange([3, 1, 2], "sideways") == [3, 1, 2]


def test_positions_are_spread_evenly() -> None:  # positions 3, 8, 13, 18 counted from 1
    assert spread(20, 4) == [2, 7, 12, 17]
    assert spread(3, 5) == [0, 1, 2]
    assert spread(7, 1) == [3]
