"""Images, read by OCR."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_core.documents import ocr
from harness_core.documents.decoding import signature
from harness_core.documents.extractors.registry import Extracted
from harness_core.documents.paragraphs import paragraphs
from harness_core.documents.types import Block
from harness_core.errors import BrokenDocumentError, MissingDepError


def extract(path: Path, opts: Mapping[str, Any]) -> Extracted:
    """The text on the image, page by page where it has several.

    Raises:
        MissingDepError: no tesseract program.
        BrokenDocumentError: no image, or a damaged one.
    """
    if not ocr.available():
        raise MissingDepError("images are read by OCR: install the program tesseract")
    blocks: list[Block] = []
    frames = _frames(path)
    for number, image in enumerate(frames, 1):
        found = ocr.recognise(image, str(opts.get("ocr_lang", "eng")))
        if isinstance(found, Exception):
            raise BrokenDocumentError(f"OCR of {path.name} failed: {found}") from None
        page = number if len(frames) > 1 else None
        blocks += [Block(text=text, page=page, kind="ocr") for text in paragraphs(found)]
    return Extracted(blocks=tuple(blocks), pages=len(frames))


def _frames(path: Path) -> list[Any]:
    from PIL import Image, ImageSequence, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return [frame.copy() for frame in ImageSequence.Iterator(image)]
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError):
        found = signature(path.read_bytes()[:16]) or "no image"
        raise BrokenDocumentError(f"{path.name} cannot be read as an image ({found})") from None
