"""The model of these tests is known in each of them."""

import pytest

from tests.support import small_model


@pytest.fixture(autouse=True)
def _registered() -> None:
    small_model.registered()
