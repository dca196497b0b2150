"""The frameworks' own suites run under their own settings, in a call of their own.

``pytest -c tests/standard/pytest.ini tests/standard``; any other call leaves them out.
"""

from pathlib import Path

import pytest

from tests.conftest import _no_network as _no_network  # the one guard they share with the rest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these tests to the call that names their settings."""
    return None if config.inipath == Path(__file__).with_name("pytest.ini") else True
