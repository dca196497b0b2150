"""ZIP containers measured before anything reads them: what they hold, not what they claim."""

import zipfile
import zlib
from pathlib import Path
from typing import Final

from harness_core.collections.ingestion.limits import IngestFault, Limits

_PIECE: Final = 1 << 20
_HEADER: Final = 30  # bytes of a local header at the least


def check_archive(path: Path, limits: Limits) -> None:
    """Read every entry through once, counting.

    Raises:
        IngestFault: more or larger entries than allowed, entries that overlap, a document type
            declaration in an XML part, or a damaged archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_places(archive, limits)
            left = limits.zip_bytes
            for entry in archive.infolist():
                left -= _measured(archive, entry, min(left, limits.zip_entry_bytes), limits)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        raise IngestFault("corrupt", "the archive is damaged") from None
    except RuntimeError:  # how zipfile says that an entry is under a password
        raise IngestFault("encrypted", "the archive is protected by a password") from None


def _check_places(archive: zipfile.ZipFile, limits: Limits) -> None:
    entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    if len(entries) > limits.zip_entries:
        raise IngestFault("zip_limits", f"the archive has over {limits.zip_entries} entries")
    end = 0
    for entry in entries:
        if entry.header_offset < end:
            raise IngestFault("zip_limits", "entries of the archive overlap")
        end = entry.header_offset + _HEADER + entry.compress_size


def _measured(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int, limits: Limits) -> int:
    total, before = 0, b""
    with archive.open(entry) as part:
        while piece := part.read(_PIECE):
            total += len(piece)
            packed = max(entry.compress_size, 1)
            if total > most or (total > _PIECE and total > limits.zip_ratio * packed):
                raise IngestFault("zip_limits", "the archive unpacks to more than is read")
            if entry.filename.endswith((".xml", ".rels")) and _declares(before + piece):
                raise IngestFault("corrupt", "a part declares a document type")
            before = piece[-32:]
    return total


def _declares(xml: bytes) -> bool:
    """Whether a document type is declared, in UTF-8 or, with zeros between, in UTF-16."""
    return b"<!DOCTYPE" in xml.replace(b"\0", b"")
