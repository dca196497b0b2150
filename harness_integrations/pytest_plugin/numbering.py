"""Numbers of steps that come from several traces."""

from collections.abc import Iterable
from dataclasses import replace

from harness_core.calls.steps import Step


def renumbered(steps: Iterable[Step]) -> list[Step]:
    """Steps one after the other: numbers that are given twice go after the highest before them."""
    found: list[Step] = []
    seen: set[str] = set()
    shift = highest = 0
    for step in steps:
        number = shifted(step.step, shift)
        if number in seen:
            shift = highest
            number = shifted(step.step, shift)
        seen.add(number)
        highest = max(highest, int(number.partition(".")[0]))
        found.append(step if number == step.step else replace(step, step=number))
    return found


def shifted(number: str, by: int) -> str:
    """A step's number, moved on; one inside another moves with it."""
    head, _, rest = number.partition(".")
    return f"{int(head) + by}" + (f".{rest}" if rest else "")
