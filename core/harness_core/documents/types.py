"""What a document is once it has been read: blocks, and the chunks they are cut into."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_core.messages import clean_text

Page = int | float | str
"""A page number or label; PDF pages are numbers from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, heading, table row or code block, with where it stands.

    Its text is valid Unicode: a lone surrogate becomes U+FFFD.
    """

    text: str
    block_id: int = 0
    page: Page | None = None
    section: str | None = None
    kind: str = "body"

    def __post_init__(self) -> None:
        _clean(self, "text", "page", "section")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A source that became text.

    ``stats`` has blocks, chars, chars_removed, tokens (the sum over blocks), pages, clean_steps,
    clean_log and unread_pages. ``warnings`` are (class name, message) pairs from ingestion, kept
    so that a cached document says again what it said at first.
    """

    blocks: tuple[Block, ...]
    source: str
    label: str
    stats: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[tuple[str, str], ...] = ()
    spec: Any = None

    @property
    def text(self) -> str:
        """The blocks joined by blank lines."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def unread_pages(self) -> tuple[Page, ...]:
        """Pages that never became text."""
        return tuple(self.stats.get("unread_pages", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document that goes into one prompt.

    ``source_text`` is the document's own text where ``text`` carries a header or was rewritten;
    None means that ``text`` is the document's own. ``metadata`` is a framework's, untouched; the
    texts are valid Unicode: a lone surrogate becomes U+FFFD.
    """

    chunk_id: int
    text: str
    tokens: int
    page: Page | None = None
    section: str | None = None
    block_id: int | None = None
    source_text: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _clean(self, "text", "page", "section", "source_text")

    @property
    def quoted(self) -> str:
        """The text a quotation is checked against."""
        return self.text if self.source_text is None else self.source_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks(Sequence[Chunk]):
    """The chunks of one document, in order, numbered from 1.

    ``method`` names the segmenter, ``wanted->used`` after a fallback. ``extra`` is what the
    segmenter has to say (``cap_enforced``, ``boundaries``, ...).
    """

    chunks: tuple[Chunk, ...]
    method: str = "given"
    spec: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[tuple[str, str], ...] = ()
    unread_pages: tuple[Page, ...] = ()
    source: str = ""
    trace: Any = None

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, index: Any) -> Any:
        return self.chunks[index]

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self.chunks)

    def stats(self) -> dict[str, Any]:
        """method, n, total_tokens, min, median, mean, max and over_cap (tokens)."""
        import statistics

        counts = [chunk.tokens for chunk in self.chunks] or [0]
        cap = getattr(self.spec, "max_tokens", None)
        return {
            "method": self.method,
            "n": len(self.chunks),
            "total_tokens": sum(counts),
            "min": min(counts),
            "median": statistics.median(counts),
            "mean": round(statistics.fmean(counts), 1),
            "max": max(counts),
            "over_cap": 0 if cap is None else sum(count > cap for count in counts),
        }


def _clean(made: Block | Chunk, *names: str) -> None:
    """Make texts valid where they enter: no key, file or provider takes a lone surrogate."""
    for name in names:
        value = getattr(made, name)
        if isinstance(value, str) and not value.isascii():
            object.__setattr__(made, name, clean_text(value))
