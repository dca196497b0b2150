"""Cut where the meaning of neighbouring sentences moves apart."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from harness_core.documents.types import Chunks
from harness_core.errors import SegmentFallbackWarning, warn
from harness_core.flows.ask import work
from harness_core.flows.types import Flow
from harness_core.segmenting.chunks import packed_chunks
from harness_core.segmenting.job import SegmentJob
from harness_core.segmenting.methods import paragraph
from harness_core.segmenting.packing import Packing
from harness_core.segmenting.units import Origin, agreed, sentence_units

if TYPE_CHECKING:
    from harness_core.ranking.vectors import Vectors

COST = "embedding"
NEEDS_CLIENT = True


def segment(job: SegmentJob) -> Flow[Chunks]:
    """Sentences are embedded with those before them; the largest distances become boundaries."""
    if job.client is None or job.embed is None:
        warn(SegmentFallbackWarning(
            "semantic segmentation needs a client for its vectors; paragraphs are used instead"
        ))  # fmt: skip
        return (yield from work(lambda: _paragraphs(job)))
    texts, origins = yield from work(lambda: sentence_units(job.document))
    if len(texts) < 3:
        return (yield from work(lambda: _paragraphs(job)))
    vectors = yield from job.embed(_windows(texts, job.spec.semantic_window))
    cuts, threshold = _cuts(vectors, job.spec.semantic_percentile)
    job.record("segment.semantic", {
        "units": len(texts),
        "boundaries": len(cuts),
        "threshold": round(threshold, 4),
        "embedding_source": vectors.source,
    })  # fmt: skip
    chunks = yield from work(lambda: _packed(job, texts, origins, cuts))
    return replace(chunks, extra={
        "boundaries": len(cuts),
        "embedding_source": vectors.source,
        "distance_threshold": threshold,
        "recovered_steps": vectors.failed_steps,
    })  # fmt: skip


def _paragraphs(job: SegmentJob) -> Chunks:
    return replace(paragraph.segment(job.document, job.spec), method="semantic->paragraph")


def _windows(texts: Sequence[str], size: int) -> list[str]:
    return [" ".join(texts[max(0, end - size) : end]) for end in range(1, len(texts) + 1)]


def _cuts(vectors: "Vectors", percentile: float) -> tuple[list[int], float]:
    """Where a new piece starts, and the cosine distance from which on it does."""
    import numpy as np

    rows = vectors.matrix
    distances = 1 - np.einsum("ij,ij->i", rows[:-1], rows[1:])
    threshold = float(np.percentile(distances, percentile))
    return [int(place) + 1 for place in np.flatnonzero(distances >= threshold)], threshold


def _packed(
    job: SegmentJob, texts: Sequence[str], origins: Sequence[Origin], cuts: Sequence[int]
) -> Chunks:
    spans = list(pairwise((0, *cuts, len(texts))))
    packing = Packing(
        cap=job.spec.max_tokens,
        overlap=job.spec.overlap_tokens,
        floor=job.spec.min_tokens,
        joiner=" ",
    )
    packed = packing.pack(
        [" ".join(texts[start:end]) for start, end in spans],
        [agreed(origins[start:end]) for start, end in spans],
    )
    return packed_chunks(packed, "semantic", job.spec)
