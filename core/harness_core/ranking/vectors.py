"""Vectors of texts: one row per text, checked, and remembered for the process."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CACHE_BYTES: Final = 128 * 1024 * 1024

_remembered: "OrderedDict[Hashable, NDArray[np.float64]]" = OrderedDict()
_lock = Lock()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vectors:
    """One row of length 1 per text.

    ``source`` names the embedder that made them. ``fallback`` says that it stepped in for another,
    for the ``reason`` given; ``failed_steps`` are the trace numbers of the requests that failed.
    """

    matrix: "NDArray[np.float64]"
    source: str
    fallback: bool = False
    reason: str | None = None
    failed_steps: tuple[str, ...] = ()


def checked_rows(given: Any, n: int, *, zeros: bool = True) -> "NDArray[np.float64] | str":
    """``given`` as ``n`` finite rows of length 1, or what is wrong with it.

    ``zeros`` allows rows without direction, which stay zeros.
    """
    import numpy as np

    try:
        matrix = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return "the vectors are not numbers, or of different lengths"
    if matrix.ndim != 2 or matrix.shape[0] != n:
        return f"{n} texts were answered with an array of shape {matrix.shape}"
    if matrix.shape[1] == 0:
        return "the vectors have no dimensions"
    if not np.isfinite(matrix).all():
        return "a vector holds a value that is not finite"
    scale = np.abs(matrix).max(axis=1, keepdims=True)
    if not zeros and not scale.all():
        return "a vector is all zeros"
    unit = np.zeros_like(matrix)
    np.divide(matrix, scale, out=unit, where=scale > 0)  # first, so that no square overflows
    norms = np.linalg.norm(unit, axis=1, keepdims=True)
    np.divide(unit, norms, out=unit, where=norms > 0)
    return unit


def recall(keys: Iterable[Hashable]) -> "dict[Hashable, NDArray[np.float64]]":
    """The vectors remembered under ``keys``."""
    with _lock:
        found = {key: _remembered[key] for key in keys if key in _remembered}
        for key in found:
            _remembered.move_to_end(key)
    return found


def remember(rows: "Mapping[Hashable, NDArray[np.float64]]") -> None:
    """Keep vectors of one call; what earlier calls left over the limit goes first."""
    with _lock:
        used = sum(row.nbytes for row in _remembered.values())
        while used > CACHE_BYTES:
            used -= _remembered.popitem(last=False)[1].nbytes
        _remembered.update({key: row.copy() for key, row in rows.items()})


def flush_embeddings() -> None:
    """Forget every vector kept in memory."""
    with _lock:
        _remembered.clear()
