"""What to say when a framework is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness_core.errors import MissingDepError


@contextmanager
def needs(extra: str, *packages: str) -> Iterator[None]:
    """Turn the absence of ``packages`` into an error that names the extra which brings them.

    Raises:
        MissingDepError: one of them cannot be imported.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        raise MissingDepError(
            f"this needs {error.name}: pip install 'harness-integrations[{extra}]'", name=error.name
        ) from error
