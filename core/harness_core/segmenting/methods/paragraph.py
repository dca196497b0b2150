"""Whole paragraphs, packed up to the cap."""

from harness_core.documents.types import Chunks, Document
from harness_core.segmenting.chunks import packed_chunks
from harness_core.segmenting.packing import Packing
from harness_core.segmenting.spec import SegmentSpec
from harness_core.segmenting.units import Origin


def segment(document: Document, spec: SegmentSpec) -> Chunks:
    """Blocks, headings among them, joined by blank lines."""
    blocks = document.blocks
    packing = Packing(cap=spec.max_tokens, overlap=spec.overlap_tokens, floor=spec.min_tokens)
    packed = packing.pack([block.text for block in blocks], [Origin.of(one) for one in blocks])
    return packed_chunks(packed, "paragraph", spec)
