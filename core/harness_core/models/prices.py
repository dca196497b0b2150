"""Money: what a request cost, and the most it could cost, in whole pico-dollars (USD x 10^-12).

A rate of USD per million tokens with up to six decimals is a whole number of pico-dollars per
token, so every sum is exact and does not depend on the order in which replies land.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from typing import Final, TypeAlias

from harness_core.messages import Usage
from harness_core.models.pricelist import Tier
from harness_core.models.registry import ModelInfo, model_info
from harness_core.models.table import Kind

PICO: Final = 10**12
"""Pico-dollars in one USD."""

Exact: TypeAlias = int | Fraction
Count: TypeAlias = float | None


@dataclass(frozen=True, slots=True)
class _Rates:
    """Pico-dollars per token, for a request whose prompt has more than ``above`` tokens."""

    above: int
    input: Exact
    cached: Exact
    output: Exact | None
    request: Exact


def price(model: ModelInfo | str, usage: Usage) -> int | None:
    """What an exchange cost in pico-dollars, to the nearest one.

    None when the model's price or a count it needs is unknown. Cached input is charged at its own
    rate where one is known, else as input. Where prices step with the length of the prompt, the
    whole request is charged at the step it reaches.
    """
    rates = _rates(model_info(model) if isinstance(model, str) else model)
    if not rates or usage.input is None:
        return None
    exact = _cost(_reached(rates, usage.input), usage.input, usage.output, usage.cached_input)
    return None if exact is None else round(exact)


def bound(model: ModelInfo | str, prompt_tokens: int, output_tokens: int) -> int | None:
    """The most pico-dollars that a request within these counts can cost; None without a price.

    Every step of price that a prompt of at most ``prompt_tokens`` can reach is taken at its
    dearest: cached input counts as input or at its own rate, whichever is more.
    """
    rates = _rates(model_info(model) if isinstance(model, str) else model)
    reachable = [step for step in rates if step.above < prompt_tokens] or list(rates[:1])
    costs = [
        max(step.input, step.cached) * prompt_tokens + output * output_tokens + step.request
        for step in reachable
        if (output := _output_rate(step, output_tokens)) is not None
    ]
    return math.ceil(max(costs)) if len(costs) == len(reachable) > 0 else None


def usd(pico: int) -> float:
    """Pico-dollars as USD, for showing."""
    return pico / PICO


def to_pico(dollars: float, *, down: bool = True) -> int:
    """USD as whole pico-dollars, rounded down as a limit is, or up as a bound is."""
    exact = Fraction(Decimal(str(dollars))) * PICO
    return math.floor(exact) if down else math.ceil(exact)


def estimate_cost(
    model: ModelInfo | str,
    input_tokens: Count | Sequence[Count],
    output_tokens: Count | Sequence[Count] = 0,
    *,
    cached_input: Count | Sequence[Count] = 0,
) -> float | None:
    """USD for token counts of one request, or of several given as lists, summed.

    ``cached_input`` is a part of ``input_tokens``. No requests cost 0. None when the model has no
    price, or when any count is missing or not finite: never 0 for what is unknown.
    """
    rates = _rates(model_info(model) if isinstance(model, str) else model)
    total: Exact = 0
    given = (_listed(input_tokens), _listed(output_tokens), _listed(cached_input))
    for request in zip_longest(*given, fillvalue=0):
        if not rates or not all(count is not None and math.isfinite(count) for count in request):
            return None
        read, written, cached = (Fraction(count or 0) for count in request)
        cost = _cost(_reached(rates, read), read, written, cached)
        if cost is None:
            return None
        total += cost
    return float(Fraction(total) / PICO) if rates else None


def _listed(counts: Count | Sequence[Count]) -> Sequence[Count]:
    return counts if isinstance(counts, Sequence) else (counts,)


@lru_cache(maxsize=512)
def _rates(info: ModelInfo) -> tuple[_Rates, ...]:
    """The steps of a model's price, shortest prompts first; none without an input price."""
    base = Tier(
        above=0,
        input_usd=info.input_usd,
        output_usd=info.output_usd,
        cached_input_usd=info.cached_input_usd,
    )
    return tuple(
        _Rates(
            above=step.above,
            input=_per_token(step.input_usd),
            cached=_per_token(
                step.input_usd if step.cached_input_usd is None else step.cached_input_usd
            ),
            output=_output_per_token(step.output_usd, info.kind),
            request=_per_token(info.request_usd * 10**6),
        )
        for step in (base, *info.tiers)
        if step.input_usd is not None
    )


def _output_per_token(usd_per_million: float | None, kind: Kind) -> Exact | None:
    if usd_per_million is None:
        return 0 if kind == "embedding" else None
    return _per_token(usd_per_million)


def _per_token(usd_per_million: float) -> Exact:
    exact = Fraction(Decimal(str(usd_per_million))) * (PICO // 10**6)
    return exact.numerator if exact.denominator == 1 else exact


def _reached(rates: tuple[_Rates, ...], prompt_tokens: Exact) -> _Rates:
    return next((step for step in reversed(rates) if step.above < prompt_tokens), rates[0])


def _output_rate(step: _Rates, output_tokens: Exact) -> Exact | None:
    return 0 if not output_tokens and step.output is None else step.output


def _cost(step: _Rates, read: Exact, written: Exact | None, cached: Exact | None) -> Exact | None:
    if written is None and step.output == 0:
        written = 0
    if written is None or (rate := _output_rate(step, written)) is None:
        return None
    known = min(max(cached or 0, 0), read)
    return (read - known) * step.input + known * step.cached + written * rate + step.request
