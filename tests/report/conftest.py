"""A model with a price, and runs to look at."""

from collections.abc import Iterator

import pytest

from harness_core.models import register_model, unregister_model


@pytest.fixture(autouse=True)
def _model() -> Iterator[None]:
    register_model("priced", context_window=8000, max_output=500, input_usd=2, output_usd=8)
    yield
    unregister_model("priced")
