"""Read in several ways, one after the other, and adjudicate between their answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness_core.answer import Answer, Evidence
from harness_core.errors import (
    AuthError,
    BadEnsembleError,
    EnsembleDegenerateWarning,
    HarnessError,
    ReplayExhaustedError,
    ReplayMissError,
    RequestRefused,
    TraceError,
    warn,
)
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Reply
from harness_core.reading.job import Job
from harness_core.reading.prompts import FALSE_PREMISE, fence, question_line, system_and
from harness_core.reading.registry import ENSEMBLE_MEMBERS, checked_answer, find_reader
from harness_core.reading.spec import ReadSpec
from harness_core.reading.verdicts import read_verdict

_STOPS = (AuthError, ReplayMissError, ReplayExhaustedError, RequestRefused, TraceError)
_RULE = "\n\n---\n\n"
_FAILURES = ("failed_calls", "scoring_failures", "failed_summaries")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One way of reading, and what it came to."""

    name: str
    signature: str
    answer: Answer

    @property
    def finding(self) -> str:
        """The answer as an adjudication sees it: a correction is marked."""
        correction = self.answer.premise
        return self.answer.answer if correction is None else f"{FALSE_PREMISE}: {correction}"

    def count(self, *names: str) -> int:
        """The sum of these notes."""
        return sum(int(self.answer.notes.get(name, 0)) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """Each member reads the same chunks on its own; one request weighs what they found."""

    signature: ClassVar = "ensemble|sum+1|none"
    cost: ClassVar = "sum of members + 1"
    stages: ClassVar = ("ensemble.adjudicate",)
    use: ClassVar = "When an answer should stand on more than one way of finding it."

    def expected(self, job: Job) -> int:
        """What the members need, and one adjudication."""
        return 1 + sum(
            find_reader(name).expected(_as(name, job)) for name in member_names(job.spec)
        )

    def worst(self, job: Job) -> int:
        """The most that the members can need, and one adjudication."""
        return 1 + sum(find_reader(name).worst(_as(name, job)) for name in member_names(job.spec))

    def passes(self, job: Job) -> int:
        """Each member sends the chunks anew."""
        return sum(find_reader(name).passes(_as(name, job)) for name in member_names(job.spec))

    def inputs(self, job: Job) -> list[tuple[str, int]]:
        """What the members send in any case."""
        return [
            pair
            for name in member_names(job.spec)
            for pair in find_reader(name).inputs(_as(name, job))
        ]

    def embedding_texts(self, job: Job) -> list[str]:
        """What the members embed, each text once."""
        found: dict[str, None] = {}
        for name in member_names(job.spec):
            texts = getattr(find_reader(name).reader, "embedding_texts", None)
            found |= dict.fromkeys(texts(_as(name, job)) if texts is not None else ())
        return list(found)

    def later_embeddings(self, job: Job) -> int:
        """Embedding requests that the members make as they go."""
        counts = {
            name: getattr(find_reader(name).reader, "later_embeddings", None)
            for name in member_names(job.spec)
        }
        return sum(int(count(_as(name, job))) for name, count in counts.items() if count)

    def read(self, job: Job, /) -> Flow[Answer]:
        """Let each member read, then adjudicate between those that found something."""
        names = member_names(job.spec)
        if len(job.chunks) < 2:
            warn(EnsembleDegenerateWarning(
                "there is no more than one chunk, so every member reads the same text"
            ))  # fmt: skip
        if not job.chunks:
            return job.nothing("there are no chunks to read", chunks=0, members=names)
        members: list[Member] = []
        for name in names:
            answer = yield from self._member(_as(name, job))
            members.append(Member(name=name, signature=find_reader(name).signature, answer=answer))
        usable = [member for member in members if member.answer.found]
        if not usable:
            return job.nothing("no member found an answer", **_notes(job, members))
        if len(usable) == 1:
            return self._single(job, members, usable[0])
        reply = yield from self._adjudicated(job, usable)
        return self._weighed(job, members, usable, reply)

    def _member(self, job: Job) -> Flow[Answer]:
        try:
            answer = yield from find_reader(job.reader).reader.read(job)
            return checked_answer(job.reader, answer)
        except _STOPS:
            raise
        except HarnessError as error:
            return job.answer(SENTINEL, partial=True, notes={"error": str(error)})

    def _single(self, job: Job, members: Sequence[Member], only: Member) -> Answer:
        return job.answer(
            only.answer.answer,
            used=only.answer.chunks_used,
            evidence=only.answer.evidence,
            partial=True,
            notes={
                **_notes(job, members),
                "adjudication": "single member answered",
                "answered_by": only.name,
                "truncated_calls": only.count("truncated_calls"),
                "reason": f"only {only.name} found an answer",
            },
            premise=only.answer.premise,
        )

    def _adjudicated(self, job: Job, usable: Sequence[Member]) -> Flow[Reply]:
        body = "\n\n".join(
            fence("finding", member.finding, more=f' source="{member.name}"') for member in usable
        )
        return (
            yield from ask(
                job.request(
                    "ensemble.adjudicate",
                    system_and(job.voice.system("adjudicate"), body, question_line(job.question)),
                    job.spec.max_answer_tokens,
                    final=True,
                    task=job.task("merge", [(None, member.finding) for member in usable]),
                )
            )
        )

    def _weighed(
        self, job: Job, members: Sequence[Member], usable: Sequence[Member], reply: Reply
    ) -> Answer:
        verdict = read_verdict(job, reply)
        partial_members = [member.name for member in usable if member.answer.partial]
        cut = sum(member.count("truncated_calls") for member in usable) + verdict.cut
        joined = _RULE.join(member.answer.answer for member in usable)
        degraded = len(usable) < len(members) or bool(partial_members)
        return job.answer(
            verdict.text if verdict.ok else joined,
            used=[one for member in usable for one in member.answer.chunks_used],
            evidence=_stacked(usable),
            partial=degraded or not verdict.ok or cut > 0,
            notes={
                **_notes(job, members),
                "truncated_calls": cut,
                "answered": [member.name for member in usable],
                "adjudication": "llm" if verdict.ok else "concatenated",
                "collapsed_members": collapsed(usable),
                "partial_members": partial_members,
                "error": verdict.error,
                "reason": "not every member gave a whole answer" if degraded else None,
            },
            premise=verdict.premise,
        )


def member_names(spec: ReadSpec) -> list[str]:
    """The members a spec asks for, each once.

    Raises:
        BadEnsembleError: an ensemble among them, fewer than two, or two that read alike.
        UnknownMethodError: a name that is no reader's.
    """
    given = ENSEMBLE_MEMBERS if spec.members is None else spec.members
    names = list(dict.fromkeys(name.strip() for name in given if name and name.strip()))
    if "ensemble" in names:
        raise BadEnsembleError("an ensemble is no member of an ensemble")
    if len(names) < 2:
        raise BadEnsembleError(f"an ensemble has at least two distinct members, not {names}")
    signatures = [find_reader(name).signature for name in names]
    if len(set(signatures)) < len(names):
        pairs = ", ".join(f"{n} ({s})" for n, s in zip(names, signatures, strict=True))
        raise BadEnsembleError(f"members with one signature are one way of reading twice: {pairs}")
    return names


def collapsed(usable: Sequence[Member]) -> list[list[str]]:
    """Groups of members that gave one answer from the same chunks; said in a warning."""
    groups: dict[tuple[str, frozenset[int]], list[str]] = {}
    for member in usable:
        key = (member.answer.answer.strip(), frozenset(member.answer.chunks_used))
        groups.setdefault(key, []).append(member.name)
    alike = [names for names in groups.values() if len(names) > 1]
    for names in alike:
        warn(EnsembleDegenerateWarning(
            f"{' and '.join(names)} gave the same answer from the same chunks"
        ))  # fmt: skip
    return alike


def _as(name: str, job: Job) -> Job:
    """The job of a member: the same spec, read its way."""
    # a copy, not a new spec: what is odd about the settings was said once
    spec = job.spec.model_copy(update={"reader": name, "members": None})
    return job.having(spec=spec, reader=name, streams=False)


def _notes(job: Job, members: Sequence[Member]) -> dict[str, Any]:
    """What every ensemble says about its members."""
    notes: dict[str, Any] = {
        "members": [member.name for member in members],
        "signatures": [member.signature for member in members],
        "failed_calls": sum(member.count(*_FAILURES) for member in members),
        "member_notes": {member.name: member.answer.notes for member in members},
    }
    if job.spec.premise:
        notes["premise_members"] = [m.name for m in members if m.answer.premise is not None]
    return notes


def _stacked(members: Sequence[Member]) -> list[Evidence]:
    return [row for member in members for row in member.answer.evidence]
