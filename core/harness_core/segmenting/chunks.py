"""Making chunks: from texts, from what was packed, and with the cap enforced."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_core.documents.types import Chunk, Chunks, Page
from harness_core.errors import BadSettingError, CapUnenforceableError
from harness_core.models import count_many
from harness_core.segmenting.cutting import hard_split
from harness_core.segmenting.packing import Packed


def new_chunks(
    texts: str | Sequence[str],
    method: str = "given",
    spec: Any = None,
    *,
    page: Page | Sequence[Page | None] | None = None,
    section: str | Sequence[str | None] | None = None,
    block_id: int | Sequence[int | None] | None = None,
    source_text: str | Sequence[str | None] | None = None,
    metadata: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Chunks:
    """Chunks of the texts that are not blank, numbered from 1 and counted in tokens.

    What else is given is one value for all texts, or a list with one per text. ``source_text`` is
    the document's own text of a chunk whose text carries a header or was rewritten. The cap of
    ``spec`` is not enforced.

    Raises:
        BadSettingError: a list that is not as long as the texts.
    """
    listed = [texts] if isinstance(texts, str) else list(texts)
    size = len(listed)
    rows = zip(
        listed,
        count_many(listed),
        _each("page", page, size),
        _each("section", section, size),
        _each("block_id", block_id, size),
        _each("source_text", source_text, size),
        _each("metadata", {} if metadata is None else metadata, size),
        strict=True,
    )
    return Chunks(
        chunks=numbered(
            Chunk(
                chunk_id=0,
                text=text,
                tokens=tokens,
                page=page_,
                section=section_,
                block_id=block,
                source_text=source,
                metadata=more,
            )
            for text, tokens, page_, section_, block, source, more in rows
            if text.strip()
        ),
        method=method,
        spec=spec,
        extra=extra or {},
    )


def packed_chunks(packed: Sequence[Packed], method: str, spec: Any, **extra: Any) -> Chunks:
    """Chunks of what was packed, with the counts and origins found there."""
    chunks = tuple(chunk_of(one, number) for number, one in enumerate(packed, 1))
    return Chunks(chunks=chunks, method=method, spec=spec, extra=extra)


def chunk_of(packed: Packed, number: int = 0) -> Chunk:
    """One packed text as a chunk."""
    return Chunk(
        chunk_id=number,
        text=packed.text,
        tokens=packed.tokens,
        page=packed.origin.page,
        section=packed.origin.section,
        block_id=packed.origin.block_id,
    )


def capped(chunks: Chunks, cap: int) -> Chunks:
    """The chunks with every one over ``cap`` tokens split; its pieces inherit where it stands.

    Raises:
        CapUnenforceableError: a single character is counted above the cap.
    """
    over = sum(chunk.tokens > cap for chunk in chunks)
    if not over:
        return chunks
    return replace(
        chunks,
        chunks=numbered(piece for chunk in chunks for piece in _pieces(chunk, cap)),
        extra={**chunks.extra, "cap_enforced": over},
    )


def _pieces(chunk: Chunk, cap: int) -> Iterator[Chunk]:
    if chunk.tokens <= cap:
        yield chunk
        return
    texts = [text for text in hard_split(chunk.text, cap) if text.strip()]
    for text, tokens in zip(texts, count_many(texts), strict=True):
        if tokens > cap:
            raise CapUnenforceableError(
                f"the tokenizer counts {text[:20]!r} as {tokens} tokens, above the cap of {cap}; "
                "use a larger max_tokens or another tokenizer"
            )
        yield replace(chunk, text=text, tokens=tokens)


def numbered(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """The chunks with ids from 1 on."""
    return tuple(replace(chunk, chunk_id=number) for number, chunk in enumerate(chunks, 1))


def _each(name: str, given: Any, size: int) -> Sequence[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        return [given] * size
    if len(given) != size:
        raise BadSettingError(f"{name} is one value or {size}, not {len(given)}")
    return given
