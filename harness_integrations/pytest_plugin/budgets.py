"""What a test run may spend, all its processes together: each test takes a lease of what is left.

The accounts are rows of one SQLite file, which the workers of pytest-xdist share. A lease that was
never given back, because its worker died, stays taken.
"""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

MARKER = "harness_budget"
_RUN = ""  # the account of the whole run


class Lease:
    """A part of one or more accounts, for one test; ``usd`` None: no budget."""

    def __init__(self, budget: "Budget", taken: dict[str, float]) -> None:
        self._budget = budget
        self._taken = taken
        self.usd = min(taken.values(), default=None)

    def close(self, spent: float) -> None:
        """Give back what was not spent."""
        for account, usd in self._taken.items():
            self._budget.give_back(account, usd - spent)
        self._taken = {}


class Budget:
    """The accounts of a test run."""

    def __init__(self, file: str | None, workers: int, folder: Any = None) -> None:
        self._file = file
        self._workers = workers
        self._folder = folder

    def lease(self, item: pytest.Item) -> Lease:
        """A lease for one test: of the run's budget and of each marker's above it.

        A budget that other tests draw on too is split between the workers.
        """
        run = item.config.getoption("harness_max_cost")
        taken = {} if run is None else {_RUN: self._take(_RUN, run, self._workers)}
        for node, mark in item.iter_markers_with_node(MARKER):
            workers = 1 if node is item else self._workers
            taken[node.nodeid] = self._take(node.nodeid, amount(mark), workers)
        return Lease(self, taken)

    def shared(self, config: pytest.Config) -> tuple[str, int]:
        """What a worker needs to draw on the same accounts: the file, and how many they are."""
        file = self._made()
        return file, len(config.getoption("tx", None) or ()) or 1

    def give_back(self, account: str, usd: float) -> None:
        """Put what is left of a lease back."""
        with self._accounts() as accounts:
            accounts.execute("UPDATE account SET usd = usd + ? WHERE name = ?", (usd, account))

    def close(self) -> None:
        """Remove the file, in the process that made it."""
        if self._folder is not None:
            self._folder.cleanup()

    def _take(self, account: str, most: float, workers: int) -> float:
        with self._accounts() as accounts:
            accounts.execute("INSERT OR IGNORE INTO account VALUES (?, ?)", (account, most))
            (left,) = accounts.execute(
                "SELECT usd FROM account WHERE name = ?", (account,)
            ).fetchone()
            part = max(left, 0.0) / workers
            accounts.execute("UPDATE account SET usd = usd - ? WHERE name = ?", (part, account))
        return float(part)

    @contextmanager
    def _accounts(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._made(), timeout=60, isolation_level=None)) as opened:
            opened.execute("BEGIN IMMEDIATE")
            opened.execute("CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, usd REAL)")
            yield opened
            opened.execute("COMMIT")

    def _made(self) -> str:
        if self._file is None:
            self._folder = tempfile.TemporaryDirectory(prefix="harness-")
            self._file = str(Path(self._folder.name) / "budget.sqlite3")
        return self._file


def opened(config: pytest.Config) -> Budget:
    """The budget of this process: its own, or the one of the run that it is a worker of."""
    given = getattr(config, "workerinput", {}).get("harness_budget")
    return Budget(None, 1) if given is None else Budget(*given)


def amount(mark: pytest.Mark) -> float:
    """The USD of a marker.

    Raises:
        pytest.UsageError: it names none, or no amount of money.
    """
    given = mark.kwargs.get("max_cost_usd", mark.args[0] if mark.args else None)
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not given >= 0:
        raise pytest.UsageError(f"harness_budget(max_cost_usd=...) takes USD, not {given!r}")
    return float(given)
