"""Counts and vectors as they come from outside: believed only when they can be true."""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def token_count(value: Any) -> int | None:
    """``value`` as a count; None unless it is a finite number at or above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if math.isfinite(value) and value >= 0 else None


def unit_rows(rows: Any, count: int) -> "NDArray[np.float64]":
    """``rows`` as ``count`` vectors of one length, each of length 1 (a zero vector stays zero).

    Raises:
        ValueError: another number of rows, no dimension, different lengths, or no finite number.
    """
    import numpy as np

    try:
        matrix = np.array([[float(x) for x in row] for row in rows], dtype=np.float64)
    except TypeError as error:
        raise ValueError(f"the vectors hold something that is no number ({error})") from None
    except ValueError:
        raise ValueError(
            "the vectors differ in length or hold something else than numbers"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0:
        raise ValueError(f"{count} vectors were asked for, an array of shape {matrix.shape} came")
    if not np.isfinite(matrix).all():
        raise ValueError("a vector holds a number that is not finite")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1.0)
