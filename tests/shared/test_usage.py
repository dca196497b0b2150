"""Counts in every spelling become one ``Usage``."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_integrations.shared.usage import read_usage

SPELLINGS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "openai chat": (
        {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14,
         "prompt_tokens_details": {"cached_tokens": 6},
         "completion_tokens_details": {"reasoning_tokens": 3}},
        (10, 4, 6, 3),
    ),
    "openai responses": (
        {"input_tokens": 10, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 6}},
        (10, 4, 6, None),
    ),
    "anthropic keeps the cache apart": (
        {"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 90,
         "cache_creation_input_tokens": 5},
        (105, 4, 90, None),
    ),
    "bedrock": (
        {"inputTokens": 10, "outputTokens": 4, "cacheReadInputTokens": 2,
         "cacheWriteInputTokens": 1},
        (13, 4, 2, None),
    ),
    "google adds its thoughts": (
        {"prompt_token_count": 10, "candidates_token_count": 4, "thoughts_token_count": 20,
         "cached_content_token_count": 3},
        (10, 24, 3, 20),
    ),
    "ollama": ({"prompt_eval_count": 10, "eval_count": 4}, (10, 4, None, None)),
    "langchain with tiers": (
        {"input_tokens": 10, "output_tokens": 4,
         "input_token_details": {"priority_cache_read": 2, "cache_read": 1},
         "output_token_details": {"flex_reasoning": 3, "flex": 1}},
        (10, 4, 3, 3),
    ),
    "an object": (SimpleNamespace(prompt_tokens=10, completion_tokens=4), (10, 4, None, None)),
    "a true zero": ({"input_tokens": 0, "output_tokens": 0}, (0, 0, None, None)),
    "nothing": (None, (None, None, None, None)),
    "no counts": ({"input_tokens": "many", "output_tokens": True}, (None, None, None, None)),
    "a negative last chunk": ({"input_tokens": 10, "output_tokens": -4}, (10, None, None, None)),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_spelling_is_read(spelling: str) -> None:
    given_, expected = SPELLINGS[spelling]
    usage = read_usage(given_)
    assert (usage.input, usage.output, usage.cached_input, usage.reasoning) == expected
    assert usage.provenance == "reported"


@given(st.dictionaries(st.text(max_size=20), st.none() | st.integers() | st.floats() | st.text()))
def test_reading_never_fails(found: dict[str, Any]) -> None:
    read_usage(found)
