"""The pieces of a file embedded, once it is text: in this process, on the call path, in batches."""

import logging
from dataclasses import replace

from harness_core.calls.ambient import trace_for
from harness_core.calls.api import run_flow
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.collections.deadlines import Budgets, TimedClient
from harness_core.collections.ingestion.limits import Limits
from harness_core.collections.ingestion.processing import Ingestion
from harness_core.collections.searching import embedded
from harness_core.collections.store import Claim, Store, TextForm, Vectors
from harness_core.config import override
from harness_core.errors import EmbedFallbackWarning, HarnessError, recording_warnings, warn

logger = logging.getLogger(__name__)


def embedding_too(ingestion: Ingestion, embedder: Client) -> Ingestion:
    """``ingestion``, its pieces embedded. An embedder that fails leaves a file to its words.

    The file's notes then name the model whose vectors it lacks, as ``not_embedded``.
    """

    def processed(claim: Claim, limits: Limits) -> TextForm:
        form = ingestion(claim, limits)
        vectors = vectors_of(form, embedder, limits.embedding_seconds)
        if vectors is None and form.pieces:
            return replace(form, notes={**form.notes, "not_embedded": embedder.embedding_model})
        return replace(form, vectors=vectors)

    return processed


def embed_missing(store: Store, collection_id: str, embedder: Client, limit: int | None) -> int:
    """Embed ready files that have no vectors of the embedder's model; how many were.

    One that cannot be embedded is passed over, with a warning.
    """
    done, after = 0, ""
    while limit is None or done < limit:
        with store.snapshot(collection_id) as snapshot:
            left = snapshot.unembedded(embedder.embedding_model, after, 1)
            if not left:
                break
            (after,) = left
            form = TextForm(text=snapshot.text(after) or "", pieces=tuple(snapshot.places(after)))
        vectors = vectors_of(form, embedder)
        if vectors is not None:
            done += store.add_vectors(collection_id, after, vectors)
    return done


def vectors_of(form: TextForm, embedder: Client, seconds: float | None = None) -> Vectors | None:
    """A vector for each piece, within so many seconds; None, with a warning, where there is none.

    What it takes is held to the process's limits, and stands in the trace of a ``governed_run``.
    """
    texts = [form.text[piece.start : piece.stop] for piece in form.pieces]
    if not texts:
        return None
    trace = trace_for() or Trace()
    client = embedder if seconds is None else _timed(embedder, seconds)
    with recording_warnings(raised=False), override(cache_embeddings=False):
        try:
            vectors = run_flow(embedded(texts, embedder, trace), client, trace)
        except HarnessError as error:
            warn(EmbedFallbackWarning(f"no vectors: {error}; the file is found by its words"))
            return None
    tokens, usd = trace.embed_tokens, trace.spent_usd
    logger.info("embedded %d pieces; the run so far: %d tokens, %.6f USD", len(texts), tokens, usd)
    return vectors


def _timed(embedder: Client, seconds: float) -> Client:
    budgets = Budgets(answer=seconds, call=seconds, soft=0.0, margin=0.0)
    return TimedClient(embedder, budgets.deadline(image=False))
