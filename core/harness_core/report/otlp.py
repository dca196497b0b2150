"""A finished trace as OTLP JSON, for a collector: Langfuse, Phoenix, LangSmith, Jaeger, ...

The spans follow the conventions that ``harness_core.report.spans`` names. Their ids come from the
run's id and the numbers of its steps: exporting twice gives the same spans.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness_core.calls.accounts import totals
from harness_core.calls.trace import VERSION, Trace
from harness_core.report.spans import (
    SCHEMA_URL,
    SCOPE,
    Event,
    Span,
    Value,
    nanoseconds,
    refusal_event,
    step_span,
)

_INTERNAL, _CLIENT, _ERROR = 1, 3, 2


def otlp_json(trace: Trace, *, content: bool = False) -> dict[str, Any]:
    """The body of one export request: a span for the run, one under it for each step.

    Refusals are events of the run's span. ``content`` adds prompts, replies, error texts and the
    names of documents. Times are those of the steps, in milliseconds of precision.
    """
    run = hashlib.sha256(trace.run_id.encode()).hexdigest()
    root = _root(trace)
    spans = [_span(root, run, "")]
    for step in trace.steps:
        span = step_span(step, content=content)
        if not step.started_utc:  # a test's recording keeps no times
            span = replace(span, start=root.start, end=root.start)
        spans.append(_span(span, run, step.step, step.step.rpartition(".")[0]))
    scope = {"scope": {"name": SCOPE, "version": VERSION}, "schemaUrl": SCHEMA_URL, "spans": spans}
    resource = {"attributes": _attributes({"service.name": str(trace.actor.get("system") or
                                                              "harness")})}  # fmt: skip
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _root(trace: Trace) -> Span:
    start, end = nanoseconds(trace.started), max(_ends(trace))
    first = min((nanoseconds(s.started_utc) for s in trace.steps if s.started_utc), default=start)
    known = totals(trace.steps)
    attributes: dict[str, Value] = {
        "harness.run_id": trace.run_id,
        "harness.requests": known.calls + known.embed_calls,
        "harness.refusals": len(trace.refusals),
        "harness.incomplete": trace.incomplete,
    }
    if known.usd is not None:
        attributes["harness.cost_usd"] = known.usd
    if trace.stop_reason:
        attributes["harness.stop_reason"] = trace.stop_reason
    events = tuple(refusal_event(refusal, end) for refusal in trace.refusals)
    start = min(start, first)
    return Span(name="harness run", start=start, end=end, attributes=attributes, events=events)


def _ends(trace: Trace) -> Iterator[int]:
    yield nanoseconds(trace.started)
    for step in trace.steps:
        yield nanoseconds(step.ended_utc or step.started_utc)  # 0 without: the run's start is later


def _span(span: Span, run: str, number: str, parent: str | None = None) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "traceId": run[:32],
        "spanId": _span_id(run, number),
        "name": span.name,
        "kind": _CLIENT if span.client else _INTERNAL,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
        "events": [_event(event) for event in span.events],
        "status": {},
    }
    if parent is not None:
        plain["parentSpanId"] = _span_id(run, parent)
    if span.error is not None:
        plain["status"] = {"code": _ERROR, **({"message": span.error} if span.error else {})}
    return plain


def _span_id(run: str, number: str) -> str:
    return hashlib.sha256(f"{run} {number}".encode()).hexdigest()[:16]


def _event(event: Event) -> dict[str, Any]:
    return {"name": event.name, "timeUnixNano": str(event.at),
            "attributes": _attributes(event.attributes)}  # fmt: skip


def _attributes(attributes: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Value | Iterable[str]) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
    return {"arrayValue": {"values": [{"stringValue": str(one)} for one in value]}}
