"""Exact counts for OpenAI models, through tiktoken."""

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from harness_core.errors import BadSettingError, MissingDepError

if TYPE_CHECKING:
    from tiktoken import Encoding

SLICE: Final = 16_384
"""Characters given to tiktoken at once, at most 64 KB: very long runs of spaces make it panic."""

_O200K = re.compile(r"gpt-(?:5|4\.1|4o|4\.5)|chatgpt-4o|o[1-9](?:-|$)")
_CL100K = re.compile(r"gpt-4|gpt-3\.5|text-embedding-")


def encoding_name(model: str | None) -> str | None:
    """The encoding of an OpenAI model, by its id with or without ``openai:``; None if unknown."""
    bare = re.sub(r"^openai[:/]", "", model or "")
    if _O200K.match(bare):
        return "o200k_base"
    return "cl100k_base" if _CL100K.match(bare) else None


def count_encoded(text: str, name: str | None) -> int:
    """Tokens of ``text`` in one encoding, or the larger count of two when none is named.

    Text that spells a special token is counted as plain text.

    Raises:
        BadSettingError: the encoding cannot be loaded.
    """
    if name is None:
        return max(count_encoded(text, "cl100k_base"), count_encoded(text, "o200k_base"))
    encoding = _loaded(name)
    slices = (text[start : start + SLICE] for start in range(0, len(text), SLICE))
    return sum(_count(encoding, part) for part in slices)


def _count(encoding: "Encoding", text: str) -> int:
    try:
        return len(encoding.encode_ordinary(text))
    except BaseException as failure:  # a panic in tiktoken is no Exception
        if type(failure).__name__ != "PanicException" or len(text) < 2:
            raise
        half = len(text) // 2
        return _count(encoding, text[:half]) + _count(encoding, text[half:])


@cache
def _loaded(name: str) -> "Encoding":
    try:
        import tiktoken
    except ImportError as missing:
        raise MissingDepError("counting with tiktoken needs the package tiktoken") from missing
    try:
        return tiktoken.get_encoding(name)
    except Exception as failure:  # a download, a file, a checksum: each has its own class
        raise BadSettingError(
            f"the tiktoken encoding {name!r} cannot be loaded ({failure}); set TIKTOKEN_CACHE_DIR "
            "to a folder that holds it, or choose the tokenizer 'heuristic'"
        ) from failure
