"""The extractors there are, by name and by file extension."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness_core.documents.paragraphs import visible
from harness_core.documents.types import Block, Page
from harness_core.errors import BadSettingError, MissingDepError, UnknownMethodError
from harness_core.messages import clean_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What an extractor found: blocks, the file's page count, and pages that are no text."""

    blocks: tuple[Block, ...]
    pages: Any = None
    unread_pages: Any = ()


Row: TypeAlias = str | Block | Mapping[str, Any]
ExtractFn: TypeAlias = Callable[[Path, Mapping[str, Any]], Extracted | Iterable[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extractor:
    """One format. ``fn`` is a function, or where a built-in one lives."""

    name: str
    extensions: tuple[str, ...]
    fn: ExtractFn | str
    description: str = ""
    needs: tuple[str, ...] = ()
    extra: str = "documents"
    stamp: int = 0

    @property
    def available(self) -> bool:
        """Whether the packages are there without which it cannot run at all."""
        return all(find_spec(package) is not None for package in self.needs)

    def run(self, path: Path, opts: Mapping[str, Any]) -> Extracted:
        """The blocks of the file, blank ones dropped.

        Raises:
            MissingDepError: a package is absent; the message names the extra.
        """
        if not self.available:
            raise MissingDepError(
                f"extractor {self.name!r} needs {', '.join(self.needs)}: "
                f'pip install "harness-integrations[{self.extra}]"'
            )
        return _normalised(self._load()(path, opts))

    def _load(self) -> ExtractFn:
        if not isinstance(self.fn, str):
            return self.fn
        module = import_module(f"harness_core.documents.extractors.{self.fn}")
        loaded: ExtractFn = module.extract
        return loaded


_BUILT_IN: Final = (
    Extractor(name="txt", extensions=("txt", "text", "log", "csv", "tsv"), fn="text",
              description="Plain text, split into paragraphs."),
    Extractor(name="md", extensions=("md", "markdown", "rmd", "qmd"), fn="markdown",
              description="Markdown: headings as sections, code and tables kept whole."),
    Extractor(name="html", extensions=("html", "htm", "xhtml"), fn="html", needs=("lxml",),
              description="Web pages: headings as sections, a table row is a block."),
    Extractor(name="pdf", extensions=("pdf",), fn="pdf", needs=("pypdfium2",),
              description="PDF page by page, in the order in which the producer wrote the text: "
              "paragraphs, table rows, headings; running heads dropped; OCR per page."),
    Extractor(name="docx", extensions=("docx", "dotx"), fn="docx",
              description="Word: headings as sections, table rows, footnotes, text boxes."),
    Extractor(name="image", extensions=("png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif"),
              fn="image", needs=("PIL", "pytesseract"), extra="ocr",
              description="Images, read by OCR."),
)  # fmt: skip

_registered: dict[str, Extractor] = {}
_stamps = itertools.count(1)


def register_extractor(
    name: str, extensions: str | Iterable[str], fn: ExtractFn, *, description: str = ""
) -> None:
    """Add an extractor, or replace the one of that name; it takes over its extensions.

    ``fn(path, opts)`` returns strings, blocks, mappings with ``text`` and optional ``page``,
    ``section`` and ``kind``, or an ``Extracted``; ``opts`` holds the fields of the ingest spec.

    Raises:
        BadSettingError: a blank name, an extension that is no word, or no function.
    """
    listed = [extensions] if isinstance(extensions, str) else list(extensions)
    plain = tuple(one.lower().removeprefix(".") for one in listed)
    named = bool(name.strip()) and all(one.isalnum() for one in plain)
    if not named or not callable(fn):
        raise BadSettingError("an extractor is a name, file extensions and a function")
    _registered.pop(name, None)  # to be last again: the last one wins an extension
    _registered[name] = Extractor(
        name=name, extensions=plain, fn=fn, description=description, stamp=next(_stamps)
    )


def list_extractors() -> list[dict[str, Any]]:
    """name, extensions, description, needs (packages) and available of every extractor."""
    return [
        {
            "name": one.name,
            "extensions": list(one.extensions),
            "description": one.description,
            "needs": list(one.needs),
            "available": one.available,
        }
        for one in all_extractors().values()
    ]


def all_extractors() -> dict[str, Extractor]:
    """Every extractor by name, the last registered last."""
    known = {one.name: one for one in _BUILT_IN if one.name not in _registered}
    return {**known, **_registered}


def known_extensions() -> frozenset[str]:
    """Every extension some extractor claims, lower case."""
    return frozenset(ext for one in all_extractors().values() for ext in one.extensions)


def extractor_named(name: str) -> Extractor:
    """The extractor of that name.

    Raises:
        UnknownMethodError: nobody registered it.
    """
    known = all_extractors()
    if name not in known:
        raise UnknownMethodError(f"no extractor {name!r}; there are {', '.join(known)}")
    return known[name]


def extractor_for(extension: str) -> Extractor | None:
    """The extractor that reads files of an extension; the last registered wins."""
    wanted = extension.lower().removeprefix(".")
    claims = [one for one in all_extractors().values() if wanted in one.extensions]
    return claims[-1] if claims else None


def _normalised(result: Extracted | Iterable[Row]) -> Extracted:
    if not isinstance(result, Extracted):
        rows = [result] if isinstance(result, str) else result  # a text iterates by letter as well
        result = Extracted(blocks=tuple(map(_block, rows)))
    return Extracted(
        blocks=tuple(block for block in result.blocks if visible(block.text)),
        pages=result.pages if _is_page_count(result.pages) else None,
        unread_pages=_pages(result.unread_pages),
    )


def _block(row: Row) -> Block:
    if isinstance(row, Block):
        return row
    if isinstance(row, str):
        return Block(text=clean_text(row))
    return Block(
        text=clean_text(str(row.get("text") or "")),
        page=row.get("page"),
        section=row.get("section"),
        kind=row.get("kind") or "body",
    )


def _is_page_count(pages: object) -> bool:
    if isinstance(pages, bool) or not isinstance(pages, (int, float)):
        return False
    return math.isfinite(pages) and pages >= 1


def _pages(unread: object) -> tuple[Page, ...]:
    listed = unread if isinstance(unread, (list, tuple, set, frozenset)) else ()
    kept = {page for page in listed if _is_page_count(page) or (isinstance(page, str) and page)}
    return tuple(sorted(kept, key=lambda page: (isinstance(page, str), page)))
