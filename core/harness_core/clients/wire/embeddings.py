"""A provider's embeddings, matched to the texts they were asked for."""

from collections.abc import Mapping
from typing import Any

from harness_core.clients._numbers import unit_rows
from harness_core.clients.wire.replies import error_in, read_usage
from harness_core.messages import Embeddings, Usage


def read_embeddings(body: Any, count: int, **known: Any) -> Embeddings:
    """The ``count`` vectors in a 2xx body, rows in the order of the texts and of length 1.

    Failed, keeping the tokens it cost, when a vector is missing, doubled, empty, of another length
    than the rest, not finite, or all zero.
    """
    usage = read_usage(body) if isinstance(body, Mapping) else Usage()
    try:
        vectors = unit_rows(_ordered(body, count), count)
        if not vectors.any(axis=1).all():
            raise ValueError("a vector is all zeros")
    except ValueError as error:
        return Embeddings(ok=False, error=f"unusable embeddings: {error}", usage=usage, **known)
    return Embeddings(ok=True, vectors=vectors, usage=usage, **known)


def _ordered(body: Any, count: int) -> list[Any]:
    if not isinstance(body, Mapping):
        raise ValueError(f"a reply is a JSON object, not {type(body).__name__}")
    if (error := error_in(body)) is not None:
        raise ValueError(error)
    data = body.get("data")
    if not isinstance(data, list) or not all(isinstance(row, Mapping) for row in data):
        raise ValueError("the reply holds no list of vectors")
    if len(data) != count:
        raise ValueError(f"{count} vectors were asked for, {len(data)} came")
    if any("index" in row for row in data):
        places = {row.get("index"): row for row in data if type(row.get("index")) is int}
        if set(places) != set(range(count)):
            raise ValueError("the vectors' indexes are not each of the texts once")
        data = [places[place] for place in range(count)]
    rows = [row.get("embedding") for row in data]
    if not all(isinstance(row, list) and row for row in rows):
        raise ValueError("a vector is missing or empty")
    return rows
