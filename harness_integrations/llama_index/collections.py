"""Collections in LlamaIndex: a query engine whose response names its sources, and a retriever."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from harness_core.collections.contract import AnswerResult, Turn
from harness_core.collections.filters.shorthand import compared, joined, wire_filter
from harness_core.errors import BadSettingError
from harness_integrations.engine.targets import (
    Finding,
    Place,
    Target,
    arun,
    check_texts,
    finding,
    placed,
    run,
    target_of,
)

_OPS: Final[Mapping[FilterOperator, str]] = {
    FilterOperator.EQ: "eq", FilterOperator.NE: "neq", FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte", FilterOperator.LT: "lt", FilterOperator.LTE: "lte",
    FilterOperator.IN: "in", FilterOperator.NIN: "nin",
}  # fmt: skip
_JOINS: Final[Mapping[FilterCondition, str]] = {
    FilterCondition.AND: "and", FilterCondition.OR: "or", FilterCondition.NOT: "not",
}  # fmt: skip
_HIDDEN: Final = ["ref", "span", "file_id", "score", "cited", "content_type"]


def collection_filter(filters: Any) -> Any:
    """Metadata filters, or a dict in shorthand, as a filter of the contract.

    One that is already such is left as it is. A bare key is a metadata key; ``file.path`` and its
    like are the built-in fields.

    Raises:
        BadSettingError: an operator that the contract cannot express.
    """
    if not isinstance(filters, (MetadataFilters, MetadataFilter)):
        return wire_filter(filters)
    if isinstance(filters, MetadataFilter):
        return _one(filters)
    clauses = [collection_filter(one) for one in filters.filters]
    return joined(_JOINS[filters.condition or FilterCondition.AND], clauses)


def _one(one: MetadataFilter) -> dict[str, Any]:
    if one.operator is FilterOperator.IS_EMPTY:
        return compared(one.key, "eq", None)
    if one.operator not in _OPS:
        raise BadSettingError(f"a collection cannot filter by {one.operator.value!r}")
    return compared(one.key, _OPS[one.operator], one.value)


class CollectionRetriever(BaseRetriever):
    """The places of a collection that fit a question, as nodes.

    A collection of the library and a service that is known to search are searched, best first; any
    other service is asked for an answer whose sources are given in their order, with their text
    where it reads spans. ``allow_empty_text`` permits nodes without text.

    Raises:
        BadSettingError: the texts cannot be had, ``similarity_top_k`` is not 1 to 100, or an image.
        MissingTextError: a text did not come.
        CollectionFault: what the collection answers instead.
    """

    def __init__(
        self,
        collection: Any,
        *,
        similarity_top_k: int = 10,
        effort: Literal["medium", "high"] | None = None,
        filters: Any = None,
        principals: list[str] | None = None,
        allow_empty_text: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._target = target_of(collection)
        self._asked: dict[str, Any] = {
            "limit": similarity_top_k, "effort": effort, "principals": principals,
            "filter": collection_filter(filters), "allow_empty_text": allow_empty_text,
        }  # fmt: skip

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        steps = finding(self._target, _text(query_bundle), **self._asked)
        return [_node(one) for one in run(self._target, steps)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        steps = finding(self._target, _text(query_bundle), **self._asked)
        return [_node(one) for one in await arun(self._target, steps)]


class CollectionQueryEngine(BaseQueryEngine):
    """Answers from a collection, of the library or of a service; its sources are the source nodes.

    The response's metadata holds ``request_id``, ``effort``, ``usage`` (credits), whether the
    answer was ``found`` and its ``partial_reasons``. Nodes are in the order of the markers.
    ``allow_empty_text`` permits nodes without text, as of a service that reads no spans.

    Raises:
        BadSettingError: the texts cannot be had, or the query is an image.
        MissingTextError: a text did not come.
        CollectionFault: what the collection answers instead; ``retryable`` says if asking again can
            help.
    """

    def __init__(
        self,
        collection: Any,
        *,
        effort: Literal["medium", "high"] | None = None,
        sources: Literal["all", "cited", "none"] | None = None,
        filters: Any = None,
        principals: list[str] | None = None,
        instructions: str | None = None,
        allow_empty_text: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager)
        self._target: Target = target_of(collection)
        self._principals = principals
        self._allow_empty_text = allow_empty_text
        self._asked = {
            "effort": effort, "sources": sources, "filter": collection_filter(filters),
            "principals": principals, "instructions": instructions,
        }  # fmt: skip

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def ask(self, query: str, history: Sequence[Turn] = ()) -> Response:
        """Answer a question with the turns before it, oldest first, at most 32."""
        result = self._target.answer(self._request(query, history))
        return _response(result, run(self._target, self._placing(result)))

    async def aask(self, query: str, history: Sequence[Turn] = ()) -> Response:
        """The async twin of ``ask``."""
        result = await self._target.aanswer(self._request(query, history))
        return _response(result, await arun(self._target, self._placing(result)))

    def _query(self, query_bundle: QueryBundle) -> Response:
        asked: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=asked) as event:
            response = self.ask(_text(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        asked: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=asked) as event:
            response = await self.aask(_text(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _request(self, query: str, history: Sequence[Turn]) -> dict[str, Any]:
        if self._asked["sources"] != "none":
            check_texts(self._target, allow_empty_text=self._allow_empty_text)
        known = {name: value for name, value in self._asked.items() if value is not None}
        return {"query": query, "history": list(history), **known}

    def _placing(self, result: AnswerResult) -> Finding:
        return placed(
            self._target, result.sources, self._principals,
            allow_empty_text=self._allow_empty_text,
        )  # fmt: skip


def _text(query_bundle: QueryBundle) -> str:
    if query_bundle.image_path is not None:
        raise BadSettingError("ask the collection itself with query_image; a bundle is text here")
    return query_bundle.query_str


def _response(result: AnswerResult, places: list[Place]) -> Response:
    return Response(
        response=result.answer,
        source_nodes=[_node(one) for one in places],
        metadata={
            "request_id": result.request_id,
            "effort": result.effort,
            "usage": result.usage.wire(),
            "found": result.found,
            "partial_reasons": result.partial_reasons,
        },
    )


def _node(place: Place) -> NodeWithScore:
    chars = place.span.unit == "chars"
    node = TextNode(
        id_=place.id,
        text=place.text,
        start_char_idx=place.span.start if chars else None,
        end_char_idx=place.span.end if chars else None,
        metadata=place.metadata(),
        excluded_llm_metadata_keys=list(_HIDDEN),
        excluded_embed_metadata_keys=list(_HIDDEN),
    )
    return NodeWithScore(node=node, score=place.score)
