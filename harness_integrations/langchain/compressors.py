"""Readers' first stages as a document compressor: scored by a model, or cut to what matters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict, Field

from harness_core.calls.ambient import trace_for
from harness_core.calls.api import arun_flow, run_flow
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.documents.types import Chunk, Chunks
from harness_core.flows.ask import ask_all
from harness_core.flows.types import Flow
from harness_core.messages import Reply
from harness_core.readers.rerank import SCHEMA, SCORE_TOKENS, read_score
from harness_core.reading.flow import checked_question, make_job
from harness_core.reading.job import Job
from harness_core.reading.passages import copied, copying
from harness_core.reading.prompts import rendered
from harness_core.reading.spec import ReadSpec
from harness_integrations.langchain.client import LangChainClient
from harness_integrations.langchain.errors import GovernedRefusal
from harness_integrations.langchain.gates import Gate
from harness_integrations.langchain.inputs import as_chunks
from harness_integrations.langchain.models import MARK

Kept = list[tuple[int, Document]]


class ReaderCompressor(BaseDocumentCompressor):
    """For ``ContextualCompressionRetriever``: the ``top_n`` documents that matter to the question.

    ``rerank`` has the model score each document from 0 to 10 (``metadata["relevance_score"]``, best
    first; what could not be scored comes last in its old order). ``skim`` replaces each document by
    the passages the model copied from it, and drops those without any. Limits are as for
    ``DocumentReader``; a refusal raises, since a retriever has no way to be partial.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    llm: Runnable[Any, Any]
    reader: Literal["rerank", "skim"] = "rerank"
    top_n: int = Field(default=5, ge=1)
    spec: Any = None
    trace: Trace | None = Field(default=None, exclude=True, repr=False)
    governor: Governor | None = Field(default=None, exclude=True, repr=False)

    def governed_by(self, **given: Any) -> "ReaderCompressor":
        """The compressor under a budget, unless it has one."""
        if self.trace is not None or self.governor is not None:
            return self
        known = {k: given.get(k) for k in ("trace", "governor") if given.get(k) is not None}
        return self.model_copy(update=known)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents that matter, best first."""
        if not documents:
            return []
        made = self._made(documents, query, callbacks)
        replies = run_flow(self._asking(made.job), made.client, made.trace)
        return self._chosen(documents, made, replies)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The async twin of ``compress_documents``."""
        if not documents:
            return []
        made = self._made(documents, query, callbacks)
        replies = await arun_flow(self._asking(made.job), made.client, made.trace)
        return self._chosen(documents, made, replies)

    def _made(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None
    ) -> "_Made":
        bare = LangChainClient(self.llm)
        trace = bare.trace or trace_for(self.trace, self.governor) or Trace()
        config: RunnableConfig = {"callbacks": callbacks, "metadata": {MARK: trace.run_id}}
        client = bare.within(config, Gate(64))
        spec = ReadSpec.of(self.spec).having(reader=self.reader)
        numbered = [
            one.model_copy(update={"metadata": {**one.metadata, "_place": place}})
            for place, one in enumerate(documents)
        ]
        chunks = as_chunks(numbered, spec, client.model)
        job = make_job(chunks, checked_question(query), spec, client, trace)
        return _Made(job, chunks, client, trace)

    def _asking(self, job: Job) -> Flow[list[Reply]]:
        if self.reader == "skim":
            return ask_all(
                copying(job, [one], rendered(one), "compress.extract") for one in job.chunks
            )
        return ask_all(
            job.asking(
                "score", "compress.score", one.text, cap=SCORE_TOKENS, schema=SCHEMA,
                schema_name="relevance", task=job.task("score", [(one.chunk_id, one.text)]),
            )
            for one in job.chunks
        )  # fmt: skip

    def _chosen(
        self, documents: Sequence[Document], made: "_Made", replies: Sequence[Reply]
    ) -> list[Document]:
        for reply in replies:
            if reply.refused:
                refusal = GovernedRefusal(
                    reply.error or "", reply.reason or "", reply.label, reply.model
                )
                made.trace.raised.append(refusal)
                raise refusal
        pairs = list(zip(made.chunks, replies, strict=True))
        if self.reader == "skim":
            return _copied(documents, pairs)[: self.top_n]
        return _ranked(documents, pairs)[: self.top_n]


@dataclass(frozen=True, slots=True)
class _Made:
    """One compression, ready to go."""

    job: Job
    chunks: Chunks
    client: BaseClient
    trace: Trace


def _ranked(documents: Sequence[Document], pairs: Sequence[tuple[Chunk, Reply]]) -> list[Document]:
    best: dict[int, float] = {}
    for chunk, reply in pairs:
        outcome, score = read_score(reply)
        place = chunk.metadata["_place"]
        if outcome == "scored":
            best[place] = max(score, best.get(place, 0.0))
    order = sorted(range(len(documents)), key=lambda place: -best.get(place, -1.0))
    return [_with(documents[place], relevance_score=best.get(place)) for place in order]


def _copied(documents: Sequence[Document], pairs: Sequence[tuple[Chunk, Reply]]) -> list[Document]:
    passages: dict[int, list[str]] = {}
    for chunk, reply in pairs:
        if (text := copied(reply)) is not None:
            passages.setdefault(chunk.metadata["_place"], []).append(text)
    return [
        documents[place].model_copy(update={"page_content": "\n\n".join(texts)})
        for place, texts in passages.items()
    ]


def _with(document: Document, **metadata: Any) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, **metadata}})
