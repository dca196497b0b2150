"""A source becomes a document: located, extracted, cleaned, counted, remembered."""

import hashlib
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness_core.config import setting
from harness_core.documents.cache import documents, settings_key
from harness_core.documents.cleaning.apply import LogRow, clean_blocks
from harness_core.documents.cleaning.registry import ordered_cleaners
from harness_core.documents.extractors.registry import Extracted, all_extractors, extractor_named
from harness_core.documents.paragraphs import paragraphs, visible
from harness_core.documents.sources import Source, extractor_of, locate
from harness_core.documents.spec import IngestSpec
from harness_core.documents.types import Block, Document
from harness_core.errors import (
    BrokenDocumentError,
    EmptyDocumentError,
    HarnessError,
    PathAsTextWarning,
    recording_warnings,
    warn,
)
from harness_core.models import count_tokens

Record = Callable[[str, Mapping[str, Any]], object]


def ingest(source: Any, spec: Any = None, *, record: Record | None = None) -> Document:
    """The document that ``source`` is: a path, a web address, text, or a list of texts.

    ``spec`` is an ``IngestSpec``, a cleaning preset, a mapping of its fields, or None.
    ``record(label, detail)`` is told of the step ``ingest``. The document carries the warnings
    given meanwhile; one from the cache carries those of its first time and gives none again.

    Raises:
        SourceNotFoundError: a path that names no file; text that ends like one counts as one.
        UnsupportedFormatError: a folder, bytes, or a format nobody reads (TooLargeError: too big).
        EncryptedDocumentError, BrokenDocumentError: a file that cannot be read.
        EmptyDocumentError: fewer than ``min_chars`` characters are left after cleaning.
        UrlError: an address that may not be, or could not be, fetched.
        MissingDepError: an optional package is absent; the message names the extra.
        BadSettingError, UnknownMethodError: a spec that cannot be used.
    """
    with recording_warnings() as heard:
        chosen = IngestSpec.of(spec)
        found = locate(source)
        key = _key(found, chosen) if setting("cache_documents") else None
        kept = None if key is None else documents.get(key)
        if kept is not None:
            if record is not None:
                settings = chosen.changed()
                record("ingest", {"cached": True, "blocks": len(kept.blocks), "settings": settings})
            return kept
        document = _ingested(found, chosen)
    warnings = tuple((type(warning).__name__, str(warning)) for warning in heard)
    document = replace(document, warnings=warnings)
    if key is not None:
        documents.put(key, document)
    if record is not None:
        record("ingest", _step(document, chosen))
    return document


def _step(document: Document, spec: IngestSpec) -> dict[str, Any]:
    return {
        "cached": False,
        "source": document.label,
        "blocks": document.stats["blocks"],
        "tokens": document.stats["tokens"],
        "clean_steps": document.stats["clean_steps"],
        "settings": spec.changed(),
    }


def _ingested(source: Source, spec: IngestSpec) -> Document:
    if source.pathlike:
        warn(PathAsTextWarning(
            f"{source.value!r} names no file and was read as text"
        ))  # fmt: skip
    ordered_cleaners(spec.steps)  # an unknown cleaner is told before a long extraction
    try:
        extracted = _extracted(source, spec)
    except OSError as error:
        if isinstance(error, HarnessError):
            raise
        raise BrokenDocumentError(f"{source.label} cannot be read: {error.strerror}") from error
    return _assembled(source, spec, extracted)


def _extracted(source: Source, spec: IngestSpec) -> Extracted:
    opts = _opts(spec)
    if source.kind == "text":
        return Extracted(blocks=tuple(Block(text=text) for text in paragraphs(source.value)))
    if source.kind == "file":
        path = Path(source.value)
        return extractor_of(path, spec.extractor).run(path, opts)
    from harness_core.documents.web import downloaded

    with downloaded(source.value) as page:
        extractor = extractor_of(page.path, spec.extractor)
        return extractor.run(page.path, {**opts, "charset": page.charset})


def _opts(spec: IngestSpec) -> dict[str, Any]:
    fields = {name: getattr(spec, name) for name in IngestSpec.model_fields}
    return {**fields, **spec.cleaner_opts}


def _assembled(source: Source, spec: IngestSpec, extracted: Extracted) -> Document:
    raw = extracted.blocks
    pages = tuple(block.page for block in raw)
    texts, log = clean_blocks(
        [block.text for block in raw], spec.steps, {**_opts(spec), "pages": pages}
    )
    cleaned = [(block, text) for block, text in zip(raw, texts, strict=True) if visible(text)]
    blocks = tuple(
        replace(block, text=text, block_id=number)
        for number, (block, text) in enumerate(cleaned, 1)
    )
    chars = sum(len(block.text) for block in blocks)
    if not blocks or chars < spec.min_chars:
        raise EmptyDocumentError(_too_little(source, spec, extracted, chars, log))
    return Document(
        blocks=blocks,
        source=source.name,
        label=source.label,
        spec=spec,
        stats={
            "blocks": len(blocks),
            "chars": chars,
            "chars_removed": sum(len(block.text) for block in raw) - chars,
            "tokens": sum(count_tokens(block.text) for block in blocks),
            "pages": _page_count(blocks, extracted),
            "clean_steps": [row["step"] for row in log],
            "clean_log": log,
            "unread_pages": list(extracted.unread_pages),
        },
    )


def _too_little(
    source: Source, spec: IngestSpec, extracted: Extracted, chars: int, log: list[LogRow]
) -> str:
    removed = ", ".join(
        f"{row['step']} {row['chars_removed']}" for row in log if row["chars_removed"]
    )
    unread = len(extracted.unread_pages)
    return (
        f"{source.label}: {chars} characters of text are left, at least {spec.min_chars} are needed"
        + (f"; removed by cleaning: {removed}" if removed else "")
        + (f"; {unread} page(s) hold no text and were not read by OCR" if unread else "")
    )


def _page_count(blocks: tuple[Block, ...], extracted: Extracted) -> int | float | None:
    pages = [block.page for block in blocks] + [*extracted.unread_pages, extracted.pages]
    numbers = [page for page in pages if isinstance(page, (int, float))]
    return max(numbers, default=None)


def _key(source: Source, spec: IngestSpec) -> Hashable:
    """Whatever the document depends on: the source as it is now, the spec, the code that runs."""
    code = tuple((one.name, one.stamp) for one in ordered_cleaners(spec.steps))
    how = settings_key(spec.model_dump()), code, setting("tokenizer")
    if source.kind == "text":
        text = hashlib.sha256(source.value.encode("utf-8")).hexdigest()
        return "text", text, source.pathlike, how
    if source.kind == "url":
        if spec.extractor is None:
            reads = tuple((one.name, one.stamp) for one in all_extractors().values())
        else:
            reads = ((spec.extractor, extractor_named(spec.extractor).stamp),)
        return "url", source.value, reads, how
    extractor = extractor_of(Path(source.value), spec.extractor)
    stat = os.stat(source.value)
    return (
        "file", source.value, stat.st_size, stat.st_mtime_ns, (extractor.name, extractor.stamp), how
    )  # fmt: skip
