"""Models with prices that the tests of the call path name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_core.calls.cache import ResponseCache
from harness_core.models import register_model, unregister_model

MODELS = {
    "priced": {"input_usd": 3, "output_usd": 15},
    "other": {"input_usd": 1, "output_usd": 2},
    "thinker": {"input_usd": 2, "output_usd": 8, "reasoning": True},
    "small-thinker": {"input_usd": 2, "output_usd": 8, "reasoning": True, "max_output": 1000},
    "tiny": {"input_usd": 1, "output_usd": 1, "context_window": 100, "max_output": 50},
    "no-price": {},
}


@pytest.fixture(autouse=True)
def _models() -> Iterator[None]:
    for name, more in MODELS.items():
        facts = {"context_window": 128_000, "max_output": 4096, **more}
        register_model(name, **facts)  # type: ignore[arg-type]  # the table's values fit their names
    yield
    for name in MODELS:
        unregister_model(name)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    found = ResponseCache(tmp_path / "replies.sqlite3")
    yield found
    found.close()
