"""Which kind of file a path or a content type says, and whether the bytes agree."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from harness_core.collections.faults import InvalidRequestError
from harness_core.documents.decoding import signature

_TYPES: Final[Mapping[str, str]] = {
    ".txt": "text/plain", ".text": "text/plain", ".log": "text/plain", ".csv": "text/csv",
    ".tsv": "text/tab-separated-values", ".md": "text/markdown", ".markdown": "text/markdown",
    ".html": "text/html", ".htm": "text/html", ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}  # fmt: skip
CONTENT_TYPE: Final = r"^[A-Za-z0-9!#$&^_.+-]{1,63}/[A-Za-z0-9!#$&^_.+-]{1,127} *(?:;[ -~]*)?$"
_EXTENSIONS: Final = {kind: ext for ext, kind in reversed(list(_TYPES.items()))}
_PLAIN: Final = "text/plain"
_UNKNOWN: Final = "application/octet-stream"


def content_type_of(path: str, given: str | None, *, text: bool = False) -> str:
    """The content type of a file: as given, or by the end of its path; ``text`` is plain text.

    Raises:
        InvalidRequestError: what is given is no content type.
    """
    if given is None:
        return _TYPES.get(PurePosixPath(path).suffix.lower(), _PLAIN if text else _UNKNOWN)
    if not re.fullmatch(CONTENT_TYPE, given):
        raise InvalidRequestError("the content type is not one", "/content_type")
    return given.partition(";")[0].strip().lower()


def extension_of(content_type: str) -> str | None:
    """The extension under which a file of that type is read; None for one that is not."""
    return _EXTENSIONS.get(content_type)


def disagrees(extension: str, data: bytes) -> bool:
    """Whether the bytes begin like another kind of file than the extension says."""
    found = signature(data)
    expected = {".pdf": b"%PDF-", ".docx": b"PK\x03\x04"}.get(extension)
    if expected is None:
        return found is not None
    return not (
        data[:1024].lstrip().startswith(expected) or found == signature(b"\xd0\xcf\x11\xe0")
    )
