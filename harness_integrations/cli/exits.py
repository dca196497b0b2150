"""Exit codes: one clear line and a number that a script can act on."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from harness_core import (
    AuthError,
    BadOverrideError,
    BadQuestionError,
    BadRecipeError,
    BadSettingError,
    BrokenDocumentError,
    CacheError,
    CallCapError,
    CostCapError,
    EmptyDocumentError,
    EncryptedDocumentError,
    HarnessError,
    MissingDepError,
    NoRecipesError,
    ReplayEmptyError,
    ReplayExhaustedError,
    ReplayMissError,
    ReplayUnreadableError,
    RequestRefused,
    SourceNotFoundError,
    TraceError,
    UnknownMethodError,
    UnknownOverrideError,
    UnpricedModelError,
    UnsupportedFormatError,
)
from harness_integrations.cli.console import say

OTHER, BAD_USE, REFUSED, DIVERGED = 1, 2, 3, 4

_CODES: tuple[tuple[tuple[type[HarnessError], ...], int], ...] = (
    ((ReplayMissError, ReplayExhaustedError), DIVERGED),
    ((CallCapError, CostCapError, UnpricedModelError, RequestRefused), REFUSED),
    (
        (
            AuthError, BadOverrideError, BadQuestionError, BadRecipeError, BadSettingError,
            BrokenDocumentError, CacheError, EmptyDocumentError, EncryptedDocumentError,
            MissingDepError, NoRecipesError, ReplayEmptyError, ReplayUnreadableError,
            SourceNotFoundError, TraceError, UnknownMethodError, UnknownOverrideError,
            UnsupportedFormatError,
        ),
        BAD_USE,
    ),
)  # fmt: skip


def code_of(error: HarnessError) -> int:
    """The exit code of an error."""
    for classes, code in _CODES:
        if isinstance(error, classes):
            return code
    return OTHER


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn our errors into one line on stderr and an exit code."""
    try:
        yield
    except HarnessError as error:
        first = " ".join(str(error).split())
        say(f"error: {first}")
        raise typer.Exit(code_of(error)) from None
