"""A trace as it was stored: what its lines add up to, and what a resumed run takes over of it."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness_core.calls.governor import Refusal
from harness_core.calls.journal import dumped
from harness_core.calls.steps import PICO, Step, order
from harness_core.errors import TraceError

_AMENDED = frozenset({"state", "recovered", "source", "recipe"})


class Stored:
    """The lines of a trace, read in their order.

    Raises:
        TraceError: a line is neither a step nor anything else that a trace holds.
    """

    def __init__(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self.head: Mapping[str, Any] = {}
        self.steps: dict[str, Step] = {}
        self.refusals: list[Refusal] = []
        self.lost: dict[str, Mapping[str, Any]] = {}  # intents whose step never came
        try:
            for line in lines:
                self._add(line)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TraceError(f"a line cannot be read: {type(error).__name__}: {error}") from error

    @property
    def stop(self) -> tuple[bool, str | None]:
        """Whether a limit stopped the run, and which."""
        if "budget_stop" in self.head:
            return bool(self.head["budget_stop"]), self.head.get("stop_reason")
        return bool(self.refusals), self.refusals[-1].reason if self.refusals else None

    @property
    def issued(self) -> int:
        """The highest number that was given out."""
        return max((order(number)[0] for number in (*self.steps, *self.lost)), default=0)

    def counts(self) -> Iterator[dict[str, int]]:
        """What each request adds to a ledger; a lost one its bound."""
        for step in self.steps.values():
            yield step.counts()
        for lost in self.lost.values():
            spent = round(lost["bound_usd"] * PICO)
            yield {"calls": 1, "tokens": lost["bound_tokens"], "spent": spent}

    def _add(self, line: Mapping[str, Any]) -> None:
        if "trace" in line:
            self.head = line
            self.refusals.clear()  # a second head begins a resumed run, which asks again
        elif "intent" in line:
            self._intend(line)
        elif "void" in line:
            self.lost.pop(line["void"], None)
        elif "refusal" in line:
            self.refusals.append(Refusal.from_json(line["refusal"]))
        elif "amend" in line:
            self._amend(line)
        elif "absorb" in line:
            pass  # says where the steps of another run stand; they follow as steps
        else:
            step = Step.from_json(line)
            self.steps[step.step] = step
            self.lost.pop(step.step, None)

    def _intend(self, line: Mapping[str, Any]) -> None:
        number = line["intent"]
        order(number)
        usd, tokens = line.get("bound_usd") or 0, line.get("bound_tokens") or 0
        self.lost[number] = {**line, "bound_usd": float(usd), "bound_tokens": int(tokens)}

    def _amend(self, line: Mapping[str, Any]) -> None:
        if (step := self.steps.get(line["amend"])) is not None:
            for name in _AMENDED & line.keys():
                setattr(step, name, line[name])


class Resumable:
    """The steps of an interrupted run, each to be taken over once, in their order."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str | bytes, ...], list[Step]] = {}
        for step in steps:
            if step.local:
                self._waiting.setdefault((step.label, dumped(step.detail)), []).append(step)
            elif step.ok and (step.kind == "chat" or step.vectors is not None):
                asked = (step.replay_key, "", str(step.draw_index))
                self._waiting.setdefault(asked, []).append(step)

    def left(self) -> tuple[int, int]:
        """The requests that nobody took over yet, and what they cost (pico-dollars)."""
        with self._lock:
            steps = [step for listed in self._waiting.values() for step in listed if not step.local]
        counts = [step.counts() for step in steps]
        return len(steps), sum(one.get("spent", 0) + one.get("replayed", 0) for one in counts)

    def request(self, replay_key: str, draw_index: int) -> Step | None:
        """The step that answers a request already."""
        return self._taken(replay_key, "", str(draw_index)) if self._waiting else None

    def note(self, label: str, detail: Mapping[str, Any]) -> Step | None:
        """The local step that was recorded already."""
        return self._taken(label, dumped(detail)) if self._waiting else None

    def _taken(self, *wanted: str | bytes) -> Step | None:
        with self._lock:
            waiting = self._waiting.get(wanted)
            return waiting.pop(0) if waiting else None
