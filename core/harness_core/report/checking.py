"""Whether a trace file is whole and adds up."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from harness_core.calls.journal import document_lines
from harness_core.calls.steps import Step, order
from harness_core.calls.stored import Stored
from harness_core.calls.trace import Trace
from harness_core.errors import TraceError

_TOLERANCE = 1e-9


def check_trace(path: str | os.PathLike[str]) -> list[str]:
    """What is wrong with a trace file, in words; empty when nothing is. Unknown fields are fine.

    Looked for: lines that are torn or no JSON, entries that cannot be read, missing and doubled
    numbers, requests without a reply, replies that were never noted as sent, and sums that do not
    add up.

    Raises:
        TraceError: the file is missing or cannot be read at all.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise TraceError(f"{file} cannot be read: {error.strerror}") from error
    document = _parsed(data)
    if isinstance(document, Mapping) and ("steps" in document or "question" in document):
        return list(_document(document, file))
    return list(_journal(data))


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        return None


# --- one line a step ------------------------------------------------------------------------------


def _journal(data: bytes) -> Iterator[str]:
    lines: list[Mapping[str, Any]] = []
    for number, text in enumerate(data.splitlines(keepends=True), start=1):
        value = _parsed(text)
        if isinstance(value, Mapping):
            lines.append(value)
        elif text.strip():
            torn = not text.endswith(b"\n")
            yield f"line {number} is " + ("torn: the run was killed while it wrote" if torn
                                          else f"no JSON object: {text[:60]!r}")  # fmt: skip
    if not lines or not isinstance(lines[0].get("trace"), int):
        yield "the first line is no head of a trace"
    yield from _entries(lines)
    yield from _numbers(lines)
    yield from _intents(lines)


def _entries(lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for line in lines:
        try:
            stored = Stored([line])
        except TraceError as error:
            yield f"entry {line.get('step', '?')!s}: {error}"
        else:
            for step in stored.steps.values():
                yield from _step(step)


def _step(step: Step) -> Iterator[str]:
    moments = (step.started_utc, step.ended_utc)
    counts = (step.tokens.input, step.tokens.output, step.budget_pico, step.seconds)
    if not all(isinstance(moment, str) for moment in moments):
        yield f"entry {step.step}: a time is no text"
    elif step.ended_utc and step.ended_utc < step.started_utc:
        yield f"step {step.step} ended before it started"
    if not all(count is None or isinstance(count, (int, float)) for count in counts):
        yield f"entry {step.step}: a count is no number"
    elif any(count is not None and count < 0 for count in counts):
        yield f"step {step.step} has a negative count"
    if not step.local and not step.replay_key:
        yield f"step {step.step} has no key: it cannot be replayed"


def _numbers(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    landed = Counter(number for line in lines if (number := _number(line, "step")))
    for number in sorted(number for number, times in landed.items() if times > 1):
        yield f"step {_written(number)} stands there {landed[number]} times"
    noted = {n for line in lines for name in ("intent", "void") if (n := _number(line, name))}
    under: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for number in noted.union(landed):
        under[number[:-1]].add(number[-1])
    for parent, given in sorted(under.items()):
        before = 0 if parent else min(given) - 1  # an answer holds a window of its trace
        for one, other in pairwise((before, *sorted(given))):
            if other > one + 1:
                gap = _written((*parent, one + 1))
                last = _written((*parent, other - 1))
                yield (
                    f"step {gap} is missing"
                    if gap == last
                    else (f"steps {gap} to {last} are missing")
                )


def _number(line: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    try:
        return order(str(line[name])) if name in line else None
    except ValueError:
        return None


def _written(number: Iterable[int]) -> str:
    return ".".join(map(str, number))


def _intents(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sent without a reply, and replied without a note that it was sent."""
    noted = {str(line["intent"]): line for line in lines if "intent" in line}
    ended = {str(line[name]) for line in lines for name in ("step", "void") if name in line}
    for number, line in noted.items():
        if number not in ended:
            yield (
                f"step {number} ({line.get('label', '?')}) was sent and its reply never landed: "
                "the run was killed, or is still going"
            )
    if not noted:
        return  # a file that notes none: a test's recording, a run of local steps
    absorbed = [_absorbed(line) for line in lines if "absorb" in line]
    for line in lines:
        place = _number(line, "step")
        if place is None or _written(place) in noted or not _was_sent(line):
            continue
        if not any(place[0] in those for those in absorbed):
            yield f"step {_written(place)} has a reply and no note that it was sent"


def _absorbed(line: Mapping[str, Any]) -> range:
    """The numbers that another run's steps were given."""
    after, count = line.get("after"), line.get("steps")
    if isinstance(after, int) and isinstance(count, int):
        return range(after + 1, after + count + 1)
    return range(0)


def _was_sent(line: Mapping[str, Any]) -> bool:
    return "replay_key" in line and not line.get("cached") and bool(line.get("attempts"))


# --- one document ---------------------------------------------------------------------------------


def _document(document: Mapping[str, Any], file: Path) -> Iterator[str]:
    try:
        lines = document_lines(document, file)
    except TraceError as error:
        yield str(error)
        return
    problems = [*_entries(lines), *_numbers(lines), *_intents(lines)]
    yield from problems
    if not any(problem.startswith("entry") for problem in problems):
        yield from _sums(document)


def _sums(document: Mapping[str, Any]) -> Iterator[str]:
    """What the file says it adds up to, and what its steps do."""
    whole = "steps" in document
    stored = document if whole else document["trace"]
    try:
        trace = Trace.load(document)
    except TraceError as error:
        yield str(error)
        return
    summary = stored.get("summary")
    said = dict(summary) if isinstance(summary, Mapping) else {}
    found = {name: value for name, value in trace.summary().items() if name in said}
    if whole:
        said |= {n: stored[n] for n in ("spent_usd", "replayed_usd") if n in stored}
        found |= {"spent_usd": trace.spent_usd, "replayed_usd": trace.replayed_usd}
    for name in ("calls", "cached", "steps", "tokens_in", "tokens_out", "embed_tokens", "errors",
                 "usd", "spent_usd", "replayed_usd"):  # fmt: skip
        if name in said and not _equal(said[name], found.get(name)):
            yield f"{name} is {said[name]!r} and the steps add up to {found.get(name)!r}"


def _equal(one: Any, other: Any) -> bool:
    numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
    return abs(one - other) <= _TOLERANCE if numbers else bool(one == other)
