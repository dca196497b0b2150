import math

import numpy as np
import pytest

from harness_core.ranking import lexical_vectors
from harness_core.ranking.lexical import DIMENSIONS, _slot


def test_rows_are_of_length_one_and_512_wide() -> None:
    matrix = lexical_vectors(["some words here", "Выручка выросла", "日本語の文"])  # core 147
    assert matrix.shape == (3, DIMENSIONS)
    assert np.linalg.norm(matrix, axis=1) == pytest.approx([1, 1, 1])


def test_a_text_without_terms_is_zeros() -> None:
    assert not lexical_vectors(["", "a b ?"]).any()
    assert lexical_vectors([]).shape == (0, DIMENSIONS)


def test_the_slots_are_the_same_in_every_process() -> None:
    assert [_slot(term) for term in ("revenue", "выручка", "日本")] == [414, 336, 356]


def test_a_term_weighs_one_and_the_logarithm_of_its_count() -> None:
    row = lexical_vectors(["growth growth growth units"])[0]
    assert row[_slot("growth")] / row[_slot("units")] == pytest.approx(1 + math.log(3))
