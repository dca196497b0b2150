from collections.abc import Iterator

import pytest

from harness_core.config import configure, override
from harness_core.models import tokenizers
from harness_core.segmenting import registry


@pytest.fixture(autouse=True)
def _fresh_registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(tokenizers, "_custom", {})
    former = configure(tokenizer="heuristic")
    yield
    configure(**former)


@pytest.fixture
def by_words() -> Iterator[None]:
    """One word is one token, so that sizes can be read off the text."""
    with override(tokenizer="words"):
        yield
