"""Replies read as answers: the text, a corrected premise, or why there is neither."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_core.answer import Answer, Evidence, is_not_found
from harness_core.checks.premise import is_bare_premise, read_premise
from harness_core.messages import SENTINEL, Reply
from harness_core.reading.job import Job, fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A reply read as an answer: its text, or the correction of a premise it found false."""

    text: str
    ok: bool
    premise: str | None = None
    cut: bool = False
    error: str | None = None

    @property
    def found(self) -> bool:
        """Whether it says something: an answer, or a correction."""
        return self.ok and (self.premise is not None or not is_not_found(self.text))


def read_verdict(job: Job, reply: Reply) -> Verdict:
    """What a reply to an answering request says; an unusable one is the sentinel."""
    if not reply.usable:
        return Verdict(text=SENTINEL, ok=False, error=fault(reply, "the reply holds no text"))
    text = reply.text.strip()
    if not job.spec.premise:
        return Verdict(text=text, ok=True, cut=reply.cut)
    correction = read_premise(text)
    if correction is not None:
        return Verdict(text=correction, ok=True, premise=correction, cut=reply.cut)
    if is_bare_premise(text):
        error = "a premise verdict without its sentence"
        return Verdict(text=SENTINEL, ok=False, cut=reply.cut, error=error)
    return Verdict(text=text, ok=True, cut=reply.cut)


def concluded(
    job: Job,
    reply: Reply,
    *,
    used: Iterable[int],
    sent: Iterable[int] | None = None,
    evidence: Sequence[Evidence] = (),
    partial: bool = False,
    notes: Mapping[str, Any] | None = None,
    cut: int = 0,
) -> Answer:
    """The answer a final reply gives. No answer, no evidence.

    ``cut`` counts earlier replies that were cut off; ``truncated_calls`` adds this one.
    """
    verdict, said = read_verdict(job, reply), notes or {}
    truncated = cut + verdict.cut
    return job.answer(
        verdict.text,
        used=used,
        sent=sent,
        evidence=evidence if verdict.ok else (),
        partial=partial or not verdict.ok or truncated > 0,
        notes={**said, "truncated_calls": truncated, "error": verdict.error or said.get("error")},
        premise=verdict.premise,
    )
