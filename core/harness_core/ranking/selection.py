"""Choosing among candidates: similarity, diversity, and the order in which they are shown."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness_core.errors import DimMismatchError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def similarities(matrix: "NDArray[np.float64]", vector: "ArrayLike") -> "NDArray[np.float64]":
    """Cosine of each row with one vector; 0 where a norm is zero or not finite.

    Raises:
        DimMismatchError: the vector's length is not the number of columns.
    """
    import numpy as np

    other = np.asarray(vector, dtype=float)
    if other.ndim != 1 or matrix.shape[1] != other.size:
        raise DimMismatchError(
            f"vectors of {matrix.shape[1]} and {other.size} dimensions cannot be compared"
        )
    found: NDArray[np.float64] = _unit_rows(matrix) @ _unit_rows(other[np.newaxis])[0]
    return found


def blend(cosines: "NDArray[np.float64]", scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Half cosine, half BM25 score scaled to [0, 1]; scores that are all equal scale to 0.5."""
    import numpy as np

    low, high = (scores.min(), scores.max()) if scores.size else (0.0, 0.0)
    usable = math.isfinite(low) and math.isfinite(high) and high > low
    scaled = (scores - low) / (high - low) if usable else np.full(scores.shape, 0.5)
    return 0.5 * cosines + 0.5 * scaled


def select(relevance: "ArrayLike", vectors: Any, k: int, diversity: float) -> list[int]:
    """Up to ``k`` candidates (from 0), best first, by maximal marginal relevance.

    ``diversity`` is lambda: 1 is relevance alone, 0 novelty alone after the most relevant. A
    candidate whose relevance is not finite is never picked. Vectors that are missing or are not
    one row per candidate leave relevance alone. Ties go to the earlier candidate.
    """
    import numpy as np

    scores = np.asarray(relevance, dtype=float)
    eligible = np.isfinite(scores)
    ranked = [int(i) for i in np.argsort(-np.where(eligible, scores, -np.inf), kind="stable")]
    ranked = [i for i in ranked if eligible[i]]
    rows = np.asarray(vectors, dtype=float) if _is_matrix(vectors, scores.size) else None
    if rows is None or not diversity < 1:
        return ranked[: max(k, 0)]
    unit = _unit_rows(rows)
    picked = ranked[: min(1, max(k, 0))]
    nearest = np.full(scores.size, -np.inf)
    while picked and len(picked) < min(k, len(ranked)):
        nearest = np.maximum(nearest, unit @ unit[picked[-1]])
        marginal = diversity * scores - (1 - diversity) * nearest
        marginal[~eligible] = -np.inf
        marginal[picked] = -np.inf
        picked.append(int(np.argmax(marginal)))
    return picked


def arrange(indices: Sequence[int], how: str) -> list[int]:
    """``indices``, given best first, in reading order: relevance, document, or edges.

    ``edges`` puts the best at both ends. Any other name leaves the order as it is.
    """
    if how == "document":
        return sorted(indices)
    if how == "edges":
        return [*indices[::2], *indices[1::2][::-1]]
    return list(indices)


def spread(n: int, m: int) -> list[int]:
    """``m`` positions (from 0) spread evenly over ``n``, each in the middle of its share."""
    return (
        list(range(n)) if m >= n else [-((1 - 2 * i) * n // (2 * m)) - 1 for i in range(1, m + 1)]
    )


def _is_matrix(vectors: Any, rows: int) -> bool:
    import numpy as np

    return vectors is not None and np.ndim(vectors) == 2 and np.shape(vectors)[0] == rows


def _unit_rows(matrix: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Rows of length 1; a row that is zero or not finite becomes zeros."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    usable = np.isfinite(norms) & (norms > 0)
    unit = np.zeros(matrix.shape)
    np.divide(matrix, norms, out=unit, where=usable)
    return unit
