"""Exit codes: one clear line and a number that a script can act on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import typer

from harness_core import (
    BadReaderError,
    CallCapError,
    CostCapError,
    DimMismatchError,
    EmbedError,
    HarnessError,
    ReplayExhaustedError,
    ReplayMissError,
    RequestFailed,
    RequestRefused,
    UnpricedModelError,
)
from harness_integrations.cli.console import say

OTHER, BAD_USE, REFUSED, DIVERGED = 1, 2, 3, 4

_CODES: Mapping[int, tuple[type[HarnessError], ...]] = {
    DIVERGED: (ReplayMissError, ReplayExhaustedError),
    REFUSED: (CallCapError, CostCapError, UnpricedModelError, RequestRefused),
    OTHER: (BadReaderError, DimMismatchError, EmbedError, RequestFailed),
}


def code_of(error: HarnessError) -> int:
    """The exit code of an error: bad use, unless something else is to blame."""
    codes = (code for code, classes in _CODES.items() if isinstance(error, classes))
    return next(codes, BAD_USE)


@contextmanager
def clear_errors(recording: Path | None = None) -> Iterator[None]:
    """Turn our errors into one line on stderr and an exit code; say what resumes a stopped run."""
    try:
        yield
    except KeyboardInterrupt:
        more = "" if recording is None else f"; --trace {recording} --resume goes on with it"
        say(f"interrupted{more}")
        raise
    except HarnessError as error:
        say(f"error: {' '.join(str(error).split())}")
        raise typer.Exit(code_of(error)) from None
