"""How the tables measure: CPU of this process, the best of a few interleaved rounds."""

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median

ROUNDS = 3


def cpu_seconds(function: Callable[[], object]) -> float:
    """CPU seconds of one call in this process, its threads included."""
    gc.collect()
    start = time.process_time()
    function()
    return time.process_time() - start


def wall_seconds(function: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(
    functions: Mapping[str, Callable[[], object]], rounds: int = ROUNDS
) -> dict[str, list[float]]:
    """CPU seconds of each function, round by round, so that a slow moment hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            seconds[name].append(cpu_seconds(function))
    return seconds


def ratio(mine: list[float], theirs: list[float]) -> float:
    """The median of the ratios round by round."""
    return median(a / b for a, b in zip(mine, theirs, strict=True))
