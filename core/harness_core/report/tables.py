"""A trace as a table for a spreadsheet."""

import csv
import io
from typing import Any

from harness_core.calls.trace import Trace

COLUMNS = (
    "step", "document", "recipe", "stage", "model", "ok", "cached", "tokens_in", "tokens_out",
    "usd", "seconds", "error", "effort", "prompt", "reply",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def requests_csv(trace: Trace) -> str:
    """One line per request, with a head; USD, tokens and seconds as numbers.

    Text that a spreadsheet would run as a formula is given a leading apostrophe.
    """
    written = io.StringIO()
    table = csv.DictWriter(written, COLUMNS, lineterminator="\n")
    table.writeheader()
    for row in trace.rows():
        table.writerow({name: _cell(row[name]) for name in COLUMNS})
    return written.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
