"""Every test of reading leaves the registry of readers as it was."""

import pytest

from tests.support.reading import restored_readers

_readers = pytest.fixture(autouse=True)(restored_readers)
