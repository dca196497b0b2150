"""Word files, from the parts that hold text: headings, table rows, footnotes, text boxes."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from harness_core.documents.decoding import signature
from harness_core.documents.extractors.docx_body import Body, plain_names
from harness_core.documents.extractors.docx_styles import Styles
from harness_core.documents.ocr import available as ocr_available
from harness_core.documents.ocr import recognise
from harness_core.documents.paragraphs import paragraphs
from harness_core.documents.types import Block
from harness_core.errors import (
    BrokenDocumentError,
    DocxMediaSkippedWarning,
    EncryptedDocumentError,
    OcrFailedWarning,
    TooLargeError,
    warn,
)

_LIMIT: Final = 512 * 2**20  # bytes, once for the text parts and once for the images
_BOMB: Final = 32 * 2**20, 100  # bytes from which a part may not be packed tighter than that
_TEXT_PARTS: Final = ("document", "styles", "footnotes", "endnotes")
_IMAGES: Final = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
_DAMAGE: Final = (
    ElementTree.ParseError, zlib.error, KeyError, EOFError, NotImplementedError, RecursionError,
)  # fmt: skip
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")


def extract(path: Path, opts: Mapping[str, Any]) -> list[Block]:
    """The blocks of the file; embedded images where OCR is on and installed.

    Raises:
        BrokenDocumentError: no Word file, or a damaged one.
        EncryptedDocumentError: a file under a password.
        TooLargeError: text parts of over 512 MB, or packed as no text is (a ZIP bomb).
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [*_text(archive, path.name), *_images(archive, opts)]
    except zipfile.BadZipFile:
        raise _no_word_file(path) from None
    except _DAMAGE as error:
        raise BrokenDocumentError(f"{path.name} is damaged: {error}") from None
    except RuntimeError:  # how zipfile says that a part is under a password
        raise EncryptedDocumentError(f"{path.name} is protected by a password") from None


def _no_word_file(path: Path) -> Exception:
    data = path.read_bytes()
    if _ENCRYPTED in data:
        return EncryptedDocumentError(f"{path.name} is protected by a password")
    found = signature(data) or ("empty" if not data else "no ZIP archive")
    return BrokenDocumentError(f"{path.name} is no Word file: it is {found}")


def _text(archive: zipfile.ZipFile, name: str) -> Iterator[Block]:
    listed = {info.filename: info for info in archive.infolist()}
    parts = {part: f"word/{part}.xml" for part in _TEXT_PARTS if f"word/{part}.xml" in listed}
    if "document" not in parts:
        raise BrokenDocumentError(f"{name} is no Word file: it has no word/document.xml")
    _check_size(name, [listed[file] for file in parts.values()])
    roots = {part: _parsed(archive, file) for part, file in parts.items()}
    body = Body(
        styles=Styles.of(roots.get("styles")),
        footnotes=roots.get("footnotes"),
        endnotes=roots.get("endnotes"),
    )
    return body.blocks(roots["document"])


def _check_size(name: str, parts: Sequence[zipfile.ZipInfo]) -> None:
    size = sum(part.file_size for part in parts)
    if size > _LIMIT:
        raise TooLargeError(f"{name} holds {size / 2**20:.0f} MB of text; at most 512 MB are read")
    least, ratio = _BOMB
    if size > least and size > ratio * sum(part.compress_size for part in parts):
        raise TooLargeError(
            f"{name} unpacks to over {ratio} times its size, {size / 2**20:.0f} MB: no text does"
        )


def _parsed(archive: zipfile.ZipFile, file: str) -> ElementTree.Element:
    with archive.open(file) as part:
        # expat loads no external entity and bounds the growth of internal ones
        root = ElementTree.parse(part).getroot()  # noqa: S314
    plain_names(root)
    return root


def _images(archive: zipfile.ZipFile, opts: Mapping[str, Any]) -> Iterator[Block]:
    media = [
        info
        for info in archive.infolist()
        if info.filename.startswith("word/media/") and info.filename.lower().endswith(_IMAGES)
    ]
    if not media or opts.get("ocr", "auto") == "never" or not ocr_available():
        return
    total = 0
    for info in media:
        total += info.file_size
        if total > _LIMIT:
            warn(DocxMediaSkippedWarning("images past 512 MB were not read"))
            return
        found = recognise(archive.read(info), str(opts.get("ocr_lang", "eng")))
        if isinstance(found, Exception):
            warn(OcrFailedWarning(f"OCR of {info.filename} failed: {found}"))
            continue
        for text in paragraphs(found):
            yield Block(text=text, section="[embedded images]", kind="ocr")
