"""Vectors from words alone: deterministic, offline, the same in every process."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from harness_core.ranking.terms import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSIONS: Final = 512


def lexical_vectors(texts: Sequence[str]) -> "NDArray[np.float64]":
    """One row of length 1 and 512 columns per text; a text without terms gives zeros.

    Each term of at least three characters adds 1 + ln(count) to the slot its BLAKE2b hash names.
    """
    import numpy as np

    matrix: NDArray[np.float64] = np.zeros((len(texts), DIMENSIONS))
    for row, text in zip(matrix, texts, strict=True):
        for term, count in Counter(terms(text, min_length=3)).items():
            row[_slot(term)] += 1 + math.log(count)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    np.divide(matrix, norms, out=matrix, where=norms > 0)
    return matrix


@lru_cache(maxsize=65_536)
def _slot(term: str) -> int:
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=3).digest()
    return int.from_bytes(digest, "big") % DIMENSIONS
