"""Ingested documents, kept for this process: least recently used ones go first."""

import json
import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final

from harness_core.documents.types import Document

_BUDGET: Final = 256 * 2**20  # bytes
_PER_BLOCK: Final = 250


class DocumentCache:
    """Documents by key, within a budget in bytes; the newest one stays in any case."""

    def __init__(self, budget: int = _BUDGET) -> None:
        self._budget = budget
        self._kept: OrderedDict[Hashable, tuple[Document, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Document | None:
        """The document stored under ``key``."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, document: Document) -> None:
        """Store a document and drop the least recently used ones past the budget."""
        size = sum(sys.getsizeof(block.text) + _PER_BLOCK for block in document.blocks)
        with self._lock:
            if key in self._kept:
                self._size -= self._kept.pop(key)[1]
            self._kept[key] = document, size
            self._size += size
            while self._size > self._budget and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def __len__(self) -> int:
        return len(self._kept)


documents: Final = DocumentCache()


def flush_documents() -> None:
    """Forget every ingested document."""
    documents.clear()


def settings_key(fields: dict[str, Any]) -> str:
    """Settings as one string that differs wherever a name or a value at any depth does."""
    return json.dumps(fields, sort_keys=True, default=repr, ensure_ascii=True)
