"""The tiktoken encodings that come with LlamaIndex, so that nothing is downloaded."""

import os
from importlib.util import find_spec
from pathlib import Path


def use_shipped() -> None:
    """Let tiktoken find them, unless the environment names another folder."""
    found = find_spec("llama_index.core")
    if found is not None and found.origin is not None:
        shipped = Path(found.origin).parent / "_static" / "tiktoken_cache"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(shipped))
