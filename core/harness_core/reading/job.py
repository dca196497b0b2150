"""The job a reader is given: what to read, what is asked, and how to ask it well.

A reader decides; the job knows the prompts, the room of a request, and how an answer is put
together. Neither knows clients, limits or files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from harness_core.answer import Answer, Evidence
from harness_core.documents.types import Chunk, Chunks
from harness_core.flows.types import Flow
from harness_core.messages import SENTINEL, Message, Reply, Request, Task
from harness_core.models.budgets import budget
from harness_core.models.tokenizers import count_tokens, truncate_tokens
from harness_core.ranking.embedders import Vectors
from harness_core.reading.answers import new_answer
from harness_core.reading.prompts import (
    CONVERSATION,
    Purpose,
    Voice,
    fence,
    joined,
    question_line,
    rendered,
    system_and,
)
from harness_core.reading.spec import ReadSpec

RESTATE_ABOVE = 1200
OVERHEAD = 64
ROUNDING = 3
"""Tokens by which the count of one part may be above its share of the whole."""


class Notebook(Protocol):
    """Where a reader's local steps go."""

    def note(self, label: str, /, **detail: Any) -> Any: ...
    def amend(self, number: str, **changes: Any) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The chunks that fit one prompt, in the order asked for, and how many did not."""

    chunks: tuple[Chunk, ...]
    tokens: int
    dropped: tuple[Chunk, ...] = ()

    @property
    def ids(self) -> list[int]:
        """The ids of the chunks that fit."""
        return [chunk.chunk_id for chunk in self.chunks]


class Cut(NamedTuple):
    """A text cut to fit, and how many of its tokens that cost: 0 for one that fitted."""

    text: str
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One read: chunks, question, spec, and the model that answers.

    ``streams`` is False for a read inside another one: its answer is not the answer.
    """

    chunks: Chunks
    question: str
    spec: ReadSpec
    model: str
    notebook: Notebook
    embed: Callable[[Sequence[str]], Flow[Vectors]]
    foresee: Callable[[int], None] = lambda requests: None
    reader: str = ""
    streams: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    trace: Any = field(default=None, repr=False)

    @property
    def tokens(self) -> int:
        """Tokens of all chunks."""
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def voice(self) -> Voice:
        """What this read adds to its system prompts."""
        spec = self.spec
        return Voice(
            cite=spec.cite,
            premise=spec.premise,
            verify=spec.verify and self.reader == "iterative",
            instructions=spec.instructions,
        )

    # --- room -------------------------------------------------------------------------------

    def room(
        self, purpose: Purpose, *, cite: bool | None = None, restate: str | None = None
    ) -> int:
        """Tokens of text that one request of a purpose can carry beside its answer.

        Raises:
            BudgetError: the question and the system prompt leave no room at all.
        """
        asked = count_tokens(self.question, self.model)
        again = 0 if (restate or self.spec.restate) == "never" else asked
        system = count_tokens(self.voice.system(purpose, cite=cite), self.model)
        before = count_tokens("".join(self._before()), self.model)
        overhead = asked + system + again + before + OVERHEAD
        return budget(self.model, self.spec.max_answer_tokens, overhead).input

    def fit(
        self,
        chunks: Iterable[Chunk],
        purpose: Purpose = "answer",
        *,
        room: int | None = None,
        prefix: bool = False,
    ) -> Fitted:
        """The chunks, in their order, that fit together; one too many is skipped, never cut.

        ``prefix`` stops at the first that does not fit.
        """
        left = self.room(purpose) if room is None else room
        taken: list[Chunk] = []
        dropped: list[Chunk] = []
        total = parts = 0  # tokens taken, and how many counts were added up to get there
        for chunk in chunks:
            size = self.size(chunk)
            if left < total + size <= left + ROUNDING * (parts + 1):
                # counts of parts add up to more than the whole's: what is dropped is counted whole
                total, parts = self._tokens([*taken, chunk]) - size, 0
            if total + size > left or (prefix and dropped):
                dropped.append(chunk)
            else:
                taken.append(chunk)
                total, parts = total + size, parts + 1
        return Fitted(chunks=tuple(taken), tokens=total, dropped=tuple(dropped))

    def _tokens(self, chunks: Sequence[Chunk]) -> int:
        return count_tokens(joined(chunks), self.model)

    def size(self, chunk: Chunk) -> int:
        """Tokens of a chunk as a prompt shows it."""
        return count_tokens(rendered(chunk), self.model)

    def cut(self, text: str, tokens: int, where: str, **detail: Any) -> Cut:
        """``text`` cut to a number of tokens; a cut is recorded as a ``truncate`` step."""
        kept = truncate_tokens(text, tokens, model=self.model)
        if kept == text:
            return Cut(text)
        before, after = count_tokens(text, self.model), count_tokens(kept, self.model)
        dropped = before - after
        self.notebook.note(
            "truncate", where=where, limit=tokens, tokens_before=before, tokens_kept=after,
            tokens_dropped=dropped, **detail,
        )  # fmt: skip
        return Cut(kept, dropped)

    # --- requests ---------------------------------------------------------------------------

    def request(self, label: str, messages: tuple[Message, ...], cap: int, **more: Any) -> Request:
        """A request of this read: its model, temperature and effort filled in."""
        settings = {"model": self.model, **{k: v for k, v in more.items() if v is not None}}
        settings["final"] = self.streams and settings.get("final", False)
        return Request(
            messages=messages,
            max_output=cap,
            temperature=self.spec.temperature,
            effort=self.spec.effort_of(label),
            label=label,
            **settings,
        )

    def answering(
        self,
        chunks: Sequence[Chunk],
        label: str,
        *,
        cap: int | None = None,
        final: bool = True,
    ) -> Request:
        """The request that answers the question from chunks."""
        task = self.task("answer", [(c.chunk_id, c.text) for c in chunks], cite=self.spec.cite)
        return self.answering_from(joined(chunks), label, task=task, cap=cap, final=final)

    def answering_from(
        self,
        body: str,
        label: str,
        *,
        task: Task,
        tag: str = "excerpts",
        cite: bool | None = None,
        cap: int | None = None,
        final: bool = True,
    ) -> Request:
        """The request that answers the question from a body of text between ``tag`` fences."""
        fenced = fence(tag, body)
        if self.restates(body):
            fenced = f"{question_line(self.question)}\n\n{fenced}"
        messages = system_and(
            self.voice.system("answer", cite=cite), *self._before(), fenced,
            question_line(self.question),
        )  # fmt: skip
        return self.request(
            label, messages, cap or self.spec.max_answer_tokens, final=final, task=task
        )

    def _before(self) -> list[str]:
        """The conversation before the question, as an answering prompt shows it."""
        said = self.spec.conversation
        return [f"{CONVERSATION}\n{fence('conversation', said)}"] if said else []

    def asking(
        self,
        purpose: Purpose,
        label: str,
        body: str,
        *,
        cap: int,
        tag: str = "excerpt",
        after: Sequence[str] = (),
        task: Task,
        **more: Any,
    ) -> Request:
        """A request that works on one text: the question first, then the fenced text."""
        messages = system_and(
            self.voice.system(purpose), question_line(self.question), fence(tag, body), *after
        )
        return self.request(label, messages, cap, task=task, **more)

    def task(self, kind: str, excerpts: Iterable[tuple[int | None, str]] = (), **more: Any) -> Task:
        """What a request asks, as data."""
        return Task(kind=kind, question=self.question, excerpts=tuple(excerpts), more=more)

    def restates(self, body: str) -> bool:
        """Whether the question is put a second time beside ``body``."""
        restate = self.spec.restate
        if restate != "auto":
            return restate == "always"
        return count_tokens(body, self.model) > RESTATE_ABOVE

    # --- answers ----------------------------------------------------------------------------

    def having(self, **changes: Any) -> "Job":
        """The same job with some of it changed."""
        return replace(self, **changes)

    def answer(
        self,
        text: str,
        *,
        used: Iterable[int] = (),
        sent: Iterable[int] | None = None,
        evidence: Sequence[Evidence] = (),
        partial: bool = False,
        notes: Mapping[str, Any] | None = None,
        premise: str | None = None,
    ) -> Answer:
        """The answer of this read, its citations and quotations checked."""
        return new_answer(
            text,
            self.reader,
            self.question,
            used,
            self.trace,
            evidence=evidence,
            partial=partial,
            notes=notes,
            chunks_sent=sent,
            premise=premise,
            premise_checked=self.spec.premise,
        )

    def nothing(self, reason: str, *, partial: bool = True, **notes: Any) -> Answer:
        """The answer of a read that found nothing to answer from."""
        return self.answer(SENTINEL, partial=partial, notes={**notes, "reason": reason})


def limit_words(reply: Reply) -> str:
    """The limit behind a refused reply, in words."""
    return {
        "cost": "spending limit",
        "calls": "call cap",
        "tokens": "token limit",
        "output": "output cap",
        "model": "list of allowed models",
        "unpriced": "rule on unpriced models",
    }.get(reply.reason or "", "limit")


def fault(reply: Reply, otherwise: str) -> str:
    """Why a reply is of no use: a limit kept it back, the request's error, or ``otherwise``."""
    if reply.refused:
        return f"the {limit_words(reply)} kept the {reply.label!r} request from being sent"
    return reply.error or otherwise
