"""A search: the places that fit best, without an answer."""

from dataclasses import dataclass

from harness_core.calls.api import run_flow
from harness_core.calls.trace import Trace
from harness_core.collections.access import check_principals, check_state
from harness_core.collections.asking import Engine, on_the_wire
from harness_core.collections.contract import SearchRequest
from harness_core.collections.deadlines import TimedClient
from harness_core.collections.filters import compile_filter
from harness_core.collections.history import visible
from harness_core.collections.retrieval import Found, Scope, found
from harness_core.collections.searching import WORDS_ALONE, Search, searched
from harness_core.errors import recording_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What a search found, best first, and what failed on the way, as for an answer."""

    found: list[Found]
    reasons: list[str]


def hits(engine: Engine, collection_id: str, asked: SearchRequest, trace: Trace | None) -> Hits:
    """The best places for a search.

    Raises:
        InvalidRequestError, FilterError, CollectionEmptyError, CollectionNotReadyError: see there.
    """
    with engine.store.snapshot(collection_id) as snapshot:
        check_principals(snapshot.info.access_control, asked.principals)
        node = compile_filter(asked.filter, snapshot.info.metadata_fields)
        check_state(snapshot.counts())
    account = trace or Trace(meta={"collection": collection_id})
    with recording_warnings(raised=False) as heard, on_the_wire(account):
        search = _search(engine, visible(asked.query), account)
    scope = Scope(node=node, principals=asked.principals)
    with engine.store.snapshot(collection_id) as snapshot:
        best = found(snapshot, engine.ranker, scope, search, asked.limit)
    failed = any(isinstance(one, WORDS_ALONE) for one in heard)
    return Hits(found=best, reasons=["embedder"] if failed else [])


def _search(engine: Engine, line: str, trace: Trace) -> Search:
    if engine.embedder is None:
        return Search(lines=(line,))
    timed = TimedClient(engine.embedder, engine.budgets.deadline(image=False))
    return run_flow(searched([line], engine.embedder, trace), timed, trace)
