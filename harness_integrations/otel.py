"""Spans while a run goes on: ``Trace(listener=span_listener())``."""

from harness_core.calls.governor import Refusal
from harness_core.calls.steps import Step
from harness_core.calls.trace import VERSION, Listener
from harness_core.report.spans import SCHEMA_URL, SCOPE, Span, refusal_event, step_span
from harness_integrations.shared.extras import needs

with needs("otel", "opentelemetry"):
    from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider, get_tracer

__all__ = ["span_listener"]


def span_listener(
    tracer_provider: TracerProvider | None = None, *, content: bool = False
) -> Listener:
    """What makes a span of each step and each refusal of a trace, once it has landed.

    A span is a child of the span that is current where the request was made. Its attributes follow
    the conventions that ``harness_core.report.spans`` names; ``content`` adds prompts, replies,
    error texts and the names of documents. Without ``tracer_provider`` the global one is used.
    """
    tracer = get_tracer(SCOPE, VERSION, tracer_provider, SCHEMA_URL)

    def heard(entry: Step | Refusal) -> None:
        made = step_span(entry, content=content) if isinstance(entry, Step) else _refused(entry)
        span = tracer.start_span(
            made.name,
            kind=SpanKind.CLIENT if made.client else SpanKind.INTERNAL,
            attributes=dict(made.attributes),
            start_time=made.start or None,
        )
        for event in made.events:
            span.add_event(event.name, dict(event.attributes), event.at or None)
        if made.error is not None:
            span.set_status(Status(StatusCode.ERROR, made.error or None))
        span.end(made.end or None)

    return heard


def _refused(refusal: Refusal) -> Span:
    event = refusal_event(refusal, at=0)
    return Span(
        name=f"refused {refusal.label}", start=0, end=0, attributes=event.attributes,
        events=(event,), error=refusal.message,
    )  # fmt: skip
