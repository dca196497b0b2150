"""Which trace a request belongs to: the object's own, the ambient one, the governor's, or none."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.errors import BadSettingError, RequestRefused

_ambient: ContextVar[Trace | None] = ContextVar("ambient", default=None)


def trace_for(trace: Trace | None = None, governor: Governor | None = None) -> Trace | None:
    """The trace a request belongs to, in order; None when none was named anywhere.

    Raises:
        BadSettingError: something that is no trace, or a trace and a governor it does not have.
    """
    if trace is not None:
        if not isinstance(trace, Trace):
            raise BadSettingError(f"trace is a Trace, not {type(trace).__name__}")
        if governor is not None and trace.governor is not governor:
            raise BadSettingError(
                "a trace has a governor of its own; make it with Trace(governor) or leave one out"
            )
        return trace
    if (around := _ambient.get()) is not None:
        return around
    if governor is None:
        return None
    if governor.shared_trace is None:
        governor.shared_trace = Trace(governor)
    shared: Trace = governor.shared_trace
    return shared


@contextmanager
def governed_run(
    trace: Trace | None = None, *, governor: Governor | None = None
) -> Iterator[Trace]:
    """One budget and one trace for everything that runs inside, in this task or thread.

    Requests whose objects name no trace of their own are recorded here and held to its limits. A
    refusal that was raised inside and swallowed there is raised again at the end.

    Raises:
        RequestRefused: something inside swallowed a refusal.
    """
    run = trace if trace is not None else Trace(governor)
    if trace is not None and governor is not None and trace.governor is not governor:
        raise BadSettingError("give governed_run a trace or a governor, not both")
    before = _ambient.get()
    known = len(run.raised)
    _ambient.set(run)
    try:
        yield run
    finally:
        _ambient.set(before)
    swallowed: list[RequestRefused] = run.raised[known:]
    if swallowed:
        raise swallowed[0]
