"""Cutting documents into chunks: one module per segmenter, and what they share."""

from harness_core.segmenting.chunks import new_chunks
from harness_core.segmenting.job import SegmentJob
from harness_core.segmenting.registry import list_segmenters, register_segmenter
from harness_core.segmenting.segmentation import segment_flow
from harness_core.segmenting.spec import SegmentSpec

__all__ = [
    "SegmentJob",
    "SegmentSpec",
    "list_segmenters",
    "new_chunks",
    "register_segmenter",
    "segment_flow",
]
