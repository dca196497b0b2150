"""The outline of a document: its sections, each with its size and a taste of how it reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from harness_core.documents.types import Chunk, Chunks
from harness_core.models.tokenizers import count_tokens

BLOCKS = 8
"""Parts of a document that has no sections of its own."""

_WORDS = (40, 25, 15, 8, 0)
_UNNAMED = "[no section]"
_LABEL_CHARS, _WORD_CHARS = 60, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Consecutive chunks that are planned as one; ``first`` is the position of its first chunk."""

    chunks: tuple[Chunk, ...]
    first: int

    @property
    def last(self) -> int:
        """The position of its last chunk."""
        return self.first + len(self.chunks) - 1

    @property
    def tokens(self) -> int:
        """Tokens of its chunks."""
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def ids(self) -> list[int]:
        """The ids of its chunks."""
        return [chunk.chunk_id for chunk in self.chunks]

    @property
    def label(self) -> str:
        """Its name, its first and last when it has several, else its positions."""
        names = [name for chunk in self.chunks if (name := _name(chunk))]
        if not names:
            return f"chunks {self.first}-{self.last}"
        first, last = _clipped(names[0], _LABEL_CHARS), _clipped(names[-1], _LABEL_CHARS)
        return first if first == last else f"{first} ... {last}"

    def entry(self, number: int, words: int) -> str:
        """Its head line and, with ``words`` above 0, how its first and last chunk begin."""
        head = [self.label, f"chunks {self.first}-{self.last}", self._pages()]
        parts = [part for part in (*head, f"{self.tokens} tokens") if part]
        lines = [f"[{number}] {' | '.join(parts)}"]
        if words:
            lines.append(f"  opens: {_opening(self.chunks[0], words)}")
            lines.append(f"  ends: {_opening(self.chunks[-1], words)}")
        return "\n".join(lines)

    def _pages(self) -> str:
        pages = [chunk.page for chunk in self.chunks if chunk.page is not None]
        numbers = [page for page in pages if isinstance(page, (int, float))]
        if not pages:
            return ""
        low, high = pages[0], pages[-1]
        if len(numbers) == len(pages):
            low, high = min(numbers), max(numbers)
        return f"p. {low}" if low == high else f"pp. {low}-{high}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Sections and the entry of each, in order; sections are numbered from 1."""

    sections: tuple[Section, ...]
    entries: tuple[str, ...]

    @property
    def text(self) -> str:
        """The entries, one after the other."""
        return "\n".join(self.entries)


def sections_of(chunks: Chunks) -> list[Section]:
    """Runs of chunks under one section name; blocks of equal size where that gives fewer than two.

    Two sections of one name that do not touch stay apart.
    """
    runs = [tuple(run) for _, run in groupby(chunks, key=_name)]
    if len(runs) < 2:
        size = max(1, -(-len(chunks) // BLOCKS))
        runs = [tuple(chunks[start : start + size]) for start in range(0, len(chunks), size)]
    sections: list[Section] = []
    position = 1
    for run in runs:
        sections.append(Section(chunks=run, first=position))
        position += len(run)
    return sections


def outline_of(chunks: Chunks, tokens: int, model: str) -> Outline:
    """The most detailed outline within that many tokens that still shows every section.

    The samples shrink first, then they go; when the head lines alone are too long, neighbouring
    sections are planned as one.
    """
    sections = sections_of(chunks)
    while True:
        for words in _WORDS:
            entries = tuple(one.entry(number, words) for number, one in enumerate(sections, 1))
            outline = Outline(sections=tuple(sections), entries=entries)
            if count_tokens(outline.text, model) <= tokens:
                return outline
        if len(sections) == 1:
            return outline
        sections = _paired(sections)


def _paired(sections: Sequence[Section]) -> list[Section]:
    return [
        Section(
            chunks=tuple(chunk for one in sections[start : start + 2] for chunk in one.chunks),
            first=sections[start].first,
        )
        for start in range(0, len(sections), 2)
    ]


def _name(chunk: Chunk) -> str:
    name = " ".join((chunk.section or "").split())
    return "" if name == _UNNAMED else name


def _opening(chunk: Chunk, words: int) -> str:
    return _clipped(" ".join(chunk.text.split()[:words]), words * _WORD_CHARS)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
