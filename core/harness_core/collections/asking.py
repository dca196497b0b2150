"""One question: checked in the order of the contract, run under its limits, shown as asked."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.collections.access import check_principals, check_state
from harness_core.collections.answering import Outcome, Pass
from harness_core.collections.contract import (
    AnswerRequest,
    AnswerResult,
    Credits,
    Effort,
    Mode,
)
from harness_core.collections.deadlines import Budgets, Deadline, TimedClient
from harness_core.collections.efforts import Plan
from harness_core.collections.failures import as_fault
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.filters import compile_filter
from harness_core.collections.ids import new_request_id
from harness_core.collections.images import Picture, picture_of
from harness_core.collections.ingestion.limits import Limits
from harness_core.collections.ingestion.processing import (
    Ingestion,
)
from harness_core.collections.markers import without_markers
from harness_core.collections.retrieval import Found, Scope, retrieved
from harness_core.collections.store import (
    Ranker,
    Store,
)
from harness_core.errors import HarnessError, recording_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What the handles share."""

    store: Store
    ranker: Ranker
    client: Client | None
    vision: Client | None
    budgets: Budgets
    efforts: Mapping[str, Plan]
    ingestion: Ingestion
    limits: Limits
    secrets: dict[str, bytes] = field(default_factory=dict, repr=False)

    def secret(self) -> bytes:
        """What the labels of excerpts are drawn from; the same in every process of this store."""
        if "labels" not in self.secrets:
            self.secrets["labels"] = self.store.secret("labels")
        return self.secrets["labels"]

    def sender(self) -> Client:
        """The client that answers."""
        if self.client is not None:
            return self.client
        from harness_core.clients.openai import OpenAIClient

        return OpenAIClient()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a checked request may read, and the image beside it."""

    scope: Scope
    picture: Picture | None


def checked(engine: Engine, collection_id: str, asked: AnswerRequest) -> Terms:
    """What a request may read, or what is wrong with it, in the fixed order of the contract.

    Raises:
        InvalidRequestError, FilterError, CollectionEmptyError, CollectionNotReadyError: see there.
    """
    if asked.effort not in engine.efforts:
        raise InvalidRequestError("this effort is not offered here", "/effort")
    picture = None if asked.query_image is None else picture_of(asked.query_image)
    replaying = isinstance(engine.client, ReplayClient)
    if picture is not None and engine.vision is None and not replaying:
        raise InvalidRequestError("images are not read here", "/query_image")
    with engine.store.snapshot(collection_id) as snapshot:
        check_principals(snapshot.info.access_control, asked.principals)
        node = compile_filter(asked.filter, snapshot.info.metadata_fields)
        check_state(snapshot.counts())
    return Terms(scope=Scope(node=node, principals=asked.principals), picture=picture)


@contextmanager
def begun(
    engine: Engine, collection_id: str, asked: AnswerRequest, terms: Terms, trace: Trace | None
) -> Iterator[Pass]:
    """A pass that begins now; what ends it is raised as the wire knows it."""
    plan, picture = engine.efforts[asked.effort], terms.picture
    deadline = engine.budgets.deadline(image=picture is not None)
    with recording_warnings() as heard, _on_the_wire():
        sender = engine.sender()

        def retrieve(line: str) -> list[Found]:
            with engine.store.snapshot(collection_id) as snapshot:
                return retrieved(snapshot, engine.ranker, terms.scope, line, plan)

        yield Pass(
            request=asked,
            plan=plan,
            client=_timed(sender, deadline, engine.vision),
            trace=trace or Trace(plan.governor(), meta={"collection": collection_id}),
            deadline=deadline,
            retrieve=retrieve,
            secret=engine.secret(),
            heard=heard,
            picture=picture,
            vision=engine.vision,
        )


def _timed(client: Client, deadline: Deadline, vision: Client | None) -> Client:
    """The client under the deadline; a replay sends nothing that could take long."""
    return client if isinstance(client, ReplayClient) else TimedClient(client, deadline, vision)


@contextmanager
def _on_the_wire() -> Iterator[None]:
    try:
        yield
    except HarnessError as error:
        fault = as_fault(error)
        if fault is None:
            raise
        raise fault from error


def result_of(ran: Pass, outcome: Outcome, request_id: str | None) -> AnswerResult:
    """The one outcome as the ``sources`` mode shows it."""
    mode: Mode = ran.request.sources
    shown = {
        "all": list(outcome.sources),
        "cited": [source for source in outcome.sources if source.cited],
        "none": [],
    }[mode]
    effort: Effort = ran.request.effort
    return AnswerResult(
        request_id=request_id or new_request_id(),
        answer=without_markers(outcome.text) if mode == "none" else outcome.text,
        effort=effort,
        image_description=outcome.described,
        sources=shown,
        usage=Credits(credits=ran.plan.credits + (ran.picture is not None)),
        found=outcome.found,
        partial=bool(outcome.reasons),
        partial_reasons=list(outcome.reasons),
        notes=dict(outcome.notes),
        trace=ran.trace,
    )
