"""Section by section: what two headings divide is never in one chunk."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import regex

from harness_core.documents.types import Block, Chunk, Chunks, Document
from harness_core.models import count_tokens
from harness_core.segmenting.chunks import chunk_of, numbered
from harness_core.segmenting.packing import Packing
from harness_core.segmenting.spec import SegmentSpec
from harness_core.segmenting.units import Origin

NO_SECTION = "[no section]"
"""The section of what stands before the first heading."""

_HASHES = regex.compile(r"#{1,6}[^\S\n]+\S")
_NUMBERED = regex.compile(r"\d+(?:\.\d+)*[ \t.)]+[\p{Lu}\p{Lt}\p{Lo}]")
_CAPITALS = regex.compile(r"(?=.*\p{Lu})[\p{Lu}\p{Lt}\p{M}\p{N} ,'’&/-]{7,}")  # noqa: RUF001
_LEAD = regex.compile(r"#*\s*(?:\d+(?:\.\d+)*[ \t.)]+(?=\S))?")
_HEADING_TOKENS = 30


def segment(document: Document, spec: SegmentSpec) -> Chunks:
    """Sections from the document, else from headings found in it; each is packed on its own.

    With ``prefix_section`` a chunk opens with the heading of its section.
    """
    chunks = [
        chunk
        for label, group in groupby(_labelled(document.blocks), key=lambda pair: pair[0])
        for chunk in _section(label, [block for _, block in group], spec)
    ]
    return Chunks(chunks=numbered(chunks), method="structural", spec=spec)


def _labelled(blocks: Sequence[Block]) -> Iterator[tuple[str, Block]]:
    if any(block.section for block in blocks):
        yield from ((block.section or NO_SECTION, block) for block in blocks)
        return
    label = NO_SECTION
    for block in blocks:
        if is_heading(block.text):
            label = block.text.strip().partition("\n")[0].lstrip("#").strip()
        yield label, block


def is_heading(text: str) -> bool:
    """Whether a block reads like a heading: hashes, a numbered title, or a line in capitals."""
    text = text.strip()
    formed = _HASHES.match(text) or _NUMBERED.match(text) or _CAPITALS.fullmatch(text)
    return bool(formed) and count_tokens(text) < _HEADING_TOKENS


def _section(label: str, blocks: Sequence[Block], spec: SegmentSpec) -> Iterator[Chunk]:
    prefix = f"## {label}\n\n" if spec.prefix_section and label != NO_SECTION else ""
    title = _bare(label)
    body = [block for block in blocks if not (prefix and _bare(block.text) == title)]
    if not body:
        body, prefix = list(blocks), ""
    packing = Packing(
        cap=max(spec.max_tokens - count_tokens(prefix), 32),
        overlap=spec.overlap_tokens,
        floor=spec.min_tokens,
    )
    for one in packing.pack([block.text for block in body], [Origin.of(block) for block in body]):
        chunk = replace(chunk_of(one), section=label)
        if prefix:
            text = prefix + one.text
            chunk = replace(chunk, text=text, tokens=count_tokens(text), source_text=one.text)
        yield chunk


def _bare(heading: str) -> str:
    """A heading without hashes, section number, and what trails it."""
    plain: str = _LEAD.sub("", heading.strip(), count=1)
    return plain.rstrip(" \t\n:.-–—").casefold()  # noqa: RUF001
