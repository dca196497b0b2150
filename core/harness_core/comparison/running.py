"""Running a comparison: one recipe after the other, each on its own branch of one trace."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from harness_core.answer import Answer
from harness_core.asked import checked_client, finish, recorder, segmented, width_of
from harness_core.calls.ambient import trace_for
from harness_core.calls.branches import Branch
from harness_core.calls.exchange import governed
from harness_core.calls.progress import OnProgress
from harness_core.calls.replay import ReplayClient
from harness_core.calls.run import Run
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.comparison.judging import Correct, Judge, judge_of
from harness_core.comparison.legs import Entry, Leg, entries
from harness_core.comparison.result import Comparison, row_of
from harness_core.documents.ingestion import ingest as ingested
from harness_core.documents.spec import IngestSpec
from harness_core.documents.types import Chunks, Document
from harness_core.errors import (
    AuthError,
    BadSettingError,
    CallCapError,
    CostCapError,
    HarnessWarning,
    RecipeFailedWarning,
    ReplayExhaustedError,
    ReplayMissError,
    RequestRefused,
    TraceError,
    UnpricedModelError,
    recording_warnings,
    warn,
)
from harness_core.flows import sync, tasks
from harness_core.flows.types import Drive, Flow, Work
from harness_core.messages import SENTINEL
from harness_core.reading.flow import checked_question, read_flow
from harness_core.reading.preflight import may_cost_nothing
from harness_core.reading.registry import reader_signature
from harness_core.segmenting.registry import find_segmenter

OnError = Literal["continue", "stop"]
RECIPES = ("fast", "needle", "thorough")
FAILED = "recipe_failed"

_STOPS_ALL = (AuthError, ReplayMissError, ReplayExhaustedError, TraceError)
_LIMITS: dict[str, tuple[type[Exception], str]] = {
    "CallCapError": (CallCapError, "calls"),
    "CostCapError": (CostCapError, "cost"),
    "UnpricedModelError": (UnpricedModelError, "unpriced"),
}


def compare(
    source: Any,
    question: str,
    recipes: Any = RECIPES,
    *,
    client: Client,
    trace: Trace | None = None,
    correct: Correct | None = None,
    allow_duplicates: bool = False,
    on_error: OnError = "continue",
    on_progress: OnProgress | None = None,
    **overrides: Any,
) -> Comparison:
    """Ask one question of one document with several recipes, and say what each costs.

    ``recipes`` are names, ``Recipe`` objects or mappings; further keywords override settings of
    all of them. ``max_cost_usd`` and ``max_tokens_total`` hold for the whole comparison,
    ``max_calls`` for each recipe. ``correct`` (strings that a right answer holds, or a function of
    the ``Answer``) adds what a right answer cost. A recipe that fails is a row with its error and
    ``RecipeFailedWarning``, unless ``on_error="stop"``.

    Raises:
        NoRecipesError, BadRecipeError, UnknownOverrideError, BadOverrideError, BadQuestionError,
        BadSettingError: before the document is touched.
        AuthError, ReplayMissError, ReplayExhaustedError, TraceError: these stop all of it.
        and what ``ingest`` raises.
    """
    with recording_warnings() as heard:
        plan = _plan(locals(), heard)
        return sync.run(plan.drive(), width=plan.width)


async def acompare(
    source: Any,
    question: str,
    recipes: Any = RECIPES,
    *,
    client: Client,
    trace: Trace | None = None,
    correct: Correct | None = None,
    allow_duplicates: bool = False,
    on_error: OnError = "continue",
    on_progress: OnProgress | None = None,
    **overrides: Any,
) -> Comparison:
    """The async twin of ``compare``."""
    with recording_warnings() as heard:
        plan = _plan(locals(), heard)
        return await tasks.arun(plan.drive(), width=plan.width)


def _plan(given: dict[str, Any], heard: list[HarnessWarning]) -> "_Plan":
    """What was asked, checked before the document is touched."""
    if given["on_error"] not in ("continue", "stop"):
        raise BadSettingError(f"on_error is continue or stop, not {given['on_error']!r}")
    question, client = checked_question(given["question"]), checked_client(given["client"])
    judge = None if given["correct"] is None else judge_of(given["correct"])
    listed = entries(
        given["recipes"], given["overrides"], allow_duplicates=given["allow_duplicates"]
    )
    if not may_cost_nothing(client):
        client.check()
    names = [entry.name for entry in listed]
    return _Plan(
        source=given["source"],
        question=question,
        entries=listed,
        client=client,
        trace=trace_for(given["trace"]) or Trace(meta={"question": question, "recipes": names}),
        judge=judge,
        stop=given["on_error"] == "stop",
        on_progress=given["on_progress"],
        heard=heard,
    )


@dataclass(slots=True, kw_only=True)
class _Plan:
    """A comparison under way: what is asked, and the documents and chunks it has made."""

    source: Any
    question: str
    entries: tuple[Entry, ...]
    client: Client
    trace: Trace
    judge: Judge | None
    stop: bool
    on_progress: OnProgress | None
    heard: list[HarnessWarning]
    documents: list[tuple[IngestSpec, Document]] = field(default_factory=list)
    shared: list[tuple[Any, Chunks, Sequence[Step]]] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Requests in flight at once, at the most."""
        return max(width_of(entry.recipe.read) for entry in self.entries)

    def drive(self) -> Drive[Comparison]:
        """The whole comparison, for any driver."""
        document = yield from self._document(self.entries[0].recipe.ingest)
        if "recipes" in self.trace.meta:
            self.trace.meta["source"] = document.label
        legs: list[tuple[Leg, Answer]] = []
        for entry in self.entries:
            ran = yield from self._leg(entry, document)
            legs.append(ran)
        answers = {leg.entry.name: answer for leg, answer in legs}
        self.trace.answers += answers.values()
        premise = any(answer.premise_checked for answer in answers.values())
        return Comparison(
            question=self.question,
            document=document,
            trace=self.trace,
            answers=answers,
            table=tuple(row_of(leg, answer, self.judge, premise=premise) for leg, answer in legs),
        )

    def _leg(self, entry: Entry, first: Document) -> Drive[tuple[Leg, Answer]]:
        """One recipe, to its answer or to the record of its failure."""
        meta = {"question": self.question, "recipe": entry.name, "source": first.label}
        branch = Branch(self.trace, meta=meta)
        leg = Leg(entry=entry, branch=branch)
        run = Run(self.client, branch, self.on_progress, width_of(entry.recipe.read))
        began = self.trace.issued + 1
        try:
            answer = yield from governed(self._answering(leg), run)
        except _STOPS_ALL:
            raise
        except Exception as what:  # whatever it is, it is this recipe's alone
            if self.stop:
                raise
            answer = self._failed(leg, what, began)
        finally:
            source = (leg.document or first).label
            branch.stamp(leg.cut + 1, source=source, recipe=entry.name if leg.chunks else None)
            branch.stamp(1, source=source, recipe=None)
        early = [(type(one).__name__, str(one)) for one in entry.said]
        answer.warnings = [*early, *answer.warnings]
        return leg, answer

    def _answering(self, leg: Leg) -> Flow[Answer]:
        recipe = leg.entry.recipe
        leg.document = yield from self._document(recipe.ingest)
        leg.chunks = yield from self._chunks(leg, leg.document)
        leg.cut = leg.branch.issued
        self._stop_as_recorded(leg)
        answer = yield from read_flow(
            leg.chunks, self.question, self.client, recipe.read, leg.branch, heard=self.heard
        )
        finish(answer, leg.document, leg.chunks, recipe)
        answer.recipe = leg.entry.name
        return answer

    def _document(self, spec: IngestSpec) -> Generator[Work, Document, Document]:
        """The document as one spec ingests it; the steps are the comparison's, not a recipe's."""
        for known, document in self.documents:
            if known == spec:
                return document
        found = yield Work(partial(ingested, self.source, spec, record=recorder(self.trace)))
        self.documents.append((spec, found))
        return found

    def _chunks(self, leg: Leg, document: Document) -> Flow[Chunks]:
        """The chunks, made once for all recipes that cut the same text in the same way.

        A later recipe counts the requests this took as its own. What a limit cut short is not
        shared: alone, the later recipe would have got further.
        """
        spec, read = leg.entry.recipe.segment, leg.entry.recipe.read
        asks = (read.model, read.effort) if find_segmenter(spec.method).asks else None
        key = (document.blocks, spec, document.unread_pages, document.warnings, asks)
        for known, chunks, steps in self.shared:
            if known == key:
                leg.branch.borrow(steps)
                return chunks
        made = yield from segmented(document, spec, self.client, read, leg.branch)
        if not leg.branch.refusals:
            self.shared.append((key, made, leg.branch.steps))
        return made

    def _failed(self, leg: Leg, what: Exception, began: int) -> Answer:
        entry, name, message = leg.entry, type(what).__name__, str(what)
        warn(RecipeFailedWarning(f"recipe {entry.name!r} failed: {name}: {message}"))
        self.trace.note(FAILED, recipe=entry.name, error=name, message=message)
        limit = what.reason if isinstance(what, RequestRefused) else None
        if name in _LIMITS:
            limit = _LIMITS[name][1]
        notes = {"error": message or name, "stop_reason": limit}
        read = entry.recipe.read
        return Answer(
            answer=SENTINEL,
            reader=read.reader,
            question=self.question,
            partial=True,
            notes={key: value for key, value in notes.items() if value is not None},
            warnings=[] if leg.chunks is None else list(leg.chunks.warnings),
            signature=reader_signature(read),
            recipe=entry.name,
            segmentation=None if leg.chunks is None else leg.chunks.stats(),
            trace=self.trace,
            trace_steps=(began, self.trace.issued),
        )

    def _stop_as_recorded(self, leg: Leg) -> None:
        """In a replay, stop a recipe that a limit stopped before its first request, as it did.

        Prices decide nothing before a replay's first request, and its reads may need fewer.
        """
        if not isinstance(self.client, ReplayClient):
            return
        recorded = self.client.recording.trace
        limits = recorded.recorded_limits or recorded.governor.limits().as_json()
        for detail in (step.detail or {} for step in recorded.steps if step.label == FAILED):
            error, reason = _LIMITS.get(str(detail.get("error")), (None, ""))
            if error is None or detail.get("recipe") != leg.entry.name:
                continue
            if self.trace.governor.limits().at_most(reason, limits):
                raise error(detail["message"])
