"""The merge tree: many pieces into one text, in as many levels as the window asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness_core.flows.ask import ask, ask_all
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Request
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.job import Job, fault
from harness_core.reading.prompts import Purpose, fence, numbered, question_line, system_and

MAX_LEVELS = 7
_RULE = "\n\n---\n\n"
_GAVE_UP = "\n\n[These findings could not be merged.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to. ``ok`` says whether the last merge worked, ``failed`` counts all."""

    text: str
    ok: bool
    levels: int = 0
    truncated: int = 0
    truncated_calls: int = 0
    failed: int = 0
    error: str | None = None


def merge(
    job: Job,
    pieces: Sequence[str],
    label: str,
    *,
    purpose: Purpose = "merge",
    kind: str = "findings",
) -> Flow[Merged]:
    """Merge pieces, level by level, each request filled up to the room it has.

    One piece is returned as it is, with no request. Ends after at most seven levels, and when a
    level brings no fewer pieces than the one before: the pieces are then given back, bounded.
    """
    left = [piece for piece in pieces if piece.strip()]
    if len(left) < 2:
        return Merged(text=left[0] if left else SENTINEL, ok=bool(left))
    tree = _Tree(job, label, purpose, kind, job.room(purpose, restate="never"))
    state = Merged(text="", ok=False)
    for level in range(1, MAX_LEVELS + 1):
        left, cut = tree.fitted(left)
        groups = tree.packed(left)
        state = replace(state, levels=level, truncated=state.truncated + cut)
        if len(groups) == 1:
            return (yield from tree.last(left, state))
        before = len(left)
        left, state = yield from tree.level(groups, state)
        if not left:
            return replace(state, text=SENTINEL)
        if len(left) >= before:
            return replace(state, text=tree.given_up(left), error="merging made no progress")
    return replace(state, text=tree.given_up(left), error="merging took too many levels")


@dataclass(frozen=True, slots=True)
class _Tree:
    job: Job
    label: str
    purpose: Purpose
    kind: str
    room: int

    def size(self, piece: str) -> int:
        return count_tokens(f"{numbered([piece], self.kind)}\n\n", self.job.model)

    def fitted(self, pieces: Sequence[str]) -> tuple[list[str], int]:
        """The pieces, those too large for one request cut; and how many were."""
        fitted: list[str] = []
        cut = 0
        for piece in pieces:
            size = self.size(piece)
            if size <= self.room:
                fitted.append(piece)
                continue
            tags = size - count_tokens(piece, self.job.model)
            most = max(self.room - tags, 1)
            fitted.append(self.job.cut(piece, most, f"{self.label}.input").text)
            cut += 1
        return fitted, cut

    def packed(self, pieces: Sequence[str]) -> list[list[str]]:
        groups: list[list[str]] = []
        total = 0
        for piece in pieces:
            size = self.size(piece)
            if not groups or total + size > self.room:
                groups.append([])
                total = 0
            groups[-1].append(piece)
            total += size
        return groups

    def last(self, pieces: Sequence[str], state: Merged) -> Flow[Merged]:
        """The final merge, all pieces in one request."""
        body = numbered(pieces, self.kind)
        reply = yield from ask(
            self.request(body, pieces, self.label, final=self.kind == "findings")
        )
        state = replace(state, truncated_calls=state.truncated_calls + reply.cut)
        if reply.usable:
            return replace(state, text=reply.text.strip(), ok=True)
        failed = state.failed + (not reply.refused)
        return replace(
            state,
            text=self.given_up(pieces),
            ok=False,
            failed=failed,
            error=fault(reply, "the merge gave no text"),
        )

    def level(
        self, groups: Sequence[Sequence[str]], state: Merged
    ) -> Flow[tuple[list[str], Merged]]:
        """One level: each group of several merged by a request, side by side."""
        label = f"{self.label}.level{state.levels}"
        asked = [number for number, group in enumerate(groups) if len(group) > 1]
        replies = yield from ask_all(
            self.request(
                "\n\n".join(fence(self.kind, piece) for piece in groups[number]),
                groups[number],
                label,
            )
            for number in asked
        )
        by_group = dict(zip(asked, replies, strict=True))
        up: list[str] = []
        for number, group in enumerate(groups):
            reply = by_group.get(number)
            if reply is None:
                up.append(group[0])
            elif reply.usable:
                up.append(reply.text.strip())
            else:
                up.append("\n\n".join(group) if not reply.refused else self.given_up(group))
        state = replace(
            state,
            truncated_calls=state.truncated_calls + sum(reply.cut for reply in replies),
            failed=state.failed + sum(not r.usable and not r.refused for r in replies),
        )
        return [piece for piece in up if piece.strip()], state

    def request(
        self, body: str, pieces: Sequence[str], label: str, *, final: bool = False
    ) -> Request:
        job = self.job
        kind = "merge" if self.purpose == "merge" else "summarise"
        task = job.task(kind, [(None, piece) for piece in pieces])
        messages = system_and(job.voice.system(self.purpose), body, question_line(job.question))
        cap = job.spec.max_answer_tokens
        return job.request(label, messages, cap, task=task, final=final or None)

    def given_up(self, pieces: Sequence[str]) -> str:
        """The pieces themselves, bounded, marked as not merged."""
        most = min(max(3 * self.job.spec.max_answer_tokens, 200), 8000)
        kept = self.job.cut(_RULE.join(pieces), most, f"{self.label}.giveup")
        return kept.text + _GAVE_UP
