"""One retrieve-and-answer pass, as a flow: retrieve, read with one of our readers, cite."""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_core.answer import Answer
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.collections.contract import AnswerRequest, PageRange, Source, Span
from harness_core.collections.deadlines import Deadline
from harness_core.collections.efforts import VERSION, Plan
from harness_core.collections.failures import unavailable, was_kept
from harness_core.collections.history import (
    conversation_of,
    rewriting,
    search_line,
    visible,
)
from harness_core.collections.images import DESCRIPTION_CHARS, Picture
from harness_core.collections.languages import not_found
from harness_core.collections.markers import Marked, marked, ref, without_markers
from harness_core.collections.retrieval import Found
from harness_core.documents.types import Chunk, Chunks
from harness_core.errors import HarnessWarning
from harness_core.flows.ask import ask, work
from harness_core.flows.types import Flow
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.flow import read_flow

Retrieve = Callable[[str], list[Found]]
"""What is read for a search line: the collection's, already bound to what the request may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One question on its way: everything a pass needs, and nothing it may not see."""

    request: AnswerRequest
    plan: Plan
    client: Client
    trace: Trace
    deadline: Deadline
    retrieve: Retrieve
    secret: bytes
    heard: list[HarnessWarning]
    picture: Picture | None = None
    vision: Client | None = None

    def flow(self) -> Flow["Outcome"]:
        """Describe the image, find what to read, read it, cite.

        Raises:
            TemporarilyUnavailableError: nothing was answered.
        """
        described = yield from self._described()
        query = visible(self.request.query)
        conversation, dropped = conversation_of(self.request.history)
        line = yield from self._search_line(query, conversation)
        if described:
            line, conversation = f"{line}\n{described}", _with_image(conversation, described)
        found: list[Found] = yield from work(lambda: self.retrieve(line))
        labels = _labels(self.request, found, self.secret)
        self.trace.note(
            "answer.retrieve", pieces=len(found), plan=self.request.effort, version=VERSION,
            turns_dropped=dropped,
        )  # fmt: skip
        answer = None
        if found:
            answer = yield from self._read(query, conversation, labels)
            if was_kept(answer):
                raise unavailable(self.trace, self.deadline)
        return concluded(self, labels, answer, described)

    def _described(self) -> Flow[str | None]:
        if self.picture is None:
            return None
        model = self.client.model if self.vision is None else self.vision.model
        reply = yield from ask(self.picture.request(model))
        if not reply.usable:
            raise unavailable(self.trace, self.deadline)
        return visible(without_markers(reply.text.strip()))[:DESCRIPTION_CHARS]

    def _search_line(self, query: str, conversation: str | None) -> Flow[str]:
        if conversation is None:
            return query
        reply = yield from ask(rewriting(query, conversation))
        return search_line(query, reply.text if reply.usable else None, conversation)

    def _read(
        self, query: str, conversation: str | None, labels: Mapping[int, Found]
    ) -> Flow[Answer]:
        instructions = self.request.instructions
        spec = self.plan.spec(
            instructions=None if instructions is None else visible(instructions),
            conversation=conversation,
        )
        return (
            yield from read_flow(
                _chunks(labels), query, self.client, spec, self.trace, heard=self.heard
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer of a pass before it is projected to one of the ``sources`` modes."""

    text: str
    sources: tuple[Source, ...]
    found: bool
    reasons: tuple[str, ...]
    notes: Mapping[str, Any]
    described: str | None


def concluded(
    ran: Pass, labels: Mapping[int, Found], answer: Answer | None, described: str | None
) -> Outcome:
    """The answer with its markers and its sources, cited ones first."""
    request = ran.request
    if answer is None or not answer.found:
        text, cites = not_found(request.query, request.instructions), Marked(text="")
    else:
        cites = marked(answer.answer, {one: f.passage.text for one, f in labels.items()})
        text = cites.text
    shown = _shown(labels, answer)
    grades = {} if answer is None else _grades(ran.plan, answer)
    ranked = sorted(
        (one for one in shown if one not in cites.order),
        key=lambda one: (-grades.get(one, labels[one].score), *_place(labels[one])),
    )
    sources = [
        _source(number, labels[one], grades.get(one), cited=one in cites.order)
        for number, one in enumerate((*cites.order, *ranked), 1)
    ]
    reasons = _reasons(answer, cites, ran.deadline)
    return Outcome(
        text=text,
        sources=tuple(sources),
        found=answer is not None and answer.found,
        reasons=reasons,
        notes=_notes(answer, cites),
        described=described,
    )


def _labels(request: AnswerRequest, found: Sequence[Found], secret: bytes) -> dict[int, Found]:
    """Numbers for the excerpts that nobody who writes a file can know.

    They are the same for the same request over the same pieces, so that caches and replays hold.
    """
    asked = request.model_dump(mode="json", exclude={"sources", "principals", "query_image"})
    seen = [[f.passage.chunk, f.passage.file_id] for f in found]
    text = json.dumps([asked, seen], sort_keys=True).encode()
    drawn = int.from_bytes(hmac.new(secret, text, hashlib.sha256).digest()[:8], "big")
    base = (10**8 + drawn % (9 * 10**8)) * 1000
    return {base + place: one for place, one in enumerate(found, 1)}


def _with_image(conversation: str | None, described: str) -> str:
    said = f"image beside the question: {described}"
    return said if conversation is None else f"{conversation}\n{said}"


def _chunks(labels: Mapping[int, Found]) -> Chunks:
    return Chunks(
        chunks=tuple(
            Chunk(
                chunk_id=label,
                text=one.passage.text,
                tokens=count_tokens(one.passage.text),
                page=one.passage.piece.first_page,
                section=_heading(one),
            )
            for label, one in labels.items()
        ),
        method="collection",
    )


def _heading(one: Found) -> str:
    path, section = one.passage.path[:100], one.passage.piece.section
    return visible(f"{path} > {section}" if section else path)


def _shown(labels: Mapping[int, Found], answer: Answer | None) -> list[int]:
    """What was in the answering prompt; where there was none, what was retrieved."""
    used = [] if answer is None else [one for one in answer.chunks_used if one in labels]
    return used or list(labels)


def _grades(plan: Plan, answer: Answer) -> dict[int, float]:
    """The model's grades, where it gave some."""
    if plan.reader != "rerank" or answer.notes.get("degraded_to_bm25"):
        return {}
    return {
        row.chunk_id: row.score / 10
        for row in answer.evidence
        if row.chunk_id is not None and row.score is not None
    }


def _place(one: Found) -> tuple[str, int, str]:
    return one.passage.path, one.passage.piece.start, one.passage.file_id


def span_of(one: Found) -> Span:
    """The place of a passage."""
    passage, piece = one.passage, one.passage.piece
    pages = None
    if piece.first_page is not None and piece.last_page is not None:
        pages = PageRange(start=piece.first_page, end=piece.last_page + 1)
    return Span(
        file_id=passage.file_id, unit="chars", start=piece.start, end=piece.stop, pages=pages
    )


def _source(number: int, one: Found, grade: float | None, *, cited: bool) -> Source:
    return Source(
        ref=ref(number),
        span=span_of(one),
        path=one.passage.path,
        content_type=one.passage.content_type,
        score=one.score if grade is None else grade,
        cited=cited,
    )


_WHY: Mapping[str, tuple[str, ...]] = {
    "budget": ("stop_reason",),
    "rerank": ("degraded_to_bm25", "scoring_failures", "unscorable"),
    "truncated": ("truncated_calls",),
    "dropped": ("dropped_chunks",),
    "unverified": ("unverified_evidence",),
}


def _reasons(answer: Answer | None, cites: Marked, deadline: Deadline) -> tuple[str, ...]:
    """Why the answer is partial, in the words of the header."""
    partial = answer is not None and answer.partial
    notes = answer.notes if answer is not None and partial else {}
    said = [word for word, names in _WHY.items() if any(notes.get(name) for name in names)]
    said += ["deadline"] if deadline.passed else []
    said += ["cited_unknown"] if cites.unknown else []
    return tuple(said or (["other"] if partial and not notes.get("cited_unknown") else []))


def _notes(answer: Answer | None, cites: Marked) -> dict[str, Any]:
    counted = {
        "cited_unknown": cites.unknown,
        "links_removed": cites.removed,
        "citations_repaired": cites.repaired,
        "uncited_sentences": cites.uncited,
    }
    notes = {} if answer is None else {k: v for k, v in answer.notes.items() if k not in counted}
    return notes | {name: value for name, value in counted.items() if value}
