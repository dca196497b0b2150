"""Token usage as providers and frameworks spell it, read as one ``Usage``."""

from collections.abc import Iterable, Mapping
from typing import Any

from harness_core.messages import Usage

_INPUT = (
    "input_tokens", "prompt_tokens", "inputTokens", "prompt_token_count", "promptTokenCount",
    "prompt_eval_count",
)  # fmt: skip
_OUTPUT = (
    "output_tokens", "completion_tokens", "outputTokens", "candidates_token_count",
    "candidatesTokenCount", "eval_count",
)  # fmt: skip
_INPUT_DETAILS = ("input_token_details", "input_tokens_details", "prompt_tokens_details")
_OUTPUT_DETAILS = ("output_token_details", "output_tokens_details", "completion_tokens_details")
_CACHE_READ = ("cache_read_input_tokens", "cacheReadInputTokens")
_CACHE_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_WITHIN = ("cached_content_token_count", "cachedContentTokenCount", "prompt_cache_hit_tokens")
_THOUGHTS = ("thoughts_token_count", "thoughtsTokenCount")


def read_usage(found: Any) -> Usage:
    """The counts in a provider's or framework's usage: a mapping or an object; None for none.

    Counts that a provider keeps apart are added: Anthropic's and Bedrock's cache reads and writes
    belong to the prompt, Google's thoughts to the reply. What is no count is None.
    """
    usage = as_mapping(found)
    read, written = _first(usage, _INPUT), _first(usage, _OUTPUT)
    aside, thoughts = _first(usage, _CACHE_READ), _first(usage, _THOUGHTS)
    if read is not None:
        read += (aside or 0) + (_first(usage, _CACHE_WRITTEN) or 0)
    if written is not None:
        written += thoughts or 0
    of_input = as_mapping(_any(usage, _INPUT_DETAILS))
    of_output = as_mapping(_any(usage, _OUTPUT_DETAILS))
    cached = _ending(of_input, ("cache_read", "cached_tokens"))
    reasoning = _ending(of_output, ("reasoning", "reasoning_tokens"))
    return Usage(
        input=read,
        output=written,
        cached_input=_known(aside, cached, _first(usage, _WITHIN)),
        reasoning=_known(thoughts, reasoning),
    )


def as_mapping(found: Any) -> Mapping[str, Any]:
    """A mapping or an object as a mapping; anything else is empty."""
    if isinstance(found, Mapping):
        return found
    if found is None:
        return {}
    if hasattr(found, "model_dump"):
        dumped: Mapping[str, Any] = found.model_dump()
        return dumped
    return vars(found) if hasattr(found, "__dict__") else {}


def _ending(details: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """The sum over a detail's tiers: ``flex_cache_read`` is a ``cache_read`` too."""
    counts = [
        count
        for name, value in details.items()
        if any(name == one or name.endswith(f"_{one}") for one in names)
        and (count := _count(value)) is not None
    ]
    return sum(counts) if counts else None


def _first(usage: Mapping[str, Any], names: Iterable[str]) -> int | None:
    for name in names:
        if name in usage and (count := _count(usage[name])) is not None:
            return count
    return None


def _any(usage: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((usage[name] for name in names if usage.get(name)), None)


def _known(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < 2**53 else None
