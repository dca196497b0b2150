"""Paragraph chunks under a header that says where they come from."""

from collections.abc import Sequence
from dataclasses import replace

from harness_core.documents.types import Chunk, Chunks, Document
from harness_core.errors import SegmentFallbackWarning, warn
from harness_core.fences import fence
from harness_core.flows.ask import ask_all, work
from harness_core.flows.types import Flow
from harness_core.messages import Message, Reply, Request, Task
from harness_core.models import count_tokens, truncate_tokens
from harness_core.segmenting.chunks import numbered
from harness_core.segmenting.cutting import longest
from harness_core.segmenting.job import SegmentJob
from harness_core.segmenting.methods import paragraph
from harness_core.segmenting.prompts import SITUATE

STAGES = ("segment.context",)
BLURB_TOKENS = 90
DOCUMENT_TOKENS = 1500


def segment(job: SegmentJob) -> Flow[Chunks]:
    """The header names source, section, page and part, or is a sentence the model wrote.

    At least half the cap is left to the text, and only the header is ever cut to fit.
    """
    if job.spec.context_source == "metadata":
        return (yield from work(lambda: _from_metadata(job)))
    if job.client is None:
        warn(SegmentFallbackWarning(
            "contextual headers by a model need a client; they are made from metadata instead"
        ))  # fmt: skip
        return (yield from work(lambda: _from_metadata(job)))
    bodies, opening = yield from work(lambda: (_bodies(job, BLURB_TOKENS), _opening(job)))
    replies = yield from ask_all([_request(job, opening, body) for body in bodies])
    return (yield from work(lambda: _from_replies(job, bodies, replies)))


def _from_metadata(job: SegmentJob) -> Chunks:
    bodies = _bodies(job, _reserve(job.document))
    size = len(bodies)
    headed = [
        _headed(job, body, *_header(job.document, body, f"Part {body.chunk_id} of {size}"))
        for body in bodies
    ]
    return replace(bodies, chunks=numbered(headed), extra={"context_source": "metadata"})


def _from_replies(job: SegmentJob, bodies: Chunks, replies: Sequence[Reply]) -> Chunks:
    at_limit = sum(reply.refused for reply in replies)
    failed = sum(not reply.ok and not reply.refused for reply in replies)
    missing = sum(not reply.usable for reply in replies)
    if missing:
        warn(SegmentFallbackWarning(
            f"{missing} of {len(bodies)} chunks have no header: {failed} requests failed, "
            f"{at_limit} were stopped by a limit, {missing - failed - at_limit} came back empty"
        ))  # fmt: skip
    headed = [
        _headed(job, body, " ".join(reply.text.split()), "") if reply.usable else body
        for body, reply in zip(bodies, replies, strict=True)
    ]
    return replace(bodies, chunks=numbered(headed), extra={
        "context_source": "llm",
        "blurbs_missing": missing,
        "blurbs_at_limit": at_limit,
        "recovered_steps": tuple(one.step for one in replies if not one.usable and one.step),
    })  # fmt: skip


def _bodies(job: SegmentJob, reserve: int) -> Chunks:
    cap = job.spec.max_tokens
    room = max(cap - reserve, cap // 2)
    settings = {"max_tokens": room, "overlap_tokens": min(job.spec.overlap_tokens, room - 1)}
    packed = paragraph.segment(job.document, job.spec.model_copy(update=settings))
    return replace(packed, method="contextual", spec=job.spec)


def _reserve(document: Document) -> int:
    """The most tokens a header of this document can take."""
    most = f"Part {10**6 - 1} of {10**6 - 1}"
    origins = {(block.section, block.page) for block in document.blocks}
    return max((
        count_tokens(f"[{' | '.join(filter(None, _header(document, place, most)))}]\n\n")
        for place in (Chunk(chunk_id=0, text="", tokens=0, section=s, page=p) for s, p in origins)
    ), default=0)  # fmt: skip


def _header(document: Document, chunk: Chunk, part: str) -> tuple[str, str]:
    named = {"Source": document.label, "Section": chunk.section, "Page": chunk.page}
    lines = {name: " ".join(str(v).split()) for name, v in named.items() if v is not None}
    known = (f"{name}: {line}" for name, line in lines.items() if line)
    return " | ".join(known), part


def _headed(job: SegmentJob, body: Chunk, about: str, part: str) -> Chunk:
    """``body`` under ``[about | part]``, with ``about`` shortened until both fit."""

    def text(size: int) -> str:
        parts = (about[:size].rstrip(), part)
        return f"[{' | '.join(filter(None, parts))}]\n\n{body.text}"

    cap = job.spec.max_tokens
    size = len(about)
    if count_tokens(text(size)) > cap:
        size = longest(
            lambda n: count_tokens(text(n)), lambda n: len(text(n)), size, cap, chars=len(text(0))
        ).units
        _record_cut(job, body, about, about[:size], cap - body.tokens)
    if count_tokens(text(size)) > cap or not (size or part):
        return body
    headed = text(size)
    return replace(body, text=headed, tokens=count_tokens(headed), source_text=body.text)


def _record_cut(job: SegmentJob, body: Chunk, about: str, kept: str, limit: int) -> None:
    before, after = count_tokens(about), count_tokens(kept)
    job.record("truncate", {
        "where": "segment.contextual.header",
        "limit": limit,
        "tokens_before": before,
        "tokens_kept": after,
        "tokens_dropped": before - after,
        "chunk_id": body.chunk_id,
    })  # fmt: skip


def _opening(job: SegmentJob) -> str:
    """The beginning of the document, for every request of the run."""
    text = job.document.text
    before = count_tokens(text)
    kept = truncate_tokens(text, DOCUMENT_TOKENS)
    if before > DOCUMENT_TOKENS:
        after = count_tokens(kept)
        job.record("truncate", {
            "where": "segment.contextual.document",
            "limit": DOCUMENT_TOKENS,
            "tokens_before": before,
            "tokens_kept": after,
            "tokens_dropped": before - after,
        })  # fmt: skip
    return kept


def _request(job: SegmentJob, opening: str, body: Chunk) -> Request:
    asked = f"{fence('document', opening)}\n\n{fence('excerpt', body.text)}"
    return Request(
        messages=(Message("system", SITUATE), Message("user", asked)),
        model=job.model,
        max_output=BLURB_TOKENS,
        effort=job.effort("segment.context"),
        label="segment.context",
        task=Task(kind="summarise", question="", excerpts=((body.chunk_id, body.text),)),
    )
