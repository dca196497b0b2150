"""Read in rounds: the best chunks so far are judged, and what is missing is looked for next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness_core.answer import Answer, Evidence
from harness_core.checks.premise import read_premise
from harness_core.documents.types import Chunk
from harness_core.errors import EmbedFallbackWarning, IterativeDegradedWarning, warn
from harness_core.flows.ask import ask, work
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Reply, Request, parse_json
from harness_core.models.tokenizers import count_tokens
from harness_core.ranking.embedders import Vectors
from harness_core.ranking.lexical import lexical_vectors
from harness_core.ranking.selection import select, similarities
from harness_core.reading.answers import extracted, verbatim
from harness_core.reading.fields import (
    bool_is_true,
    int_field,
    is_placeholder,
    records_field,
    strict_object,
    text_field,
)
from harness_core.reading.job import Job, limit_words
from harness_core.reading.prompts import fence, joined, question_line, system_and
from harness_core.reading.selection import placed
from harness_core.reading.verdicts import concluded

UNVERIFIED = "no quotation verified"
_CUT_OFF = "step cut off at the output cap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step's reply: an answer, a false premise, or what to look for next."""

    can_answer: bool
    answer: str
    next_query: str
    false_premise: str | None
    quotations: tuple[tuple[int | None, str], ...]


@dataclass(slots=True, kw_only=True)
class _Search:
    """How far one read has come."""

    job: Job
    vectors: Vectors
    queries: list[str]
    fallback: bool
    seen: dict[int, float] = field(default_factory=dict)  # position: score of its round
    shown: list[Chunk] = field(default_factory=list)
    dropped: int = 0
    rounds: int = 0
    cut: int = 0
    refused: int = 0
    fresh: bool = True  # whether the latest query was not looked for yet
    missing: tuple[str, ...] | None = None  # quotations of a refused step; () for none at all

    def ranked(self) -> list[Chunk]:
        """Every chunk seen, best first."""
        order = sorted(self.seen, key=lambda number: -self.seen[number])
        return [self.job.chunks[number] for number in order]

    def look(self) -> Flow[bool]:
        """Take the best unseen chunks for a new query; False when there is none, or are none."""
        spec, count = self.job.spec, len(self.job.chunks)
        if not self.fresh or len(self.seen) == count:
            return False
        import numpy as np

        rows, query = yield from self._comparable(self.queries[-1])
        scores = similarities(rows, query)
        scores[list(self.seen)] = -np.inf
        taken = select(scores, rows, min(spec.top_k, count), spec.mmr)
        self.seen |= {number: float(scores[number]) for number in taken}
        return bool(taken)

    def _comparable(self, query: str) -> Flow[tuple[Any, Any]]:
        """Vectors of the chunks and of the query, made by one embedder."""
        own = self.vectors
        found = yield from self.job.embed([query])
        if found.source == own.source and found.matrix.shape[1] == own.matrix.shape[1]:
            self.fallback = self.fallback or found.fallback
            return own.matrix, found.matrix[0]
        if not (own.fallback or found.fallback):  # a fallback was said when it happened
            warn(EmbedFallbackWarning(
                "a query's vector cannot be compared with the chunks'; words decide this round"
            ))  # fmt: skip
        self.fallback = True
        texts = [query, *(chunk.text for chunk in self.job.chunks)]
        rows = yield from work(lambda: lexical_vectors(texts))
        return rows[1:], rows[0]

    def notes(self, stop: str) -> dict[str, Any]:
        """What every answer says about the rounds."""
        notes = {
            "rounds": self.rounds,
            "chunks_seen": len(self.seen),
            "chunks_dropped": self.dropped,
            "queries": list(self.queries),
            "stop_reason": stop,
            "embedding_fallback": self.fallback,
        }
        return {**notes, "refused_steps": self.refused} if self.job.spec.verify else notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterative:
    """Rounds of retrieving and judging; each says what the next one should look for."""

    signature: ClassVar = "topk|rounds*2|forward"
    cost: ClassVar = "up to 2 x max_rounds"
    stages: ClassVar = ("iterative.step", "iterative.final")
    use: ClassVar = "When the answer has to be put together from places found one after another."

    def expected(self, job: Job) -> int:
        """A step per round, and the final answer."""
        return job.spec.max_rounds + 1

    def passes(self, job: Job) -> int:
        """Every round shows again what was seen before."""
        return self.expected(job)

    def embedding_texts(self, job: Job) -> list[str]:
        """What it embeds at the start: every chunk."""
        return [chunk.text for chunk in job.chunks]

    def later_embeddings(self, job: Job) -> int:
        """Embedding requests after that: each round's query alone, the question first."""
        return job.spec.max_rounds

    def read(self, job: Job, /) -> Flow[Answer]:
        """Look, judge, look again for what is missing; answer when a step can."""
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0)
        vectors = yield from job.embed(self.embedding_texts(job))
        search = _Search(
            job=job, vectors=vectors, queries=[job.question], fallback=vectors.fallback
        )
        found = yield from self._rounds(job, search)
        if not isinstance(found, str):
            return found
        stop = UNVERIFIED if search.refused else found
        job.notebook.note("iterative.stop", rounds=search.rounds, reason=stop)
        if job.spec.verify or not search.seen:
            return self._unanswered(job, search, stop)
        return (yield from self._final(job, search, stop))

    def _rounds(self, job: Job, search: _Search) -> Flow[Answer | str]:
        """The answer a step gave, or why the rounds ended without one."""
        while search.rounds < job.spec.max_rounds:
            search.rounds += 1
            found = yield from search.look()
            if not found and search.missing is None:
                return "no unseen chunks"
            request = self._step(job, search)
            if request is None:
                return "no gathered chunk fits one prompt"
            reply = yield from ask(request)
            search.cut += reply.cut
            step = read_step(reply)
            if step is None:
                return self._no_step(search, reply)
            outcome = self._judged(job, search, step)
            if outcome is not None:
                return outcome
        return "max rounds"

    def _judged(self, job: Job, search: _Search, step: Step) -> Answer | str | None:
        """What a step settles: an answer, or why the rounds end; None for another round."""
        premise = _premise(step) if job.spec.premise else None
        if premise is not None:
            shown = verbatim(search.shown)
            return self._accepted(job, search, premise, shown, premise=premise)
        if step.can_answer and not step.answer:
            return "step gave no answer"
        if step.can_answer and not job.spec.verify:
            shown = verbatim(search.shown)
            return self._accepted(job, search, step.answer, shown)
        search.missing = None
        if step.can_answer:
            rows, search.missing = checked(step.quotations, search.shown)
            if rows and not search.missing:
                return self._accepted(job, search, step.answer, rows)
            search.refused += 1
        search.fresh = bool(step.next_query) and step.next_query not in search.queries
        if search.fresh:
            search.queries.append(step.next_query)
        elif search.missing is None:
            return "query loop"
        return None

    def _accepted(
        self,
        job: Job,
        search: _Search,
        text: str,
        evidence: Sequence[Evidence],
        *,
        premise: str | None = None,
    ) -> Answer:
        stop = "model satisfied" if premise is None else "premise false"
        job.notebook.note("iterative.stop", rounds=search.rounds, reason=stop)
        return job.answer(
            text,
            used=[row.chunk_id for row in evidence if row.chunk_id is not None],
            sent=[chunk.chunk_id for chunk in search.shown],
            evidence=evidence,
            partial=search.fallback or search.dropped > 0 or search.cut > 0,
            notes={**search.notes(stop), "truncated_calls": search.cut},
            premise=premise,
        )

    def _no_step(self, search: _Search, reply: Reply) -> str:
        if reply.refused:
            return limit_words(reply)
        stop = _CUT_OFF if reply.cut else "step failed"
        if search.rounds == 1:
            why = _CUT_OFF if reply.cut else reply.error or "the reply is not the JSON asked for"
            warn(IterativeDegradedWarning(
                f"the first step gave nothing usable ({why}); one retrieval is all that is left"
            ))  # fmt: skip
        return stop

    def _unanswered(self, job: Job, search: _Search, stop: str) -> Answer:
        return job.answer(
            SENTINEL,
            sent=[chunk.chunk_id for chunk in search.shown],
            partial=True,
            notes={
                **search.notes(stop),
                "truncated_calls": search.cut,
                "reason": f"no answer was accepted: {stop}",
            },
        )

    def _final(self, job: Job, search: _Search, stop: str) -> Flow[Answer]:
        order = search.ranked()
        fitted = job.fit(order)
        search.shown, search.dropped = placed(job, fitted, order), len(fitted.dropped)
        notes = search.notes(stop)
        if not search.shown:
            return job.nothing("no gathered chunk fits the context window", **notes)
        reply = yield from ask(job.answering(search.shown, "iterative.final"))
        return concluded(
            job,
            reply,
            used=[chunk.chunk_id for chunk in search.shown],
            evidence=verbatim(search.shown),
            partial=True,
            notes={**notes, "reason": f"no step could answer: {stop}"},
            cut=search.cut,
        )

    def _step(self, job: Job, search: _Search) -> Request | None:
        """The request of a round over all chunks seen that fit; None when none does."""
        told = _told(search.missing)
        order = search.ranked()
        fitted = job.fit(order, "step", room=job.room("step") - count_tokens(told, job.model))
        search.shown, search.dropped = placed(job, fitted, order), len(fitted.dropped)
        if not search.shown:
            return None
        body = joined(search.shown)
        fenced = fence("excerpts", body)
        if job.restates(body):
            fenced += f"\n\nThe question again: {job.question}"
        users = [question_line(job.question), *filter(None, [told]), fenced]
        return job.request(
            "iterative.step",
            system_and(job.voice.system("step"), *users),
            job.spec.max_answer_tokens,
            schema=schema(premise=job.spec.premise, verify=job.spec.verify),
            schema_name="iterative_step",
            task=job.task("step", [(c.chunk_id, c.text) for c in search.shown], cite=job.spec.cite),
        )


def schema(*, premise: bool = False, verify: bool = False) -> dict[str, Any]:
    """What a step is asked for; what is not checked is not in it."""
    properties: dict[str, Any] = {
        "can_answer": {"type": "boolean"},
        "answer": {"type": "string"},
        "next_query": {"type": "string"},
    }
    if premise:
        properties["false_premise"] = {"type": ["string", "null"]}
    if verify:
        quotation = strict_object({"chunk": {"type": "integer"}, "text": {"type": "string"}})
        properties["quotations"] = {"type": "array", "items": quotation}
    return strict_object(properties)


def read_step(reply: Reply) -> Step | None:
    """A reply to a step, or None when it is not the JSON that was asked for."""
    record = parse_json(reply.text) if reply.usable else None
    if record is None:
        return None
    return Step(
        can_answer=bool_is_true(record, "can_answer"),
        answer=text_field(record, "answer"),
        next_query=text_field(record, "next_query"),
        false_premise=text_field(record, "false_premise") or None,
        quotations=tuple(
            (int_field(one, "chunk"), text_field(one, "text"))
            for one in records_field(record, "quotations")
        ),
    )


def checked(
    quotations: Sequence[tuple[int | None, str]], shown: Sequence[Chunk]
) -> tuple[list[Evidence], tuple[str, ...]]:
    """Evidence of the quotations found in the chunk each names, and the texts of the others."""
    chunks = {chunk.chunk_id: chunk for chunk in shown}
    found: list[Evidence] = []
    missing: list[str] = []
    for number, text in quotations:
        chunk = chunks.get(number) if number is not None else None
        row = None if chunk is None else extracted(chunk, text, chunk.quoted)
        if row is not None and row.verified:
            found.append(row)
        else:
            missing.append(text)
    return found, tuple(missing)


def _premise(step: Step) -> str | None:
    """What the step says the document states instead of what the question takes for granted."""
    said = step.false_premise
    if said is not None and not is_placeholder(said):
        return read_premise(said) or said
    return read_premise(step.answer) if step.can_answer else None


def _told(missing: tuple[str, ...] | None) -> str:
    """What a step that was refused is told in the next round; quotations it gave are fenced."""
    if missing is None:
        return ""
    if not missing:
        return "Your last answer gave no quotation. Quote what it rests on, or clear can_answer."
    listed = "\n".join(missing)
    return (
        "These quotations of your last answer are not, word for word, in the chunks they name. "
        f"Quote what is there, or clear can_answer.\n{fence('not_found', listed)}"
    )
