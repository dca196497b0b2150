"""One collection: its files, and what can be asked of them."""

from collections.abc import Mapping
from typing import Any

from harness_core.calls.api import arun_flow, run_flow
from harness_core.calls.trace import Trace
from harness_core.collections.access import check_principals
from harness_core.collections.asking import begun, checked, result_of
from harness_core.collections.contents import Contents
from harness_core.collections.contract import (
    AnswerRequest,
    AnswerResult,
    Hit,
    ReadSpansRequest,
    ReadSpansResult,
    SearchRequest,
    SearchResult,
)
from harness_core.collections.excerpts import span_of
from harness_core.collections.hits import hits
from harness_core.collections.ids import new_request_id
from harness_core.collections.reading_back import inline, read_back, without_texts
from harness_core.collections.retrieval import Found


class Collection(Contents):
    """A collection: its files, and what can be asked of them."""

    def answer(
        self,
        request: AnswerRequest | Mapping[str, Any],
        *,
        request_id: str | None = None,
        trace: Trace | None = None,
        matches: bool = False,
        caller: str = "",
        waited: float = 0.0,
    ) -> AnswerResult:
        """Answer from the files that the request may read, citing the places it rests on.

        ``matches`` adds to each cited source the passage that supports the answer. ``caller`` keeps
        the cached answers of several askers apart. ``waited`` are the seconds that the request has
        waited already: they count towards its time.

        Raises:
            InvalidRequestError, FilterError: the request breaks a rule.
            CollectionEmptyError, CollectionNotReadyError: there is nothing to answer from yet.
            TemporarilyUnavailableError: a limit, the deadline or the model prevented an answer.
        """
        asked = AnswerRequest.parse(request)
        terms = checked(self._engine, self.id, asked)
        with begun(
            self._engine,
            self.id,
            asked,
            terms,
            trace,
            matches=matches,
            caller=caller,
            waited=waited,
        ) as ran:
            outcome = run_flow(ran.flow(), ran.client, ran.trace, width=ran.plan.width)
        return result_of(ran, outcome, request_id)

    async def aanswer(
        self,
        request: AnswerRequest | Mapping[str, Any],
        *,
        request_id: str | None = None,
        trace: Trace | None = None,
        matches: bool = False,
        caller: str = "",
        waited: float = 0.0,
    ) -> AnswerResult:
        """The async twin of ``answer``."""
        from anyio.to_thread import run_sync

        asked = AnswerRequest.parse(request)
        terms = await run_sync(checked, self._engine, self.id, asked)
        with begun(
            self._engine,
            self.id,
            asked,
            terms,
            trace,
            matches=matches,
            caller=caller,
            waited=waited,
        ) as ran:
            outcome = await arun_flow(ran.flow(), ran.client, ran.trace, width=ran.plan.width)
        return result_of(ran, outcome, request_id)

    def search(
        self,
        request: SearchRequest | Mapping[str, Any],
        *,
        request_id: str | None = None,
        trace: Trace | None = None,
    ) -> SearchResult:
        """The places that fit best, without an answer.

        Raises:
            InvalidRequestError, FilterError, CollectionEmptyError, CollectionNotReadyError: as
                ``answer``.
        """
        asked = SearchRequest.parse(request)
        found = hits(self._engine, self.id, asked, trace)
        return SearchResult(
            request_id=request_id or new_request_id(),
            results=[_hit(one, with_text=asked.include_text) for one in found.found],
            partial_reasons=found.reasons,
        )

    def read_spans(
        self, request: ReadSpansRequest | Mapping[str, Any], *, request_id: str | None = None
    ) -> ReadSpansResult:
        """The text of spans; what may not be read is ``not_found``.

        One result holds 4 MiB of text; parts beyond it are ``too_large``. With ``delivery="url"``
        no part holds its text: from where to fetch it is for a service to say.

        Raises:
            InvalidRequestError: the request breaks a rule.
        """
        asked = ReadSpansRequest.parse(request)
        check_principals(self.access_control, asked.principals)
        with self._engine.store.snapshot(self.id) as snapshot:
            found = read_back(snapshot, asked.spans, asked.principals)
            parts = inline(found) if asked.delivery == "inline" else without_texts(found)
        return ReadSpansResult(request_id=request_id or new_request_id(), parts=parts)


def _hit(one: Found, *, with_text: bool) -> Hit:
    passage = one.passage
    return Hit(
        span=span_of(one),
        path=passage.path,
        content_type=passage.content_type,
        score=one.score,
        text=passage.text if with_text else None,
    )
