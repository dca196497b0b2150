"""Sources become documents: located, extracted, cleaned, cut into blocks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness_core.documents.types import Block, Chunk, Chunks, Document

if TYPE_CHECKING:
    from harness_core.documents.cache import flush_documents
    from harness_core.documents.cleaning.registry import list_cleaners, register_cleaner
    from harness_core.documents.extractors.registry import (
        Extracted,
        list_extractors,
        register_extractor,
    )
    from harness_core.documents.ingestion import ingest
    from harness_core.documents.spec import IngestSpec

__all__ = [
    "Block",
    "Chunk",
    "Chunks",
    "Document",
    "Extracted",
    "IngestSpec",
    "flush_documents",
    "ingest",
    "list_cleaners",
    "list_extractors",
    "register_cleaner",
    "register_extractor",
]

_HOMES = {
    "Extracted": "extractors.registry",
    "IngestSpec": "spec",
    "flush_documents": "cache",
    "ingest": "ingestion",
    "list_cleaners": "cleaning.registry",
    "list_extractors": "extractors.registry",
    "register_cleaner": "cleaning.registry",
    "register_extractor": "extractors.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
