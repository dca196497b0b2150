"""What ``answer_document`` was asked, checked before the document is touched, and its flow."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from harness_core.answer import Answer
from harness_core.calls import keys
from harness_core.calls.ambient import trace_for
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.config import setting
from harness_core.documents.ingestion import ingest as ingested
from harness_core.documents.types import Chunks, Document
from harness_core.errors import BadSettingError, BudgetError, HarnessWarning, warn
from harness_core.flows.types import Flow, Work
from harness_core.models.budgets import budget
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.flow import checked_question, embedding, read_flow
from harness_core.reading.places import placed
from harness_core.reading.preflight import may_cost_nothing
from harness_core.reading.spec import ReadSpec
from harness_core.recipes import AUTO, Recipe, candidates
from harness_core.segmenting.registry import find_segmenter
from harness_core.segmenting.segmentation import segment_flow
from harness_core.segmenting.spec import SegmentSpec

AUTO_TOKENS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What ``answer_document`` was asked, checked before the document is touched."""

    source: Any
    question: str
    recipes: tuple[Recipe, ...]
    auto: bool
    client: Client
    trace: Trace
    late: Mapping[str, list[HarnessWarning]]

    @classmethod
    def of(
        cls,
        source: Any,
        question: str,
        recipe: Any,
        *,
        client: Client | None,
        trace: Trace | None,
        overrides: Mapping[str, Any],
        dry: bool = False,
    ) -> "Asked":
        text = checked_question(question)
        auto = isinstance(recipe, str) and recipe == AUTO
        names = ("fast", "thorough") if auto else (recipe,)
        recipes, late = candidates(names, overrides)
        sender = _default_client(recipes[0]) if client is None else checked_client(client)
        if not dry and not may_cost_nothing(sender):
            sender.check()
        run = trace_for(trace) or Trace(
            meta={"question": text, "recipe": AUTO if auto else recipes[0].name}
        )
        return cls(
            source=source, question=text, recipes=recipes, auto=auto, client=sender, trace=run,
            late=late,
        )  # fmt: skip

    @property
    def width(self) -> int:
        """Requests in flight at once."""
        return width_of(self.recipes[0].read)

    def flow(self, heard: list[HarnessWarning]) -> Flow[Answer]:
        """Ingest, choose, segment, read, finish."""
        trace, client = self.trace, self.client
        first = trace.issued + 1
        record = recorder(trace)
        document: Document = yield Work(
            partial(ingested, self.source, self.recipes[0].ingest, record=record)
        )
        recipe = self.chosen(document)
        for warning in self.late.get(recipe.name, ()):
            warn(warning)
        chunks = yield from segmented(document, recipe.segment, client, recipe.read, trace)
        answer = yield from read_flow(
            chunks, self.question, client, recipe.read, trace, heard=heard, first=first
        )
        finish(answer, document, chunks, recipe)
        if self.auto:
            answer.notes["auto_recipe"] = recipe.name
        known = set(answer.warnings)
        early = [(type(one).__name__, str(one)) for one in heard]
        answer.warnings = [*(pair for pair in early if pair not in known), *answer.warnings]
        trace.stamp(first, source=document.label, recipe=recipe.name)
        trace.answers.append(answer)
        return answer

    def chosen(self, document: Document) -> Recipe:
        """The recipe itself, or the one that ``auto`` chooses for this document."""
        if not self.auto:
            return self.recipes[0]
        key = keys.content_hash(["auto", document.text, self.question])
        recorded = (
            self.client.recorded_choice(key) if isinstance(self.client, ReplayClient) else None
        )
        if recorded is not None and recorded["chose"] in ("fast", "thorough"):
            name = str(recorded["chose"])
            self.trace.note("auto_recipe", chose=name, key=key, replayed=True)
        else:
            name, detail = self._choice(document)
            self.trace.note("auto_recipe", chose=name, **detail, key=key)
        return next(recipe for recipe in self.recipes if recipe.name == name)

    def _choice(self, document: Document) -> tuple[str, dict[str, Any]]:
        tokens = count_tokens(document.text)
        spec = self.recipes[0].read
        model = spec.model or self.client.model
        limit = auto_limit(model, spec.max_answer_tokens)
        fast = limit is not None and tokens <= limit
        detail = {"tokens": tokens, "limit": limit, "models": [model]}
        return ("fast" if fast else "thorough"), detail


def finish(answer: Answer, document: Document, chunks: Chunks, recipe: Recipe) -> None:
    """Write onto an answer what only the whole way knows: recipe, document, chunks, pages."""
    answer.evidence = placed(answer.evidence, document)
    answer.recipe = recipe.name
    answer.document = {"source": document.source, **_json_stats(document)}
    answer.segmentation = chunks.stats()


def auto_limit(model: str, reserve: int) -> int | None:
    """Tokens up to which ``auto`` reads a document in one request; None for a guessed window."""
    try:
        room = budget(model, reserve)
    except BudgetError:
        return None
    return math.floor(min(AUTO_TOKENS, room.input / 2)) if room.certain else None


def recorder(trace: Trace) -> Callable[[str, Mapping[str, Any]], None]:
    """What writes local steps of that trace."""

    def record(label: str, detail: Mapping[str, Any]) -> None:
        trace.note(label, **detail)

    return record


def width_of(spec: ReadSpec) -> int:
    """Requests in flight at once that a spec asks for."""
    if spec.parallel is False:
        return 1
    if spec.max_concurrency is not None and spec.parallel is None:
        return spec.max_concurrency
    return int(setting("max_concurrency"))


def without_asking(spec: SegmentSpec) -> SegmentSpec:
    """The spec itself, or one that cuts by paragraphs where the segmenter asks a model."""
    if not find_segmenter(spec.method).asks:
        return spec
    kept = {name: getattr(spec, name) for name in spec.model_fields_set}
    return SegmentSpec(**{**kept, "method": "paragraph"})


def segmented(
    document: Document | Flow[Document],
    spec: SegmentSpec,
    client: Client | None,
    read_spec: ReadSpec,
    trace: Trace,
) -> Flow[Chunks]:
    """The chunks of a document, cut in a run whose read spec names model and effort."""
    if not isinstance(document, Document):
        document = yield from document
    allow = client.vectors_may_be_used if isinstance(client, ReplayClient) else None
    embed = None if client is None else partial(embedding, client=client, trace=trace, allow=allow)
    chunks = yield from segment_flow(
        document,
        spec,
        client,
        model=read_spec.model,
        effort=read_spec.effort_of,
        embed=embed,
        record=recorder(trace),
    )
    for number in chunks.extra.get("recovered_steps", ()):  # a header that failed, a batch kept
        trace.amend(number, recovered=True)
    return replace(chunks, trace=trace)


def checked_client(client: Client) -> Client:
    """The client itself.

    Raises:
        BadSettingError: it is none.
    """
    if not isinstance(client, Client):
        raise BadSettingError(f"client is a client, not {type(client).__name__}")
    return client


def _default_client(recipe: Recipe) -> Client:
    from harness_core.clients.openai import OpenAIClient

    return OpenAIClient(recipe.read.model)


def _json_stats(document: Document) -> dict[str, Any]:
    return {k: v for k, v in document.stats.items() if k != "clean_log"}
