"""The core's ranking as a LangChain retriever: by words, by vectors, or half by each."""

from typing import TYPE_CHECKING, Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from harness_core.errors import BadSettingError
from harness_core.ranking.bm25 import BM25
from harness_core.ranking.selection import blend, select, similarities
from harness_integrations.langchain.embeddings import GovernedEmbeddings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]


class ReaderRetriever(BaseRetriever):
    """The ``k`` of ``docs`` most relevant to a query, best first.

    ``search`` is ``bm25`` (words; needs no model), ``embedding`` or ``blend`` (half each); the last
    two need ``embeddings``, governed when they are ``GovernedEmbeddings``. The documents' vectors
    are made at the first query. ``metadata["relevance_score"]`` says how near each is.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    docs: list[Document] = Field(repr=False)
    k: int = Field(default=4, ge=1)
    search: Literal["bm25", "embedding", "blend"] = "bm25"
    embeddings: Embeddings | None = None
    _words: BM25 | None = PrivateAttr(default=None)
    _vectors: Any = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _has_embeddings(self) -> "ReaderRetriever":
        if self.search != "bm25" and self.embeddings is None:
            raise BadSettingError(f"search={self.search!r} needs embeddings=")
        return self

    def governed_by(self, **given: Any) -> "ReaderRetriever":
        """The retriever with its embeddings under a budget."""
        if self.embeddings is None or isinstance(self.embeddings, GovernedEmbeddings):
            return self
        return self.model_copy(update={"embeddings": GovernedEmbeddings(self.embeddings, **given)})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        near = None
        if self.embeddings is not None and self.search != "bm25":
            if self._vectors is None:
                self._vectors = self.embeddings.embed_documents(self._texts())
            near = self._near(self.embeddings.embed_query(query))
        return self._best(query, near, k)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        near = None
        if self.embeddings is not None and self.search != "bm25":
            if self._vectors is None:
                self._vectors = await self.embeddings.aembed_documents(self._texts())
            near = self._near(await self.embeddings.aembed_query(query))
        return self._best(query, near, k)

    def _texts(self) -> list[str]:
        return [one.page_content for one in self.docs]

    def _near(self, query: list[float]) -> "Scores":
        import numpy as np

        return similarities(np.asarray(self._vectors, dtype=np.float64), query)

    def _best(self, query: str, near: "Scores | None", k: int | None) -> list[Document]:
        if not self.docs:
            return []
        if near is None or self.search == "blend":
            self._words = self._words or BM25(self._texts())
            words = self._words.scores(query)
            scores = words if near is None else blend(near, words)
        else:
            scores = near
        chosen = select(scores, None, k or self.k, 1.0)
        return [_scored(self.docs[place], float(scores[place])) for place in chosen]


def _scored(document: Document, score: float) -> Document:
    metadata = {**document.metadata, "relevance_score": score}
    return document.model_copy(update={"metadata": metadata})
