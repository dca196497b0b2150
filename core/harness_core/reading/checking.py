"""Whether a reader keeps what readers promise: it is run on a mock, and twelve things are looked at.

For whoever writes a reader; the package's own ones pass it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from harness_core.answer import Answer
from harness_core.calls.api import run_flow
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.documents.types import Chunks
from harness_core.errors import BadSettingError, HarnessError, holding_warnings
from harness_core.messages import SENTINEL
from harness_core.models.registry import register_model, unregister_model
from harness_core.reading.flow import make_job, read_flow
from harness_core.reading.registry import (
    checked_answer,
    find_reader,
    list_readers,
    registered_as,
    temporarily,
)
from harness_core.reading.spec import ReadSpec
from harness_core.segmenting.chunks import new_chunks

QUESTION = "What was the revenue of the Maple unit in 2024?"
_UNITS = ("Alder", "Birch", "Cedar", "Hazel", "Maple", "Rowan")
_SMALL = "check-reader-small-window"
_LONG = 60
"""Sentences of a chunk that does not fit the small window together with the others."""


class _Seen(NamedTuple):
    """One read: its answer, its trace, and the mock it asked."""

    answer: Answer
    trace: Trace
    client: MockClient


@dataclass
class _Probe:
    """A reader under test, and what its plain read came to."""

    name: str
    spec: ReadSpec
    registered: bool

    @cached_property
    def plain(self) -> _Seen:
        """A read without any trouble, one request at a time."""
        return self.read(max_concurrency=1)

    def read(
        self,
        said: str | Exception = "Revenue of the Maple unit was 45.2 million dollars in 2024.",
        *,
        chunks: Chunks | None = None,
        max_calls: int | None = None,
        concurrent: bool = False,
        **settings: Any,
    ) -> _Seen:
        """A read in which every request is answered with ``said``, or with a form that holds it."""
        client = MockClient(_saying(said), concurrent=concurrent)
        governor = Governor(
            max_calls=max_calls, max_cost_usd=None, max_tokens_total=None, max_output_tokens=None,
            allowed_models=None,
        )  # fmt: skip
        trace, spec = Trace(governor), self.spec.having(**settings)
        text = _chunks() if chunks is None else chunks
        if max_calls is None:
            flow = read_flow(text, QUESTION, client, spec, trace, heard=[])
        else:  # past the pre-flight, which would refuse it
            job = make_job(text, QUESTION, spec, client, trace)
            flow = find_reader(self.name).reader.read(job)
        answer = run_flow(flow, client, trace, width=spec.max_concurrency)
        return _Seen(checked_answer(self.name, answer), trace, client)


def check_reader(reader: Any, spec: Any = None) -> list[dict[str, Any]]:
    """Run a reader on a mock client and a few chunks; one row (check, ok, detail) per promise.

    ``reader`` is a registered name, or a reader (object, class or generator function) that is not
    registered yet. ``spec`` holds settings that it cannot do without: criteria, fields.

    ``registered``: it is, its signature is three parts and no other reader's. ``answer``: an
    ``Answer`` under its name to the question asked. ``trace``: the answer's trace is the one of the
    run, and every request is in it. ``stages``: each request carries a label it declared.
    ``chunks_used``: ids that were given, once each. ``evidence``: about chunks that were given.
    ``failures``: if every request fails the answer is partial and nothing is invented. ``replies``:
    empty ones make it partial; the sentinel is a whole "not found". ``limits``: under a limit of no
    request nothing is sent and the answer is partial. ``no_chunks``: an empty document is no
    accident. ``window``: no prompt is larger than a small model's window. ``parallel``: with
    several requests in flight the answer is the same. ``detail`` says what went wrong.

    Raises:
        UnknownMethodError: a name that nobody registered.
        BadSettingError: something that is no reader.
    """
    with holding_warnings(), _named(reader) as (name, registered):
        probe = _Probe(name, _spec_of(name, spec), registered)
        return [_row(check, look, probe) for check, look in _CHECKS.items()]


def _spec_of(name: str, spec: Any) -> ReadSpec:
    if spec is None or isinstance(spec, Mapping):
        return ReadSpec(name).having(**{**(spec or {}), "reader": name})
    return ReadSpec.of(spec).having(reader=name)


@contextmanager
def _named(reader: Any) -> Iterator[tuple[str, bool]]:
    name = reader if isinstance(reader, str) else registered_as(reader)
    if name is not None:
        yield find_reader(name).name, True
        return
    with temporarily(reader) as given:
        yield given, False


def _row(check: str, look: Callable[[_Probe], str | None], probe: _Probe) -> dict[str, Any]:
    try:
        fault = look(probe)
    except Exception as what:  # a reader may fail in any way, and that is the finding
        fault = f"{type(what).__name__}: {what}"
    return {"check": check, "ok": fault is None, "detail": fault or ""}


# --- the checks: each gives what is wrong, None for nothing --------------------------------------


def _registered(probe: _Probe) -> str | None:
    if not probe.registered:
        return "it is not registered; see register_reader"
    signature = find_reader(probe.name).signature
    others = [row["name"] for row in list_readers() if row["signature"] == signature]
    others.remove(probe.name)
    return f"its signature {signature} is that of {', '.join(others)}" if others else None


def _answer(probe: _Probe) -> str | None:
    answer = probe.plain.answer
    if answer.reader != probe.name:
        return f"answer.reader is {answer.reader!r}, not {probe.name!r}"
    if answer.question != QUESTION:
        return f"answer.question is {answer.question!r}, not the question that was asked"
    return None if answer.answer.strip() else "the answer is blank; say the sentinel instead"


def _trace(probe: _Probe) -> str | None:
    answer, trace, client = probe.plain
    if answer.trace is not trace:
        return "answer.trace is not the trace of the run; end with job.answer(...)"
    sent, known = len(client.calls()) + len(client.embeds()), len(trace.requests)
    return None if sent == known else f"{sent} request(s) reached the client, {known} are recorded"


def _stages(probe: _Probe) -> str | None:
    stems = find_reader(probe.name).reader.stages
    labels = dict.fromkeys(call.label for call in probe.plain.client.calls())
    strange = [
        label
        for label in labels
        if not any(label == stem or label.startswith(f"{stem}.") for stem in _known_stages(stems))
    ]
    return f"it declares no stage for {', '.join(strange)}" if strange else None


def _known_stages(stems: tuple[str, ...]) -> tuple[str, ...]:
    """A reader that runs others sends their stages as well."""
    if "ensemble.adjudicate" not in stems:
        return stems
    return tuple(stem for row in list_readers() for stem in row["calls"])


def _chunks_used(probe: _Probe) -> str | None:
    used = probe.plain.answer.chunks_used
    strange = [one for one in used if one not in _ids()]
    if strange:
        return f"chunks_used names chunks that were not given: {strange}"
    return None if len(set(used)) == len(used) else f"chunks_used names a chunk twice: {used}"


def _evidence(probe: _Probe) -> str | None:
    about = [row.chunk_id for row in probe.plain.answer.evidence]
    strange = [one for one in about if one is not None and one not in _ids()]
    return f"evidence is about chunks that were not given: {strange}" if strange else None


def _failures(probe: _Probe) -> str | None:
    return _must_be_empty(probe.read(RuntimeError("down")).answer, "if every request fails")


def _replies(probe: _Probe) -> str | None:
    if not probe.read("").answer.partial:
        return "the answer is not partial when every reply is empty"
    answer, _, client = probe.read(SENTINEL)
    if all(call.params["schema"] is not None for call in client.calls()):
        return None  # it asks for forms alone, and those hold no sentinel
    if answer.found:
        return f"the sentinel as a reply gives the answer {answer.answer[:60]!r}"
    return f"the sentinel as a reply makes it partial: {answer.notes}" if answer.partial else None


def _limits(probe: _Probe) -> str | None:
    answer, _, client = probe.read(max_calls=0)
    if sent := len(client.calls()) + len(client.embeds()):
        return f"{sent} request(s) were sent under a limit of none"
    return _must_be_empty(answer, "under a limit of no request")


def _no_chunks(probe: _Probe) -> str | None:
    try:
        answer, _, client = probe.read(chunks=Chunks(chunks=()))
    except HarnessError:
        return None
    if client.calls() and answer.found:
        return "it answers from no chunks at all"
    return None


def _window(probe: _Probe) -> str | None:
    register_model(_SMALL, context_window=2000, max_output=300, input_usd=0, output_usd=0)
    try:
        _, trace, _ = probe.read(chunks=_chunks(_LONG), model=_SMALL)
    finally:
        unregister_model(_SMALL)
    large = [s.label for s in trace.requests if not s.ok and not s.cached and not s.attempts]
    return f"prompts larger than the window: {', '.join(dict.fromkeys(large))}" if large else None


def _parallel(probe: _Probe) -> str | None:
    many = probe.read(concurrent=True, max_concurrency=4)
    for name in ("answer", "partial", "chunks_used", "notes"):
        one, other = getattr(probe.plain.answer, name), getattr(many.answer, name)
        if one != other:
            return f"{name} is {other!r} with four requests in flight, {one!r} with one"
    same = [s.label for s in many.trace.steps] == [s.label for s in probe.plain.trace.steps]
    return None if same else "its steps differ with four requests in flight"


def _must_be_empty(answer: Answer, when: str) -> str | None:
    if answer.found:
        return f"{when} it answers {answer.answer[:60]!r}"
    return None if answer.partial else f"{when} the answer is not partial"


_CHECKS: Mapping[str, Callable[[_Probe], str | None]] = {
    "registered": _registered,
    "answer": _answer,
    "trace": _trace,
    "stages": _stages,
    "chunks_used": _chunks_used,
    "evidence": _evidence,
    "failures": _failures,
    "replies": _replies,
    "limits": _limits,
    "no_chunks": _no_chunks,
    "window": _window,
    "parallel": _parallel,
}


# --- what it is run on ---------------------------------------------------------------------------


def _chunks(sentences: int = 1) -> Chunks:
    """Six chunks under three headings; ``sentences`` long, each with a figure of its own."""
    texts = [
        f"Revenue of the {unit} unit was {number}.2 million dollars in 2024. "
        + "Its costs were stable. " * sentences
        for number, unit in enumerate(_UNITS, 41)
    ]
    return new_chunks(texts, section=["Sales", "Sales", "Costs", "Costs", "Outlook", "Outlook"])


def _ids() -> set[int]:
    return set(range(1, len(_UNITS) + 1))


def _saying(said: str | Exception) -> Callable[[Any, Mapping[str, Any]], str]:
    def reply(_messages: Any, params: Mapping[str, Any]) -> str:
        if isinstance(said, Exception):
            raise said
        form = params["schema"]
        return json.dumps(_filled(form, said)) if form is not None and said else said

    return reply


def _filled(form: Mapping[str, Any], said: str) -> Any:
    """The least that a JSON schema asks for; ``said`` where it asks for text."""
    kind = form.get("type", "string")
    if form.get("enum"):
        return form["enum"][0]
    if "null" in kind:
        return None
    if kind == "object":
        return {name: _filled(one, said) for name, one in form.get("properties", {}).items()}
    if kind == "array":
        return [_filled(form.get("items", {}), said)]
    number = form.get("maximum", form.get("minimum", 1))
    return {"boolean": True, "integer": number, "number": number}.get(kind, said)
