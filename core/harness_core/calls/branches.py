"""A part of a run that counts its own requests and shares everything else with the run.

What a branch records stands in its parent as well, at once and under the parent's numbers: the
parent's file, limits and totals need no folding in afterwards, and a killed run loses nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness_core.calls.governor import Refusal
from harness_core.calls.ledger import Demand, Ledger
from harness_core.calls.steps import Step
from harness_core.calls.trace import Slot, Trace


class Branch(Trace):
    """A trace inside another one, with its steps alone, numbered from 1.

    ``max_calls`` counts the requests of the branch; tokens and money, spent and held, are those of
    the parent's account, so its limits hold whatever else runs on the parent meanwhile.
    """

    def __init__(self, parent: Trace, *, meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(parent.governor, meta=meta, record_embeddings=parent.record_embeddings)
        self.actor = dict(parent.actor)
        self.parent = parent
        self.ledger = Ledger(parent.ledger)
        self.raised = parent.raised
        self._above: dict[str, Slot] = {}

    def slot(self, parent: Slot | None = None) -> Slot:
        """A place here, and one in the parent."""
        with self._lock:
            slot = super().slot(parent)
            above = None if parent is None else self._above.get(parent.number)
            self._above[slot.number] = self.parent.slot(above)
        return slot

    def intend(self, slot: Slot, demand: Demand) -> None:
        """Note on the parent's disk that a request is about to be sent."""
        self.parent.intend(self._above[slot.number], demand)

    def void(self, slot: Slot) -> None:
        """Give both places back; nothing for a request that landed."""
        super().void(slot)
        self.parent.void(self._above[slot.number])

    def keep(self, step: Step) -> None:
        """Put a landed step in both its places."""
        super().keep(step)
        self.parent.keep(replace(step, step=self._above[step.step].number))

    def note(self, label: str, /, **detail: Any) -> Step:
        """Record a local step, here and in the parent."""
        return self._copied(self.parent.note(label, **detail))

    def refuse(self, refusal: Refusal) -> None:
        """Record a request that was not sent."""
        super().refuse(refusal)
        self.parent.refuse(refusal)

    def amend(self, number: str, **changes: Any) -> None:
        """Add to a step what is known only later."""
        super().amend(number, **changes)
        if number in self._above:
            self.parent.amend(self._above[number].number, **changes)

    def takeover(self, replay_key: str, draw_index: int) -> Step | None:
        """The step of the parent's resumed run that answers this request; it counts here too."""
        step = self.parent.takeover(replay_key, draw_index)
        if step is None:
            return None
        self.ledger.charge(1)
        return self._copied(step)

    def borrow(self, steps: Iterable[Step]) -> None:
        """Count steps of a sibling as if they had been made here; the parent has them already."""
        for step in steps:
            super().keep(replace(step, step=super().slot().number))
            self.ledger.charge(0 if step.local else 1)

    def _copied(self, step: Step) -> Step:
        slot = super().slot()
        self._above[slot.number] = Slot(step.step)
        copy = replace(step, step=slot.number)
        super().keep(copy)
        return copy
