"""What a source is: a file, a web address, or text."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from harness_core.documents.addresses import as_address, shown
from harness_core.documents.extractors.registry import (
    Extractor,
    extractor_for,
    extractor_named,
    known_extensions,
)
from harness_core.errors import SourceNotFoundError, UnsupportedFormatError
from harness_core.messages import clean_text

INLINE: Final = "<inline text>"

_LONGEST: Final = 4096  # bytes of a string that may be a path or an address
_EXTENSION = re.compile(r"\.([^\W_]+)\Z")
_LIKE_A_PATH = re.compile(r"[^\n]*[/\\][^\n]*\.[A-Za-z][A-Za-z0-9]{0,5}\Z")
_WIDE_SPACE = re.compile(r"[ \t]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source told apart: its path, its full address, or its text.

    ``name`` is the document's ``source``; ``label`` what traces and messages call it; ``pathlike``
    a text that reads like the path of a file that is not there.
    """

    kind: Literal["file", "url", "text"]
    value: str
    name: str
    label: str
    pathlike: bool = False


def locate(source: Any) -> Source:
    """What ``source`` is: a path, a web address, or text (one string, or a list joined).

    Raises:
        SourceNotFoundError: a path that names no file.
        UnsupportedFormatError: a folder, bytes, or something else.
    """
    if isinstance(source, os.PathLike):
        return _file(Path(source))
    if isinstance(source, str):
        return _from_string(source)
    if isinstance(source, (list, tuple)) and all(isinstance(part, str) for part in source):
        return _from_string(source[0]) if len(source) == 1 else _text("\n\n".join(source))
    raise UnsupportedFormatError(
        f"a source is a path, a web address, text or a list of texts, not {type(source).__name__}"
    )


def extractor_of(path: Path, forced: str | None) -> Extractor:
    """The extractor of a file, by its forced name or the file's extension.

    Raises:
        UnknownMethodError: nobody registered the forced one.
        UnsupportedFormatError: nobody reads that extension.
    """
    if forced is not None:
        return extractor_named(forced)
    found = extractor_for(path.suffix)
    if found is None:
        known = ", ".join(sorted(known_extensions()))
        raise UnsupportedFormatError(
            f"{path.name}: no extractor reads {path.suffix or 'a file without an extension'}; "
            f"the extensions are {known} (or name one: extractor=...)"
        )
    return found


def _from_string(source: str) -> Source:
    if not _is_short(source) or not source:
        return _text(source)
    if os.path.exists(source):
        return _file(Path(source))
    if address := as_address(source):
        return Source(kind="url", value=address, name=shown(address), label=shown(address))
    if "\n" in source:
        return _text(source)
    if _looks_like_path(source):
        raise SourceNotFoundError(
            f"no file {source!r}: a string that ends like a file's name is one"
        )
    tidy = not _WIDE_SPACE.search(source)
    return _text(source, pathlike=tidy and _LIKE_A_PATH.match(source) is not None)


def _looks_like_path(source: str) -> bool:
    extension = _EXTENSION.search(source)
    return (
        extension is not None
        and not extension[1].isdigit()
        and extension[1].lower() in known_extensions()
        and not _WIDE_SPACE.search(source)
    )


def _file(path: Path) -> Source:
    if path.is_dir():
        raise UnsupportedFormatError(f"{path.name or path} is a folder; give its files one by one")
    if not path.is_file():
        raise SourceNotFoundError(f"no file {str(path)!r}")
    full = path.resolve()
    return Source(
        kind="file",
        value=str(full),
        name=clean_text(full.as_posix()),  # a name that is no text in this locale has surrogates
        label=clean_text(path.name),
    )


def _text(text: str, *, pathlike: bool = False) -> Source:
    return Source(kind="text", value=clean_text(text), name=INLINE, label=INLINE, pathlike=pathlike)


def _is_short(source: str) -> bool:
    # counted in bytes, and first by characters: a long text is never encoded
    return len(source) < _LONGEST and len(_bytes(source)) < _LONGEST


def _bytes(source: str) -> bytes:
    return source.encode("utf-8", "surrogatepass")
