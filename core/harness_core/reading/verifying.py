"""Quotations of an answer, checked again: against its own sources, or against given chunks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness_core.answer import Answer, Evidence
from harness_core.checks.quotations import QuoteCheck, verify_quotation
from harness_core.documents.types import Chunks
from harness_core.errors import BadSettingError


def verify_evidence(answer: Any, chunks: Chunks | None = None) -> list[QuoteCheck]:
    """One check per piece of evidence, in order, with its chunk id, kind and opening words.

    A row is checked against the text it claims to quote, else against its chunk in ``chunks``. A
    chunk's own answer, and a row with no source, is neither true nor false. Chunk ids are
    positions: chunks of another segmentation compare unrelated text.

    Raises:
        BadSettingError: something that is no answer.
    """
    if not isinstance(answer, Answer):
        raise BadSettingError(f"verify_evidence takes an Answer, not {type(answer).__name__}")
    sources = {chunk.chunk_id: chunk.quoted for chunk in chunks or ()}
    return [_checked(row, sources) for row in answer.evidence]


def _checked(row: Evidence, sources: Mapping[int, str]) -> QuoteCheck:
    source = row.source_text
    if source is None and row.chunk_id is not None:
        source = sources.get(row.chunk_id)
    if row.kind == "answer":
        source = None
    check = verify_quotation(row.text, source, whole=row.kind == "verbatim")
    kept_false = row.field is not None and row.verified is False
    span = row.text if len(row.text) <= 60 else row.text[:59] + "…"
    return replace(
        check,
        verified=False if kept_false else check.verified,
        chunk_id=row.chunk_id,
        kind=row.kind,
        span=span,
    )
