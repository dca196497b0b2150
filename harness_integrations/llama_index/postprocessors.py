"""Postprocessors: nodes scored by a model within limits, and quotations in nodes checked."""

from collections.abc import Sequence
from typing import Any, Literal

from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import Field, PrivateAttr

from harness_core.calls.api import arun_flow, run_flow
from harness_core.calls.trace import Trace
from harness_core.checks.quotations import is_verbatim
from harness_core.flows.ask import ask_all
from harness_core.flows.types import Flow
from harness_core.messages import Reply
from harness_core.readers.rerank import SCHEMA, SCORE_TOKENS, read_score
from harness_core.reading.job import Job
from harness_core.reading.spec import ReadSpec
from harness_integrations.llama_index.errors import QuoteError, raise_failed
from harness_integrations.llama_index.nodes import Handed, hand_over, own_text, places_of
from harness_integrations.llama_index.reading import Reading, client_of
from harness_integrations.llama_index.retriever import QUOTE, marked

_dispatcher = get_dispatcher(__name__)
SCORE = "rerank.score"


class ReaderRerank(BaseNodePostprocessor):
    """Has ``llm`` score each node from 0 to 10 for the question and keeps the ``top_n`` best.

    What could not be scored comes last, in its old order. Nodes stay as they are; the score is on
    their ``NodeWithScore``. Limits are as for ``ReaderSynthesizer``, but that a refusal raises: a
    postprocessor has no way to be partial.

    Raises:
        RequestRefused: a limit kept a request from being sent.
    """

    top_n: int = Field(default=5, ge=1)
    _reading: Reading = PrivateAttr()

    def __init__(
        self,
        llm: Any = None,
        *,
        top_n: int = 5,
        spec: Any = None,
        response_cache: Any = None,
        allow_uncapped: bool = False,
        callback_manager: CallbackManager | None = None,
        **budget: Any,
    ) -> None:
        manager = {} if callback_manager is None else {"callback_manager": callback_manager}
        super().__init__(top_n=top_n, **manager)  # type: ignore[call-arg]  # a field of ours
        if llm is None:
            from llama_index.core import Settings

            llm = Settings.llm
        self._reading = Reading(
            client=client_of(llm, response_cache=response_cache, allow_uncapped=allow_uncapped),
            spec=ReadSpec.of(spec),
            own_trace=budget.pop("trace", None),
            **budget,
        )

    @classmethod
    def class_name(cls) -> str:
        return "ReaderRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None or not nodes:
            return nodes[: self.top_n]
        self._begin(nodes, query_bundle)
        handed, job, trace = self._made(nodes, query_bundle)
        replies = run_flow(_scoring(job), self._reading.client, trace)
        return self._best(handed, replies, trace)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None or not nodes:
            return nodes[: self.top_n]
        self._begin(nodes, query_bundle)
        handed, job, trace = self._made(nodes, query_bundle)
        replies = await arun_flow(_scoring(job), self._reading.client, trace)
        return self._best(handed, replies, trace)

    def _begin(self, nodes: list[NodeWithScore], query_bundle: QueryBundle) -> None:
        _dispatcher.event(ReRankStartEvent(
            query=query_bundle, nodes=nodes, top_n=self.top_n, model_name=self._reading.client.model
        ))  # fmt: skip

    def _made(
        self, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle
    ) -> tuple[Handed, Job, Trace]:
        reading = self._reading
        trace = reading.trace() or Trace()
        handed = hand_over(nodes, reading.spec, reading.client.model)
        return handed, reading.job(query_bundle.query_str, handed.chunks, trace), trace

    def _best(self, handed: Handed, replies: Sequence[Reply], trace: Trace) -> list[NodeWithScore]:
        best: dict[int, float] = {}
        for chunk, reply in zip(handed.chunks, replies, strict=True):
            if reply.refused:
                raise_failed(reply, trace)
            outcome, score = read_score(reply)
            if outcome == "scored":
                place = handed.owners[chunk.chunk_id]
                best[place] = max(score, best.get(place, 0.0))
        order = sorted(range(len(handed.nodes)), key=lambda place: -best.get(place, -1.0))
        kept = [
            NodeWithScore(node=handed.nodes[place].node, score=best.get(place))
            for place in order[: self.top_n]
        ]
        _dispatcher.event(ReRankEndEvent(nodes=kept))
        return kept


class QuoteVerifierPostprocessor(BaseNodePostprocessor):
    """Checks the quotation in each node's metadata against the node's own text.

    ``mode``: ``drop`` leaves out nodes whose quotation is not there, ``mark`` keeps all, in their
    order with their scores, and says so in ``metadata["quote_verified"]``, ``raise`` raises. Nodes
    are copies; one without a quotation passes. It checks what is in nodes already (as from
    ``ReaderRetriever``): an answer's quotations are ``verify_response_citations``'.

    Raises:
        QuoteError: under ``mode="raise"``, naming the node.
    """

    quote_key: str = QUOTE
    mode: Literal["drop", "mark", "raise"] = "drop"

    @classmethod
    def class_name(cls) -> str:
        return "QuoteVerifierPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [kept for one in nodes if (kept := self._checked(one)) is not None]

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._postprocess_nodes(nodes, query_bundle)  # nothing here waits

    def _checked(self, found: NodeWithScore) -> NodeWithScore | None:
        quotation = found.node.metadata.get(self.quote_key)
        if not isinstance(quotation, str):
            return found
        text = own_text(found.node)
        verified = bool(is_verbatim(quotation, text))
        if not verified and self.mode == "raise":
            raise QuoteError(f"node {found.node.node_id} does not hold {quotation[:80]!r}")
        if not verified and self.mode == "drop":
            return None
        marks: dict[str, Any] = {f"{self.quote_key}_verified": verified}
        if verified and (span := next(places_of(quotation, text), None)) is not None:
            marks |= {f"{self.quote_key}_start": span[0], f"{self.quote_key}_end": span[1]}
        return NodeWithScore(node=marked(found.node, marks), score=found.score)


def _scoring(job: Job) -> Flow[list[Reply]]:
    return ask_all(
        job.asking(
            "score", SCORE, one.text, cap=SCORE_TOKENS, schema=SCHEMA, schema_name="relevance",
            task=job.task("score", [(one.chunk_id, one.text)]),
        )
        for one in job.chunks
    )  # fmt: skip
