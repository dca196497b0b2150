"""What changed between two traces: requests added, dropped and changed, their replies, the bill."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness_core.calls.accounts import totals
from harness_core.calls.governor import Refusal
from harness_core.calls.steps import PICO, Step
from harness_core.calls.trace import Trace
from harness_core.report.wording import around_difference, clipped

_LEAST_ALIKE = 40.0
_MOST_COMPARED = 10_000
_LONGEST_COMPARED = 20_000
_Pair: TypeAlias = tuple[Step, Step]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs between two requests: its name, and what it was and is."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """Two requests that are taken for the same one, and what differs between them."""

    before: Step
    after: Step
    differences: tuple[Difference, ...]

    def as_json(self) -> dict[str, Any]:
        """Label, both numbers, and what differs."""
        return {
            "label": self.after.label,
            "before": self.before.step,
            "after": self.after.step,
            "changed": {
                one.name: {"before": one.before, "after": one.after} for one in self.differences
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDiff:
    """What changed from trace ``a`` to trace ``b``; false when nothing did.

    Times, ids and the order of requests are no changes; ``seconds`` (of all requests) and ``usd``
    (None: unknown) are given for both, as (a, b).
    """

    added: tuple[Step, ...]
    dropped: tuple[Step, ...]
    changed: tuple[Change, ...]
    refusals_added: tuple[Refusal, ...]
    refusals_dropped: tuple[Refusal, ...]
    same: int
    usd: tuple[float | None, float | None]
    seconds: tuple[float, float]

    def __bool__(self) -> bool:
        lists = (
            self.added, self.dropped, self.changed, self.refusals_added, self.refusals_dropped,
        )  # fmt: skip
        return any(lists)

    def as_json(self) -> dict[str, Any]:
        """The difference as JSON data."""
        return {
            "same": self.same,
            "added": [_named(step) for step in self.added],
            "dropped": [_named(step) for step in self.dropped],
            "changed": [change.as_json() for change in self.changed],
            "refusals_added": [one.as_json() for one in self.refusals_added],
            "refusals_dropped": [one.as_json() for one in self.refusals_dropped],
            "usd": list(self.usd),
            "seconds": list(self.seconds),
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self)) if self else ""


def diff_traces(a: Trace, b: Trace) -> TraceDiff:
    """Pair the requests of two traces and say what changed from ``a`` to ``b``.

    Requests are paired by what they asked (the replay key and draw), then, of what is left, the
    most similar prompts under one label; what resembles nothing was added or dropped.
    """
    pairs, dropped, added = _paired(a.requests, b.requests)
    changes = [Change(one, other, tuple(_differences(one, other))) for one, other in pairs]
    changed = sorted((c for c in changes if c.differences), key=lambda c: c.after.order)
    gone, come = _unmatched(a.refusals, b.refusals, _refused)
    return TraceDiff(
        added=tuple(added),
        dropped=tuple(dropped),
        changed=tuple(changed),
        refusals_added=tuple(come),
        refusals_dropped=tuple(gone),
        same=len(pairs) - len(changed),
        usd=(totals(a.steps).usd, totals(b.steps).usd),
        seconds=(_seconds(a), _seconds(b)),
    )


# --- pairing --------------------------------------------------------------------------------------


def _paired(
    ours: Sequence[Step], theirs: Sequence[Step]
) -> tuple[list[_Pair], list[Step], list[Step]]:
    """Pairs, and what only the one and only the other holds."""
    waiting: dict[Hashable, list[Step]] = defaultdict(list)
    for step in theirs:
        waiting[_asked(step)].append(step)
    pairs, left = list[_Pair](), list[Step]()
    for step in ours:
        if queue := waiting.get(_asked(step)):
            pairs.append((step, queue.pop(0)))
        else:
            left.append(step)
    right = sorted((s for queue in waiting.values() for s in queue), key=lambda s: s.order)
    nearest = list(_nearest(left, right))
    gone, come = {id(one) for one, _ in nearest}, {id(other) for _, other in nearest}
    return (
        pairs + nearest,
        [step for step in left if id(step) not in gone],
        [step for step in right if id(step) not in come],
    )


def _asked(step: Step) -> Hashable:
    return step.kind, step.replay_key, step.draw_index


def _nearest(left: Sequence[Step], right: Sequence[Step]) -> Iterator[_Pair]:
    """Pairs of one kind and label, the most similar prompts first, then the nearest in order."""
    for label in dict.fromkeys((step.kind, step.label) for step in left):
        ours = [step for step in left if (step.kind, step.label) == label]
        theirs = [step for step in right if (step.kind, step.label) == label]
        if len(ours) * len(theirs) > _MOST_COMPARED:
            yield from zip(ours, theirs, strict=False)
        else:
            yield from _alike(ours, theirs)


def _alike(ours: Sequence[Step], theirs: Sequence[Step]) -> Iterator[_Pair]:
    from rapidfuzz.fuzz import ratio

    def alike(one: str, other: str) -> float:
        return ratio(one, other, score_cutoff=_LEAST_ALIKE) if one or other else 100.0

    texts = [[_text(step) for step in steps] for steps in (ours, theirs)]
    scored = sorted(
        (-alike(one, other), abs(i - k), i, k)
        for i, one in enumerate(texts[0])
        for k, other in enumerate(texts[1])
    )
    taken: tuple[set[int], set[int]] = (set(), set())
    for score, _, i, k in scored:
        if score < 0 and i not in taken[0] and k not in taken[1]:
            taken[0].add(i)
            taken[1].add(k)
            yield ours[i], theirs[k]


def _text(step: Step) -> str:
    return "\n".join(message.content for message in step.prompt)[-_LONGEST_COMPARED:]


def _unmatched(
    ours: Iterable[Refusal], theirs: Iterable[Refusal], key: Callable[[Refusal], Hashable]
) -> tuple[list[Refusal], list[Refusal]]:
    left, right = list(ours), list[Refusal]()
    for one in theirs:
        match = next((mine for mine in left if key(mine) == key(one)), None)
        if match is None:
            right.append(one)
        else:
            left.remove(match)
    return left, right


def _refused(refusal: Refusal) -> Hashable:
    return refusal.reason, refusal.label, refusal.replay_key, refusal.draw_index


# --- what differs ---------------------------------------------------------------------------------

_SETTINGS = {
    "max_output_asked": "output cap", "temperature": "temperature", "effort": "effort",
    "schema_name": "schema name", "schema_hash": "schema", "stop": "stop sequences",
    "tools": "tools", "tool_hashes": "tool schemas", "tool_choice": "tool choice", "n": "n",
    "texts": "texts",
}  # fmt: skip


def _differences(one: Step, other: Step) -> Iterator[Difference]:
    yield from _plain(one, other, ("label", "model", "draw_index"))
    yield from _messages(one, other)
    for key, name in _SETTINGS.items():
        if one.params.get(key) != other.params.get(key):
            yield Difference(name, one.params.get(key), other.params.get(key))
    if one.response != other.response:
        yield Difference("reply", *around_difference(one.response, other.response))
    yield from _plain(one, other, ("ok", "error", "finish_reason", "cached"))
    if one.budget_pico != other.budget_pico:
        yield Difference("usd", _usd(one), _usd(other))


def _plain(one: Step, other: Step, names: Iterable[str]) -> Iterator[Difference]:
    for name in names:
        before, after = getattr(one, name), getattr(other, name)
        if before != after:
            yield Difference(name, before, after)


def _messages(one: Step, other: Step) -> Iterator[Difference]:
    if len(one.prompt) != len(other.prompt):
        yield Difference("messages", len(one.prompt), len(other.prompt))
    for number, (old, new) in enumerate(zip(one.prompt, other.prompt, strict=False), start=1):
        name = f"message {number} ({new.role})"
        if old.role != new.role:
            yield Difference(f"role of message {number}", old.role, new.role)
        if old.content != new.content:
            yield Difference(name, *around_difference(old.content, new.content))
        if old.more != new.more:
            yield Difference(f"{name}, beside its text", old.more, new.more)


def _usd(step: Step) -> float | None:
    return None if step.budget_pico is None else step.budget_pico / PICO


def _seconds(trace: Trace) -> float:
    return round(sum(step.seconds for step in trace.requests), 3)


# --- in words -------------------------------------------------------------------------------------


def _named(step: Step) -> dict[str, Any]:
    return {"step": step.step, "label": step.label, "model": step.model}


def _asks(step: Step) -> str:
    return step.prompt[-1].content[-100:] if step.prompt else ""


def _lines(diff: TraceDiff) -> Iterator[str]:
    for sign, steps in (("-", diff.dropped), ("+", diff.added)):
        for step in steps:
            yield f"{sign} {step.step} {step.label} ({step.model}): {clipped(_asks(step), 100)}"
    for change in diff.changed:
        numbers = dict.fromkeys((change.before.step, change.after.step))
        yield f"~ {' -> '.join(numbers)} {change.after.label}"
        for one in change.differences:
            yield f"    {one.name}: {clipped(_shown(one.before))} -> {clipped(_shown(one.after))}"
    for sign, refusals in (("-", diff.refusals_dropped), ("+", diff.refusals_added)):
        for refusal in refusals:
            yield f"{sign} refused {refusal.label} ({refusal.reason}): {refusal.message}"
    yield (
        f"{diff.same} same, {len(diff.changed)} changed, {len(diff.added)} added, "
        f"{len(diff.dropped)} dropped; "
        f"{' -> '.join('cost unknown' if usd is None else f'${usd:.6f}' for usd in diff.usd)}; "
        f"{' -> '.join(f'{seconds:.3f} s' for seconds in diff.seconds)}"
    )


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
