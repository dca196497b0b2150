"""Why nothing was answered, as the wire says it: by what the trace and the deadline know."""

from collections.abc import Mapping
from typing import Final

from harness_core.answer import Answer
from harness_core.calls.governor import Reason, Refusal
from harness_core.calls.trace import Trace
from harness_core.collections.deadlines import Deadline
from harness_core.collections.faults import TemporarilyUnavailableError
from harness_core.errors import (
    AuthError,
    BudgetError,
    CallCapError,
    CostCapError,
    HarnessError,
    RequestRefused,
    UnknownModelError,
    UnpricedModelError,
)

RETRY_SECONDS: Final = 5
_BEFORE_ANY: Final[Mapping[type[HarnessError], Reason]] = {
    CallCapError: "calls", CostCapError: "cost", UnpricedModelError: "unpriced",
}  # fmt: skip
_OUR_LIMITS: Final = ("calls", "cost", "tokens", "output")


def was_kept(answer: Answer) -> bool:
    """Whether there is no answer because a request failed or was not sent."""
    return not answer.found and bool(answer.notes.get("error") or answer.notes.get("stop_reason"))


def unavailable(trace: Trace, deadline: Deadline) -> TemporarilyUnavailableError:
    """Why the last request that failed did so."""
    if deadline.passed:
        return TemporarilyUnavailableError("deadline", retryable=True, retry_after=RETRY_SECONDS)
    if trace.refusals and (reason := trace.refusals[-1].reason):
        limit = "budget" if reason in _OUR_LIMITS else "model_unavailable"
        return TemporarilyUnavailableError(limit, retryable=reason == "ledger_busy")
    status = next((step.status for step in reversed(trace.requests) if not step.ok), None)
    if status == 429:
        return TemporarilyUnavailableError("rate_limit", retryable=True, retry_after=RETRY_SECONDS)
    passing = not status or status >= 500 or status == 408
    return TemporarilyUnavailableError("model_unavailable", retryable=passing)


def as_fault(error: HarnessError, trace: Trace) -> TemporarilyUnavailableError | None:
    """An error that ended the run, as the wire says it; None for one that is a bug or a miss.

    A limit that kept the whole read from being begun is noted as a refusal.
    """
    if (reason := _BEFORE_ANY.get(type(error))) is not None:
        trace.refuse(Refusal(reason=reason, message=str(error), label="answer", model=""))
    if isinstance(error, (CallCapError, CostCapError, RequestRefused)):
        return TemporarilyUnavailableError("budget", retryable=False)
    if isinstance(error, (AuthError, UnpricedModelError, BudgetError, UnknownModelError)):
        return TemporarilyUnavailableError("model_unavailable", retryable=False)
    return None
