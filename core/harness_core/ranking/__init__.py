"""Which text is about a question: words, BM25, vectors, and choosing among candidates."""

from harness_core.ranking.bm25 import BM25
from harness_core.ranking.embedders import embed_texts, list_embedders, register_embedder
from harness_core.ranking.lexical import lexical_vectors
from harness_core.ranking.selection import arrange, blend, select, similarities, spread
from harness_core.ranking.sentences import sentence_spans
from harness_core.ranking.vectors import Vectors, flush_embeddings

__all__ = [
    "BM25",
    "Vectors",
    "arrange",
    "blend",
    "embed_texts",
    "flush_embeddings",
    "lexical_vectors",
    "list_embedders",
    "register_embedder",
    "select",
    "sentence_spans",
    "similarities",
    "spread",
]
