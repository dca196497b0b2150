"""An answer as plain values: what chains pass on, graphs keep in their state, and files hold."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from harness_core.answer import Answer
from harness_core.documents.types import Chunk


class Citation(TypedDict):
    """One thing the answer rests on, and the document it stands in."""

    chunk_id: int | None
    document_id: str | None
    source: str | None
    page: int | float | str | None
    section: str | None
    text: str
    kind: str
    score: float | None
    verified: bool | None
    metadata: dict[str, Any]


class Spend(TypedDict):
    """What one read took. ``usd`` is None when a model has no price."""

    calls: int
    cached: int
    tokens_in: int
    tokens_out: int
    usd: float | None


class ReaderOutput(TypedDict, total=False):
    """The full output of a reader. ``partial`` comes first: True means that something degraded."""

    answer: str
    found: bool
    partial: bool
    stop_reason: str | None
    reasons: list[str]
    citations: list[Citation]
    quotes_checked: int
    quotes_not_found: int
    warnings: list[str]
    spend: Spend
    trace_id: str | None
    reader: str


def full_output(answer: Answer, chunks: Sequence[Chunk]) -> ReaderOutput:
    """An answer as a mapping of plain values."""
    by_id = {chunk.chunk_id: chunk for chunk in chunks}
    totals = answer.totals()
    checked = [row.verified for row in answer.evidence if row.verified is not None]
    return ReaderOutput(
        answer=answer.answer,
        found=answer.found,
        partial=answer.partial,
        stop_reason=answer.notes.get("stop_reason"),
        reasons=answer.reasons(),
        citations=[_citation(row, by_id.get(row.chunk_id or 0)) for row in answer.evidence],
        quotes_checked=len(checked),
        quotes_not_found=checked.count(False),
        warnings=[text for _, text in answer.warnings],
        spend=Spend(
            calls=totals.calls + totals.embed_calls,
            cached=totals.cached,
            tokens_in=totals.tokens_in,
            tokens_out=totals.tokens_out,
            usd=totals.usd,
        ),
        trace_id=None if answer.trace is None else answer.trace.run_id,
        reader=answer.reader,
    )


def _citation(row: Any, chunk: Chunk | None) -> Citation:
    metadata = dict(chunk.metadata) if chunk is not None else {}
    return Citation(
        chunk_id=row.chunk_id,
        document_id=metadata.get("id"),
        source=metadata.get("source"),
        page=row.page,
        section=row.section,
        text=row.text,
        kind=row.kind,
        score=row.score,
        verified=row.verified,
        metadata=metadata,
    )
