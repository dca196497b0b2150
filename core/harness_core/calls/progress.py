"""Progress: what a run has done of a stage, and what it has spent, read off the trace."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from harness_core.calls.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` requests of a stage have landed; the run has spent ``spent`` USD.

    ``spent`` is None once tokens went to a model without a price: what that cost is unknown.
    """

    stage: str
    done: int
    total: int
    spent: float | None


OnProgress = Callable[[Progress], None]


class Reporter:
    """Tells one callback, from whatever thread a reply landed in, one at a time."""

    def __init__(self, heard: OnProgress | None, ledger: Ledger) -> None:
        self._heard = heard
        self._account = ledger.account  # what a comparison spent before is in it
        self._lock = threading.Lock()
        self._stage = ""
        self._done = self._total = 0

    def batch(self, stage: str, total: int) -> None:
        """A batch of ``total`` requests begins."""
        if self._heard is not None:
            with self._lock:
                self._stage, self._done, self._total = stage, 0, total
                self._tell()

    def landed(self) -> None:
        """One of them has its outcome."""
        if self._heard is not None:
            with self._lock:
                self._done = min(self._done + 1, self._total)
                self._tell()

    def _tell(self) -> None:
        if self._heard is not None:
            spent = None if self._account.unpriced else self._account.spent / 1e12
            self._heard(Progress(self._stage, self._done, self._total, spent))
