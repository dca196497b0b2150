"""A test's recording as something to answer from, which says at length what it does not hold."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher, unified_diff
from itertools import zip_longest
from pathlib import Path
from typing import Any

from harness_core.calls import keys
from harness_core.calls.prepare import Call
from harness_core.calls.recording import Recording
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.errors import (
    ReplayExhaustedError,
    ReplayMissError,
    ReplayUnreadableError,
    TraceError,
)
from harness_core.messages import Message, Request
from harness_integrations.pytest_plugin.places import Place
from harness_integrations.pytest_plugin.scrubbing import Scrubber

_SETTINGS = ("model", "max_output_asked", "temperature", "effort", "stop", "n", "tools",
             "tool_hashes", "tool_choice", "schema_hash")  # fmt: skip
_SAID = {"max_output_asked": "max_output", "tool_hashes": "tools", "schema_hash": "schema"}
_COMPARED = 4000  # characters of a prompt that decide which recorded one is nearest
_LONGEST = 400  # characters of a line in a message
_LET_IT = (
    "Give the model a price with register_model(), or let it be used without one: "
    "harness_recording.limits(allow_unpriced=True)"
)


class TestRecording(Recording):
    """The recording of one test, empty where there is none; it knows what of it was used."""

    __test__ = False  # no test class, whatever its name

    def __init__(self, place: Place, scrubber: Scrubber, *, read: bool) -> None:
        super().__init__(
            read_recording(place) if read else Trace(), strict=True, on_exhausted="error"
        )
        self.place = place
        self.found = read
        self.used: set[str] = set()
        self.complaints: list[str] = []
        self._scrubber = scrubber

    # --- what is answered -----------------------------------------------------------------------

    def find(self, call: Call) -> Step | None:
        """The recorded step that answers this request; each is given once."""
        try:
            step = super().find(call)
        except ReplayExhaustedError as error:
            message = f"{error}\n{self._advice()}"
            self.complaints.append(message)
            raise ReplayExhaustedError(message) from None
        if step is not None:
            self.used.add(step.step)
        return step

    def embeddings(self, call: Call) -> Step | None:
        """The recorded vectors; texts that were not embedded then are a miss.

        Raises:
            ReplayMissError: nothing is recorded for these texts.
        """
        step = super().embeddings(call)
        if step is None:
            message = self._no_vectors(call)
            self.complaints.append(message)
            raise ReplayMissError(message)
        self.used.add(step.step)
        return step

    def has(self, call: Call) -> bool:
        """Whether the next such request is answered from here."""
        if call.embedding:
            return super().embeddings(call) is not None
        return self._next(call) is not None or self._cut_short(call)

    def take(self, replay_key: str, draw_index: int) -> Step | None:
        """The next recorded step of a request, without a word where there is none."""
        with self._lock:
            if (texts := self._texts.get(replay_key)) is not None:
                self.used.add(texts.step)
                return texts
            drawer = self._drawers.get(replay_key)
            step = drawer.next(draw_index) if drawer is not None else None
            if drawer is not None and step is not None:
                drawer.taken += not draw_index
                self.used.add(step.step)
            return step

    def unused(self) -> list[Step]:
        """The recorded requests that were not made."""
        return [step for step in self.trace.requests if step.step not in self.used]

    # --- what is said of a miss -----------------------------------------------------------------

    def _why(self, call: Call) -> str:
        message = "\n".join(self._told(call))
        self.complaints.append(message)
        return message

    def _told(self, call: Call) -> Iterator[str]:
        if not self.found:
            yield f"there is no recording {self.place} to answer this {call.label!r} request."
        elif not self.steps or not isinstance(call.asked, Request):
            yield f"the recording {self.place} holds no request like this {call.label!r} one."
        else:
            asked = replace(call, asked=self._scrubber.request(call.asked))
            near = nearest(self.steps, asked)
            yield (
                f"the recording {self.place} does not hold this {call.label!r} request. "
                f"Against the nearest of its {len(self.steps)} requests (step {near.step}, "
                f"{near.label!r}):"
            )
            yield from difference(near, asked)
        if self.trace.budget_stop:
            reasons = {one.reason for one in self.trace.refusals}
            yield f"The recorded run was cut short by a limit ({', '.join(sorted(reasons))}). " + (
                _LET_IT if "unpriced" in reasons else "Another is set by harness_recording.limits()"
            )
        yield self._advice()

    def _no_vectors(self, call: Call) -> str:
        held = sum(step.vectors is not None for step in self.trace.steps)
        texts = [] if isinstance(call.asked, Request) else list(call.asked.texts)
        return (
            f"the recording {self.place} holds no vectors for these {len(texts)} text(s) "
            f"embedded with {call.model!r} (it holds {held} such request(s)): "
            f"{_short(texts[0]) if texts else ''!r}\n{self._advice()}"
        )

    def _advice(self) -> str:
        again = self.place.again
        if not self.found:
            return f"To record it: {again} --harness-record=once"
        return (
            f"To record what is missing: {again} --harness-record=new\n"
            f"To record the test anew: {again} --harness-record=all"
        )


def unkept(place: Place, reasons: Collection[str]) -> str:
    """What to say where limits refused every request, so that nothing was recorded."""
    way = _LET_IT if "unpriced" in reasons else "Other limits are set by harness_recording.limits()"
    return (
        f"nothing was recorded in {place}: limits refused every request "
        f"({', '.join(sorted(reasons))}). {way}"
    )


def read_recording(place: Place) -> Trace:
    """The trace of a test's recording.

    Raises:
        ReplayUnreadableError: the file is damaged.
    """
    said = f". Restore the file, or record it anew: {place.again} --harness-record=all"
    try:
        if not whole(place.path):
            raise TraceError("its last line is cut off")
        return Trace.load(place.path)
    except (TraceError, OSError) as error:
        raise ReplayUnreadableError(
            f"the recording {place} cannot be read: {error}{said}"
        ) from None


def whole(path: Path) -> bool:
    """Whether a file ends with the end of a line."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return file.read(1) == b"\n"


def nearest(steps: Sequence[Step], call: Call) -> Step:
    """The recorded request that has most in common with one that is asked."""
    asked = _flat(call.asked.messages)[-_COMPARED:] if isinstance(call.asked, Request) else ""

    def likeness(step: Step) -> tuple[float, bool]:
        there = _flat(step.prompt)[-_COMPARED:]
        return SequenceMatcher(None, asked, there, autojunk=False).quick_ratio(), (
            step.label == call.label
        )

    return max(steps, key=likeness)


def difference(step: Step, call: Call) -> Iterator[str]:
    """What a request asks otherwise than a recorded one: settings, tools, schema, messages."""
    told: set[str] = set()
    for name in _SETTINGS:
        was, now = step.params.get(name), call.params.get(name)
        said = _SAID.get(name, name)
        if was != now and said not in told:
            told.add(said)
            yield f"  {said}: {_setting(name, was)} was recorded, {_setting(name, now)} is asked"
    asked = call.asked.messages if isinstance(call.asked, Request) else ()
    if keys.canonical([m.as_json() for m in asked]) != keys.canonical(
        [m.as_json() for m in step.prompt]
    ):
        yield from _messages(step.prompt, asked)
    elif not told:
        yield f"  nothing: it is recorded, and asked once more (draw {call.demand.draw_index})"


def _messages(was: Sequence[Message], now: Sequence[Message]) -> Iterator[str]:
    for number, (one, other) in enumerate(zip_longest(was, now), start=1):
        before, after = list(_lines(one)), list(_lines(other))
        if before != after:
            said = other or one
            yield f"  message {number} ({said.role if said else ''}), recorded (-) and asked (+):"
            for line in list(unified_diff(before, after, n=1, lineterm=""))[2:]:
                yield "    ..." if line.startswith("@@") else f"    {_short(line)}"


def _lines(message: Message | None) -> Iterator[str]:
    if message is None:
        return
    for line in message.content.splitlines():
        yield from re.split(r"(?<=[.!?;]) +", line)
    for name, value in sorted((message.more or {}).items()):
        yield f"{name}: {keys.canonical(value).decode()}"


def _setting(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if name == "tool_hashes":
        return ", ".join(f"{one[0]} ({str(one[1])[:8]})" for one in value)
    return str(value)[:8] if name == "schema_hash" else repr(value)


def _flat(messages: Sequence[Message]) -> str:
    return "\n".join(one.content for one in messages)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def notes(trace: Trace, label: str) -> list[Mapping[str, Any]]:
    """The details of a trace's local steps of one label."""
    return [step.detail or {} for step in trace.steps if step.label == label]
