"""A reader that a page registers is gone after the page."""

import pytest

from tests.support.reading import restored_readers

_readers = pytest.fixture(autouse=True)(restored_readers)
