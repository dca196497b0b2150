"""One retrieve-and-answer pass, as a flow: retrieve, read with one of our readers, cite."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness_core.answer import Answer
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.collections.continuing import continued
from harness_core.collections.contract import AnswerRequest, Source
from harness_core.collections.deadlines import Deadline
from harness_core.collections.efforts import VERSION, Plan
from harness_core.collections.excerpts import chunks_of, labels_of, source_of
from harness_core.collections.failures import unavailable, was_kept
from harness_core.collections.history import conversation_of, visible
from harness_core.collections.images import DESCRIPTION_CHARS, Picture
from harness_core.collections.languages import not_found
from harness_core.collections.markers import Marked, marked, without_markers
from harness_core.collections.matches import with_matches
from harness_core.collections.outcomes import Outcome, notes_of, reasons_of
from harness_core.collections.questions import fitted
from harness_core.collections.retrieval import Found
from harness_core.collections.searching import Search, lines_of, searched
from harness_core.errors import HarnessWarning
from harness_core.flows.ask import ask, work
from harness_core.flows.types import Flow
from harness_core.reading.flow import read_flow

Retrieve = Callable[[Search], list[Found]]
"""What is read for a search: the collection's, already bound to what the request may see."""


def _anew(flow: Flow[Outcome]) -> Flow[Outcome]:
    return flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One question on its way: everything a pass needs, and nothing it may not see.

    ``embedder`` is what embeds the lines to search by, ``matches`` asks for the passages that cited
    sources rest on, ``remember`` may answer from what was answered before.
    """

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
    embedder: Client | None = None
    matches: bool = False
    remember: Callable[[Flow[Outcome]], Flow[Outcome]] = _anew

    def flow(self) -> Flow[Outcome]:
        """Describe the image, find what to read, read it, cite.

        Raises:
            TemporarilyUnavailableError: nothing was answered.
        """
        return self.remember(self._answered())

    def _answered(self) -> Flow[Outcome]:
        described = yield from self._described()
        conversation, dropped = conversation_of(self.request.history)
        query: str = yield from work(lambda: self._question(conversation))
        lines = yield from lines_of(query, conversation, self.plan.subqueries)
        if described:
            lines = (f"{lines[0]}\n{described}", *lines[1:])
            conversation = _with_image(conversation, described)
        search = yield from searched(lines, self.embedder, self.trace)
        found: list[Found] = yield from work(lambda: self.retrieve(search))
        labels = labels_of(self.request, found, self.secret)
        self.trace.note(
            "answer.retrieve", pieces=len(found), plan=self.request.effort, version=VERSION,
            turns_dropped=dropped, lines=len(search.lines), vectors=search.vectors is not None,
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

    def _question(self, conversation: str | None) -> str:
        return fitted(
            visible(self.request.query), self.request.instructions, conversation,
            model=self.client.model, answer_tokens=self.plan.answer_tokens,
        )  # fmt: skip

    def _read(
        self, query: str, conversation: str | None, labels: Mapping[int, Found]
    ) -> Flow[Answer]:
        instructions = self.request.instructions
        spec = self.plan.spec(
            instructions=None if instructions is None else visible(instructions),
            conversation=conversation,
        )
        read = read_flow(chunks_of(labels), query, self.client, spec, self.trace, heard=self.heard)
        return (yield from continued(read, self.plan.continuations, self.deadline))


def concluded(
    ran: Pass, labels: Mapping[int, Found], answer: Answer | None, described: str | None
) -> Outcome:
    """The answer with its markers and its sources, cited ones first."""
    request = ran.request
    if answer is None or not answer.found:
        text, cites = not_found(request.query, request.instructions), Marked(text="")
    else:
        excerpts = {one: f.passage.text for one, f in labels.items()}
        cites = marked(answer.answer, excerpts, _refuted(answer))
        text = cites.text
    ran.trace.note(
        "answer.cite", cited=len(cites.order), unknown=cites.unknown, repaired=cites.repaired,
        uncited=cites.uncited, links_removed=cites.removed,
    )  # fmt: skip
    grades = {} if answer is None else _grades(ran.plan, answer)
    order = (*cites.order, *_uncited(labels, answer, cites.order, grades))
    sources = [
        source_of(number, labels[one], grades.get(one), cited=one in cites.order)
        for number, one in enumerate(order, 1)
    ]
    if ran.matches:
        named = {source.ref: labels[one] for source, one in zip(sources, order, strict=True)}
        sources = with_matches(text, sources, named, _quoted(sources, order, answer))
    return Outcome(
        text=text,
        sources=tuple(sources),
        found=answer is not None and answer.found,
        reasons=reasons_of(answer, cites, ran.deadline, ran.heard),
        notes=notes_of(answer, cites),
        described=described,
        warnings=tuple((type(one).__name__, str(one)) for one in ran.heard),
    )


def _refuted(answer: Answer) -> frozenset[int]:
    """The excerpts that the model quoted wrongly: they support nothing that is said of them."""
    verdicts = [(row.chunk_id, row.verified) for row in answer.evidence if row.chunk_id is not None]
    sound = {one for one, verified in verdicts if verified is not False}
    return frozenset(one for one, _ in verdicts) - sound


def _quoted(
    sources: Sequence[Source], order: Sequence[int], answer: Answer | None
) -> dict[str, list[str]]:
    """What the model copied out of each source, where it did, and rightly."""
    rows = [] if answer is None else answer.evidence
    return {
        source.ref: [
            row.text for row in rows
            if row.chunk_id == one and row.kind == "extracted" and row.verified
        ]
        for source, one in zip(sources, order, strict=True)
    }  # fmt: skip


def _with_image(conversation: str | None, described: str) -> str:
    said = f"image beside the question: {described}"
    return said if conversation is None else f"{conversation}\n{said}"


def _uncited(
    labels: Mapping[int, Found],
    answer: Answer | None,
    cited: Sequence[int],
    grades: Mapping[int, float],
) -> list[int]:
    """The rest of what was in the answering prompt (where there was none, retrieved), by score."""
    used = [] if answer is None else [one for one in answer.chunks_used if one in labels]
    return sorted(
        (one for one in used or labels if one not in cited),
        key=lambda one: (-grades.get(one, labels[one].score), *labels[one].place),
    )


def _grades(plan: Plan, answer: Answer) -> dict[int, float]:
    """The model's grades, where it gave some."""
    if plan.reader != "rerank" or answer.notes.get("degraded_to_bm25"):
        return {}
    return {
        row.chunk_id: row.score / 10
        for row in answer.evidence
        if row.chunk_id is not None and row.score is not None
    }
