"""The names of the room."""

import pytest

from harness_core import checks


def test_every_public_name_can_be_had_and_is_no_module() -> None:
    for name in checks.__all__:
        found = getattr(checks, name)
        assert found.__name__ == name
        assert not hasattr(found, "__path__")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        checks.nothing  # noqa: B018 - the access is the test
