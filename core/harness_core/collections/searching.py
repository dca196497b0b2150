"""What is searched for: the lines of a question, and their vectors where there is an embedder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.collections.history import is_compound, rewriting, search_lines
from harness_core.collections.store import Vectors
from harness_core.errors import (
    AuthError,
    EmbedFallbackWarning,
    HarnessWarning,
    NoEmbeddingsWarning,
    ReplayMissError,
    warn,
)
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow
from harness_core.reading.flow import embedding

WORDS_ALONE: Final[tuple[type[HarnessWarning], ...]] = (
    EmbedFallbackWarning, NoEmbeddingsWarning,
)  # fmt: skip
"""What is warned about when the embedder gave nothing, and words alone decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Lines to search by; ``vectors`` has a row for each, or is None: words alone decide."""

    lines: tuple[str, ...]
    vectors: Vectors | None = None

    def each(self) -> Iterator[tuple[str, Vectors | None]]:
        """Each line, with its vector."""
        for number, line in enumerate(self.lines):
            rows = self.vectors
            one = slice(number, number + 1)
            yield line, rows and Vectors(model=rows.model, rows=rows.rows[one])


class RewriteFailedWarning(HarnessWarning, code="rewrite_failed"):
    """The line to search by was not written; the words of the question are searched for."""


def lines_of(query: str, conversation: str | None, parts: int) -> Flow[tuple[str, ...]]:
    """The lines to search by: the question, or what a model writes where history or parts ask."""
    if conversation is None and not (parts and is_compound(query)):
        return (query,)
    reply = yield from ask(rewriting(query, conversation, parts))
    if not reply.usable:
        warn(RewriteFailedWarning("no line to search by was written; the question itself is used"))
    return search_lines(query, reply.text if reply.usable else None, conversation, parts)


def embedder_for(client: Client, embedder: Client | None) -> Client | None:
    """What embeds questions: a replay does if the recorded run did."""
    if isinstance(client, ReplayClient):
        return client if client.recording.embedders() else None
    return embedder


def searched(lines: Sequence[str], embedder: Client | None, trace: Trace) -> Flow[Search]:
    """The lines with their vectors; an embedder that fails leaves them without, with a warning."""
    search = Search(lines=tuple(lines))
    if embedder is None:
        return search
    vectors = yield from embedded(search.lines, embedder, trace)
    return Search(lines=search.lines, vectors=vectors)


def embedded(texts: Sequence[str], embedder: Client, trace: Trace) -> Flow[Vectors | None]:
    """A vector for each text; None, with a warning, where the embedder gives none.

    Raises:
        ReplayMissError: the recorded run had vectors and did not keep them.
    """
    if isinstance(embedder, ReplayClient) and not embedder.vectors_may_be_used("api"):
        raise ReplayMissError(
            "the recorded run searched by vectors that the recording does not hold; record with "
            "Trace(record_embeddings=True)"
        )
    try:
        found = yield from embedding(
            texts, client=embedder, trace=trace, allow=None, embedder="api", fallback="none"
        )
    except AuthError as error:
        warn(EmbedFallbackWarning(f"no vectors: {error}; nothing is ranked by them"))
        return None
    if found.fallback:
        return None
    return Vectors(model=embedder.embedding_model, rows=found.matrix.astype("float32"))
