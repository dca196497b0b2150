"""Models with prices, and registries left as they were."""

from collections.abc import Iterator

import pytest

from harness_core.documents.cleaning import registry as cleaners
from harness_core.documents.extractors import registry as extractors
from harness_core.models import register_model, unregister_model
from tests.support.reading import restored_readers

_readers = pytest.fixture(autouse=True)(restored_readers)


@pytest.fixture(autouse=True)
def _models() -> Iterator[None]:
    register_model("priced", context_window=128_000, max_output=4096, input_usd=2, output_usd=8)
    register_model("dear", context_window=128_000, max_output=4096, input_usd=20, output_usd=80)
    register_model("no-price", context_window=128_000, max_output=4096)
    yield
    for name in ("priced", "dear", "no-price"):
        unregister_model(name)


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaners, "_registered", {})
    monkeypatch.setattr(extractors, "_registered", {})
