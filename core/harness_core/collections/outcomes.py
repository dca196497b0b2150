"""What came of a pass, and why it may be less than a whole answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness_core.answer import Answer
from harness_core.collections.contract import Source
from harness_core.collections.deadlines import Deadline
from harness_core.collections.markers import Marked
from harness_core.collections.questions import QuestionCutWarning
from harness_core.collections.searching import WORDS_ALONE, RewriteFailedWarning
from harness_core.errors import HarnessWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer of a pass before it is projected to one of the ``sources`` modes."""

    text: str
    sources: tuple[Source, ...]
    found: bool
    reasons: tuple[str, ...]
    notes: Mapping[str, Any]
    described: str | None
    warnings: tuple[tuple[str, str], ...] = ()
    cached: bool = False


_WHY: Final[Mapping[str, tuple[str, ...]]] = {
    "budget": ("stop_reason",),
    "rerank": ("degraded_to_bm25", "scoring_failures", "unscorable"),
    "truncated": ("truncated_calls",),
    "dropped": ("dropped_chunks",),
    "unverified": ("unverified_evidence",),
}


_WARNED: Final[Mapping[str, tuple[type[HarnessWarning], ...]]] = {
    "question_cut": (QuestionCutWarning,),
    "rewrite": (RewriteFailedWarning,),
    "embedder": WORDS_ALONE,
}


def reasons_of(
    answer: Answer | None, cites: Marked, deadline: Deadline, heard: Sequence[HarnessWarning]
) -> tuple[str, ...]:
    """Why the answer is partial, in the words of the header."""
    partial = answer is not None and answer.partial
    notes = answer.notes if answer is not None and partial else {}
    said = [word for word, names in _WHY.items() if any(notes.get(name) for name in names)]
    said += ["deadline"] if deadline.passed else []
    said += [word for word, kinds in _WARNED.items() if any(isinstance(w, kinds) for w in heard)]
    said += ["cited_unknown"] if cites.unknown else []
    return tuple(said or (["other"] if partial and not notes.get("cited_unknown") else []))


def notes_of(answer: Answer | None, cites: Marked) -> dict[str, Any]:
    """What the reader noted, and what was done to its citations."""
    counted = {
        "cited_unknown": cites.unknown,
        "links_removed": cites.removed,
        "citations_repaired": cites.repaired,
        "uncited_sentences": cites.uncited,
    }
    notes = {} if answer is None else {k: v for k, v in answer.notes.items() if k not in counted}
    return notes | {name: value for name, value in counted.items() if value}
