"""The whole way: a source becomes a document, the document chunks, the chunks an answer.

Each function that asks a model has an async twin, which runs the same flow on asyncio or trio.
"""

from contextlib import closing
from functools import partial
from typing import Any

from harness_core.answer import Answer
from harness_core.asked import Asked, checked_client, recorder, segmented, width_of, without_asking
from harness_core.calls.ambient import trace_for
from harness_core.calls.api import arun_flow, run_flow
from harness_core.calls.progress import OnProgress
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, Client, OnText
from harness_core.documents.cache import flush_documents
from harness_core.documents.ingestion import ingest as ingested
from harness_core.documents.types import Block, Chunks, Document
from harness_core.errors import (
    BadSettingError,
    holding_warnings,
    recording_warnings,
)
from harness_core.flows.types import Flow, Work
from harness_core.ranking.embedders import flush_embeddings
from harness_core.reading.flow import make_job, read_flow
from harness_core.reading.preflight import Estimate, estimated
from harness_core.reading.registry import find_reader
from harness_core.reading.spec import ReadSpec
from harness_core.recipes import AUTO
from harness_core.segmenting.segmentation import segment_flow
from harness_core.segmenting.spec import SegmentSpec


def ingest(source: Any, spec: Any = None, *, trace: Trace | None = None) -> Document:
    """The document that ``source`` is: a path, a web address (off by default), or text.

    ``spec`` is an ``IngestSpec``, the name of a cleaning preset, a mapping of settings, or None.

    Raises:
        SourceNotFoundError, UnsupportedFormatError, EncryptedDocumentError, BrokenDocumentError,
        EmptyDocumentError, UrlError, MissingDepError, BadSettingError: see there.
    """
    return ingested(source, spec, record=None if trace is None else recorder(trace))


def segment(
    document: Any, spec: Any = None, *, client: Client | None = None, trace: Trace | None = None
) -> Chunks:
    """The chunks of a document (or of a source, which is ingested first).

    Raises:
        EmptyChunksError: nothing was left to read.
        CapUnenforceableError: the tokenizer counts one character above the cap.
    """
    run = trace_for(trace) or Trace(meta={"stage": "segment"})
    flow = segmented(_document(document, run), SegmentSpec.of(spec), client, ReadSpec(), run)
    return run_flow(flow, _sender(client), run)


async def asegment(
    document: Any, spec: Any = None, *, client: Client | None = None, trace: Trace | None = None
) -> Chunks:
    """The async twin of ``segment``."""
    run = trace_for(trace) or Trace(meta={"stage": "segment"})
    flow = segmented(_document(document, run), SegmentSpec.of(spec), client, ReadSpec(), run)
    return await arun_flow(flow, _sender(client), run)


def read(
    chunks: Chunks,
    question: str,
    client: Client,
    spec: Any = None,
    *,
    trace: Trace | None = None,
    on_progress: OnProgress | None = None,
    on_text: OnText | None = None,
) -> Answer:
    """Read chunks with one reader. ``spec`` is a ``ReadSpec``, a reader's name, or a mapping.

    Raises:
        CallCapError, CostCapError, UnpricedModelError: the read could not be finished; nothing
            was sent.
        AuthError, ReplayMissError, ReplayExhaustedError, BadQuestionError, BudgetError: see there.
    """
    chosen = ReadSpec.of(spec)
    run = trace_for(trace) or Trace(meta={"reader": chosen.reader})
    with recording_warnings() as heard:
        flow = read_flow(chunks, question, checked_client(client), chosen, run, heard=heard)
        return run_flow(
            flow, client, run, width=width_of(chosen), on_progress=on_progress, on_text=on_text
        )


async def aread(
    chunks: Chunks,
    question: str,
    client: Client,
    spec: Any = None,
    *,
    trace: Trace | None = None,
    on_progress: OnProgress | None = None,
    on_text: OnText | None = None,
) -> Answer:
    """The async twin of ``read``."""
    chosen = ReadSpec.of(spec)
    run = trace_for(trace) or Trace(meta={"reader": chosen.reader})
    with recording_warnings() as heard:
        flow = read_flow(chunks, question, checked_client(client), chosen, run, heard=heard)
        return await arun_flow(
            flow, client, run, width=width_of(chosen), on_progress=on_progress, on_text=on_text
        )


def answer_document(
    source: Any,
    question: str,
    recipe: Any = AUTO,
    *,
    client: Client | None = None,
    trace: Trace | None = None,
    on_progress: OnProgress | None = None,
    on_text: OnText | None = None,
    **overrides: Any,
) -> Answer:
    """Answer a question from a document: ingest, segment, read, in one governed run.

    ``source`` is a path or text; ``recipe`` the name of one (or of a reader), a ``Recipe``, or
    ``auto``, which takes ``fast`` for a document that fits comfortably and ``thorough`` for a
    longer one. ``client`` None is an ``OpenAIClient``. Further keywords override single settings
    of the recipe. Look at ``answer.partial`` first.

    Raises:
        AuthError: no credential, before the document is touched.
        UnknownOverrideError, BadOverrideError, BadRecipeError: before the document is touched.
        and what ``ingest``, ``segment`` and ``read`` raise.
    """
    with recording_warnings() as heard:
        asked = Asked.of(source, question, recipe, client=client, trace=trace, overrides=overrides)
        return run_flow(
            asked.flow(heard), asked.client, asked.trace, width=asked.width,
            on_progress=on_progress, on_text=on_text,
        )  # fmt: skip


async def aanswer_document(
    source: Any,
    question: str,
    recipe: Any = AUTO,
    *,
    client: Client | None = None,
    trace: Trace | None = None,
    on_progress: OnProgress | None = None,
    on_text: OnText | None = None,
    **overrides: Any,
) -> Answer:
    """The async twin of ``answer_document``."""
    with recording_warnings() as heard:
        asked = Asked.of(source, question, recipe, client=client, trace=trace, overrides=overrides)
        return await arun_flow(
            asked.flow(heard), asked.client, asked.trace, width=asked.width,
            on_progress=on_progress, on_text=on_text,
        )  # fmt: skip


def estimate(
    source_or_chunks: Any,
    question: str,
    recipe: Any = AUTO,
    *,
    client: Client | None = None,
    **overrides: Any,
) -> Estimate:
    """What an answer would need: requests, tokens and USD, expected and at worst. Sends nothing.

    A segmenter that asks a model is replaced by the paragraph segmenter for the estimate.

    Raises:
        What ``answer_document`` raises before its first request, but for the limits.
    """
    given = isinstance(source_or_chunks, Chunks)
    asked = Asked.of(
        "" if given else source_or_chunks,
        question,
        recipe,
        client=client,
        trace=Trace(),
        overrides=overrides,
        dry=True,
    )
    if given:
        chosen, chunks = asked.chosen(_as_document(source_or_chunks)), source_or_chunks
    else:
        document = ingested(source_or_chunks, asked.recipes[0].ingest)
        chosen = asked.chosen(document)
        chunks = run_flow(
            segment_flow(document, without_asking(chosen.segment)), asked.client, asked.trace
        )
    job = make_job(chunks, asked.question, chosen.read, asked.client, asked.trace)
    reader = find_reader(chosen.read.reader)
    with holding_warnings(), closing(reader.reader.read(job)) as started:
        next(started, None)  # it stops at its first request: what cannot be read says so here
    return estimated(job, reader, asked.client, recipe=chosen.name)


def _document(source: Any, trace: Trace) -> Flow[Document]:
    if isinstance(source, Document):
        return source
    document: Document = yield Work(partial(ingested, source, record=recorder(trace)))
    return document


def _as_document(chunks: Chunks) -> Document:
    blocks = tuple(Block(text=chunk.quoted) for chunk in chunks)
    return Document(blocks=blocks, source=chunks.source, label=chunks.source)


def _sender(client: Client | None) -> Client:
    """The client, or one that is never asked."""
    return BaseClient() if client is None else checked_client(client)


def flush_caches(which: str = "all") -> None:
    """Empty what this process keeps in memory: ``documents``, ``embeddings``, or ``all``.

    Response caches on disk are not touched.

    Raises:
        BadSettingError: another word.
    """
    if which not in ("all", "documents", "embeddings"):
        raise BadSettingError(f"flush_caches takes all, documents or embeddings, not {which!r}")
    if which != "embeddings":
        flush_documents()
    if which != "documents":
        flush_embeddings()
