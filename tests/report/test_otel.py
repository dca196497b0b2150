"""Spans while a run goes on."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from harness_core import Governor, MockClient, ReadSpec, Reply, Trace, call, new_chunks, read
from harness_core.report import otlp_json
from harness_integrations.otel import span_listener

SECRET = "What did Mr. Smith say?"


class Collector:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()


@pytest.fixture
def collector() -> Collector:
    return Collector()


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_request_is_a_span_of_the_same_attributes_as_after_the_fact(collector: Collector) -> None:
    trace = Trace(listener=span_listener(collector.provider))
    call(MockClient(), SECRET, trace=trace, model="priced", label="map.answer", max_output=90)
    (span,) = collector.spans
    assert (span.name, span.kind) == ("chat priced", SpanKind.CLIENT)
    assert told(span)["harness.cost_usd"] == trace.spent_usd > 0
    scope = otlp_json(trace)["resourceSpans"][0]["scopeSpans"][0]
    after = {one["key"] for one in scope["spans"][1]["attributes"]}
    assert set(told(span)) == after
    assert span.start_time == int(scope["spans"][1]["startTimeUnixNano"])
    assert span.end_time == int(scope["spans"][1]["endTimeUnixNano"])
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.schema_url == scope["schemaUrl"]


def test_a_failure_and_a_refusal_are_error_spans(collector: Collector) -> None:
    trace = Trace(Governor(max_calls=1), listener=span_listener(collector.provider))
    failing = MockClient(lambda _m: Reply(ok=False, error=f"TimeoutError: {SECRET}"))
    for _ in range(2):
        call(failing, SECRET, trace=trace, model="priced")
    failed, refused = collector.spans
    assert failed.status.status_code is refused.status.status_code is StatusCode.ERROR
    assert told(failed)["error.type"] == "TimeoutError"
    assert refused.name == "refused call"
    assert told(refused)["harness.refusal.reason"] == "calls"
    assert [event.name for event in refused.events] == ["harness.governor.refused"]


@pytest.mark.parametrize("content", [False, True])
def test_content_is_exported_only_when_asked_for(collector: Collector, content: bool) -> None:
    trace = Trace(listener=span_listener(collector.provider, content=content))
    trace.note("ingest", source=SECRET)
    call(MockClient(lambda _m: Reply(ok=False, error=SECRET)), SECRET, trace=trace)
    told_all = json.dumps([json.loads(span.to_json()) for span in collector.spans])
    assert (SECRET in told_all) is content


def test_spans_stand_under_the_callers_span_from_every_worker(collector: Collector) -> None:
    tracer = collector.provider.get_tracer("app")
    chunks = new_chunks([f"Part {n}." for n in range(6)])
    trace = Trace(listener=span_listener(collector.provider))
    with tracer.start_as_current_span("handle request") as outer:
        spec = ReadSpec("map_reduce", max_concurrency=3)
        read(chunks, "What?", MockClient(lambda _m: "It is so."), spec, trace=trace)
        mine = outer.get_span_context().span_id
    spans = [span for span in collector.spans if span.name != "handle request"]
    assert len(spans) == len(trace.steps)
    assert {span.parent.span_id for span in spans if span.parent} == {mine}


def test_without_opentelemetry_the_extra_is_named() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None\nimport harness_integrations.otel"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "harness-integrations[otel]" in done.stderr
