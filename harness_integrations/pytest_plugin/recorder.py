"""What the fixture ``harness_recording`` gives a test."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest

from harness_core import flush_caches
from harness_core.calls import keys
from harness_core.calls.governor import UNSET, Governor, Refusal
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.errors import BadSettingError
from harness_integrations.pytest_plugin import modes, writing
from harness_integrations.pytest_plugin.budgets import Lease
from harness_integrations.pytest_plugin.clients import (
    ExtendingClient,
    RecordingClient,
    ReplayingClient,
    Sent,
)
from harness_integrations.pytest_plugin.modes import Mode
from harness_integrations.pytest_plugin.numbering import renumbered, shifted
from harness_integrations.pytest_plugin.places import Place
from harness_integrations.pytest_plugin.recordings import TestRecording, notes, unkept
from harness_integrations.pytest_plugin.scrubbing import Redact, Scrubber
from harness_integrations.pytest_plugin.targets import framework_of, kind_of, makes, owner_of

T = TypeVar("T")

NOTE = "harness_recording"
"""Label of the steps that say what was wrapped: a replay without the real object goes by them."""


class ExtendedTrace(Trace):
    """A trace whose requests are answered from a recording first, under no number of their own."""

    recording: TestRecording | None = None

    def takeover(self, replay_key: str, draw_index: int) -> Step | None:
        """The recorded step that answers this request already."""
        if self.recording is None:
            return None
        step = self.recording.take(replay_key, draw_index)
        return None if step is None else replace(step, cached=True)


class HarnessRecording:
    """One test's recording, and what it wraps: see the methods.

    Each takes the real object, or a function that makes it and that a replay never calls. What they
    return is used in the place of the real one. ``trace`` holds the requests of models and
    embeddings, and of clients where it is passed on as ``trace=``.

    Raises:
        ReplayUnreadableError: the recording is damaged.
        TraceError: it would have to be written and cannot be.
    """

    def __init__(
        self,
        *,
        place: Place,
        mode: Mode,
        redact: Redact | None = None,
        vectors: bool = True,
        lease: Callable[[], Lease] | None = None,
    ) -> None:
        recorded = place.path.is_file()
        self.place = place
        self.sends = modes.sends(mode, recorded=recorded)
        self.scrubber = Scrubber(redact)
        self.recording = TestRecording(
            place, self.scrubber, read=modes.replays(mode, recorded=recorded)
        )
        self.replays = self.recording.found
        if self.sends:
            writing.check_writable(place.path)
            flush_caches()  # a vector that another test asked for would not be asked for here
        self._lease = lease() if lease is not None and self.sends else None
        self._usd = None if self._lease is None else self._lease.usd
        self._limits: dict[str, Any] = dict(self.recording.trace.recorded_limits or {})
        self.trace = self._made(vectors=vectors)
        self._sent = Sent(self.trace, self._usd, vectors=vectors)
        self._undo = ExitStack()
        self._counts: dict[str, int] = {}
        self.unkept: str | None = None
        """Why there is no recording, where limits refused everything."""

    # --- wrapping -------------------------------------------------------------------------------

    def client(self, real: Client | Callable[[], Client] | None = None) -> Client:
        """A core client that replays or records; whatever trace its requests belong to."""
        if not self.sends:
            return ReplayingClient(self.recording, self.scrubber)
        live = RecordingClient(
            self.real(real, lambda one: hasattr(one, "send"), "a client"), self._sent
        )
        return ExtendingClient(self.recording, live) if self.replays else live

    def chat_model(self, real: Any = None) -> Any:
        """A LangChain chat model that replays or records, on ``trace``."""
        from harness_integrations.pytest_plugin import chains

        return chains.chat_model(self, real)

    def llm(self, real: Any = None) -> Any:
        """A LlamaIndex LLM that replays or records, on ``trace``."""
        from harness_integrations.pytest_plugin import indexes

        return indexes.llm(self, real)

    def embeddings(self, real: Any = None) -> Any:
        """Embeddings of LangChain or LlamaIndex, their vectors replayed or recorded."""
        if self.framework("embeddings", real) == "langchain":
            from harness_integrations.pytest_plugin import chains

            return chains.embeddings(self, real)
        from harness_integrations.pytest_plugin import indexes

        return indexes.embeddings(self, real)

    def runnable(self, real: Any, *, model: Any = None) -> Any:
        """A LangChain runnable, every model in it one that replays or records.

        With ``model`` (a chat model, or a function that makes one) ``real`` is a function that
        builds the runnable from it, so that a replay needs no provider package.
        """
        from harness_integrations.pytest_plugin import chains

        if model is not None:
            return real(self.chat_model(model))
        return chains.runnable(self, real)

    def engine(self, real: Any, *, llm: Any = None, embed_model: Any = None) -> Any:
        """A LlamaIndex engine, retriever, synthesizer or agent whose LLM replays or records.

        With ``llm`` (and ``embed_model``) ``real`` is a function that builds it from them, so that
        a replay needs no provider package; without, the LLMs that ``real`` holds are replaced.
        """
        if llm is not None or embed_model is not None:
            given = [] if llm is None else [self.llm(llm)]
            return real(*given, *([] if embed_model is None else [self.embeddings(embed_model)]))
        from harness_integrations.pytest_plugin import indexes

        return indexes.engine(self, real)

    def settings(self, *, llm: Any = None, embed_model: Any = None) -> Any:
        """LlamaIndex's ``Settings``, its LLM (and embeddings) replaced until the test has ended."""
        from harness_integrations.pytest_plugin import indexes

        return indexes.settings(self, llm, embed_model)

    def patch(self, target: str) -> None:
        """Replace ``package.module.name``, an object or a function that makes one, for this test.

        Raises:
            BadSettingError: there is no such name, or what it names cannot be recorded.
        """
        owner, name = owner_of(target)
        before = getattr(owner, name)
        monkey = pytest.MonkeyPatch()
        self._undo.callback(monkey.undo)
        if makes(before):
            monkey.setattr(owner, name, partial(self._of_factory, target, before))
        else:
            monkey.setattr(owner, name, self.any(before))

    def any(self, real: Any) -> Any:
        """Whatever ``real`` is, replaying or recording.

        Raises:
            BadSettingError: it is nothing that sends requests.
        """
        return getattr(self, kind_of(real))(real)

    def limits(self, **limits: Any) -> None:
        """Limits of ``trace``, as of a ``Governor``; without, a replay is under the recorded."""
        self._limits = limits
        self.trace.governor = self._governor()

    def limits_of(self, trace: Trace | None, governor: Governor | None) -> None:
        """The limits of a governed object, where it has any, as those of this recording."""
        own = governor if trace is None else trace.governor
        if own is not None:
            given = own._given  # noqa: SLF001 - what was left out follows the settings, here too
            self.limits(**{k: v for k, v in given.items() if v is not UNSET})

    def restore(self, undo: Callable[[], object]) -> None:
        """Have something undone when the test has ended."""
        self._undo.callback(undo)

    # --- what the wrappers need -----------------------------------------------------------------

    def real(self, given: Any, known: Callable[[Any], bool], what: str) -> Any:
        """The real object, made if need be.

        Raises:
            BadSettingError: there is none, and it is needed.
        """
        made = given() if makes(given) or (callable(given) and not known(given)) else given
        if made is None or not known(made):
            raise BadSettingError(
                f"{what} is needed to record {self.place}, or a function that makes one, "
                f"not {type(made).__name__}"
            )
        return made

    def note(self, kind: str, **detail: Any) -> None:
        """Say in the recording what was wrapped."""
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count > len(self.noted(kind)):
            self.trace.note(NOTE, kind=kind, **detail)

    def noted(self, kind: str) -> list[dict[str, Any]]:
        """What the recording says of the objects of a kind that were wrapped, in order."""
        return [dict(one) for one in notes(self.recording.trace, NOTE) if one.get("kind") == kind]

    def next_noted(self, kind: str) -> dict[str, Any]:
        """What the recording says of the next object of a kind; the last one stands for more."""
        known = self.noted(kind)
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return known[min(count, len(known)) - 1] if known else {}

    def framework(self, kind: str, real: Any) -> str:
        """The framework of an object that may not be there: as it was recorded."""
        if (module := framework_of(real)) is not None:
            return module
        known = self.noted(kind)
        if known and not self.sends:
            return str(known[0].get("framework"))
        if makes(real) and self.sends:
            made = real()
            return self.framework(kind, made)
        raise BadSettingError(
            f"the recording {self.place} does not say which framework's {kind} these are; "
            f"give the object, or record it: {self.place.again} --harness-record=once"
        )

    # --- the end --------------------------------------------------------------------------------

    def finish(self, *, passed: bool, strict: bool) -> None:
        """Undo what was replaced, keep what was recorded, and say what was not as recorded.

        A test that caught the error of a miss fails all the same.
        """
        self._undo.close()
        if self._lease is not None:
            self._lease.close(self._sent.spent_usd)
        if self.sends:
            self._save(passed=passed)
        if passed and self.unkept:
            pytest.fail(self.unkept, pytrace=False)
        if not passed or (self.sends and not self.replays):
            return
        if self.recording.complaints:
            pytest.fail(
                "the test went on after a request that its recording does not answer:\n"
                + self.recording.complaints[0], pytrace=False,
            )  # fmt: skip
        unused = self.recording.unused()
        if strict and unused:
            shown = "\n".join(
                f"  step {one.step} ({one.label}): {_last(one)}" for one in unused[:5]
            )
            pytest.fail(
                f"{len(unused)} recorded request(s) of {self.place} were not made:\n{shown}\n"
                f"To record the test anew: {self.place.again} --harness-record=all", pytrace=False,
            )  # fmt: skip

    def _save(self, *, passed: bool) -> None:
        fresh, refusals = self._fresh()
        if all(step.local for step in fresh):
            reasons = {one.reason for one in refusals}
            meant = passed and "unpriced" not in reasons  # a test of a limit passes on its refusal
            if refusals and not self.replays and not meant:
                self.unkept = unkept(self.place, reasons)
            if self.unkept or not refusals:
                return
        steps = self._continued(fresh) if self.replays else fresh
        refused = [*self.recording.trace.refusals, *refusals] if self.replays else refusals
        writing.write(
            self.place.path, renumbered(steps), refused, self._kept_limits(), self.scrubber
        )

    def _continued(self, fresh: list[Step]) -> list[Step]:
        """The recorded steps and the new ones, without what either tells a second time."""

        def told(step: Step) -> object:
            kept = writing.kept(step, self.scrubber, {})
            return keys.canonical([step.label, kept.get("detail"), kept.get("replay_key")])

        recorded = self.recording.trace.steps
        asked = {told(step) for step in fresh if not step.local}
        known = {told(step) for step in recorded if step.local}
        former = [
            step
            for step in recorded
            if step.local or step.step in self.recording.used or told(step) not in asked
        ]
        return [*former, *(step for step in fresh if not step.local or told(step) not in known)]

    def _fresh(self) -> tuple[list[Step], list[Refusal]]:
        """What this test did, in its own trace and in others that its clients were used in."""
        steps = [step for step in self.trace.steps if not _refused_by_budget(step)]
        refusals = list(self.trace.refusals)
        for trace, numbers in self._sent.steps.items():
            first = max((step.order[0] for step in steps), default=0)
            theirs = [step for step in trace.steps if step.local or step.step in numbers]
            steps += [replace(step, step=shifted(step.step, first)) for step in theirs]
            refusals += trace.refusals
        if self._usd is not None and self._limits.get("max_cost_usd") is None:
            refusals = [one for one in refusals if one.reason not in ("cost", "unpriced")]
        return steps, refusals

    def _kept_limits(self) -> dict[str, Any]:
        return Governor(**self._limits).limits().as_json()

    def _made(self, *, vectors: bool) -> Trace:
        trace = ExtendedTrace(self._governor(), record_embeddings=vectors)
        trace.recording = self.recording if self.sends and self.replays else None
        return trace

    def _governor(self) -> Governor:
        most = [one for one in (self._limits.get("max_cost_usd"), self._usd) if one is not None]
        limits = (
            {**self._limits, "max_cost_usd": min(most)} if most and self.sends else self._limits
        )
        return Governor(**limits)

    def _of_factory(
        self, target: str, before: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """What a patched function gives: the real one is called only to record."""
        kind = f"patch:{target}"
        if self.sends:
            made = before(*args, **kwargs)
            self.note(kind, made=kind_of(made), framework=framework_of(made))
            return self.any(made)
        known = self.next_noted(kind)
        return getattr(self, str(known.get("made", "client")))()


def _refused_by_budget(step: Step) -> bool:
    return not step.ok and (step.error or "").startswith(
        "RequestRefused: the budget of this test run"
    )


def _last(step: Step) -> str:
    said = step.prompt[-1].content if step.prompt else "texts to embed"
    return repr(said if len(said) <= 70 else f"{said[:70]}...")
