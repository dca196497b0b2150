"""``ReaderQueryEngine``: a governed reader over documents, an index or a retriever."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeWithScore,
    QueryBundle,
    QueryType,
    TransformComponent,
)

from harness_core.errors import BadSettingError
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.preflight import Estimate
from harness_integrations.llama_index.synthesizer import ReaderSynthesizer

CHUNK_TOKENS = 1000


class ReaderQueryEngine(BaseQueryEngine):
    """Answers from ``nodes``, or from what ``retriever`` finds, with a ``ReaderSynthesizer``.

    Make one with ``from_documents``, ``from_index`` or ``from_retriever``, which take the
    synthesizer's keywords (``reader``, ``llm``, ``spec``, ``trace``, ``governor``, ...).
    ``preview(question)`` says beforehand what an answer would need.

    Raises:
        BadSettingError: not one of ``nodes`` and ``retriever``.
    """

    def __init__(
        self,
        synthesizer: ReaderSynthesizer,
        *,
        nodes: Sequence[BaseNode] | None = None,
        retriever: BaseRetriever | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if (nodes is None) == (retriever is None):
            raise BadSettingError("a ReaderQueryEngine reads nodes or what a retriever finds")
        super().__init__(callback_manager or synthesizer.callback_manager)
        self._synthesizer = synthesizer
        self._nodes = None if nodes is None else list(nodes)
        self._retriever = retriever
        self._postprocessors = list(node_postprocessors)

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[BaseNode],
        reader: str | None = None,
        llm: Any = None,
        *,
        transformations: Sequence[TransformComponent] | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        callback_manager: CallbackManager | None = None,
        **settings: Any,
    ) -> "ReaderQueryEngine":
        """An engine that reads whole documents.

        Documents are cut into nodes, at sentences into about 1,000 tokens unless
        ``transformations`` say otherwise; nodes are read as they are.
        """
        return cls(
            ReaderSynthesizer(reader, llm, callback_manager=callback_manager, **settings),
            nodes=nodes_of(documents, transformations),
            node_postprocessors=node_postprocessors,
            callback_manager=callback_manager,
        )

    @classmethod
    def from_index(
        cls,
        index: Any,
        reader: str | None = None,
        llm: Any = None,
        *,
        retriever_kwargs: dict[str, Any] | None = None,
        **settings: Any,
    ) -> "ReaderQueryEngine":
        """An engine over ``index.as_retriever(**retriever_kwargs)``."""
        retriever = index.as_retriever(**(retriever_kwargs or {}))
        return cls.from_retriever(retriever, reader, llm, **settings)

    @classmethod
    def from_retriever(
        cls,
        retriever: BaseRetriever,
        reader: str | None = None,
        llm: Any = None,
        *,
        node_postprocessors: Sequence[BaseNodePostprocessor] = (),
        callback_manager: CallbackManager | None = None,
        **settings: Any,
    ) -> "ReaderQueryEngine":
        """An engine that reads what ``retriever`` finds."""
        return cls(
            ReaderSynthesizer(reader, llm, callback_manager=callback_manager, **settings),
            retriever=retriever,
            node_postprocessors=node_postprocessors,
            callback_manager=callback_manager,
        )

    def preview(self, question: str) -> Estimate:
        """What an answer would need: requests, tokens and USD, expected and at worst.

        Asks no LLM; a retriever is asked for the nodes, and may embed the question for it.
        """
        reading = self._synthesizer.reading
        nodes = self.retrieve(QueryBundle(question))
        return reading.estimate(question, self._synthesizer.hand_over(nodes).chunks)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"response_synthesizer": self._synthesizer}

    # --- the parts ------------------------------------------------------------------------------

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The nodes that a question is answered from."""
        nodes = self._all() if self._retriever is None else self._retriever.retrieve(query_bundle)
        for one in self._postprocessors:
            nodes = one.postprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The async twin of ``retrieve``."""
        if self._retriever is None:
            nodes = self._all()
        else:
            nodes = await self._retriever.aretrieve(query_bundle)
        for one in self._postprocessors:
            nodes = await one.apostprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    def synthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """The answer from given nodes."""
        return self._synthesizer.synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """The async twin of ``synthesize``."""
        return await self._synthesizer.asynthesize(query_bundle, nodes, additional_source_nodes)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        asked: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=asked) as event:
            response = self.synthesize(query_bundle, self.retrieve(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        asked: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=asked) as event:
            nodes = await self.aretrieve(query_bundle)
            response = await self.asynthesize(query_bundle, nodes)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _all(self) -> list[NodeWithScore]:
        return [NodeWithScore(node=node) for node in self._nodes or ()]


def nodes_of(
    documents: Sequence[BaseNode], transformations: Sequence[TransformComponent] | None = None
) -> list[BaseNode]:
    """Documents cut into nodes that know their place in them; nodes as they are."""
    steps = [_splitter()] if transformations is None else transformations
    found: list[BaseNode] = []
    for one in documents:
        nodes: Sequence[BaseNode] = [one]
        if isinstance(one, Document):
            for step in steps:
                nodes = step(nodes)
        found += nodes
    return found


def _splitter() -> SentenceSplitter:
    return SentenceSplitter(
        chunk_size=CHUNK_TOKENS,
        chunk_overlap=0,
        tokenizer=lambda text: range(count_tokens(text)),
    )
