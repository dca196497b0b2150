"""One question: checked in the order of the contract, run under its limits, shown as asked."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from harness_core.calls.keys import content_hash
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import VERSION as PACKAGE
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.collections.access import check_principals, check_state
from harness_core.collections.answer_cache import AnswerCache, remembered
from harness_core.collections.answering import Pass
from harness_core.collections.contract import (
    CONTRACT,
    AnswerRequest,
    AnswerResult,
    Credits,
    Effort,
    Mode,
)
from harness_core.collections.deadlines import Budgets, Deadline, TimedClient
from harness_core.collections.efforts import VERSION, Plan
from harness_core.collections.failures import as_fault
from harness_core.collections.faults import InvalidRequestError
from harness_core.collections.filters import compile_filter
from harness_core.collections.ids import new_request_id
from harness_core.collections.images import Picture, picture_of
from harness_core.collections.ingestion.limits import Limits
from harness_core.collections.ingestion.processing import Ingestion
from harness_core.collections.markers import without_markers
from harness_core.collections.outcomes import Outcome
from harness_core.collections.retrieval import Found, Scope, retrieved
from harness_core.collections.searching import Search, embedder_for
from harness_core.collections.store import Ranker, Store
from harness_core.errors import HarnessError, recording_warnings
from harness_core.flows.types import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What the handles share."""

    store: Store
    ranker: Ranker
    client: Client
    vision: Client | None
    budgets: Budgets
    efforts: Mapping[str, Plan]
    ingestion: Ingestion
    limits: Limits
    embedder: Client | None = None
    answer_cache: AnswerCache | None = None
    secrets: dict[str, bytes] = field(default_factory=dict, repr=False)

    def secret(self) -> bytes:
        """What the labels of excerpts are drawn from; the same in every process of this store."""
        if "labels" not in self.secrets:
            self.secrets["labels"] = self.store.secret("labels")
        return self.secrets["labels"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a checked request may read, the image beside it, and what its labels are drawn from."""

    scope: Scope
    picture: Picture | None
    secret: bytes


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
    scope = Scope(node=node, principals=asked.principals)
    return Terms(scope=scope, picture=picture, secret=engine.secret())


@contextmanager
def begun(
    engine: Engine,
    collection_id: str,
    asked: AnswerRequest,
    terms: Terms,
    trace: Trace | None,
    *,
    matches: bool = False,
    caller: str = "",
    waited: float = 0.0,
) -> Iterator[Pass]:
    """A pass that begins now; what ends it is raised as the wire knows it."""
    plan, picture = engine.efforts[asked.effort], terms.picture
    deadline = engine.budgets.deadline(image=picture is not None, waited=waited)
    embeds = engine.embedder is not None
    account = trace or Trace(plan.governor(embeds=embeds), meta={"collection": collection_id})
    with recording_warnings(raised=False) as heard, on_the_wire(account):

        def retrieve(search: Search) -> list[Found]:
            with engine.store.snapshot(collection_id) as snapshot:
                return retrieved(snapshot, engine.ranker, terms.scope, search, plan)

        def remember(flow: Flow[Outcome]) -> Flow[Outcome]:
            if engine.answer_cache is None or isinstance(engine.client, ReplayClient):
                return flow
            key = partial(_key, engine, collection_id, asked, terms, [caller, matches])
            return remembered(flow, engine.answer_cache, key, account)

        yield Pass(
            request=asked,
            plan=plan,
            client=_timed(deadline, engine),
            trace=account,
            deadline=deadline,
            retrieve=retrieve,
            secret=terms.secret,
            heard=heard,
            picture=picture,
            vision=engine.vision,
            embedder=embedder_for(engine.client, engine.embedder),
            matches=matches,
            remember=remember,
        )


def _timed(deadline: Deadline, engine: Engine) -> Client:
    """The client under the deadline; a replay sends nothing that could take long."""
    if isinstance(engine.client, ReplayClient):
        return engine.client
    return TimedClient(engine.client, deadline, engine.vision, engine.embedder)


def _key(
    engine: Engine, collection_id: str, asked: AnswerRequest, terms: Terms, more: list[object]
) -> str:
    """All that an answer depends on; what may be seen counts as the files, not as who asks."""
    scope, picture = terms.scope, terms.picture
    with engine.store.snapshot(collection_id) as snapshot:
        seen = [snapshot.generation, sorted(snapshot.visible(scope.node, scope.principals).ids)]
    models = [
        one is not None
        and [one.model, one.embedding_model, one.api, one.base_url, one.identity, one.extra_body]
        for one in (engine.client, engine.vision, engine.embedder)
    ]
    about = asked.model_dump(mode="json", exclude={"sources", "principals", "query_image"})
    image = picture and hashlib.sha256(picture.data).hexdigest()
    plan = repr(engine.efforts[asked.effort])
    return content_hash([
        CONTRACT, VERSION, PACKAGE, collection_id, seen, about, image, plan, models, more,
    ])  # fmt: skip


@contextmanager
def on_the_wire(trace: Trace) -> Iterator[None]:
    """What ends a run inside, as the wire knows it."""
    try:
        yield
    except HarnessError as error:
        fault = as_fault(error, trace)
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
    metered = ran.plan.credits + (ran.picture is not None)
    return AnswerResult(
        request_id=request_id or new_request_id(),
        answer=without_markers(outcome.text) if mode == "none" else outcome.text,
        effort=effort,
        image_description=outcome.described,
        sources=shown,
        usage=Credits(credits=0 if outcome.cached else metered),
        found=outcome.found,
        partial=bool(outcome.reasons),
        partial_reasons=list(outcome.reasons),
        notes=dict(outcome.notes),
        warnings=list(outcome.warnings),
        trace=ran.trace,
    )
