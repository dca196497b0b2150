"""One chunk per page."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from harness_core.documents.types import Block, Chunks, Document, Page
from harness_core.errors import SegmentFallbackWarning, warn
from harness_core.segmenting.chunks import new_chunks
from harness_core.segmenting.cutting import hard_split
from harness_core.segmenting.methods import paragraph
from harness_core.segmenting.spec import SegmentSpec


def segment(document: Document, spec: SegmentSpec) -> Chunks:
    """Pages in order, split where over the cap; overlap and ``min_tokens`` have no meaning here.

    Blocks without a page are chunks of their own, after the page they follow.
    """
    if all(block.page is None for block in document.blocks):
        warn(SegmentFallbackWarning(
            "the document has no pages; it is cut into paragraphs instead"
        ))  # fmt: skip
        return replace(paragraph.segment(document, spec), method="page->paragraph")
    if any(block.page is None for block in document.blocks):
        warn(SegmentFallbackWarning(
            "some blocks have no page; they are chunks of their own, after the page they follow"
        ))  # fmt: skip
    rows = [
        (piece, blocks[0])
        for blocks in _pages(document.blocks)
        for piece in hard_split("\n\n".join(block.text for block in blocks), spec.max_tokens)
    ]
    return new_chunks(
        [text for text, _ in rows],
        "page",
        spec,
        page=[first.page for _, first in rows],
        section=[first.section for _, first in rows],
        block_id=[first.block_id for _, first in rows],
    )


def _pages(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """The blocks of each page in page order, each run of pageless ones after its page."""
    pages: dict[Page | None, list[Block]] = {}
    pageless: dict[Page | None, list[list[Block]]] = {}
    current: Page | None = None
    for page, run in groupby(blocks, key=lambda block: block.page):
        if page is None:
            pageless.setdefault(current, []).append(list(run))
        else:
            pages.setdefault(page, []).extend(run)
            current = page
    yield from pageless.get(None, [])
    for page in _in_order(list(pages)):
        yield pages[page]
        yield from pageless.get(page, [])


def _in_order(pages: list[Page | None]) -> list[Page | None]:
    """By number where every page has one, else as the pages come."""
    numbers = [page for page in pages if isinstance(page, (int, float))]
    return [*sorted(numbers)] if len(numbers) == len(pages) else pages
