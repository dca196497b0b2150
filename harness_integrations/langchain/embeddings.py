"""Embeddings under limits: LangChain has no callback that would see them."""

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings

from harness_core.calls.ambient import trace_for
from harness_core.calls.api import arun_flow, run_flow
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.flows.ask import ask_vectors
from harness_core.flows.types import Flow
from harness_core.messages import Embeddings as Vectors
from harness_core.messages import Texts, clean_text
from harness_integrations.langchain.asking import model_name
from harness_integrations.langchain.errors import GovernedRefusal, raise_failed
from harness_integrations.langchain.reaching import Governed
from harness_integrations.shared.failures import failure_facts
from harness_integrations.shared.governing import governed_trace, need_asyncio
from harness_integrations.shared.retries import without_retries
from harness_integrations.shared.vectors import outcome_of, rows_of

AT_ONCE = 64
"""Texts of one request."""

QUERY, DOCUMENTS = "embed.query", "embed.documents"


class GovernedEmbeddings(Embeddings, Governed):
    """``bound`` under limits: its requests are checked, priced and recorded like a chat model's.

    ``model`` is the id it is priced as (none: the one ``bound`` names). A provider that reports no
    usage is charged at the held bound. ``trace``, ``governor`` and the ``governed_run`` around a
    call are as for ``GovernedChatModel``. Vectors are not cached here: LangChain's
    ``CacheBackedEmbeddings`` goes around this object.

    Raises:
        TypeError: at the first request, when no limits were named.
        GovernedRefusal: a limit kept a request from being sent.
    """

    def __init__(
        self,
        bound: Embeddings,
        *,
        model: str | None = None,
        trace: Trace | None = None,
        governor: Governor | None = None,
    ) -> None:
        trace_for(trace, governor)
        self.bound = bound
        self.model = model or model_name(bound)
        self.own_trace = trace
        self.governor = governor
        self._client = EmbeddingsClient(bound, self.model)

    @property
    def trace(self) -> Trace:
        """The trace a request made here and now belongs to.

        Raises:
            TypeError: no limits were named.
        """
        return governed_trace("GovernedEmbeddings", self.own_trace, self.governor)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts, in order."""
        trace = self.trace
        return self._rows(run_flow(_asked(texts, DOCUMENTS), self._client, trace), trace)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        trace = self.trace
        return self._rows(run_flow(_asked([text], QUERY), self._client, trace), trace)[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """The async twin of ``embed_documents``."""
        trace = self.trace
        found = await arun_flow(_asked(texts, DOCUMENTS), self._client, trace)
        return self._rows(found, trace)

    async def aembed_query(self, text: str) -> list[float]:
        """The async twin of ``embed_query``."""
        trace = self.trace
        found = await arun_flow(_asked([text], QUERY), self._client, trace)
        return self._rows(found, trace)[0]

    def _rows(self, found: Sequence[Vectors], trace: Trace) -> list[list[float]]:
        try:
            return rows_of(found, raise_failed)
        except GovernedRefusal as refusal:
            trace.raised.append(refusal)
            raise


class EmbeddingsClient(BaseClient):
    """Sends texts through LangChain embeddings, whose provider client tries once."""

    api = "langchain"
    provider = True
    can_embed = True

    def __init__(self, bound: Embeddings, model: str) -> None:
        self.bound: Embeddings = without_retries(bound) if hasattr(bound, "model_copy") else bound
        self.model = self.embedding_model = model

    def embed(self, request: Texts, /) -> Vectors:
        """Vectors for texts; a provider's exception travels on the failed outcome."""
        try:
            if request.label == QUERY:
                return outcome_of([self.bound.embed_query(request.texts[0])])
            return outcome_of(self.bound.embed_documents(list(request.texts)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is its request's
            return Vectors(ok=False, **failure_facts(error))

    async def aembed(self, request: Texts, /) -> Vectors:
        """The async twin of ``embed``."""
        need_asyncio("governed LangChain embeddings")
        try:
            if request.label == QUERY:
                return outcome_of([await self.bound.aembed_query(request.texts[0])])
            return outcome_of(await self.bound.aembed_documents(list(request.texts)))
        except Exception as error:  # noqa: BLE001 - as above
            return Vectors(ok=False, **failure_facts(error))


def _asked(texts: Sequence[str], label: str) -> Flow[list[Vectors]]:
    return ask_vectors(
        Texts(texts=tuple(map(clean_text, texts[at : at + AT_ONCE])), label=label)
        for at in range(0, len(texts), AT_ONCE)
    )
