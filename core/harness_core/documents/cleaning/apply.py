"""Running cleaners over the texts of a document's blocks."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_core.documents.cleaning.mapping import rewrite
from harness_core.documents.cleaning.registry import Cleaner, ordered_cleaners
from harness_core.errors import CleanUnmappedWarning, warn

LogRow = dict[str, Any]


def clean_blocks(
    texts: Sequence[str],
    steps: Sequence[str] | None = None,
    opts: Mapping[str, Any] | None = None,
) -> tuple[list[str], list[LogRow]]:
    """As many texts as came (a removed one is empty), and step, stage, scope, chars_removed.

    ``steps`` are names of cleaners (None: those on by default); early ones run first.

    Raises:
        UnknownMethodError: a name nobody registered.
    """
    texts, log = list(texts), list[LogRow]()
    memo: dict[str, Any] = {}
    for cleaner in ordered_cleaners(None if steps is None else tuple(steps)):
        before = sum(map(len, texts))
        texts = _run(cleaner, texts, {**(opts or {}), "blocks": tuple(texts), "memo": memo})
        log.append(
            {
                "step": cleaner.name,
                "stage": cleaner.stage,
                "scope": cleaner.scope,
                "chars_removed": before - sum(map(len, texts)),
            }
        )
    return texts, log


def _run(cleaner: Cleaner, texts: list[str], opts: Mapping[str, Any]) -> list[str]:
    clean = cleaner.load()
    if cleaner.scope == "document":
        mapped = rewrite(texts, lambda text: clean(text, opts))
        if mapped is not None:
            return mapped
        warn(CleanUnmappedWarning(
            f"what cleaner {cleaner.name!r} returned is no selection of the document's lines; "
            "it was run block by block"
        ))  # fmt: skip
    return [clean(text, opts) if text else "" for text in texts]
