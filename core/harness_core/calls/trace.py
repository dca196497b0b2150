"""The single account of a run: every request, local step and refusal, and what it adds up to.

Steps are numbered as they are issued, so a parallel run leaves the trace of a sequential one.
Nothing else keeps a second count: cost, progress, recordings and reports are read off here.
"""

import html
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from harness_core.answer import RunTotals
from harness_core.calls import accounts
from harness_core.calls.governor import Governor, Refusal
from harness_core.calls.journal import FORMAT, Journal, dumped, lines_of, read
from harness_core.calls.ledger import Demand, Ledger
from harness_core.calls.steps import PICO, Step, now, public_url
from harness_core.calls.stored import Resumable, Stored
from harness_core.config import current_settings, setting
from harness_core.errors import (
    BadSettingError,
    ListenerWarning,
    RequestRefused,
    TraceError,
    warn,
)

VERSION = "0.1.0"
_ACTOR = ("system", "owner", "run_by", "purpose", "approved_by")

Listener: TypeAlias = Callable[[Step | Refusal], None]


class Slot:
    """A step's place in the trace: taken when the request is admitted, filled when it lands."""

    __slots__ = ("children", "number")

    def __init__(self, number: str) -> None:
        self.number = number
        self.children = 0


class Trace:
    """A run and its ledger. ``path`` writes it as JSON Lines while it runs.

    ``governor`` holds the limits (none: the settings at each check). ``keep`` is the number of
    newest steps kept in memory when a path is given (none: all). ``system``, ``owner``, ``run_by``,
    ``purpose`` and ``approved_by`` say who runs and why; left out, they follow the setting
    ``actor``. ``record_embeddings`` keeps the vectors of embedding requests. ``listener`` is called
    with each step and each refusal once it is kept, in the thread it landed in; an error it raises
    is a ``ListenerWarning``.

    Raises:
        TraceError: ``path`` exists and ``resume`` is False, or it cannot be written or read.
    """

    def __init__(
        self,
        governor: Governor | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        resume: bool = False,
        keep: int | None = None,
        system: str | None = None,
        owner: str | None = None,
        run_by: str | None = None,
        purpose: str | None = None,
        approved_by: str | None = None,
        meta: Mapping[str, Any] | None = None,
        record_embeddings: bool = False,
        listener: Listener | None = None,
    ) -> None:
        if governor is not None and not isinstance(governor, Governor):
            raise BadSettingError(f"governor is a Governor, not {type(governor).__name__}")
        self.governor = governor or Governor()
        self.ledger = Ledger()
        self.record_embeddings = record_embeddings
        self.listener = listener
        self.run_id = _run_id()
        self.started = now()
        self.meta: dict[str, Any] = {"version": VERSION, **(meta or {})}
        given = dict(zip(_ACTOR, (system, owner, run_by, purpose, approved_by), strict=True))
        self.actor = {k: v if v is not None else setting("actor").get(k) for k, v in given.items()}
        self.config = _config()
        self.answers: list[Any] = []
        self.raised: list[RequestRefused] = []  # by governed models; governed_run raises them again
        self.budget_stop = False
        self.stop_reason: str | None = None
        self.recorded_limits: dict[str, Any] | None = None
        self.journal: Journal | None = None
        self._lock = threading.RLock()
        self._steps: dict[str, Step] = {}
        self._refusals: list[Refusal] = []
        self._issued = 0
        self._slots: dict[str, Slot] = {}
        self._resumable = Resumable()
        self._lost: list[Mapping[str, Any]] = []
        self._path = None if path is None else Path(path)
        self._keep = keep if path is not None else None
        self._dropped = False
        if self._path is not None:
            self._open(self._path, resume=resume)

    # --- reading it -------------------------------------------------------------------------

    @property
    def steps(self) -> list[Step]:
        """The steps that have landed, in the order of issue; under ``keep`` read from the file."""
        if self._dropped and self._path is not None:
            return Trace.load(self._path).steps
        with self._lock:
            steps = list(self._steps.values())
        return sorted(steps, key=lambda step: step.order)

    @property
    def requests(self) -> list[Step]:
        """The steps that asked a model: not the local ones."""
        return [step for step in self.steps if not step.local]

    @property
    def refusals(self) -> list[Refusal]:
        """Requests that were not sent, in order."""
        with self._lock:
            return list(self._refusals)

    @property
    def errors(self) -> list[dict[str, Any]]:
        """One entry per failed request: step, label, error, recovered."""
        return accounts.errors(self.steps)

    @property
    def calls(self) -> int:
        """Requests made, cache hits and embeddings included."""
        return self.ledger.calls

    @property
    def cached(self) -> int:
        """Requests answered from a cache or a recording."""
        return sum(step.cached for step in self.requests)

    @property
    def tokens_in(self) -> int:
        """Prompt tokens of text requests."""
        return sum(step.tokens.input or 0 for step in self.requests if step.kind == "chat")

    @property
    def tokens_out(self) -> int:
        """Reply tokens."""
        return sum(step.tokens.output or 0 for step in self.requests if step.kind == "chat")

    @property
    def embed_tokens(self) -> int:
        """Tokens of embedded texts."""
        return sum(step.tokens.input or 0 for step in self.requests if step.kind == "embedding")

    @property
    def spent_usd(self) -> float:
        """USD spent; requests to models without a price add nothing (see ``cost``)."""
        return self.ledger.spent / 1e12

    @property
    def replayed_usd(self) -> float:
        """USD that replayed requests counted against the spending limit."""
        return self.ledger.replayed / 1e12

    @property
    def incomplete(self) -> bool:
        """Whether requests were sent whose replies never landed (a run that was killed)."""
        return self.lost_holds > 0

    @property
    def lost_holds(self) -> int:
        """How many such requests; each is charged at its bound."""
        return len(self._lost)

    @property
    def issued(self) -> int:
        """The number of the newest top-level step."""
        return self._issued

    def summary(self) -> dict[str, Any]:
        """run_id, calls, cached, steps, tokens, errors, elapsed_s, embeddings, usage_estimated."""
        return accounts.summary(self)

    def cost(self) -> list[dict[str, Any]]:
        """One row per model: model, calls, paid_calls, paid_in, paid_out, usd (None: unknown)."""
        return accounts.cost(self.steps)

    def rows(self) -> list[dict[str, Any]]:
        """One row per request: step, stage, model, tokens, usd, seconds, prompt, reply, ..."""
        return accounts.rows(self.steps)

    def totals(self, steps: tuple[int, int] | None = None) -> RunTotals:
        """What the steps ``first`` to ``last`` (all by default) add up to."""
        return accounts.totals(self.window(steps))

    def window(self, steps: tuple[int, int] | None) -> list[Step]:
        """The steps ``first`` to ``last``, all without."""
        if steps is None:
            return self.steps
        return [step for step in self.steps if steps[0] <= step.order[0] <= steps[1]]

    def find(self, number: str) -> Step | None:
        """The step of that number, once it has landed and while it is kept in memory."""
        return self._steps.get(number)

    def export(self, steps: tuple[int, int] | None = None) -> dict[str, Any]:
        """The trace as one JSON document; with a window, only that run's steps."""
        kept = self.window(steps)
        return {
            "trace": FORMAT,
            **self._head(),
            "summary": accounts.summary(self, steps),
            "steps": [step.as_json() for step in kept],
            "errors": accounts.errors(kept),
            "lost": self._lost,
            "refusals": [refusal.as_json() for refusal in self.refusals],
            "budget_stop": self.budget_stop,
            "stop_reason": self.stop_reason,
            "spent_usd": self.spent_usd,
            "replayed_usd": self.replayed_usd,
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the trace as one JSON document; returns the path.

        Raises:
            TraceError: no path, or one that cannot be written.
        """
        if not os.fspath(path):
            raise TraceError("save needs a path")
        file = Path(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(dumped(self.export()) + b"\n")
        except OSError as error:
            raise TraceError(f"{file} cannot be written: {error.strerror}") from error
        return file

    @classmethod
    def load(cls, source: Any) -> "Trace":
        """A trace from a file (JSON Lines or one document), its JSON text, or its parsed form.

        Raises:
            TraceError: it is missing, unreadable or no trace.
        """
        trace = cls()
        trace._read(lines_of(source))
        return trace

    # --- writing it -------------------------------------------------------------------------

    def slot(self, parent: Slot | None = None) -> Slot:
        """A place for the next step, under ``parent`` for a request made inside another."""
        with self._lock:
            if parent is None:
                self._issued += 1
                slot = Slot(str(self._issued))
            else:
                parent.children += 1
                slot = Slot(f"{parent.number}.{parent.children}")
            self._slots[slot.number] = slot
        return slot

    def intend(self, slot: Slot, demand: Demand) -> None:
        """Note on disk that a request is about to be sent, and what it is held at."""
        if self.journal is not None:
            pico = demand.pico
            self.journal.append({
                "intent": slot.number,
                "label": demand.label,
                "bound_tokens": demand.tokens,
                "bound_usd": None if pico is None else pico / PICO,
            })  # fmt: skip

    def void(self, slot: Slot) -> None:
        """Give back the place of a request that was never sent; nothing for one that landed."""
        with self._lock:
            if self._slots.pop(slot.number, None) is None:
                return
            if slot.number == str(self._issued):
                self._issued -= 1
        if self.journal is not None:
            self.journal.append({"void": slot.number})

    def open_slot(self, number: str) -> Slot | None:
        """The place of a request that is being sent."""
        return self._slots.get(number)

    def keep(self, step: Step) -> None:
        """Put a landed step in its place: memory first, then one line on disk."""
        with self._lock:
            self._steps[step.step] = step
            self._slots.pop(step.step, None)
        if self.journal is not None:
            self.journal.append(step.as_json())
            self._drop_oldest()
        self._tell(step)

    def _tell(self, entry: Step | Refusal) -> None:
        if self.listener is not None:
            try:
                self.listener(entry)
            except Exception as error:  # noqa: BLE001 - whoever looks on may not stop the run
                warn(ListenerWarning(f"the listener failed: {type(error).__name__}: {error}"))

    def _drop_oldest(self) -> None:
        with self._lock:
            if self._keep is not None and len(self._steps) > self._keep:
                del self._steps[next(iter(self._steps))]
                self._dropped = True

    def note(self, label: str, /, **detail: Any) -> Step:
        """Record a local step: something that was done without asking a model."""
        if (resumed := self._resumable.note(label, detail)) is not None:
            return resumed
        step = Step(
            step=self.slot().number, label=label, kind="local", started_utc=now(), detail=detail
        )
        self.keep(step)
        return step

    def refuse(self, refusal: Refusal) -> None:
        """Record a request that was not sent."""
        with self._lock:
            self._refusals.append(refusal)
            self.budget_stop = True
            self.stop_reason = refusal.reason
        if self.journal is not None:
            self.journal.append({"refusal": refusal.as_json()})
        self._tell(refusal)

    def amend(self, number: str, **changes: Any) -> None:
        """Add to a step what is known only later: its state, that a fallback recovered it."""
        with self._lock:
            step = self._steps.get(number)
            for name, value in changes.items():
                if step is not None:
                    setattr(step, name, value)
        if self.journal is not None:
            self.journal.append({"amend": number, **changes})

    def stamp(self, first: int, *, source: str | None, recipe: str | None) -> None:
        """Label this run's steps, from ``first`` on, that carry no document or recipe yet."""
        for step in self.steps:
            if step.order[0] >= first:
                changes = {
                    name: value
                    for name, value in (("source", source), ("recipe", recipe))
                    if value is not None and getattr(step, name) is None
                }
                if changes:
                    self.amend(step.step, **changes)

    def absorb(self, child: "Trace") -> None:
        """Fold a child run in: its steps after mine, its counts, refusals and stop with it."""
        if child is self:
            raise TraceError("a trace cannot absorb itself")
        with self._lock:
            shift = self._issued
            self._issued += child.issued
        if self.journal is not None:  # its requests were noted in its own file, if it had one
            self.journal.append({"absorb": child.run_id, "after": shift, "steps": child.issued})
        for step in child.steps:
            head, *rest = step.step.split(".")
            self.keep(replace(
                step,
                step=".".join([str(int(head) + shift), *rest]),
                source=step.source or child.meta.get("source"),
                recipe=step.recipe or child.meta.get("recipe"),
            ))  # fmt: skip
            if child.ledger is not self.ledger:
                self.ledger.add(**step.counts())
        for refusal in child.refusals:
            self.refuse(refusal)
        if child.budget_stop:
            self.budget_stop, self.stop_reason = True, child.stop_reason

    def takeover(self, replay_key: str, draw_index: int) -> Step | None:
        """The step that already answers this request in a resumed run; each is taken once."""
        return self._resumable.request(replay_key, draw_index)

    def to_take_over(self) -> tuple[int, int]:
        """Requests of a resumed run that still wait to be asked again, and what they cost (pico).

        They are counted already: who looks ahead may not count them twice.
        """
        return self._resumable.left()

    def close(self) -> None:
        """Close the journal; the trace stays readable."""
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    def __repr__(self) -> str:
        return f"<Trace {self.run_id}>"

    def __str__(self) -> str:
        return accounts.printed(self)

    def _repr_html_(self) -> str:
        """The totals in a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"

    # --- files ------------------------------------------------------------------------------

    def _open(self, path: Path, *, resume: bool) -> None:
        self.journal = Journal(path, resume=resume)
        if path.stat().st_size == 0:
            self.journal.append(self._header())
            return
        self._read(read(path))
        self._resumable = Resumable(self.steps)
        former, self.recorded_limits = self.recorded_limits, None
        if self._refusals or former != self.governor.limits().as_json():
            self.journal.append(self._header())  # from here on other limits, and no refusal yet
        self._refusals.clear()
        self.budget_stop, self.stop_reason = False, None

    def _header(self) -> dict[str, Any]:
        return {"trace": FORMAT, **self._head()}

    def _head(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "started": self.started,
            "meta": self.meta,
            "actor": self.actor,
            "config": self.config,
            "limits": self.recorded_limits or self.governor.limits().as_json(),
        }

    def _read(self, lines: Iterable[Mapping[str, Any]]) -> None:
        stored = Stored(lines)
        head = stored.head
        self.run_id = head.get("run_id", self.run_id)
        self.started = head.get("started", self.started)
        self.meta, self.actor, self.config = (
            dict(head.get(name) or {}) for name in ("meta", "actor", "config")
        )
        self.recorded_limits = head.get("limits")
        self.budget_stop, self.stop_reason = stored.stop
        self._refusals, self._steps = stored.refusals, stored.steps
        self._issued, self._lost = stored.issued, list(stored.lost.values())
        for counts in stored.counts():
            self.ledger.add(**counts)


def _run_id() -> str:
    stamp = datetime.now(UTC).strftime("%Y%m%d%H%M%S.%f")[:-3]
    return f"run_{stamp}_{uuid.uuid4().hex[:6]}"


def _config() -> dict[str, Any]:
    """The settings in force, without header values: those can hold credentials."""
    import platform

    settings = dict(current_settings())
    settings["api_headers"] = sorted(settings["api_headers"])
    settings["api_base"] = public_url(settings["api_base"])
    settings["actor"] = dict(settings["actor"])
    allowed = settings["allowed_models"]
    settings["allowed_models"] = None if allowed is None else sorted(allowed)
    return {"settings": settings, "python": platform.python_version()}
