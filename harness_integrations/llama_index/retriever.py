"""``ReaderRetriever``: a reader as a retriever, whose nodes come with the words that matter."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from harness_core.answer import Answer
from harness_core.errors import BadSettingError
from harness_core.reading.spec import ReadSpec
from harness_integrations.llama_index.nodes import Citation, Handed, hand_over
from harness_integrations.llama_index.reading import Reading, client_of

QUOTE = "quote"
MARKS = (QUOTE, "quote_start", "quote_end")


class ReaderRetriever(BaseRetriever):
    """Gives the nodes that a read rests on, with the passage of each in ``metadata["quote"]``.

    Reads ``nodes``, or what ``retriever`` finds; ``reader`` is ``skim`` (passages copied from every
    node, checked) or any other. ``quote_start`` and ``quote_end`` are the passage's place in the
    node's own text; none of this is shown to models. Nodes are copies, each once, in order of
    score. Limits are as for ``ReaderSynthesizer``; whatever was found before one is given.

    Raises:
        BadSettingError: not one of ``nodes`` and ``retriever``.
    """

    def __init__(
        self,
        reader: str = "skim",
        llm: Any = None,
        *,
        nodes: Sequence[BaseNode] | None = None,
        retriever: BaseRetriever | None = None,
        spec: Any = None,
        embed_model: Any = None,
        response_cache: Any = None,
        allow_uncapped: bool = False,
        callback_manager: CallbackManager | None = None,
        **budget: Any,
    ) -> None:
        if (nodes is None) == (retriever is None):
            raise BadSettingError("a ReaderRetriever reads nodes or what a retriever finds")
        super().__init__(callback_manager=callback_manager)
        if llm is None:
            from llama_index.core import Settings

            llm = Settings.llm
        self._nodes = None if nodes is None else [NodeWithScore(node=node) for node in nodes]
        self._inner = retriever
        self.reading = Reading(
            client=client_of(
                llm, embeddings=embed_model, response_cache=response_cache,
                allow_uncapped=allow_uncapped,
            ),
            spec=ReadSpec.of(spec).having(reader=reader),
            own_trace=budget.pop("trace", None),
            **budget,
        )  # fmt: skip

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = self._nodes if self._inner is None else self._inner.retrieve(query_bundle)
        handed = self._handed(nodes or [])
        if not handed.chunks:
            return []
        return _found(handed, self.reading.read(query_bundle.query_str, handed.chunks))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = self._nodes if self._inner is None else await self._inner.aretrieve(query_bundle)
        handed = self._handed(nodes or [])
        if not handed.chunks:
            return []
        return _found(handed, await self.reading.aread(query_bundle.query_str, handed.chunks))

    def _handed(self, nodes: Sequence[NodeWithScore]) -> Handed:
        return hand_over(nodes, self.reading.spec, self.reading.client.model)


def _found(handed: Handed, answer: Answer) -> list[NodeWithScore]:
    scores = {handed.owners.get(row.chunk_id or 0): row.score for row in answer.evidence}
    first: dict[int, Citation] = {}
    for citation in handed.citations(answer):
        first.setdefault(citation.source, citation)
    found = [
        quoted(handed.nodes[place], citation, scores.get(place))
        for place, citation in first.items()
    ]
    ids = {one.node.node_id: one for one in reversed(found)}  # the first of each id stays
    return sorted(
        (one for one in found if ids[one.node.node_id] is one), key=lambda one: -(one.score or 0.0)
    )


def quoted(found: NodeWithScore, citation: Citation, score: float | None) -> NodeWithScore:
    """A copy of a node with a quotation in its metadata, which no model is shown."""
    marks = dict(zip(MARKS, (citation.text, citation.start, citation.end), strict=True))
    return NodeWithScore(
        node=marked(found.node, marks), score=found.score if score is None else score
    )


def marked(node: BaseNode, marks: dict[str, Any]) -> BaseNode:
    """A copy of a node with more metadata, kept from LLMs and embeddings; the node is as it was."""
    hidden = list(marks)
    return node.model_copy(
        update={
            "metadata": {**node.metadata, **marks},
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *hidden],
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *hidden],
        }
    )
