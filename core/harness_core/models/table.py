"""What is known about models beside prices: output caps, reasoning, embedding models, families.

Windows and prices stand here only for models that a price list may lack; where one knows them,
its figures are used.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["chat", "embedding"]

AS_OF: Final = "2026-08"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Limits in tokens, prices in USD per million tokens."""

    context_window: int
    max_output: int
    reasoning: bool = False
    supports_temperature: bool = True
    kind: Kind = "chat"
    dimensions: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None


def _reasons(
    context_window: int,
    max_output: int,
    input_usd: float | None = None,
    output_usd: float | None = None,
) -> Row:
    return Row(
        context_window=context_window,
        max_output=max_output,
        reasoning=True,
        supports_temperature=False,
        input_usd=input_usd,
        output_usd=output_usd,
    )


def _talks(context_window: int, max_output: int) -> Row:
    return Row(context_window=context_window, max_output=max_output)


def _embeds(dimensions: int, input_usd: float | None = None) -> Row:
    return Row(
        context_window=8191,
        max_output=0,
        kind="embedding",
        dimensions=dimensions,
        input_usd=input_usd,
        output_usd=None if input_usd is None else 0.0,
    )


MODELS: Final[Mapping[str, Row]] = MappingProxyType({
    "extractive": Row(context_window=128_000, max_output=4096, input_usd=0.0, output_usd=0.0),
    "mock-model": Row(context_window=128_000, max_output=16_384, input_usd=0.0, output_usd=0.0),
    "mock-embed": _embeds(64, 0.0),
    "gpt-5.6-sol": _reasons(1_050_000, 128_000, 4.0, 20.0),
    "gpt-5.6-terra": _reasons(1_050_000, 128_000, 2.0, 12.0),
    "gpt-5.6-luna": _reasons(1_050_000, 128_000, 1.0, 6.0),
    "gpt-5.5": _reasons(400_000, 128_000),
    "gpt-5.4": _reasons(400_000, 128_000),
    "gpt-5.4-mini": _reasons(400_000, 128_000),
    "gpt-5": _reasons(400_000, 128_000),
    "gpt-5-mini": _reasons(400_000, 128_000),
    "gpt-5-nano": _reasons(400_000, 128_000),
    "gpt-4.1": _talks(1_047_576, 32_768),
    "gpt-4.1-mini": _talks(1_047_576, 32_768),
    "gpt-4.1-nano": _talks(1_047_576, 32_768),
    "gpt-4o": _talks(128_000, 16_384),
    "gpt-4o-mini": _talks(128_000, 16_384),
    "gpt-4-turbo": _talks(128_000, 4_096),
    "gpt-4": _talks(8_192, 8_192),
    "gpt-3.5-turbo": _talks(16_385, 4_096),
    "text-embedding-3-small": _embeds(1536, 0.02),
    "text-embedding-3-large": _embeds(3072, 0.13),
    "text-embedding-ada-002": _embeds(1536, 0.10),
})  # fmt: skip

ALIASES: Final[Mapping[str, str]] = MappingProxyType({
    "gpt-5.6": "gpt-5.6-sol",
    "gpt-4o-2024-08-06": "gpt-4o",
    "chatgpt-4o-latest": "gpt-4o",
    "gpt-4o-mini-2024-07-18": "gpt-4o-mini",
    "gpt-3.5-turbo-1106": "gpt-3.5-turbo",
    "gpt-3.5-turbo-0125": "gpt-3.5-turbo",
    "gpt-3.5-turbo-16k": "gpt-3.5-turbo",
})  # fmt: skip

_GEMINI = Row(context_window=1_048_576, max_output=65_536, reasoning=True)

FAMILIES: Final[tuple[tuple[re.Pattern[str], Row], ...]] = tuple(
    (re.compile(pattern), row)
    for pattern, row in (
        (r"^gpt-5\.6", _reasons(1_050_000, 128_000)),
        (r"^gpt-5", _reasons(400_000, 128_000)),
        (r"^o[1-9]", _reasons(200_000, 100_000)),
        (r"^gpt-4\.1", _talks(1_047_576, 32_768)),
        (r"^gpt-4o", _talks(128_000, 16_384)),
        (r"^gpt-4-turbo", _talks(128_000, 4_096)),
        (r"^gpt-4", _talks(8_192, 4_096)),
        (r"^gpt-3\.5", _talks(16_385, 4_096)),
        (r"^text-embedding", _embeds(1536)),
        (r"^claude-3-[57]", _talks(200_000, 8_192)),
        (r"^claude-3", _talks(200_000, 4_096)),
        (r"^claude-opus-4(-[01]|-20|$)", _talks(200_000, 32_000)),
        (r"^claude-", _talks(200_000, 64_000)),
        (r"^gemini-(2\.5|[3-9])", _GEMINI),
        (r"^gemini-", _talks(1_048_576, 8_192)),
    )
)
"""Tried in order for what no list knows by name."""

UNKNOWN: Final = Row(context_window=128_000, max_output=4_096)
"""The guess for a model that nobody knows."""
