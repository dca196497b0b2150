"""Several recipes over one document: what each answers, and what that costs."""

from harness_core.comparison.result import Comparison
from harness_core.comparison.running import acompare, compare

__all__ = ["Comparison", "acompare", "compare"]
