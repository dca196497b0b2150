"""Fill a typed form from every chunk, and reconcile what the chunks say."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from harness_core.answer import Answer, Evidence
from harness_core.documents.types import Chunk
from harness_core.errors import ExtractUnresolvedWarning, warn
from harness_core.flows.ask import ask_all, work
from harness_core.flows.types import Flow
from harness_core.messages import Reply, Request, Task, parse_json
from harness_core.reading.answers import extracted
from harness_core.reading.extraction_fields import (
    Field,
    Value,
    as_fields,
    form_schema,
    read_given,
    same_value_key,
)
from harness_core.reading.fields import int_field, strict_object
from harness_core.reading.job import Job
from harness_core.reading.prompts import fence, question_line, rendered, system_and

CHOICE_TOKENS = 100
_SHOWN_QUOTE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A value, the chunk that gave it, and its quotation as evidence; None without a quotation."""

    value: Value
    chunk: Chunk
    row: Evidence | None
    placeholder: bool = False

    @property
    def support(self) -> tuple[bool, float]:
        """How well the quotation supports the value, for comparing."""
        return (False, -1.0) if self.row is None else (self.supported, self.row.match or 0.0)

    @property
    def supported(self) -> bool:
        """Whether the quotation is in the chunk and states the value."""
        return self.row is not None and self.row.verified is True


Found: TypeAlias = Hit | Literal["unreadable"] | None
"""What a chunk gives for a field: a value, one that cannot be read in its type, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What came of one field: its distinct values, earliest first, each with its best quotation."""

    field: Field
    hits: tuple[Hit, ...] = ()
    unreadable: bool = False
    chosen: int = 0
    unresolved: str | None = None
    dropped: bool = False

    @property
    def hit(self) -> Hit | None:
        """The value that stands."""
        return self.hits[self.chosen] if self.hits and not self.dropped else None

    @property
    def supported(self) -> bool:
        """Whether a quotation vouches for the value that stands."""
        return self.hit is not None and self.hit.supported and self.unresolved != "rejected"

    def evidence(self) -> list[Evidence]:
        """The quotation of the value that stands; a rejected one vouches for nothing."""
        row = None if self.hit is None else self.hit.row
        if row is not None and self.unresolved == "rejected":
            row = row.model_copy(update={"verified": False})
        return [] if row is None else [row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """A request per chunk with the whole form; the earliest value of a field stands."""

    signature: ClassVar = "all|N+conflicts|none"
    cost: ClassVar = "N (+1 per conflict with resolve='model')"
    stages: ClassVar = ("extract.chunk", "extract.resolve")
    use: ClassVar = "When named facts are wanted as typed values, each with its quotation."

    def expected(self, job: Job) -> int:
        """A request per chunk."""
        return len(job.chunks)

    def inputs(self, job: Job) -> list[tuple[str, int]]:
        """Every chunk, to the model that extracts."""
        return [(job.spec.skim_model or job.model, job.tokens)]

    def worst(self, job: Job) -> int:
        """A request per chunk, and one per field where a model settles conflicts."""
        fields = len(as_fields(job.spec.fields)) if job.spec.resolve == "model" else 0
        return len(job.chunks) + fields

    def read(self, job: Job, /) -> Flow[Answer]:
        """Ask each chunk for the form, reconcile field by field, settle conflicts if asked to.

        Raises:
            NoFieldsError: no ``fields``.
            BadSettingError: a field that cannot be used.
        """
        job = job.having(spec=job.spec.model_copy(update={"premise": False}))
        fields = as_fields(job.spec.fields)
        if not job.chunks:
            nothing: dict[str, Any] = {field.name: None for field in fields}
            return job.nothing("there are no chunks to read", chunks=0, record=nothing)
        job.foresee(len(job.chunks))
        replies = yield from ask_all(self._asking(job, one, fields) for one in job.chunks)
        records = [read_form(reply, fields) for reply in replies]
        form = yield from work(lambda: reconciled_all(fields, job.chunks, records))
        if job.spec.resolve == "model":
            form = yield from self._resolved(job, form)
        return self._answer(job, replies, records, form)

    def _asking(self, job: Job, chunk: Chunk, fields: Sequence[Field]) -> Request:
        spec = job.spec
        listed = "\n".join(["Fields:", *(field.line for field in fields)])
        return job.request(
            "extract.chunk",
            system_and(
                job.voice.system("fields"),
                question_line(job.question),
                listed,
                fence("excerpt", rendered(chunk)),
            ),
            spec.max_chunk_tokens,
            model=spec.skim_model,
            schema=form_schema(fields),
            schema_name="extraction",
            task=job.task("fields", [(chunk.chunk_id, chunk.text)]),
        )

    def _resolved(self, job: Job, form: Sequence[Filled]) -> Flow[list[Filled]]:
        """The form with a model's choice in every field that has several values."""
        disputed = [one for one in form if len(one.hits) > 1]
        replies = yield from ask_all(self._choosing(job, one) for one in disputed)
        settled = {
            one.field.name: chosen(one, reply) for one, reply in zip(disputed, replies, strict=True)
        }
        for reply in replies:
            if not reply.ok and reply.step is not None:
                job.notebook.amend(reply.step, recovered=True)  # the first value stands instead
        left = [f"{name} ({one.unresolved})" for name, one in settled.items() if one.unresolved]
        if left:
            warn(ExtractUnresolvedWarning(
                f"conflicts left unresolved: {', '.join(left)}; the first value is kept"
            ))  # fmt: skip
        return [settled.get(one.field.name, one) for one in form]

    def _choosing(self, job: Job, disputed: Filled) -> Request:
        options = [_option(number, hit) for number, hit in enumerate(disputed.hits, 1)]
        choice = {"type": "integer", "minimum": 0, "maximum": len(options)}
        return job.request(
            "extract.resolve",
            system_and(
                job.voice.system("conflict"),
                f"Field:\n{disputed.field.line}",
                fence("excerpt", "\n\n".join(options)),
            ),
            CHOICE_TOKENS,
            schema=strict_object({"choice": choice}),
            schema_name="conflict",
            task=Task(
                kind="merge",
                question=disputed.field.about,
                excerpts=tuple((hit.chunk.chunk_id, _quote(hit)) for hit in disputed.hits),
            ),
        )

    def _answer(
        self,
        job: Job,
        replies: Sequence[Reply],
        records: Sequence[Mapping[str, Any] | None],
        form: Sequence[Filled],
    ) -> Answer:
        unsupported = [one.field.name for one in form if one.hit is not None and not one.supported]
        if job.spec.require_quote:
            form = [replace(one, dropped=one.field.name in unsupported) for one in form]
        rows = [row for one in form for row in one.evidence()]
        cut = sum(reply.cut for reply in replies)
        unread = any(record is None for record in records)
        unresolved = {one.field.name: one.unresolved for one in form if one.unresolved}
        record = {one.field.name: None if one.hit is None else one.hit.value for one in form}
        unreadable = [one.field.name for one in form if one.unreadable and not one.hits]
        return job.answer(
            json.dumps(record, ensure_ascii=False, separators=(",", ":")),
            used=[row.chunk_id for row in rows if row.chunk_id is not None],
            sent=[c.chunk_id for c, r in zip(job.chunks, replies, strict=True) if not r.refused],
            evidence=rows,
            partial=unread or cut > 0 or bool(unsupported or unreadable or unresolved),
            notes={
                "chunks": len(job.chunks),
                "fields": len(form),
                "filled": sum(one.hit is not None for one in form),
                **_unfilled(form, unreadable, unread=unread),
                "unsupported": [] if job.spec.require_quote else unsupported,
                "dropped_unverified": [one.field.name for one in form if one.dropped],
                "unreadable": unreadable,
                "unresolved": unresolved,
                "conflicts": {
                    one.field.name: [hit.value for hit in one.hits]
                    for one in form
                    if len(one.hits) > 1
                },
                "failed_calls": _failed(replies, records),
                "truncated_calls": cut,
                "record": record,
                "reason": _reason(unsupported, unreadable, unresolved),
            },
        )


def read_form(reply: Reply, fields: Iterable[Field]) -> dict[str, Any] | None:
    """A reply to a request for the form; an empty object is one, other JSON is not."""
    return parse_json(reply.text, schema=form_schema(fields)) if reply.usable else None


def hits_of(fields: Iterable[Field], chunk: Chunk, record: Mapping[str, Any] | None) -> list[Found]:
    """What one chunk gives for each field, its quotations checked."""
    return [None if record is None else _hit(field, chunk, record) for field in fields]


def reconciled_all(
    fields: Sequence[Field], chunks: Iterable[Chunk], records: Iterable[Mapping[str, Any] | None]
) -> list[Filled]:
    """Every field, reconciled; chunk by chunk, so that a chunk is prepared for checking once."""
    rows = [hits_of(fields, *pair) for pair in zip(chunks, records, strict=True)]
    return [reconciled(field, found) for field, *found in zip(fields, *rows, strict=True)]


def reconciled(field: Field, found: Sequence[Found]) -> Filled:
    """The distinct values that chunks give for a field, each with the quotation that fits it best.

    A placeholder is a value only beside no real one.
    """
    hits = [hit for hit in found if isinstance(hit, Hit)]
    best: dict[object, Hit] = {}
    for hit in [hit for hit in hits if not hit.placeholder] or hits:
        key = same_value_key(hit.value)
        first = best.setdefault(key, hit)
        if hit.support > first.support:
            best[key] = replace(hit, value=first.value)
    return Filled(field=field, hits=tuple(best.values()), unreadable="unreadable" in found)


def chosen(disputed: Filled, reply: Reply) -> Filled:
    """A disputed field after a model was asked; the first value is kept where it did not choose."""
    if reply.refused:
        return replace(disputed, unresolved="limit")
    record = parse_json(reply.text) if reply.usable else None
    choice = None if record is None else int_field(record, "choice")
    if choice is None or not 0 <= choice <= len(disputed.hits):
        return replace(disputed, unresolved="failed")
    if choice == 0:
        return replace(disputed, unresolved="rejected")
    return replace(disputed, chosen=choice - 1)


def _hit(field: Field, chunk: Chunk, record: Mapping[str, Any]) -> Found:
    from harness_core.checks.quotations import is_verbatim

    given = read_given(field, record)
    if given is None or given.value is None:
        return None if given is None else "unreadable"
    row = _evidence(field, chunk, given.value, given.quote)
    hit = Hit(value=given.value, chunk=chunk, row=row, placeholder=given.placeholder)
    if not given.placeholder:
        return hit
    # "None" is a value only where the document says just that
    said = hit.supported and is_verbatim(str(given.value), given.quote)
    return hit if said else None


def _evidence(field: Field, chunk: Chunk, value: Value, quote: str) -> Evidence | None:
    """The quotation as evidence: verified when it is in the chunk and states the value."""
    from harness_core.checks.values import carries_value

    if not quote:
        return None
    carried = carries_value(value, field.type, quote, chunk.quoted)
    denied = {} if carried else {"verified": False}
    return extracted(chunk, quote, chunk.quoted, field=field.name, **denied)


def _quote(hit: Hit) -> str:
    return "" if hit.row is None else hit.row.text[:_SHOWN_QUOTE]


def _option(number: int, hit: Hit) -> str:
    quote = _quote(hit)
    beside = f': "{quote}"' if quote else ", without a quotation"
    value = json.dumps(hit.value, ensure_ascii=False)
    return f"{number}. {value} (chunk {hit.chunk.chunk_id}){beside}"


def _unfilled(
    form: Sequence[Filled], unreadable: Sequence[str], *, unread: bool
) -> dict[str, list[str]]:
    """Which fields the document does not report, and of which it is not known."""
    empty = [one.field.name for one in form if not one.hits]
    if unread:
        return {"not_reported": [], "unknown": empty}
    return {
        "not_reported": [name for name in empty if name not in unreadable],
        "unknown": list(unreadable),
    }


def _failed(replies: Sequence[Reply], records: Sequence[Mapping[str, Any] | None]) -> int:
    pairs = zip(replies, records, strict=True)
    return sum(record is None and not reply.refused for reply, record in pairs)


def _reason(
    unsupported: Sequence[str], unreadable: Sequence[str], unresolved: Mapping[str, str]
) -> str | None:
    said = {
        "values that no quotation supports": unsupported,
        "values that could not be read": unreadable,
        "conflicts left unresolved": list(unresolved),
    }
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in said.items() if names) or None
