"""Answers put together: citations against what was sent, quotations counted, evidence rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness_core.answer import Answer, Evidence, Kind
from harness_core.checks.citations import cited
from harness_core.documents.types import Chunk
from harness_core.messages import clean_text


def new_answer(
    text: str | Sequence[str],
    reader: str,
    question: str,
    chunks_used: Iterable[int],
    trace: Any = None,
    *,
    evidence: Sequence[Evidence] = (),
    partial: bool = False,
    notes: Mapping[str, Any] | None = None,
    chunks_sent: Iterable[int] | None = None,
    premise: str | None = None,
    premise_checked: bool = False,
) -> Answer:
    """An answer with its citations and quotations checked.

    Ids cited but never sent go to ``notes["cited_unknown"]``, citations that cannot be read to
    ``cited_unparsed``, the number of quotations not found to ``unverified_evidence``; each makes
    the answer partial. ``chunks_sent`` is ``chunks_used`` when left out.
    """
    said = clean_text(text if isinstance(text, str) else "\n".join(text))
    used = list(dict.fromkeys(chunks_used))
    sent = set(used if chunks_sent is None else chunks_sent)
    kept = [row for row in evidence if row.text.strip()]
    citations = cited(said)
    found: dict[str, Any] = {
        "cited_unknown": [one for one in citations.ids if one not in sent],
        "cited_unparsed": list(citations.unparsed),
        "unverified_evidence": sum(row.verified is False for row in kept),
    }
    faults = {name: value for name, value in found.items() if value}
    return Answer(
        answer=said,
        reader=reader,
        question=question,
        partial=partial or bool(faults),
        notes={k: v for k, v in {**(notes or {}), **faults}.items() if v is not None},
        evidence=kept,
        chunks_used=used,
        premise=premise,
        premise_checked=premise_checked,
        trace=trace,
    )


def verbatim(
    chunks: Iterable[Chunk], scores: Mapping[int, float | None] | None = None
) -> list[Evidence]:
    """Chunks as evidence: their own text, with the score that chose them."""
    return [
        row(chunk, chunk.quoted, kind="verbatim", score=(scores or {}).get(chunk.chunk_id))
        for chunk in chunks
    ]


def row(chunk: Chunk, text: str, *, kind: Kind, **more: Any) -> Evidence:
    """One evidence row about a chunk."""
    return Evidence(
        chunk_id=chunk.chunk_id,
        text=text,
        page=chunk.page,
        section=chunk.section,
        kind=kind,
        **more,
    )


def extracted(chunk: Chunk, text: str, source: str, **more: Any) -> Evidence:
    """A passage that a model copied, checked at once against what it claims to quote."""
    return check_row(row(chunk, text, kind="extracted", source_text=source, **more))


def check_row(evidence: Evidence, source: str | None = None) -> Evidence:
    """An evidence row with both matchers' verdicts on its quotation."""
    from harness_core.checks.quotations import verify_quotation

    against = evidence.source_text if evidence.source_text is not None else source
    if evidence.kind == "answer" or against is None:
        return evidence.model_copy(update={"quote_status": "unchecked"})
    check = verify_quotation(evidence.text, against, whole=evidence.kind == "verbatim")
    kept_false = evidence.field is not None and evidence.verified is False
    return evidence.model_copy(
        update={
            "verified": False if kept_false else check.verified,
            "match": check.match,
            "quote_status": check.status,
            "quote_sim": check.similarity,
            "quote_coverage": check.coverage,
            "quote_edits": check.edits,
            "quote_critical_ok": check.critical_ok,
        }
    )
