"""Plan from an outline which sections to read, skim or skip; then answer from what that leaves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from harness_core.answer import Answer, Evidence
from harness_core.documents.types import Chunk
from harness_core.errors import PreviewDegradedWarning, warn
from harness_core.flows.ask import ask, ask_all, work
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Reply, Request, parse_json
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.answers import extracted, verbatim
from harness_core.reading.batches import failures, why_nothing
from harness_core.reading.fields import int_field, records_field, strict_object, text_field
from harness_core.reading.job import Job
from harness_core.reading.outline import Outline, Section, outline_of, sections_of
from harness_core.reading.passages import copied, copying, labelled
from harness_core.reading.prompts import ALL_SECTIONS, joined
from harness_core.reading.verdicts import concluded

TREATMENTS = ("read", "skim", "skip")
SCHEMA = strict_object({
    "sections": {
        "type": "array",
        "items": strict_object({
            "id": {"type": "integer"},
            "treatment": {"type": "string", "enum": list(TREATMENTS)},
            "reason": {"type": "string"},
        }),
    }
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A section and how it is treated. ``demoted``: it was to be read and is too long for that."""

    section: Section
    treatment: str = "read"
    reason: str = ""
    demoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How each section is treated. ``degraded``: no plan could be had, and all are read."""

    parts: tuple[Planned, ...]
    degraded: bool

    def of(self, treatment: str) -> list[Section]:
        """The sections treated so."""
        return [part.section for part in self.parts if part.treatment == treatment]

    @property
    def read(self) -> list[Chunk]:
        """The chunks that stand in the prompt as they are."""
        return [chunk for section in self.of("read") for chunk in section.chunks]

    def fitted(self, job: Job) -> "Plan":
        """The plan with every section demoted that cannot be read whole."""
        dropped = {chunk.chunk_id for chunk in job.fit(self.read).dropped}
        return replace(
            self,
            parts=tuple(
                replace(part, treatment="skim", demoted=True)
                if part.treatment == "read" and not dropped.isdisjoint(part.section.ids)
                else part
                for part in self.parts
            ),
        )

    def notes(self) -> dict[str, Any]:
        """What every answer says about the plan."""
        counts = Counter(part.treatment for part in self.parts)
        return {
            "sections": len(self.parts),
            "plan": [
                {
                    "section": number,
                    "label": part.section.label,
                    "chunks": f"{part.section.first}-{part.section.last}",
                    "tokens": part.section.tokens,
                    "treatment": part.treatment,
                    "reason": part.reason,
                }
                for number, part in enumerate(self.parts, 1)
            ],
            "read": counts["read"],
            "skimmed": counts["skim"],
            "skipped": counts["skip"],
            "demoted_to_skim": sum(part.demoted for part in self.parts),
            "degraded": self.degraded,
            "tokens_skipped": sum(section.tokens for section in self.of("skip")),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Skimmed:
    """The sections that were skimmed, the reply and the passages (None: none) of each."""

    sections: tuple[Section, ...] = ()
    replies: tuple[Reply, ...] = ()
    rows: tuple[Evidence | None, ...] = ()
    tokens_truncated: int = 0

    @property
    def sent(self) -> list[int]:
        """The ids of the chunks that a request was sent for."""
        asked = zip(self.sections, self.replies, strict=True)
        return [one for section, reply in asked if not reply.refused for one in section.ids]

    def fitted(self, job: Job, room: int) -> tuple[list[Evidence], int]:
        """The passages that fit into ``room`` tokens, whole, and the number of chunks left out."""
        kept: list[Evidence] = []
        dropped = 0
        for section, row in zip(self.sections, self.rows, strict=True):
            size = 0 if row is None else count_tokens(f"{labelled(row)}\n\n", job.model)
            if row is not None and size <= room:
                kept.append(row)
                room -= size
            elif row is not None:
                dropped += len(section.chunks)
        return kept, dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A plan made from the outline, a request per skimmed section, one answer."""

    signature: ClassVar = "planned|1+s+1|none"
    cost: ClassVar = "1 + skimmed sections + 1"
    stages: ClassVar = ("preview.plan", "preview.skim", "preview.answer")
    use: ClassVar = "When a long document has telling headings and the answer is in few sections."

    def worst(self, job: Job) -> int:
        """The plan, every section skimmed, and the answer."""
        return len(sections_of(job.chunks)) + 2

    def read(self, job: Job, /) -> Flow[Answer]:
        """Plan, demote what is too long to be read, skim, fit, ask once."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        outline = outline_of(job.chunks, job.spec.preview_tokens, job.model)
        reply = yield from ask(self._planning(job, outline))
        plan = plan_of(outline, reply).fitted(job)
        self._note(job, plan)
        skimmed = yield from self._skim(job, plan.of("skim"))
        room = job.room("answer") - sum(job.size(chunk) for chunk in plan.read)
        rows, dropped = skimmed.fitted(job, room)
        cut = sum(one.cut for one in (reply, *skimmed.replies))
        notes = {
            **plan.notes(),
            "failed_calls": failures((reply, *skimmed.replies)),
            "truncated_calls": cut,
            "tokens_truncated": skimmed.tokens_truncated,
            "dropped_chunks": dropped,
        }
        if not plan.read and not rows:
            return self._nothing(job, skimmed, notes)
        return (yield from self._answered(job, plan, skimmed, rows, notes))

    def _planning(self, job: Job, outline: Outline) -> Request:
        spec = job.spec
        shown = job.cut(outline.text, spec.preview_tokens, "preview.outline")
        return job.asking(
            "plan",
            "preview.plan",
            shown.text,
            cap=spec.max_answer_tokens,
            tag="outline",
            after=[ALL_SECTIONS.format(count=len(outline.sections))],
            schema=SCHEMA,
            schema_name="reading_plan",
            task=job.task("plan", list(enumerate(outline.entries, 1))),
        )

    def _note(self, job: Job, plan: Plan) -> None:
        notes = plan.notes()
        job.notebook.note(
            "preview.plan",
            **{name: notes[name] for name in ("sections", "read", "skimmed", "skipped")},
            demoted=notes["demoted_to_skim"],
            degraded=plan.degraded,
            tokens_read=sum(chunk.tokens for chunk in plan.read),
            tokens_skipped=notes["tokens_skipped"],
        )

    def _skim(self, job: Job, sections: Sequence[Section]) -> Flow[Skimmed]:
        most = max(64, job.room("answer") // 2)
        bodies = [
            job.cut(joined(one.chunks), most, "preview.skim", chunk_id=one.ids[0])
            for one in sections
        ]
        replies = yield from ask_all(
            copying(job, section.chunks, body.text, "preview.skim")
            for section, body in zip(sections, bodies, strict=True)
        )
        rows = yield from work(lambda: tuple(map(_passages, sections, replies)))
        return Skimmed(
            sections=tuple(sections),
            replies=tuple(replies),
            rows=rows,
            tokens_truncated=sum(body.dropped for body in bodies),
        )

    def _nothing(self, job: Job, skimmed: Skimmed, notes: Mapping[str, Any]) -> Answer:
        reason = why_nothing(skimmed.replies, "no section holds anything on the question")
        if not skimmed.replies:
            reason = "the plan skips every section"
        elif notes["dropped_chunks"]:
            reason = "no passage fits the context window"
        return job.answer(
            SENTINEL, sent=skimmed.sent, partial=True, notes={**notes, "reason": reason}
        )

    def _answered(
        self,
        job: Job,
        plan: Plan,
        skimmed: Skimmed,
        rows: Sequence[Evidence],
        notes: Mapping[str, Any],
    ) -> Flow[Answer]:
        read = [chunk.chunk_id for chunk in plan.read]
        shown = [
            *((chunk.chunk_id, chunk.text) for chunk in plan.read),
            *((row.chunk_id, row.text) for row in rows),
        ]
        body = "\n\n".join([joined(plan.read), *map(labelled, rows)]).strip()
        task = job.task("answer", shown, cite=job.spec.cite)
        reply = yield from ask(job.answering_from(body, "preview.answer", task=task))
        lost = ("skipped", "degraded", "tokens_truncated", "dropped_chunks")
        return concluded(
            job,
            reply,
            used=[*read, *(row.chunk_id for row in rows if row.chunk_id is not None)],
            sent=[*read, *skimmed.sent],
            evidence=[*verbatim(plan.read), *rows],
            partial=any(notes[name] for name in lost)
            or not all(one.usable for one in skimmed.replies),
            notes=notes,
            cut=notes["truncated_calls"],
        )


def plan_of(outline: Outline, reply: Reply) -> Plan:
    """The plan that a reply holds; a section it does not speak of is read."""
    entries = read_plan(reply, len(outline.sections))
    if not entries:
        warn(PreviewDegradedWarning("the reply holds no plan, so every section is read"))
    parts = (
        Planned(section=section, treatment=treatment, reason=reason)
        for number, section in enumerate(outline.sections, 1)
        for treatment, reason in [entries.get(number, ("read", ""))]
    )
    return Plan(parts=tuple(parts), degraded=not entries)


def read_plan(reply: Reply, count: int) -> dict[int, tuple[str, str]]:
    """Treatment and reason by section number, 1 to ``count``; empty for a reply without a plan.

    The last entry for a section holds; one that names no section or no treatment is passed over.
    """
    record = parse_json(reply.text) if reply.usable else None
    entries: dict[int, tuple[str, str]] = {}
    for entry in records_field(record or {}, "sections"):
        number, treatment = int_field(entry, "id"), text_field(entry, "treatment").lower()
        if number is not None and 1 <= number <= count and treatment in TREATMENTS:
            entries[number] = (treatment, text_field(entry, "reason"))
    return entries


def _passages(section: Section, reply: Reply) -> Evidence | None:
    text = copied(reply)
    source = "\n\n".join(chunk.quoted for chunk in section.chunks)
    return None if text is None else extracted(section.chunks[0], text, source)
