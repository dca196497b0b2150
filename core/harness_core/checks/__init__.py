"""Whether what a model wrote is what it read: quotations, values, citations, premises."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_core.checks.citations import Citations, cited
    from harness_core.checks.premise import is_bare_premise, is_none_reply, read_premise
    from harness_core.checks.quotations import QuoteCheck, is_verbatim, verify_quotation
    from harness_core.checks.sources import Source
    from harness_core.checks.values import carries_value

__all__ = [
    "Citations",
    "QuoteCheck",
    "Source",
    "carries_value",
    "cited",
    "is_bare_premise",
    "is_none_reply",
    "is_verbatim",
    "read_premise",
    "verify_quotation",
]

_HOMES = {
    "Citations": "citations",
    "QuoteCheck": "quotations",
    "Source": "sources",
    "carries_value": "values",
    "cited": "citations",
    "is_bare_premise": "premise",
    "is_none_reply": "premise",
    "is_verbatim": "quotations",
    "read_premise": "premise",
    "verify_quotation": "quotations",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
