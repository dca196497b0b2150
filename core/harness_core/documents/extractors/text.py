"""Plain text: decoded, then split into paragraphs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_core.documents.decoding import decode, require_text
from harness_core.documents.paragraphs import paragraphs


def extract(path: Path, opts: Mapping[str, Any]) -> list[str]:
    """The paragraphs of the file.

    Raises:
        BrokenDocumentError: the file is no text.
    """
    return paragraphs(read_text(path, opts))


def read_text(path: Path, opts: Mapping[str, Any]) -> str:
    """The file as text; ``opts["charset"]`` is what a server said about it.

    Raises:
        BrokenDocumentError: the file is no text.
    """
    data = path.read_bytes()
    require_text(data, path.name)
    return decode(data, opts.get("charset"))
