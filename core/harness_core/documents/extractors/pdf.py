"""PDF files, page by page: lines, OCR where a page has no text, running heads, blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness_core.documents import ocr
from harness_core.documents.extractors.pdf_blocks import (
    PageBlocks,
    rejoin,
    setting_of,
    with_sections,
)
from harness_core.documents.extractors.pdf_headings import body_size, is_title, title_keys
from harness_core.documents.extractors.pdf_lines import PDFIUM, Line, Pages, opened, read_pages
from harness_core.documents.extractors.registry import Extracted
from harness_core.documents.paragraphs import paragraphs
from harness_core.documents.running import running_lines
from harness_core.documents.types import Block
from harness_core.errors import OcrFailedWarning, OcrUnavailableWarning, warn

_PIXELS: Final = 60_000_000  # of one rendered page
_STAMP: Final = 800  # non-space characters; a page with more is no stamp


def extract(path: Path, opts: Mapping[str, Any]) -> Extracted:
    """The blocks of the file, each with its page, and the pages that never became text.

    Raises:
        EncryptedDocumentError: it asks for a password.
        BrokenDocumentError: no PDF, or a damaged one.
    """
    pages = read_pages(path)
    seen, unread = _recognised(path, pages, opts)
    raw = opts.get("layout", "auto") == "raw"
    texts = [_texts(lines, seen.get(number)) for number, lines in enumerate(pages.lines)]
    running = running_lines(texts, titles=_titles_at_top(pages.lines, seen))
    unread |= {
        number
        for number, lines in enumerate(texts)
        if number not in seen
        and all((number, at) in running for at in range(len(lines)))
        and (not raw or len("".join("".join(lines).split())) <= _STAMP)
    }
    blocks = _blocks(pages, seen, set() if raw else running, raw=raw)
    return Extracted(
        blocks=tuple(blocks),
        pages=len(pages.lines),
        unread_pages=tuple(number + 1 for number in sorted(unread)),
    )


def _texts(lines: Sequence[Line], seen: str | None) -> list[str]:
    """The lines of a page from top to bottom, as running heads are looked for."""
    if seen is not None:
        return seen.split("\n")
    return [line.text for line in _downwards(lines)]


def _downwards(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (-round(line.baseline), line.left))


def _titles_at_top(
    pages: Sequence[Sequence[Line]], seen: Mapping[int, str]
) -> set[tuple[int, int]]:
    """First lines set as a title, which no running head is; places in what ``_texts`` gives."""
    body = body_size(pages)
    return {
        (number, at)
        for number, lines in enumerate(pages)
        if number not in seen
        for at, line in enumerate(_downwards(lines)[:2])
        if is_title(line, body)
    }


def _blocks(
    pages: Pages, seen: Mapping[int, str], running: set[tuple[int, int]], *, raw: bool
) -> list[Block]:
    kept = [_without(lines, running, number) for number, lines in enumerate(pages.lines)]
    whole = setting_of(kept)
    blocks: list[Block] = []
    for number, lines in enumerate(kept):
        if number in seen:
            blocks += _ocr_blocks(seen[number], running, number)
        else:
            setting = replace(whole, titles=_bookmarked(pages, number))
            blocks += PageBlocks(lines, setting).blocks(number + 1, headings=not raw)
    return blocks if raw else with_sections(rejoin(blocks))


def _without(lines: Sequence[Line], running: set[tuple[int, int]], number: int) -> list[Line]:
    dropped = {id(line) for at, line in enumerate(_downwards(lines)) if (number, at) in running}
    return [line for line in lines if id(line) not in dropped]


def _bookmarked(pages: Pages, number: int) -> frozenset[str]:
    """Titles of the page's bookmarks; one that is out by a page is the neighbour's."""
    near = [title for page, title in pages.bookmarks if abs(page - number) <= 1]
    return frozenset(key for title in near for key in title_keys(title) if key)


def _ocr_blocks(text: str, running: set[tuple[int, int]], number: int) -> list[Block]:
    lines = text.split("\n")
    kept = [line for at, line in enumerate(lines) if (number, at) not in running]
    return [Block(text=one, page=number + 1, kind="ocr") for one in paragraphs("\n".join(kept))]


def _recognised(
    path: Path, pages: Pages, opts: Mapping[str, Any]
) -> tuple[dict[int, str], set[int]]:
    """The text of pages that were read by OCR, and pages that needed it and stay empty."""
    sizes = [sum(len(line.text) for line in lines) for lines in pages.lines]
    mode = opts.get("ocr", "auto")
    least = float(opts.get("ocr_min_chars", 40))
    needed = [n for n, size in enumerate(sizes) if mode == "always" or size < least]
    if mode == "never" or not needed:
        return {}, set()
    empty = {number for number in needed if sizes[number] == 0}
    if not ocr.available():
        listed = ", ".join(str(number + 1) for number in needed[:20])
        warn(OcrUnavailableWarning(
            f"{path.name}: page(s) {listed}{' ...' if len(needed) > 20 else ''} need OCR; install "
            'the program tesseract and "harness-integrations[ocr]"'
        ))  # fmt: skip
        return {}, empty
    seen: dict[int, str] = {}
    images = _images(path, needed, int(opts.get("ocr_dpi", 300)))
    language = str(opts.get("ocr_lang", "eng"))
    for number, found in ocr.recognise_all(images, language, parallel=opts.get("parallel")):
        if isinstance(found, Exception):
            warn(OcrFailedWarning(f"{path.name}: OCR of page {number + 1} failed: {found}"))
        elif found.strip():
            seen[number] = found
    return seen, empty - set(seen)


def _images(path: Path, numbers: Sequence[int], dpi: int) -> Iterator[tuple[int, Any]]:
    for number in numbers:
        with PDFIUM:
            pdf = opened(path)
            try:
                page = pdf[number]
                width, height = page.get_size()
                scale = min(dpi / 72, (_PIXELS / max(1.0, width * height)) ** 0.5)
                bitmap = page.render(scale=scale)
                image = bitmap.to_pil().copy()
                bitmap.close()
                page.close()
            finally:
                pdf.close()
        yield number, image
