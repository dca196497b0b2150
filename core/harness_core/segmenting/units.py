"""The units that are packed, and where each stands in the document."""

from collections.abc import Iterable
from typing import NamedTuple

from harness_core.documents.types import Block, Document, Page
from harness_core.ranking.sentences import sentences


class Origin(NamedTuple):
    """Where a unit stands in the document."""

    page: Page | None = None
    section: str | None = None
    block_id: int | None = None

    @classmethod
    def of(cls, block: Block) -> "Origin":
        """Where a block stands."""
        return cls(block.page, block.section, block.block_id)


NOWHERE = Origin()


def agreed(origins: Iterable[Origin]) -> Origin:
    """The first origin, with None where two known values differ."""
    first, *others = dict.fromkeys(origins)
    if not others:
        return first
    columns = zip(first, *others, strict=True)
    return Origin(*(
        None if len({value for value in column if value is not None}) > 1 else column[0]
        for column in columns
    ))  # fmt: skip


def merged(one: Origin, other: Origin) -> Origin:
    """What both say, with None where they differ."""
    return Origin(
        page=one.page if one.page == other.page else None,
        section=one.section if one.section == other.section else None,
        block_id=one.block_id if one.block_id == other.block_id else None,
    )


def sentence_units(document: Document) -> tuple[list[str], list[Origin]]:
    """The sentences of every block (a block without any is one), each with its block's origin."""
    texts: list[str] = []
    origins: list[Origin] = []
    for block in document.blocks:
        found = sentences(block.text) or [block.text]
        texts += found
        origins += [Origin.of(block)] * len(found)
    return texts, origins
