"""Vectors, as a framework's embeddings give and take them."""

from collections.abc import Callable, Sequence

from harness_core.messages import Embeddings, Reply


def outcome_of(rows: list[list[float]]) -> Embeddings:
    """Rows of numbers as an outcome."""
    import numpy as np

    return Embeddings(ok=True, vectors=np.asarray(rows, dtype=np.float64))


def rows_of(
    found: Sequence[Embeddings], raise_failed: Callable[[Reply], None]
) -> list[list[float]]:
    """The vectors of outcomes; ``raise_failed`` raises what a failed one stands for."""
    rows: list[list[float]] = []
    for one in found:
        if one.ok and one.vectors is not None:
            rows += one.vectors.tolist()
            continue
        raise_failed(Reply(
            ok=False, error=one.error, status=one.status, refused=one.refused, reason=one.reason,
            label=one.label, model=one.model, cause=one.cause,
        ))  # fmt: skip
    return rows
