"""Models by name: limits, prices and abilities, from the registry, our table and the price list."""

import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from harness_core.config import read_number, setting
from harness_core.errors import (
    BadSettingError,
    UnknownModelError,
    UnknownModelWarning,
    warn,
)
from harness_core.models.pricelist import Listed, Tier, look_up
from harness_core.models.table import ALIASES, AS_OF, FAMILIES, MODELS, UNKNOWN, Kind, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What is known about one model.

    Limits are tokens, prices USD per million tokens, and an unknown price is None, never 0.
    ``tiers`` replace the prices for a whole request with a longer prompt; ``request_usd`` is
    charged per request. ``certain`` says that the window is known, not guessed; ``source`` is
    registered, builtin, alias, genai-prices, ``pattern:<regex>`` or default.
    """

    id: str
    context_window: int
    max_output: int
    input_usd: float | None = None
    output_usd: float | None = None
    cached_input_usd: float | None = None
    reasoning: bool = False
    supports_temperature: bool = True
    kind: Kind = "chat"
    dimensions: int | None = None
    certain: bool = True
    source: str = "builtin"
    as_of: str = AS_OF
    tiers: tuple[Tier, ...] = ()
    request_usd: float = 0.0


_registered: dict[str, ModelInfo] = {}
_resolved: dict[str, ModelInfo] = {}
_warned: set[str] = set()


# --- looking up ---------------------------------------------------------------------------------


def model_info(name: str) -> ModelInfo:
    """What is known about the model ``name``; an id may carry its provider (``openai:gpt-4o``).

    Warns once per model and process when its limits are a guess.

    Raises:
        UnknownModelError: the limits are a guess, under ``unknown_model_action="error"``.
        BadSettingError: a blank name.
    """
    info = _registered.get(name) or _resolved.get(name)
    if info is None:
        info = _resolved[name] = _resolve(_named(name))
    if not info.certain:
        _report_guess(info)
    return info


def _report_guess(info: ModelInfo) -> None:
    if setting("unknown_model_action") == "warn" and info.id in _warned:
        return
    price = "no price" if info.input_usd is None else "a listed price"
    message = (
        f"model {info.id!r} is not registered: a window of {info.context_window} and at most "
        f"{info.max_output} output tokens are a guess, with {price}; register_model() says more"
    )
    if setting("unknown_model_action") == "error":
        raise UnknownModelError(message)
    _warned.add(info.id)
    warn(UnknownModelWarning(message))


def _resolve(name: str) -> ModelInfo:
    bare = re.sub(r"^openai[:/]", "", name)
    target = ALIASES.get(bare, bare)
    if target in _registered:
        return replace(_registered[target], id=name, source="alias")
    row = MODELS.get(target)
    listed = None if row and row.kind == "embedding" else look_up(name) or look_up(target)
    if row is not None:
        return _joined(name, row, listed, source="builtin" if target == name else "alias")
    pattern, row = _family(name)
    if listed is None:
        return _joined(name, row, None, source=pattern, certain=False)
    known = listed.context_window is not None or row is not UNKNOWN
    return _joined(name, row, listed, source="genai-prices", certain=known)


def _family(name: str) -> tuple[str, Row]:
    last = re.split(r"[:/]", name)[-1]
    for pattern, row in FAMILIES:
        if pattern.search(last):
            return f"pattern:{pattern.pattern}", row
    return "default", UNKNOWN


def _joined(
    name: str, row: Row, listed: Listed | None, *, source: str, certain: bool = True
) -> ModelInfo:
    """A row of our table under the price list's window and prices, where it has them."""
    window = (listed and listed.context_window) or row.context_window
    info = ModelInfo(
        id=name,
        context_window=window,
        max_output=min(row.max_output, window),
        input_usd=row.input_usd,
        output_usd=row.output_usd,
        reasoning=row.reasoning,
        supports_temperature=row.supports_temperature,
        kind=row.kind,
        dimensions=row.dimensions,
        certain=certain,
        source=source,
    )
    if listed is None or listed.tiers[0].input_usd is None:
        return info
    base, *tiers = listed.tiers
    return replace(
        info,
        input_usd=base.input_usd,
        output_usd=base.output_usd,
        cached_input_usd=base.cached_input_usd,
        tiers=tuple(tiers),
        request_usd=listed.request_usd,
        as_of=listed.as_of,
    )


# --- registering --------------------------------------------------------------------------------


def register_model(
    name: str,
    *,
    context_window: int,
    max_output: int = 0,
    input_usd: float | None = None,
    output_usd: float | None = None,
    cached_input_usd: float | None = None,
    reasoning: bool = False,
    supports_temperature: bool | None = None,
    kind: Kind = "chat",
    dimensions: int | None = None,
) -> str:
    """Say what a model is; replaces what was known under that id. Returns the id.

    Limits are tokens, prices USD per million tokens; a price left out is unknown, never 0. An
    embedding model needs an input price alone. Reasoning models take no temperature unless told.

    Raises:
        BadSettingError: a blank id, limits that leave no room for a prompt, or half a price.
    """
    _check_limits(_named(name), context_window, max_output, kind)
    prices = [_price(name, usd) for usd in (input_usd, output_usd, cached_input_usd)]
    if kind == "chat" and (prices[0] is None) != (prices[1] is None):
        raise BadSettingError(f"model {name!r}: give both prices, input and output, or neither")
    if kind == "embedding" and prices[0] is not None:
        prices[1] = prices[1] or 0.0
    _registered[name] = ModelInfo(
        id=name,
        context_window=context_window,
        max_output=max_output,
        input_usd=prices[0],
        output_usd=prices[1],
        cached_input_usd=prices[2],
        reasoning=reasoning,
        supports_temperature=not reasoning
        if supports_temperature is None
        else supports_temperature,
        kind=kind,
        dimensions=dimensions,
        source="registered",
        as_of=f"{datetime.now(UTC):%Y-%m}",
    )
    _resolved.clear()  # an alias may point here
    return name


def unregister_model(name: str) -> None:
    """Forget what was registered under ``name``; harmless when nothing was."""
    _registered.pop(name, None)
    _resolved.clear()


def list_models() -> list[dict[str, Any]]:
    """A row per model known by name, registered ones over built-in ones, by kind and id.

    Columns: id, kind, context_window, max_output, reasoning, input_usd_per_1m,
    output_usd_per_1m, as_of.
    """
    known = {**{name: _resolve(name) for name in MODELS}, **_registered}
    return [
        {
            "id": info.id,
            "kind": info.kind,
            "context_window": info.context_window,
            "max_output": info.max_output,
            "reasoning": info.reasoning,
            "input_usd_per_1m": info.input_usd,
            "output_usd_per_1m": info.output_usd,
            "as_of": info.as_of,
        }
        for info in sorted(known.values(), key=lambda info: (info.kind, info.id))
    ]


def _named(name: str) -> str:
    if not name.strip():
        raise BadSettingError("a model id is not blank")
    return name


def _check_limits(name: str, context_window: int, max_output: int, kind: Kind) -> None:
    if kind not in ("chat", "embedding"):
        raise BadSettingError(f"model {name!r}: a kind is chat or embedding, not {kind!r}")
    whole = all(type(limit) is int for limit in (context_window, max_output))
    if not whole or context_window <= 0 or max_output < 0:
        raise BadSettingError(f"model {name!r}: limits are whole numbers of tokens, window above 0")
    if kind == "chat" and max_output >= context_window:
        raise BadSettingError(
            f"model {name!r}: an output cap of {max_output} leaves no room for a prompt in a "
            f"window of {context_window}"
        )


def _price(name: str, usd: float | str | None) -> float | None:
    if usd is None or usd == "":
        return None
    number = read_number(usd)
    if number is None or not 0 <= number < math.inf:
        raise BadSettingError(f"model {name!r}: a price is at or above 0, not {usd!r}")
    return number
