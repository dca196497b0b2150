"""A model rewrites the text as statements that stand alone; statements are packed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_core.documents.types import Chunks
from harness_core.errors import SegmentFallbackWarning, warn
from harness_core.fences import fence
from harness_core.flows.ask import ask_all, work
from harness_core.flows.types import Flow
from harness_core.messages import Message, Reply, Request, parse_json
from harness_core.segmenting.chunks import chunk_of, numbered
from harness_core.segmenting.job import SegmentJob
from harness_core.segmenting.methods import sentence
from harness_core.segmenting.packing import Packing
from harness_core.segmenting.prompts import RESTATE

COST = "llm"
NEEDS_CLIENT = True
STAGES = ("segment.proposition",)
OUTPUT_TOKENS = 2000

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"propositions": {"type": "array", "items": {"type": "string"}}},
    "required": ["propositions"],
    "additionalProperties": False,
}
_TEXT_KEYS = ("text", "proposition", "statement", "sentence", "claim", "assertion", "content")


def segment(job: SegmentJob) -> Flow[Chunks]:
    """One request per batch of paragraphs; a batch that fails is kept as it is written.

    ``source_text`` of a chunk is the batches its statements come from.
    """
    if job.client is None:
        warn(SegmentFallbackWarning(
            "propositions need a client; the text is cut into sentences instead"
        ))  # fmt: skip
        return (yield from work(lambda: _sentences(job)))
    batches = yield from work(lambda: _batches(job))
    replies = yield from ask_all([_request(job, batch) for batch in batches])
    return (yield from work(lambda: _from_replies(job, batches, replies)))


def statements(value: object) -> Iterator[str]:
    """The statements in a reply, in order, however they are nested; numbers are no statements.

    Of an object only the field that reads like text counts, or else every text in it.
    """
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, Mapping):
        text = next((value[key] for key in _TEXT_KEYS if key in value), None)
        for part in value.values() if text is None else (text,):
            yield from statements(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from statements(part)


def _from_replies(job: SegmentJob, batches: Sequence[str], replies: Sequence[Reply]) -> Chunks:
    found = [_read(reply) for reply in replies]
    kept = sum(not one for one in found)
    steps = tuple(reply.step for reply, one in zip(replies, found, strict=True) if not one)
    extra = {
        "propositions": sum(map(len, found)),
        "batches": len(batches),
        "batches_kept_as_written": kept,
        "recovered_steps": tuple(filter(None, steps)),
    }
    if kept:
        instead = "the text is cut into sentences" if kept == len(batches) else "they are kept"
        warn(SegmentFallbackWarning(
            f"{kept} of {len(batches)} batches gave no propositions; {instead} as written"
        ))  # fmt: skip
    chunks = _sentences(job) if kept == len(batches) else _packed(job, batches, found)
    return replace(chunks, extra=extra)


def _packed(job: SegmentJob, batches: Sequence[str], found: Sequence[list[str]]) -> Chunks:
    rows = [
        (text, batch) for batch, texts in enumerate(found) for text in texts or [batches[batch]]
    ]
    packing = Packing(cap=job.spec.max_tokens, floor=job.spec.min_tokens, joiner="\n")
    chunks = (
        replace(
            chunk_of(one),
            source_text="\n\n".join(batches[rows[one.first][1] : rows[one.last][1] + 1]),
        )
        for one in packing.pack([text for text, _ in rows])
    )
    return Chunks(chunks=numbered(chunks), method="proposition", spec=job.spec)


def _read(reply: Reply) -> list[str]:
    value = parse_json(reply.text, schema=SCHEMA) if reply.usable else None
    return list(statements(value["propositions"])) if value else []


def _batches(job: SegmentJob) -> list[str]:
    packing = Packing(cap=job.spec.proposition_batch_tokens)
    return [one.text for one in packing.pack([block.text for block in job.document.blocks])]


def _sentences(job: SegmentJob) -> Chunks:
    return replace(sentence.segment(job.document, job.spec), method="proposition->sentence")


def _request(job: SegmentJob, batch: str) -> Request:
    return Request(
        messages=(Message("system", RESTATE), Message("user", fence("passage", batch))),
        model=job.model,
        max_output=OUTPUT_TOKENS,
        schema=SCHEMA,
        schema_name="propositions",
        effort=job.effort("segment.proposition"),
        label="segment.proposition",
    )
