"""BM25 over the postings of words, counted in the same way whatever keeps them.

Where access is enforced every figure is taken over the visible files alone, so that what is hidden
moves no score: the Lucene form of ``harness_core.ranking``. Where nothing is hidden the figures are
those of the whole collection, in the form that SQLite's FTS5 gives them.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness_core.collections.store import Ranked
from harness_core.ranking.bm25 import K1, B

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COMMON: Final = 0.2
"""A word in more than this share of many pieces is not looked for while others are."""
MANY: Final = 1000
DIGITS: Final = 9
"""Scores that agree to so many decimals are equal: sums of floats depend on their order."""
_K1_OF_FTS5: Final = 1.2
_LEAST_OF_FTS5: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Count:
    """How many pieces there are, and how many words are in them."""

    pieces: int
    words: int


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a word is: the pieces that hold it, how often each does, and how long each is."""

    chunks: "NDArray[np.int64]"
    times: "NDArray[np.int32]"
    lengths: "NDArray[np.int32]"


def telling(often: Mapping[str, int], pieces: int) -> list[str]:
    """The words worth looking for: in a large set those that are everywhere only slow it down."""
    known = [word for word, times in often.items() if times]
    return [word for word in known if not is_common(often[word], pieces)] or known


def is_common(often: int, pieces: int) -> bool:
    """Whether a word in ``often`` of ``pieces`` pieces says little."""
    return pieces > MANY and often > COMMON * pieces


def lucene(often: int, pieces: int) -> tuple[float, float]:
    """The weight of a word in ``often`` of ``pieces`` pieces, and k1; the weight is above 0."""
    return math.log1p((pieces - often + 0.5) / (often + 0.5)), K1


def fts5(often: int, pieces: int) -> tuple[float, float]:
    """The same as FTS5 has it, where a word in over half of the pieces weighs next to nothing."""
    weight = math.log((pieces - often + 0.5) / (often + 0.5))
    return (weight if weight > 0 else _LEAST_OF_FTS5), _K1_OF_FTS5


def scored(
    found: Iterable[tuple[int, Postings]],
    count: Count,
    form: Callable[[int, int], tuple[float, float]],
) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
    """Pieces and their scores, from the postings of each word and how many pieces hold it."""
    import numpy as np

    chunks, parts = [np.empty(0, np.int64)], [np.empty(0)]
    mean = count.words / count.pieces
    for often, postings in found:
        weight, k1 = form(often, count.pieces)
        norm = k1 * (1 - B + B * postings.lengths / mean)
        chunks.append(postings.chunks)
        parts.append(weight * (k1 + 1) * postings.times / (postings.times + norm))
    every, place = np.unique(np.concatenate(chunks), return_inverse=True)
    return every, np.bincount(place, np.concatenate(parts), every.size).astype(np.float64)


def best(
    chunks: "NDArray[np.int64]",
    scores: "NDArray[np.float64]",
    limit: int,
    placed: Callable[[list[int]], Iterable[tuple[int, int]]],
) -> list[Ranked]:
    """The best pieces; ``placed`` gives pieces and their files in the order that ties go by."""
    import numpy as np

    if not chunks.size or limit < 1:
        return []
    least = np.partition(scores, -limit)[-limit] if limit < scores.size else scores.min()
    near = scores >= least - 1e-6
    by_chunk = dict(zip(chunks[near].tolist(), scores[near].tolist(), strict=True))
    ties = [Ranked(chunk, file, by_chunk[chunk]) for chunk, file in placed(list(by_chunk))]
    return sorted(ties, key=lambda one: -round(one.score, DIGITS))[:limit]
