"""LlamaIndex's nodes as the chunks of a read, and quotations as places in nodes.

A node handed over is one chunk, with its id, metadata and offsets; only one that alone passes the
window is split, and its pieces still belong to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import regex
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from harness_core.answer import Answer, Evidence
from harness_core.checks.passages import split_passages
from harness_core.documents.types import Chunk, Chunks
from harness_core.models.budgets import budget
from harness_core.reading.spec import ReadSpec
from harness_core.segmenting.chunks import capped, new_chunks
from harness_integrations.llama_index.messages import without_folders
from harness_integrations.shared.metadata import page_of

PROMPT_ROOM = 1000
"""Tokens kept free for the instructions of a request when one node fills the window."""

_QUOTES, _DASHES = "'\"‘’‚‛“”„‟«»′″", "-‐‑‒–—―−"  # noqa: RUF001 - marks that are read as one another


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A quotation word for word at ``start`` to ``end`` of a node's own text, in characters.

    ``document_start`` and ``document_end`` are its place in the source document, when the node
    knows its own. ``source`` is the node's position among the source nodes.
    """

    node_id: str
    start: int
    end: int
    text: str
    source: int
    document_id: str | None = None
    document_start: int | None = None
    document_end: int | None = None
    verified: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """Nodes as chunks; ``owners`` says of which node (its position) each chunk is."""

    nodes: tuple[NodeWithScore, ...]
    chunks: Chunks
    owners: Mapping[int, int]

    def node_of(self, chunk_id: int | None) -> NodeWithScore | None:
        """The node that a chunk was made of."""
        place = None if chunk_id is None else self.owners.get(chunk_id)
        return None if place is None else self.nodes[place]

    def citations(self, answer: Answer) -> list[Citation]:
        """The answer's evidence, as places in the nodes."""
        found: dict[tuple[int, int, int], Citation] = {}
        for row in answer.evidence:
            place = None if row.chunk_id is None else self.owners.get(row.chunk_id)
            if place is not None and row.kind != "answer" and row.verified is not False:
                for citation in _cited(row, self.nodes[place].node, place):
                    found.setdefault((place, citation.start, citation.end), citation)
        return list(found.values())


def hand_over(
    nodes: Sequence[NodeWithScore],
    spec: ReadSpec,
    model: str,
    *,
    metadata_mode: MetadataMode = MetadataMode.LLM,
) -> Handed:
    """Nodes as chunks; what a model is shown of each carries its metadata, without folders."""
    shown = [without_folders(one.node.get_content(metadata_mode)) for one in nodes]
    own = [own_text(one.node) for one in nodes]
    pages = [page_of(one.node.metadata) for one in nodes]
    kept = [place for place, text in enumerate(own) if text.strip()]  # an image has no text
    chunks = new_chunks(
        [shown[place] for place in kept],
        "nodes",
        page=[pages[place] for place in kept],
        source_text=[own[place] if own[place] != shown[place] else None for place in kept],
        metadata=[{"place": place} for place in kept],
    )
    room = budget(model, spec.max_answer_tokens).input - PROMPT_ROOM
    chunks = _capped(chunks, room) if room > 0 else chunks
    owners = {chunk.chunk_id: int(chunk.metadata["place"]) for chunk in chunks}
    return Handed(nodes=tuple(nodes), chunks=chunks, owners=owners)


def hand_over_texts(texts: Sequence[str], spec: ReadSpec, model: str) -> Handed:
    """Plain texts as chunks: ``get_response`` is called with these where there are no nodes."""
    chunks = new_chunks([without_folders(text) for text in texts], "nodes")
    room = budget(model, spec.max_answer_tokens).input - PROMPT_ROOM
    return Handed(nodes=(), chunks=_capped(chunks, room) if room > 0 else chunks, owners={})


def own_text(node: BaseNode) -> str:
    """A node's own text, without its metadata: what is quoted from."""
    return node.get_content(MetadataMode.NONE)


def _capped(chunks: Chunks, room: int) -> Chunks:
    """Pieces of a chunk that was split are quoted from as they are."""
    known = {chunk.metadata.get("place"): chunk.text for chunk in chunks}
    cut = capped(chunks, room)
    if cut is chunks:
        return chunks
    return replace(cut, chunks=tuple(_piece(one, known) for one in cut))


def _piece(chunk: Chunk, known: Mapping[Any, str]) -> Chunk:
    whole = known.get(chunk.metadata.get("place")) == chunk.text
    return chunk if whole else replace(chunk, source_text=None)


def _cited(row: Evidence, node: BaseNode, place: int) -> Iterator[Citation]:
    text = own_text(node)
    if row.kind == "verbatim" and (at := text.find(row.text)) >= 0:
        spans = [(at, at + len(row.text))]
    else:
        spans = list(places_of(row.text, text))
    first = getattr(node, "start_char_idx", None)
    for start, end in spans:
        yield Citation(
            node_id=node.node_id,
            start=start,
            end=end,
            text=text[start:end],
            source=place,
            document_id=node.ref_doc_id,
            document_start=None if first is None else first + start,
            document_end=None if first is None else first + end,
            verified=row.verified,
        )


def places_of(quotation: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the passages of a quotation stand in ``text``, in characters; what is not there is not.

    White space, case, and kinds of quote mark and dash make no difference.
    """
    at = 0
    for passage in split_passages(quotation):
        for piece in passage.pieces:
            pattern = r"\s+".join(_word(word) for word in piece.kept.split())
            compiled = regex.compile(pattern, regex.IGNORECASE)
            if not pattern or not (found := compiled.search(text, at) or compiled.search(text)):
                continue
            at = found.end()
            yield found.span()


def _word(word: str) -> str:
    return "".join(
        f"[{regex.escape(marks)}]" if (marks := _marks(char)) else regex.escape(char)
        for char in word
    )


def _marks(char: str) -> str:
    return next((marks for marks in (_QUOTES, _DASHES) if char in marks), "")
