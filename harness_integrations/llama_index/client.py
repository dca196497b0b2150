"""Any LlamaIndex LLM as the core's model client."""

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM

from harness_core.calls.cache import ResponseCache
from harness_core.calls.trace import Trace
from harness_core.messages import Embeddings, Texts
from harness_integrations.llama_index.asking import model_name
from harness_integrations.llama_index.embeddings import EmbeddingClient, bare_embedding
from harness_integrations.llama_index.governed import GovernedLLM
from harness_integrations.llama_index.sending import LLMClient


class LlamaIndexClient(LLMClient):
    """Sends requests through ``llm``, one attempt each, the output cap enforced on a copy of it.

    Requests are priced and recorded as the LLM's model, whatever a spec names, with one warning. A
    schema goes out natively with LlamaIndex's OpenAI classes, elsewhere as words in the prompt.
    ``llm.system_prompt`` is not added: ``chat`` does not. A governed LLM is unwrapped, so that a
    request is governed once; ``trace`` is then its trace. Without ``embeddings`` readers rank by
    words. ``allow_uncapped`` accepts an LLM whose output cannot be capped.

    Raises:
        OutputCapUnenforceable: the output of ``llm`` cannot be capped.
        TypeError: something that is no LLM.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        embeddings: BaseEmbedding | None = None,
        cache: ResponseCache | None = None,
        allow_uncapped: bool = False,
    ) -> None:
        if not isinstance(llm, LLM):
            raise TypeError(f"llm is a LlamaIndex LLM, not {type(llm).__name__}")
        self.governed = llm if isinstance(llm, GovernedLLM) else None
        if self.governed is not None:
            allow_uncapped = allow_uncapped or self.governed.allow_uncapped
            cache = cache or self.governed.response_cache
        bare = llm if self.governed is None else self.governed.llm
        super().__init__(bare, cache=cache, allow_uncapped=allow_uncapped)
        self.can_embed = embeddings is not None
        if embeddings is not None:
            inner = bare_embedding(embeddings)
            self._embeddings = EmbeddingClient(inner, model_name(inner))
            self.embedding_model = self._embeddings.model

    @property
    def trace(self) -> Trace | None:
        """The trace of the governed LLM inside; None without one."""
        return None if self.governed is None else self.governed.trace

    def embed(self, request: Texts, /) -> Embeddings:
        """Vectors from ``embeddings``; without them a failed outcome that says so."""
        return self._embeddings.embed(request) if self.can_embed else super().embed(request)

    async def aembed(self, request: Texts, /) -> Embeddings:
        """The async twin of ``embed``."""
        if not self.can_embed:
            return await super().aembed(request)
        return await self._embeddings.aembed(request)
