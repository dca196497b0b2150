"""Why a reply ended, as providers spell it."""

from collections.abc import Mapping
from typing import Any

from harness_core.messages import clean_text, normalised_finish
from harness_integrations.shared.usage import as_mapping

_NAMES = (
    "normalized_finish_reason", "finish_reason", "stop_reason", "stopReason", "finishReason",
    "done_reason", "status",
)  # fmt: skip
_FILTERED = frozenset({
    "safety", "content_filtered", "guardrail_intervened", "prohibited_content", "blocklist",
    "spii", "recitation", "image_safety",
})  # fmt: skip


def read_finish(found: Mapping[str, Any]) -> str | None:
    """The finish reason in a reply's metadata: ``length`` for every cut-off, lower case.

    What a provider's filter ended is ``content_filter``; other reasons keep the provider's word.
    """
    details = as_mapping(found.get("incomplete_details"))
    reason = details.get("reason") or next(
        (found[name] for name in _NAMES if found.get(name)), None
    )
    reason = getattr(reason, "name", reason)  # an enumeration's member
    if (word := read_word(reason)) is None:
        return None
    word = word.lower()
    return "content_filter" if word in _FILTERED else normalised_finish(word)


def read_word(value: Any) -> str | None:
    """An id or a name as a provider spells it; None for what is none."""
    return clean_text(value) if isinstance(value, str) and value else None
