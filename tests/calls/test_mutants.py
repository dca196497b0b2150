"""Each small fault put into a copy of the call path is noticed by the comparison of programs."""

import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from harness_core.calls import exchange, ledger, trace
from tests.support import programs as support

FAULTS: dict[str, tuple[ModuleType, tuple[tuple[str, str], ...]]] = {
    "refuses on others' holds": (
        ledger,
        (("return _Obstacle(taken > most, refuse)", "return _Obstacle(True, refuse)"),),
    ),
    "ignores holds": (
        ledger,
        (("if most is not None and taken + held > most", "if most is not None and taken > most"),),
    ),
    "settles at the bound": (
        exchange,
        (("hold.settle(tokens=size(outcome), pico=pico)", "hold.lose()"),),
    ),
    "no single flight": (exchange, (("if not streamed and cache.shares_flights:", "if False:"),)),
    "wrong reason, limits out of order": (
        ledger,
        (
            ("(limits.max_tokens_total, tokens + demand.tokens", "(TOKENS, tokens + demand.tokens"),
            ("(None if cost is None else most_pico, pico", "(COST, pico"),
            ("(TOKENS, tokens + demand.tokens, more_tokens, _over_tokens)", "AFTER"),
            (
                "(COST, pico + (cost or 0), more_pico, over_cost)",
                "(None if cost is None else most_pico, pico + (cost or 0), more_pico, over_cost),"
                "(limits.max_tokens_total, tokens + demand.tokens, more_tokens, _over_tokens)",
            ),
            ("            AFTER,\n", ""),
        ),
    ),
    "wrong reason, a later limit decides while an earlier one is uncertain": (
        ledger,
        (
            ("for most, taken, held, refuse in (", "for most, taken, held, refuse in sorted(("),
            (
                "        ):\n            if most",
                "        ), key=lambda x: x[0] is None or x[1] <= x[0]):\n            if most",
            ),
        ),
    ),
    "refuses when the window is closed": (
        ledger,
        (("(yield Wait(ticket)) is not False", "(yield Wait(ticket)) and False"),),
    ),
    "a hit is held to the spending limit": (
        exchange,
        (("tokens=size(outcome), pico=None, priced=True", "tokens=size(outcome), priced=True"),),
    ),
    "a hit is not counted as a call": (
        exchange,
        (("if refusal is not None:\n        return run.refuse(call, refusal)\n    unpriced",
          "run.trace.ledger.add(calls=-1)\n    unpriced"),),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def mutated(module: ModuleType, changes: tuple[tuple[str, str], ...]) -> Any:
    """A copy of ``module`` with ``changes`` made to its source."""
    source = inspect.getsource(module)
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} is there {source.count(old)} times"
        source = source.replace(old, new)
    copy = ModuleType(module.__name__)
    exec(compile(source, f"<mutant of {module.__name__}>", "exec"), vars(copy))  # noqa: S102
    return copy


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, changes = FAULTS[fault]
    copy = mutated(module, changes)
    if module is ledger:
        monkeypatch.setattr(trace, "Ledger", copy.Ledger)
    else:
        monkeypatch.setattr(support, "governed", copy.governed)

    @settings(max_examples=4000, phases=[Phase.generate], database=None, derandomize=True)
    @given(program=support.programs())
    def check(program: support.Program) -> None:
        assert support.differences(program, support.carry_out(program, "asyncio", folder)) == []

    with pytest.raises(AssertionError):
        check()
