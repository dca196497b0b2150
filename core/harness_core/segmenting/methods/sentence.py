"""Whole sentences, packed up to the cap."""

from harness_core.documents.types import Chunks, Document
from harness_core.segmenting.chunks import packed_chunks
from harness_core.segmenting.packing import Packing
from harness_core.segmenting.spec import SegmentSpec
from harness_core.segmenting.units import sentence_units


def segment(document: Document, spec: SegmentSpec) -> Chunks:
    """Sentences of all blocks, joined by spaces."""
    texts, origins = sentence_units(document)
    packing = Packing(
        cap=spec.max_tokens, overlap=spec.overlap_tokens, floor=spec.min_tokens, joiner=" "
    )
    return packed_chunks(packing.pack(texts, origins), "sentence", spec)
