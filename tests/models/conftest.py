from collections.abc import Iterator

import pytest

from harness_core.config import configure
from harness_core.models import registry, tokenizers


@pytest.fixture(autouse=True)
def _fresh_registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module, name in (
        (registry, "_registered"),
        (registry, "_resolved"),
        (tokenizers, "_custom"),
    ):
        monkeypatch.setattr(module, name, {})
    monkeypatch.setattr(registry, "_warned", set())
    former = configure(tokenizer="heuristic")
    yield
    configure(**former)
