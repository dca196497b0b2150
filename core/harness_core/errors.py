"""What can go wrong, by class. Catching by class is a public contract; so is ``code``.

Errors derive from ``HarnessError``, warnings from ``HarnessWarning``. Where a builtin fits it is a
second base (``FileNotFoundError``, ``ImportError``), so code that knows nothing of us catches too.

    HarnessError
        AuthError > BadKeyError       HeaderError             MissingDepError (ImportError)
        BadSettingError (ValueError)  BadQuestionError (ValueError)
        UnknownModelError             UnknownMethodError      ReservedNameError
        BadReaderError                BudgetError             DimMismatchError
        CallCapError                  CostCapError            UnpricedModelError
        RequestRefused (RuntimeError)                         RequestFailed (RuntimeError)
        ReplayMissError (RuntimeError)                        ReplayExhaustedError (RuntimeError)
        ReplayEmptyError              ReplayUnreadableError   EmbedError
        TraceError                    CacheError              UrlError
        SourceNotFoundError (FileNotFoundError)               UnsupportedFormatError > TooLargeError
        EmptyDocumentError            EncryptedDocumentError  BrokenDocumentError
        EmptyChunksError              CapUnenforceableError   OverflowError
        UnknownOverrideError          BadOverrideError        UnknownEffortKeyError
        NoRecipesError                BadRecipeError          BadEnsembleError
        NoFieldsError                 NoCriteriaError
    HarnessWarning (UserWarning)
        one class per degradation, below
"""

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, ClassVar

__all__ = [
    "AmbiguousNameWarning",
    "AuthError",
    "BadCorrectWarning",
    "BadEnsembleError",
    "BadKeyError",
    "BadOverrideError",
    "BadQuestionError",
    "BadReaderError",
    "BadRecipeError",
    "BadSettingError",
    "BadSettingWarning",
    "BrokenDocumentError",
    "BudgetError",
    "CacheError",
    "CacheWarning",
    "CallCapError",
    "CallCapWarning",
    "CapUnenforceableError",
    "ClampedWarning",
    "CleanUnmappedWarning",
    "CostCapError",
    "DimMismatchError",
    "DocxMediaSkippedWarning",
    "DuplicateRecipeWarning",
    "EffortUnknownWarning",
    "EffortUnsupportedWarning",
    "EmbedError",
    "EmbedFallbackWarning",
    "EmptyChunksError",
    "EmptyDocumentError",
    "EncryptedDocumentError",
    "EnsembleDegenerateWarning",
    "ExtractUnresolvedWarning",
    "HarnessError",
    "HarnessWarning",
    "HeaderError",
    "IterativeDegradedWarning",
    "ListenerWarning",
    "MissingDepError",
    "ModelFixedWarning",
    "NearMissWarning",
    "NoCriteriaError",
    "NoEmbeddingsWarning",
    "NoFieldsError",
    "NoRecipesError",
    "OcrFailedWarning",
    "OcrUnavailableWarning",
    "OverflowError",
    "OverflowWarning",
    "OverrunWarning",
    "PathAsTextWarning",
    "PreviewDegradedWarning",
    "RecipeFailedWarning",
    "ReplayEmptyError",
    "ReplayExhaustedError",
    "ReplayMissError",
    "ReplayNoEmbeddingsWarning",
    "ReplayUnreadableError",
    "RequestFailed",
    "RequestRefused",
    "RerankDegradedWarning",
    "RerankPrefilterWarning",
    "ReservedNameError",
    "SegmentFallbackWarning",
    "SourceNotFoundError",
    "TemperatureUnsupportedWarning",
    "TooLargeError",
    "TraceError",
    "UnknownEffortKeyError",
    "UnknownMethodError",
    "UnknownModelError",
    "UnknownModelWarning",
    "UnknownOverrideError",
    "UnpricedModelError",
    "UnsupportedFormatError",
    "UrlError",
]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class HarnessError(Exception):
    """Base of every error of this package. ``code`` names it in files and over HTTP."""

    code: ClassVar[str] = "harness_error"

    def __init_subclass__(cls, *, code: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.code = code or _snake(cls.__name__.removesuffix("Error"))


class HarnessWarning(UserWarning):
    """Base of every warning of this package: something degraded, and the answer says so."""

    code: ClassVar[str] = "harness_warning"

    def __init_subclass__(cls, *, code: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.code = code or _snake(cls.__name__.removesuffix("Warning"))


# --- settings, credentials, registries ---------------------------------------------------------


class AuthError(HarnessError, code="auth_error"):
    """No usable credential for a request that must be sent. Stops the whole run."""


class BadKeyError(AuthError):
    """The API key holds a control character; the message never shows the key."""


class HeaderError(HarnessError, code="header_error"):
    """A header set that cannot be sent; the message names the header, never its value."""


class BadSettingError(HarnessError, ValueError):
    """A setting outside its choices, unreadable, or at odds with another one."""


class BudgetError(HarnessError, code="budget_error"):
    """A prompt and its reply cannot both fit the model's context window."""


class UnknownModelError(HarnessError):
    """A model nobody registered, under ``unknown_model_action="error"``."""


class UnknownMethodError(HarnessError):
    """A name that is in none of the registries it was looked up in."""


class ReservedNameError(HarnessError):
    """A reader may not be registered as ``auto``."""


class MissingDepError(HarnessError, ImportError):
    """An optional dependency is absent; the message names the extra that brings it."""


class BadReaderError(HarnessError):
    """A registered reader broke the reader contract."""


class BadQuestionError(HarnessError, ValueError):
    """A question that is no non-blank string."""


# --- limits -------------------------------------------------------------------------------------


class CallCapError(HarnessError):
    """A read would need more requests than ``max_calls`` allows; nothing was sent."""


class CostCapError(HarnessError):
    """A read could not stay inside ``max_cost_usd``; nothing was sent."""


class UnpricedModelError(HarnessError):
    """A model without a price under a spending limit; nothing was sent."""


class RequestRefused(HarnessError, RuntimeError, code="budget_refused"):
    """A request was not sent because it could have passed a limit.

    ``reason`` is one of model, output, calls, unpriced, tokens, cost, ledger_busy; ``label`` is
    the request's stage label and ``model`` the model it asked for.
    """

    def __init__(self, message: str, reason: str = "", label: str = "", model: str = "") -> None:
        super().__init__(message, reason, label, model)
        self.reason = reason
        self.label = label
        self.model = model

    def __str__(self) -> str:
        return str(self.args[0])


class RequestFailed(HarnessError, RuntimeError, code="request_failed"):
    """``reply.unwrap()`` of a request that was sent and failed. ``status`` is the HTTP status."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class EmbedError(HarnessError, code="embed_error"):
    """Embedding failed and ``fallback="error"`` asked for an error."""


class DimMismatchError(HarnessError):
    """Two vectors of different lengths were compared."""


# --- trace, cache, replay -----------------------------------------------------------------------


class ReplayMissError(HarnessError, RuntimeError):
    """A strict replay was asked for a request that the recording does not hold."""


class ReplayExhaustedError(HarnessError, RuntimeError):
    """A replay was asked for more replies to one request than were recorded."""


class ReplayEmptyError(HarnessError):
    """The recording holds no model request."""


class ReplayUnreadableError(HarnessError):
    """What was given as a recording is no trace."""


class TraceError(HarnessError):
    """A trace file cannot be read, would be overwritten, or could not be written."""


class CacheError(HarnessError):
    """A cache path that holds something else than a cache."""


# --- documents and chunks -----------------------------------------------------------------------


class SourceNotFoundError(HarnessError, FileNotFoundError, code="file_not_found"):
    """A path that names no file. A typo never becomes the document."""


class UnsupportedFormatError(HarnessError):
    """No extractor reads this kind of file."""


class TooLargeError(UnsupportedFormatError):
    """A source larger than is read."""


class EmptyDocumentError(HarnessError):
    """Too little text survived extraction and cleaning."""


class EncryptedDocumentError(HarnessError):
    """A document that asks for a password."""


class BrokenDocumentError(HarnessError):
    """A file whose content is not what its name says, or is damaged."""


class UrlError(HarnessError, code="url_error"):
    """A web address that may not be, or could not be, fetched."""


class EmptyChunksError(HarnessError):
    """A segmentation that left nothing to read."""


class CapUnenforceableError(HarnessError):
    """The tokenizer counts one character above the chunk cap."""


class OverflowError(HarnessError, code="overflow"):  # noqa: A001 - named for what happened
    """``stuff`` under ``on_overflow="error"``: the document does not fit one request."""


# --- recipes and readers ------------------------------------------------------------------------


class UnknownOverrideError(HarnessError):
    """A keyword that is a setting of neither ingestion, segmentation nor reading."""


class BadOverrideError(HarnessError):
    """``None`` for a setting that has no such value."""


class NoRecipesError(HarnessError):
    """An empty list of recipes."""


class BadRecipeError(HarnessError):
    """Something that is no recipe, or ``auto`` where one fixed recipe is needed."""


class BadEnsembleError(HarnessError):
    """An ensemble of fewer than two distinct strategies."""


class UnknownEffortKeyError(HarnessError):
    """An ``effort`` name that reaches no declared stage."""


class NoFieldsError(HarnessError):
    """``extract`` without fields."""


class NoCriteriaError(HarnessError):
    """``screen`` without criteria."""


# --- warnings -----------------------------------------------------------------------------------


class UnknownModelWarning(HarnessWarning):
    """A model whose limits are guessed and whose price is unknown."""


class UnpricedModelWarning(HarnessWarning):
    """Nothing was read: the model has no price, and there is a spending limit."""


class BadSettingWarning(HarnessWarning):
    """An unreadable tuning value; the message says what is used instead."""


class ClampedWarning(HarnessWarning):
    """A number moved to its nearest bound."""


class NearMissWarning(HarnessWarning):
    """An extra setting one edit away from a real one."""


class EmbedFallbackWarning(HarnessWarning):
    """Embedding failed; lexical vectors are used."""


class NoEmbeddingsWarning(HarnessWarning):
    """The client cannot embed; lexical vectors are used."""


class ReplayNoEmbeddingsWarning(HarnessWarning):
    """A replay cannot reproduce the recording's vectors."""


class CallCapWarning(HarnessWarning):
    """Not every request of a batch can be made under ``max_calls``."""


class OverrunWarning(HarnessWarning):
    """A reply cost more than the bound it was held at."""


class EffortUnknownWarning(HarnessWarning):
    """An effort value outside the known ones; it is sent anyway."""


class EffortUnsupportedWarning(HarnessWarning):
    """The client cannot take an effort per request."""


class TemperatureUnsupportedWarning(HarnessWarning):
    """The client cannot take a temperature per request."""


class ModelFixedWarning(HarnessWarning):
    """The client's model is fixed; the model a spec names is not used."""


class CacheWarning(HarnessWarning):
    """The response cache cannot be used; the run goes on without it."""


class DuplicateRecipeWarning(HarnessWarning):
    """Two recipes of a comparison are the same."""


class AmbiguousNameWarning(HarnessWarning):
    """A name is both a recipe and a reader; the recipe is used."""


class BadCorrectWarning(HarnessWarning):
    """The ``correct`` function of a comparison failed."""


class RecipeFailedWarning(HarnessWarning):
    """One recipe of a comparison failed; the others go on."""


class PathAsTextWarning(HarnessWarning):
    """A string that looks like a path was read as text."""


class CleanUnmappedWarning(HarnessWarning):
    """A document cleaner's output could not be mapped back to blocks."""


class OcrUnavailableWarning(HarnessWarning):
    """Pages need OCR and none is installed."""


class OcrFailedWarning(HarnessWarning):
    """OCR of a page failed; its text layer is kept."""


class DocxMediaSkippedWarning(HarnessWarning):
    """Images of a Word file were past the size limit."""


class SegmentFallbackWarning(HarnessWarning):
    """A segmenter could not do its work and another one did."""


class OverflowWarning(HarnessWarning):
    """Text did not fit and was dropped or cut."""


class RerankPrefilterWarning(HarnessWarning):
    """Word matching could not pick the candidates."""


class RerankDegradedWarning(HarnessWarning):
    """No candidate was scored; word matching decided."""


class IterativeDegradedWarning(HarnessWarning):
    """The first step gave nothing usable."""


class EnsembleDegenerateWarning(HarnessWarning):
    """Members of an ensemble read the same text or gave the same answer."""


class PreviewDegradedWarning(HarnessWarning):
    """The plan was unusable; everything is read."""


class ExtractUnresolvedWarning(HarnessWarning):
    """A conflict between values was left unresolved."""


class ListenerWarning(HarnessWarning):
    """A trace's listener failed; the step it was called with is kept."""


# --- saying it ----------------------------------------------------------------------------------

_recorders: ContextVar[tuple[list[HarnessWarning], ...]] = ContextVar("recorders", default=())
_never_raised: ContextVar[bool] = ContextVar("never_raised", default=False)


@contextlib.contextmanager
def recording_warnings(*, raised: bool = True) -> Iterator[list[HarnessWarning]]:
    """Collect what ``warn`` says inside, in this context and in the workers started from it.

    Without ``raised`` a filter that makes errors of warnings ends nothing: what was said is on the
    list all the same.
    """
    heard: list[HarnessWarning] = []
    quiet = _never_raised.get() or not raised
    tokens = _recorders.set((*_recorders.get(), heard)), _never_raised.set(quiet)
    try:
        yield heard
    finally:
        with contextlib.suppress(ValueError):  # a generator may be closed in another context
            _recorders.reset(tokens[0])
            _never_raised.reset(tokens[1])


_held: ContextVar[list[HarnessWarning] | None] = ContextVar("held", default=None)


@contextlib.contextmanager
def holding_warnings() -> Iterator[list[HarnessWarning]]:
    """Keep what ``warn`` says inside for later: neither recorded nor shown."""
    kept: list[HarnessWarning] = []
    token = _held.set(kept)
    try:
        yield kept
    finally:
        _held.reset(token)


def warn(warning: HarnessWarning) -> None:
    """Record ``warning`` where somebody records, and show it at the caller's line."""
    if (held := _held.get()) is not None:
        held.append(warning)
        return
    for heard in _recorders.get():
        heard.append(warning)
    level = 2
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to the caller's file name
    while frame.f_back is not None and "harness_core" in frame.f_code.co_filename:
        frame, level = frame.f_back, level + 1
    with contextlib.suppress(HarnessWarning) if _never_raised.get() else contextlib.nullcontext():
        warnings.warn(warning, stacklevel=level)
