"""What frameworks say about a text beside it."""

from collections.abc import Mapping
from typing import Any


def page_of(metadata: Mapping[str, Any]) -> int | float | str | None:
    """The page a text stands on, where its metadata names one."""
    page = metadata.get("page_label", metadata.get("page"))
    return page if isinstance(page, (int, float, str)) else None
