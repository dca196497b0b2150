"""Segmentation as a part of a governed run."""

from typing import Any

import pytest

from harness_core import (
    Governor,
    MockClient,
    SegmentFallbackWarning,
    Trace,
    answer_document,
    segment,
)
from harness_core.config import override

TEXT = "\n\n".join(f"Paragraph {n} tells of the harbour and of ship number {n}." for n in range(6))


def _failing_headers(messages: Any, params: dict[str, Any]) -> str:
    if params["label"] == "segment.context":
        raise ConnectionError("no header today")
    return "The harbour."


def test_a_segmentation_without_a_trace_has_limits_and_returns_one() -> None:  # S28
    with override(max_calls=2), pytest.warns(SegmentFallbackWarning, match="limit"):
        chunks = segment(
            TEXT,
            {"method": "contextual", "context_source": "llm", "max_tokens": 60},
            client=MockClient(lambda messages: "A header."),
        )
    assert chunks.trace.calls == 2
    assert chunks.trace.stop_reason == "calls"
    assert len(chunks) > 2


def test_headers_that_failed_are_recovered_and_the_document_is_not_failed() -> None:  # S23
    trace = Trace(Governor(max_calls=50))
    with pytest.warns(SegmentFallbackWarning, match="requests failed"):
        answer = answer_document(
            TEXT,
            "What is told of?",
            "stuff",
            client=MockClient(_failing_headers),
            trace=trace,
            method="contextual",
            context_source="llm",
            max_tokens=60,
        )
    failed = [step for step in trace.requests if not step.ok]
    assert failed
    assert all(step.recovered for step in failed)
    assert answer.found
    assert "SegmentFallbackWarning" in [name for name, _ in answer.warnings]
