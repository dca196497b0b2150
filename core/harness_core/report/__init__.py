"""What can be read off a finished trace: differences, faults, tables, spans, a page."""

from harness_core.report.checking import check_trace
from harness_core.report.diffing import TraceDiff, diff_traces
from harness_core.report.otlp import otlp_json
from harness_core.report.page import trace_page
from harness_core.report.redacting import redact_trace
from harness_core.report.tables import requests_csv

__all__ = [
    "TraceDiff",
    "check_trace",
    "diff_traces",
    "otlp_json",
    "redact_trace",
    "requests_csv",
    "trace_page",
]
