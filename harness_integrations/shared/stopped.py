"""Reads that a limit stopped: as a partial answer, and as the refusal behind it."""

from harness_core.answer import Answer
from harness_core.calls.trace import Trace
from harness_core.errors import (
    CallCapError,
    CostCapError,
    RequestRefused,
    UnpricedModelError,
    UnpricedModelWarning,
    warn,
)
from harness_core.messages import SENTINEL
from harness_core.reading.answers import new_answer

UNAFFORDABLE = (CallCapError, CostCapError, UnpricedModelError)
"""What pre-flight raises when a read cannot be finished; nothing was sent then."""

_REASONS = {CallCapError: "calls", CostCapError: "cost", UnpricedModelError: "unpriced"}


def unaffordable(error: Exception, question: str, reader: str, trace: Trace) -> Answer:
    """The answer of a read that pre-flight stopped.

    Whoever sets a limit looks for it in the answer; a price that is missing is warned of.
    """
    if isinstance(error, UnpricedModelError):
        warn(UnpricedModelWarning(f"nothing was read: {error}"))
    reason = next((name for kind, name in _REASONS.items() if isinstance(error, kind)), "calls")
    return new_answer(
        SENTINEL, reader, question, (), trace, partial=True,
        notes={"stop_reason": reason, "reason": str(error)},
    )  # fmt: skip


def refusal_of(answer: Answer, trace: Trace, model: str) -> RequestRefused | None:
    """The refusal that cut an answer short; None for one that no limit stopped."""
    reason = answer.notes.get("stop_reason")
    if reason is None:
        return None
    if not trace.refusals:
        said = str(answer.notes.get("reason") or "; ".join(answer.reasons()))
        return RequestRefused(said, str(reason), model=model)
    last = trace.refusals[-1]
    return RequestRefused(last.message, str(reason), last.label, last.model)
