"""Embeddings under limits."""

from collections.abc import Sequence
from typing import Any, TypeVar

from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding
from pydantic import Field, PrivateAttr, SerializeAsAny

from harness_core.calls.ambient import trace_for
from harness_core.calls.api import arun_flow, run_flow
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.flows.ask import ask_vectors
from harness_core.flows.types import Flow
from harness_core.messages import Embeddings, Texts, clean_text
from harness_integrations.llama_index.asking import model_name
from harness_integrations.llama_index.bound import BudgetBound
from harness_integrations.llama_index.errors import raise_failed
from harness_integrations.llama_index.loops import PerLoop
from harness_integrations.shared.failures import failure_facts
from harness_integrations.shared.governing import governed_trace, need_asyncio
from harness_integrations.shared.retries import quiet_client
from harness_integrations.shared.vectors import outcome_of, rows_of

E = TypeVar("E", bound=BaseEmbedding)
QUERY, TEXTS = "embed.query", "embed.documents"


class GovernedEmbedding(BudgetBound, BaseEmbedding):
    """``bound`` under limits: its requests are checked, priced and recorded like an LLM's.

    ``model`` is the id it is priced as (none: the one ``bound`` names). A provider that reports no
    usage is charged at the held bound. ``trace``, ``governor`` and the ``governed_run`` around a
    call are as for ``GovernedLLM``.

    Raises:
        TypeError: at the first request, when no limits were named.
        RequestRefused: a limit kept a request from being sent.
    """

    bound: SerializeAsAny[BaseEmbedding] = Field(exclude=True, repr=False)
    _client: Any = PrivateAttr()
    _own_trace: Trace | None = PrivateAttr()
    _governor: Governor | None = PrivateAttr()

    def __init__(
        self,
        bound: BaseEmbedding,
        *,
        model: str | None = None,
        trace: Trace | None = None,
        governor: Governor | None = None,
    ) -> None:
        trace_for(trace, governor)
        inner = bare_embedding(bound)
        name = model or model_name(inner)
        super().__init__(
            bound=inner,  # type: ignore[call-arg]  # a field of ours; its signature is written out
            model_name=name,
            embed_batch_size=inner.embed_batch_size,
            callback_manager=inner.callback_manager,
        )
        self._client = EmbeddingClient(inner, name)
        self._own_trace, self._governor = trace, governor

    @classmethod
    def class_name(cls) -> str:
        return "GovernedEmbedding"

    @property
    def trace(self) -> Trace:
        """The trace a request made here and now belongs to.

        Raises:
            TypeError: no limits were named.
        """
        return governed_trace("GovernedEmbedding", self._own_trace, self._governor)

    def _get_query_embedding(self, query: str) -> Embedding:
        return self._rows([query], QUERY)[0]

    async def _aget_query_embedding(self, query: str) -> Embedding:
        return (await self._arows([query], QUERY))[0]

    def _get_text_embedding(self, text: str) -> Embedding:
        return self._rows([text], TEXTS)[0]

    async def _aget_text_embedding(self, text: str) -> Embedding:
        return (await self._arows([text], TEXTS))[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return self._rows(texts, TEXTS)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return await self._arows(texts, TEXTS)

    def _rows(self, texts: Sequence[str], label: str) -> list[Embedding]:
        trace = self.trace
        return _rows_of(run_flow(_asked(texts, label), self._client, trace), trace)

    async def _arows(self, texts: Sequence[str], label: str) -> list[Embedding]:
        trace = self.trace
        return _rows_of(await arun_flow(_asked(texts, label), self._client, trace), trace)


class EmbeddingClient(BaseClient):
    """Sends texts through a LlamaIndex embedding, whose provider client tries once."""

    api = "llama_index"
    provider = True
    can_embed = True

    def __init__(self, bound: BaseEmbedding, model: str) -> None:
        self.bound = _tried_once(bound)
        self._loops: PerLoop[BaseEmbedding] = PerLoop()
        self.model = self.embedding_model = model

    def embed(self, request: Texts, /) -> Embeddings:
        """Vectors for texts; a provider's exception travels on the failed outcome."""
        try:
            if request.label == QUERY:
                return outcome_of([self.bound._get_query_embedding(request.texts[0])])  # noqa: SLF001 - below the events, which our own object fires
            return outcome_of(self.bound._get_text_embeddings(list(request.texts)))  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - whatever it is, it is its request's
            return Embeddings(ok=False, **failure_facts(error))

    async def aembed(self, request: Texts, /) -> Embeddings:
        """The async twin of ``embed``, on asyncio."""
        need_asyncio("a LlamaIndex embedding")
        bound = self._loops.here(self.bound)
        try:
            if request.label == QUERY:
                return outcome_of([await bound._aget_query_embedding(request.texts[0])])  # noqa: SLF001
            return outcome_of(await bound._aget_text_embeddings(list(request.texts)))  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - as above
            return Embeddings(ok=False, **failure_facts(error))


def bare_embedding(embedding: BaseEmbedding) -> BaseEmbedding:
    """The embedding inside a governed one; any other one itself."""
    return embedding.bound if isinstance(embedding, GovernedEmbedding) else embedding


def _tried_once(bound: E) -> E:
    twin: E = bound.model_copy(
        update={"max_retries": 0} if "max_retries" in type(bound).model_fields else {}
    )
    for name, value in (twin.__pydantic_private__ or {}).items():
        if twin.__pydantic_private__ is not None:
            twin.__pydantic_private__[name] = quiet_client(value)
    return twin


def _asked(texts: Sequence[str], label: str) -> Flow[list[Embeddings]]:
    return ask_vectors([Texts(texts=tuple(map(clean_text, texts)), label=label)])


def _rows_of(found: Sequence[Embeddings], trace: Trace) -> list[Embedding]:
    return rows_of(found, lambda reply: raise_failed(reply, trace))
