"""One file to its text form: read, cleaned, cut; every piece knows its place in the text."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from harness_core.collections.ingestion.archives import check_archive
from harness_core.collections.ingestion.limits import Code, IngestFault, Limits
from harness_core.collections.store import Piece, TextForm
from harness_core.documents.types import Block, Chunk, Document
from harness_core.errors import (
    BrokenDocumentError,
    EmptyChunksError,
    EmptyDocumentError,
    EncryptedDocumentError,
    HarnessError,
    MissingDepError,
    TooLargeError,
    UnsupportedFormatError,
    holding_warnings,
)
from harness_core.pipeline import ingest, segment

_RUN = re.compile(r"\S+")
_PAGED: Final = (".pdf", ".docx")
_CODES: Final[Sequence[tuple[type[HarnessError], Code]]] = (
    (TooLargeError, "too_large"),
    (UnsupportedFormatError, "unsupported_type"),
    (MissingDepError, "unsupported_type"),
    (EncryptedDocumentError, "encrypted"),
    (EmptyDocumentError, "no_text"),
    (EmptyChunksError, "no_text"),
    (BrokenDocumentError, "corrupt"),
)


def extracted(path: Path, limits: Limits) -> TextForm:
    """The text form of a file.

    Raises:
        IngestFault: it does not become text within the limits.
    """
    if path.suffix == ".docx":
        check_archive(path, limits)
    if path.suffix == ".pdf":
        _check_pages(path, limits)
    try:
        with holding_warnings():
            document = ingest(path, {"min_chars": 1, "ocr": "never"})
            chunks = segment(document, {"method": "paragraph", "max_tokens": limits.piece_tokens})
    except HarnessError as error:
        raise _fault(error) from None
    except (MemoryError, RecursionError):
        raise IngestFault("too_large", "the file takes more memory than is given to it") from None
    text = document.text.replace("\0", "\ufffd")
    if len(text) > limits.characters:
        raise IngestFault("too_large", f"the text has over {limits.characters} characters")
    pages = _pages(document) if path.suffix in _PAGED else []
    unread = {"unread_pages": list(document.unread_pages)} if document.unread_pages else {}
    return TextForm(text=text, pieces=tuple(_pieces(text, chunks, pages)), notes=unread)


def _fault(error: HarnessError) -> IngestFault:
    code: Code = next((code for kind, code in _CODES if isinstance(error, kind)), "corrupt")
    said = {"no_text": "the file holds no text", "encrypted": "the file asks for a password"}
    return IngestFault(code, said.get(code, f"the file could not be read ({error.code})"))


def _check_pages(path: Path, limits: Limits) -> None:
    try:
        import pypdfium2  # type: ignore[import-untyped]  # it has no stubs
    except ImportError:
        return  # the extractor says what is missing
    try:
        with pypdfium2.PdfDocument(path) as document:
            count = len(document)
    except pypdfium2.PdfiumError:
        return  # the extractor says what is wrong
    if count > limits.pages:
        raise IngestFault("too_large", f"the file has over {limits.pages} pages")


Paged = tuple[int, int, int]  # start, stop, page


def _pages(document: Document) -> list[Paged]:
    found, start = list[Paged](), 0
    for block in document.blocks:
        stop = start + len(block.text)
        if (page := _page(block)) is not None:
            found.append((start, stop, page))
        start = stop + 2  # the blank line between blocks
    return found


def _page(block: Block) -> int | None:
    return block.page if isinstance(block.page, int) and block.page >= 1 else None


def _pieces(text: str, chunks: Sequence[Chunk], pages: Sequence[Paged]) -> Iterator[Piece]:
    """Chunks are the text in order, spaced anew: counting visible characters places each."""
    runs = _Runs(text)
    for chunk in chunks:
        start, stop = runs.take(sum(len(run) for run in _RUN.findall(chunk.quoted)))
        on = [page for first, last, page in pages if first < stop and last > start]
        yield Piece(
            start=start,
            stop=stop,
            first_page=min(on, default=None),
            last_page=max(on, default=None),
            section=chunk.section,
        )
    if runs.left():
        raise IngestFault("corrupt", "the text could not be cut into its pieces")


class _Runs:
    """The stretches of a text without white space, taken from left to right."""

    def __init__(self, text: str) -> None:
        self._runs = ((found.start(), found.end()) for found in _RUN.finditer(text))
        self._open: tuple[int, int] | None = next(self._runs, None)

    def left(self) -> bool:
        """Whether something visible was not taken."""
        return self._open is not None

    def take(self, characters: int) -> tuple[int, int]:
        """Where the next so many visible characters stand."""
        start: int | None = None
        stop = 0
        while characters > 0 and self._open is not None:
            first, last = self._open
            stop = min(last, first + characters)
            start = first if start is None else start
            characters -= stop - first
            self._open = (stop, last) if stop < last else next(self._runs, None)
        if characters or start is None:
            raise IngestFault("corrupt", "the text could not be cut into its pieces")
        return start, stop
