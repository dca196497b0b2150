"""How a context window is divided between a prompt and its reply."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harness_core.config import read_number, setting
from harness_core.errors import BadSettingWarning, BudgetError, ClampedWarning, warn
from harness_core.models.registry import ModelInfo, model_info


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens of a window: room for excerpts, reply, and what is fixed around the excerpts.

    ``certain`` says that the window is known, not guessed.
    """

    input: int
    output: int
    context_window: int
    overhead: int
    margin: float
    certain: bool


def budget(
    model: ModelInfo | str,
    reserve_output: Any = None,
    overhead: Any = 0,
    safety_margin: Any = None,
) -> Budget:
    """Divide a model's window: what is left for input beside the reply and ``overhead`` tokens.

    ``reserve_output`` None keeps a quarter of the window, at least the setting
    ``min_output_tokens`` and at most the model's cap; a reserve that leaves no input shrinks to
    that minimum. ``safety_margin`` None takes the setting. Numbers may come as text.

    Raises:
        BudgetError: no room for any input, or an overhead that is no number.
    """
    info = model_info(model) if isinstance(model, str) else model
    margin = _margin(safety_margin)
    fixed = _overhead(overhead)
    usable = math.floor(info.context_window * (1 - Fraction(str(margin))))
    least = max(int(setting("min_output_tokens")), 1)
    reserve = _reserve(reserve_output, usable, least, info.max_output)
    if usable - reserve - fixed <= 0:
        reserve = min(reserve, least)
    room = usable - reserve - fixed
    if room <= 0:
        raise BudgetError(
            f"no room for a prompt: window {info.context_window}, usable {usable}, "
            f"reply {reserve}, overhead {fixed} tokens"
        )
    return Budget(
        input=room,
        output=reserve,
        context_window=info.context_window,
        overhead=fixed,
        margin=margin,
        certain=info.certain,
    )


def _margin(given: Any) -> float:
    default = float(setting("safety_margin"))
    if given is None:
        return default
    number = read_number(given)
    if number is None:
        warn(BadSettingWarning(f"safety_margin is one number, not {given!r}; {default:g} is used"))
        return default
    inside = min(max(number, 0.0), 0.5)
    if inside != number:
        warn(ClampedWarning(f"safety_margin lies in [0, 0.5], not {number:g}; {inside:g} is used"))
    return inside


def _overhead(given: Any) -> int:
    number = 0.0 if given is None else read_number(given)
    if number is None or math.isinf(number):
        raise BudgetError(f"overhead is one number of tokens, not {given!r}")
    return max(0, math.ceil(number))


def _reserve(given: Any, usable: int, least: int, cap: int) -> int:
    number = None if given is None else read_number(given)
    if number is not None:
        return min(max(math.floor(min(number, cap)), 1), cap)
    if given is not None:
        warn(BadSettingWarning(f"reserve_output is one number, not {given!r}; a quarter is kept"))
    return min(cap, max(least, usable // 4))
