"""What the public price list genai-prices says about a model."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Prices of a whole request whose prompt has more than ``above`` tokens; USD per million."""

    above: int
    input_usd: float | None
    output_usd: float | None
    cached_input_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One model of the list. The first tier is the base price; ``request_usd`` is per request."""

    context_window: int | None
    tiers: tuple[Tier, ...]
    request_usd: float
    as_of: str


def look_up(name: str) -> Listed | None:
    """The list's entry for a model id, dated and provider-prefixed ids included; None if absent.

    Prices are those of today, and where they change with the hour the dearest of the day.
    """
    from genai_prices import __version__

    found = _find(name, None)
    if found is None and (parts := re.match(r"([^:/]+)[:/](.+)", name)):
        found = _find(parts[2], parts[1])
    if found is None:
        return None
    prices = _today(found)
    return Listed(
        context_window=found.context_window,
        tiers=_tiers(prices),
        request_usd=float(getattr(prices, "requests_kcount", None) or 0) / 1000,
        as_of=f"genai-prices {__version__}",
    )


def _find(name: str, provider: str | None) -> "ModelInfo | None":
    from genai_prices import Usage, calc_price

    try:
        return calc_price(Usage(), name, provider_id=provider).model
    except LookupError:
        return None


def _today(model: "ModelInfo") -> "ModelPrice":
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    halves = (model.get_prices(midnight + timedelta(minutes=30 * i)) for i in range(48))
    return max(halves, key=lambda prices: sum(map(_base, (prices.input_mtok, prices.output_mtok))))


def _base(price: "Decimal | TieredPrices | None") -> float:
    from genai_prices.types import TieredPrices

    return float(price.base if isinstance(price, TieredPrices) else price or 0)


def _tiers(prices: "ModelPrice") -> tuple[Tier, ...]:
    kinds = (prices.input_mtok, prices.output_mtok, prices.cache_read_mtok)
    starts = {0, *(tier.start for price in kinds for tier in getattr(price, "tiers", ()))}
    return tuple(
        Tier(
            above=start,
            input_usd=_at(prices.input_mtok, start),
            output_usd=_at(prices.output_mtok, start),
            cached_input_usd=_at(prices.cache_read_mtok, start),
        )
        for start in sorted(starts)
    )


def _at(price: "Decimal | TieredPrices | None", above: int) -> float | None:
    """The price in force just above a tier's start."""
    if price is None:
        return None
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= above]
    return float(reached[-1]) if reached else _base(price)
