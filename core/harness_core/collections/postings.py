"""Where words are, as the stores keep it: of each word in a file, the pieces that hold it."""

import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from harness_core.collections.scoring import Postings

_PLACE: Final = struct.Struct("<qii")
_FIELDS: Final = [("chunk", "<i8"), ("times", "<i4"), ("length", "<i4")]
PLACE_BYTES: Final = _PLACE.size


def place(chunk: int, times: int, length: int) -> bytes:
    """That a word is so many times in a piece of so many words."""
    return _PLACE.pack(chunk, times, length)


def packed(chunks: Sequence[int], words: Sequence[Sequence[str]]) -> dict[str, bytes]:
    """By word, its places in the pieces ``chunks`` with those ``words``; they can be joined."""
    found: dict[str, bytearray] = defaultdict(bytearray)
    for chunk, tokens in zip(chunks, words, strict=True):
        for word, times in Counter(tokens).items():
            found[word] += place(chunk, times, len(tokens))
    return {word: bytes(places) for word, places in found.items()}


def unpacked(places: bytes) -> Postings:
    """Places, for scoring."""
    import numpy as np

    held = np.frombuffer(places, _FIELDS)
    return Postings(held["chunk"], held["times"], held["length"])
