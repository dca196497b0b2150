"""Optical character recognition by the program tesseract."""

import io
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final

_WORKERS: Final = 4
_SECONDS: Final = 300  # for one page


def available() -> bool:
    """Whether the packages of the extra ``ocr`` and the program tesseract are installed."""
    packages = all(find_spec(name) is not None for name in ("pytesseract", "PIL"))
    return packages and shutil.which("tesseract") is not None


def recognise(image: Any, language: str) -> str | Exception:
    """The text of an image (a PIL image or the bytes of a file), or what went wrong."""
    import pytesseract  # type: ignore[import-untyped]  # it ships no types
    from PIL import Image

    try:
        if isinstance(image, bytes):
            image = Image.open(io.BytesIO(image))
        return str(pytesseract.image_to_string(image, lang=language, timeout=_SECONDS))
    except (
        pytesseract.TesseractError,
        Image.DecompressionBombError,
        OSError,
        RuntimeError,  # how pytesseract says that time is up
        ValueError,
    ) as error:
        return error


def recognise_all(
    images: Iterable[tuple[int, Any]], language: str, *, parallel: bool | None
) -> Iterator[tuple[int, str | Exception]]:
    """The text of numbered images, a few at a time: the images are made as they are needed."""
    workers = 1 if parallel is False else _WORKERS
    source = iter(images)
    with ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(source, workers)):
            results = pool.map(lambda numbered: recognise(numbered[1], language), batch)
            for (number, _), found in zip(batch, results, strict=True):
                yield number, found
