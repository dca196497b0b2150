"""Whether a reader keeps what readers promise: it is run on a mock and looked at twelve times.

For whoever writes a reader; the package's own ones pass it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness_core.answer import Answer
from harness_core.documents.types import Chunks
from harness_core.errors import HarnessError, holding_warnings
from harness_core.messages import SENTINEL, parse_json
from harness_core.models.registry import register_model, unregister_model
from harness_core.reading.registry import find_reader, list_readers, registered_as, temporarily
from harness_core.reading.spec import ReadSpec
from harness_core.reading.trial import QUESTION, Probe, chunks_of_length, ids

_SMALL = "check-reader-small-window"
_LONG = 60
"""Sentences of a chunk that does not fit the small window together with the others."""


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
        probe = Probe(name, _spec_of(name, spec), registered)
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


def _row(check: str, look: Callable[[Probe], str | None], probe: Probe) -> dict[str, Any]:
    try:
        fault = look(probe)
    except Exception as what:  # noqa: BLE001 - a reader may fail in any way: that is the finding
        fault = f"{type(what).__name__}: {what}"
    return {"check": check, "ok": fault is None, "detail": fault or ""}


# --- the checks: each gives what is wrong, None for nothing --------------------------------------


def _registered(probe: Probe) -> str | None:
    if not probe.registered:
        return "it is not registered; see register_reader"
    signature = find_reader(probe.name).signature
    others = [row["name"] for row in list_readers() if row["signature"] == signature]
    others.remove(probe.name)
    return f"its signature {signature} is that of {', '.join(others)}" if others else None


def _answer(probe: Probe) -> str | None:
    answer = probe.plain.answer
    if answer.reader != probe.name:
        return f"answer.reader is {answer.reader!r}, not {probe.name!r}"
    if answer.question != QUESTION:
        return f"answer.question is {answer.question!r}, not the question that was asked"
    return None if answer.answer.strip() else "the answer is blank; say the sentinel instead"


def _trace(probe: Probe) -> str | None:
    answer, trace, client = probe.plain
    if answer.trace is not trace:
        return "answer.trace is not the trace of the run; end with job.answer(...)"
    sent, known = len(client.calls()) + len(client.embeds()), len(trace.requests)
    return None if sent == known else f"{sent} request(s) reached the client, {known} are recorded"


def _stages(probe: Probe) -> str | None:
    stems = set(find_reader(probe.name).reader.stages)
    if _runs_others(probe):
        stems.update(stem for row in list_readers() for stem in row["calls"])
    labels = dict.fromkeys(call.label for call in probe.plain.client.calls())
    strange = [
        label
        for label in labels
        if not any(label == stem or label.startswith(f"{stem}.") for stem in stems)
    ]
    return f"it declares no stage for {', '.join(strange)}" if strange else None


def _runs_others(probe: Probe) -> bool:
    """Such a reader sends its members' stages, and is partial whenever none of them answers."""
    return find_reader(probe.name).signature.startswith("ensemble|")


def _chunks_used(probe: Probe) -> str | None:
    used = probe.plain.answer.chunks_used
    strange = [one for one in used if one not in ids()]
    if strange:
        return f"chunks_used names chunks that were not given: {strange}"
    return None if len(set(used)) == len(used) else f"chunks_used names a chunk twice: {used}"


def _evidence(probe: Probe) -> str | None:
    about = [row.chunk_id for row in probe.plain.answer.evidence]
    strange = [one for one in about if one is not None and one not in ids()]
    return f"evidence is about chunks that were not given: {strange}" if strange else None


def _failures(probe: Probe) -> str | None:
    return _must_be_empty(probe.read(RuntimeError("down")).answer, "if every request fails")


def _replies(probe: Probe) -> str | None:
    if not probe.read("").answer.partial:
        return "the answer is not partial when every reply is empty"
    answer, _, client = probe.read(SENTINEL)
    if all(call.params["schema"] is not None for call in client.calls()):
        return None  # it asks for forms alone, and those hold no sentinel
    if answer.found:
        return f"the sentinel as a reply gives the answer {answer.answer[:60]!r}"
    wrong = answer.partial and not _runs_others(probe)
    return f"the sentinel as a reply makes it partial: {answer.notes}" if wrong else None


def _limits(probe: Probe) -> str | None:
    answer, _, client = probe.read(max_calls=0)
    if sent := len(client.calls()) + len(client.embeds()):
        return f"{sent} request(s) were sent under a limit of none"
    return _must_be_empty(answer, "under a limit of no request")


def _no_chunks(probe: Probe) -> str | None:
    try:
        answer, _, client = probe.read(chunks=Chunks(chunks=()))
    except HarnessError:
        return None
    if client.calls() and answer.found:
        return "it answers from no chunks at all"
    return None


def _window(probe: Probe) -> str | None:
    register_model(_SMALL, context_window=2000, max_output=300, input_usd=0, output_usd=0)
    try:
        _, trace, _ = probe.read(chunks=chunks_of_length(_LONG), model=_SMALL)
    finally:
        unregister_model(_SMALL)
    large = [s.label for s in trace.requests if not s.ok and not s.cached and not s.attempts]
    return f"prompts larger than the window: {', '.join(dict.fromkeys(large))}" if large else None


def _parallel(probe: Probe) -> str | None:
    many = probe.read(concurrent=True, max_concurrency=4)
    for name in ("answer", "partial", "chunks_used", "notes"):
        one, other = getattr(probe.plain.answer, name), getattr(many.answer, name)
        if one != other:
            return f"{name} is {other!r} with four requests in flight, {one!r} with one"
    alone = [call.label for call in probe.plain.client.calls()]
    same = [call.label for call in many.client.calls()] == alone
    return None if same else "its requests differ with four in flight"


def _must_be_empty(answer: Answer, when: str) -> str | None:
    form = parse_json(answer.answer) or {"": answer.answer}
    if answer.found and any(value is not None for value in form.values()):
        return f"{when} it answers {answer.answer[:60]!r}"
    return None if answer.partial else f"{when} the answer is not partial"


_CHECKS: Mapping[str, Callable[[Probe], str | None]] = {
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
