"""Decide from the opening of a document whether it belongs in a review."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import regex

from harness_core.answer import Answer, Evidence
from harness_core.documents.types import Chunk
from harness_core.errors import BadSettingError, EmptyChunksError, NoCriteriaError
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow
from harness_core.messages import Message, Reply, Request, parse_json
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.answers import check_row, extracted
from harness_core.reading.fields import strict_object, text_field
from harness_core.reading.job import Job, fault
from harness_core.reading.prompts import fence, joined, question_line, rendered, system_and

Decision = Literal["include", "exclude", "unclear"]

SCHEMA = strict_object({
    "decision": {"type": "string", "enum": ["include", "exclude", "unclear"]},
    "reason": {"type": "string"},
    "criterion": {"type": ["string", "null"]},
    "quote": {"type": ["string", "null"]},
})  # fmt: skip

_MARK = re.compile(r"^\s*(?:[-*+\u2022\u2023\u25aa\u2013]|\(?(?:\d{1,2}|[a-z])[.)])\s+", re.I)
_EDGES = regex.compile(r"^[\s\p{Pi}\p{Pf}\"'`*]+|[\s\p{Pi}\p{Pf}\"'`*.,;:!?]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The beginning of a document that is shown, whole chunks or the first one cut (tokens)."""

    chunks: tuple[Chunk, ...]
    body: str
    seen: int
    total: int
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """What a reply decides, held to the protocol. ``valid`` is None when no criterion is named."""

    decision: Decision
    reason: str
    criterion: str | None
    valid: bool | None
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """As many chunks from the start as ``screen_tokens`` allow, one request, one decision."""

    signature: ClassVar = "head|1|none"
    cost: ClassVar = "1"
    stages: ClassVar = ("screen.decide",)
    use: ClassVar = "When many documents are sifted by criteria before any is read."

    def expected(self, job: Job) -> int:
        """One request."""
        return 1

    def read(self, job: Job, /) -> Flow[Answer]:
        """Show the opening and the criteria, ask once, hold the decision to the protocol.

        Raises:
            NoCriteriaError: neither ``include`` nor ``exclude``.
            EmptyChunksError: no chunks.
            BadSettingError: ``screen_tokens`` or the window leaves no room for a word.
        """
        job = job.having(spec=job.spec.model_copy(update={"premise": False}))
        include, exclude = _listed(job.spec.include), _listed(job.spec.exclude)
        if not include and not exclude:
            raise NoCriteriaError("screen needs criteria: give include, exclude, or both")
        if not job.chunks:
            raise EmptyChunksError("there are no chunks to screen")
        listed = criteria(include, exclude)
        opening = self._opening(job, listed)
        reply = yield from ask(self._request(job, listed, opening))
        return self._decided(job, opening, reply, read_screening(reply, include, exclude))

    def _opening(self, job: Job, listed: str) -> Opening:
        """Whole chunks from the start up to the first that does not fit; that one cut if alone."""
        room = job.room("screen", restate="never") - count_tokens(listed, job.model)
        cap = min(room, job.spec.screen_tokens)
        total = sum(chunk.tokens for chunk in job.chunks)
        fitted = job.fit(job.chunks, room=cap, prefix=True)
        if fitted.chunks:
            return Opening(
                chunks=fitted.chunks,
                body=joined(fitted.chunks),
                seen=sum(chunk.tokens for chunk in fitted.chunks),
                total=total,
                truncated=bool(fitted.dropped),
            )
        first = job.chunks[0]
        left = cap - count_tokens(rendered(first, ""), job.model)
        kept = job.cut(first.text, left, "screen.opening", chunk_id=first.chunk_id).text
        if not kept.strip():
            cause = "screen_tokens" if cap < room else "the context window"
            raise BadSettingError(
                f"{cause} leaves no room for a word of the document: {cap} tokens"
            )
        return Opening(
            chunks=(first,),
            body=rendered(first, kept),
            seen=count_tokens(kept, job.model),
            total=total,
            truncated=True,
        )

    def _request(self, job: Job, listed: str, opening: Opening) -> Request:
        spec = job.spec
        shown = fence("excerpt", opening.body)
        if opening.truncated:
            shown += (
                f"\n\nThis is the opening: {opening.seen} of {opening.total} tokens. When it does "
                "not settle the matter, say unclear."
            )
        messages: tuple[Message, ...] = system_and(
            job.voice.system("screen"), question_line(job.question), listed, shown
        )
        return job.request(
            "screen.decide",
            messages,
            spec.max_answer_tokens,
            schema=SCHEMA,
            schema_name="screening",
            task=job.task(
                "screen",
                [(chunk.chunk_id, chunk.text) for chunk in opening.chunks],
                include=_listed(spec.include),
                exclude=_listed(spec.exclude),
            ),
        )

    def _decided(self, job: Job, opening: Opening, reply: Reply, found: Screening | None) -> Answer:
        failed = found is None and not reply.refused
        rows = _quoted(opening, found.quote) if found is not None else []
        notes: dict[str, Any] = {
            "seen_tokens": opening.seen,
            "document_tokens": opening.total,
            "truncated": opening.truncated,
            "failed_call": failed,
            "truncated_calls": int(reply.cut),
            "error": fault(reply, "the reply is not the JSON asked for") if found is None else None,
        }
        if found is not None:
            notes |= {
                "decision": found.decision,
                "reason": found.reason,
                "criterion": found.criterion,
                "criterion_valid": found.valid,
            }
        return job.answer(
            "" if found is None else found.decision,
            used=[row.chunk_id for row in rows if row.chunk_id is not None],
            sent=[] if reply.refused else [chunk.chunk_id for chunk in opening.chunks],
            evidence=rows,
            partial=found is None or reply.cut,
            notes=notes,
        )


def criteria(include: Sequence[str], exclude: Sequence[str]) -> str:
    """The protocol as a prompt shows it."""
    parts = []
    if include:
        parts.append(
            "\n".join(["Include only if ALL of these hold:", *(f"- {c}" for c in include)])
        )
    if exclude:
        parts.append("\n".join(["Exclude if ANY of these holds:", *(f"- {c}" for c in exclude)]))
    return "\n\n".join(parts)


def read_screening(
    reply: Reply, include: Sequence[str], exclude: Sequence[str]
) -> Screening | None:
    """A reply held to the protocol; None when it is not the JSON that was asked for.

    An unknown decision is unclear, and so is an exclusion that names no criterion of the protocol.
    """
    record = parse_json(reply.text) if reply.usable else None
    if record is None:
        return None
    decision = _decision(text_field(record, "decision"))
    reason, named = text_field(record, "reason"), text_field(record, "criterion")
    known = {_plain(one): one for one in (*include, *exclude)}
    criterion = known.get(_plain(named))
    if decision == "exclude" and criterion is None:
        decision = "unclear"
        what = f"{named!r} is not one of the protocol's criteria" if named else "none was named"
        reason = f"An exclusion rests on a criterion, and {what}. The model's reason: {reason}"
    return Screening(
        decision=decision,
        reason=reason,
        criterion=criterion or named or None,
        valid=criterion is not None if named else None,
        quote=text_field(record, "quote"),
    )


def _decision(said: str) -> Decision:
    match said.lower():
        case "include":
            return "include"
        case "exclude":
            return "exclude"
        case _:
            return "unclear"


def _quoted(opening: Opening, quote: str) -> list[Evidence]:
    """The quotation checked against all that was shown, and given to the chunk that holds it."""
    if not quote:
        return []
    for chunk in opening.chunks:
        row = extracted(chunk, quote, chunk.quoted)
        if row.verified:
            return [row]
    shown = "\n\n".join(chunk.quoted for chunk in opening.chunks)
    return [check_row(Evidence(chunk_id=None, text=quote, kind="extracted", source_text=shown))]


def _listed(given: Sequence[str]) -> list[str]:
    return [one.strip() for one in given if one.strip()]


def _plain(text: str) -> str:
    """A criterion without case, spacing, list mark, quotes and closing punctuation."""
    folded = _MARK.sub("", _EDGES.sub("", " ".join(text.casefold().split())))
    return _EDGES.sub("", folded)
