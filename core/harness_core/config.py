"""Process defaults: one table of settings, overridable for a scope, readable from the environment.

Settings are read when they are used, never when an object is made. ``override`` is a context
variable: it holds for the ``with`` block, in this task or thread and in workers started from it.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from harness_core.errors import BadSettingError, BadSettingWarning, warn

Kind = Literal["number", "limit", "choice", "text", "flag", "names", "mapping"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the settings table: what a value may be and what it does."""

    name: str
    default: Any
    kind: Kind
    about: str
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    nullable: bool = False
    choices: tuple[str, ...] = ()


def _number(name: str, default: Any, low: float, high: float, about: str, **more: Any) -> Setting:
    return Setting(
        name=name, default=default, kind="number", low=low, high=high, about=about, **more
    )


SETTINGS: tuple[Setting, ...] = (
    Setting(name="model", default="gpt-5.6-terra", kind="text",
            about="Chat model of a client that names none."),
    Setting(name="embedding_model", default="text-embedding-3-small", kind="text",
            about="Embedding model of a client that names none."),
    Setting(name="api_base", default="https://api.openai.com/v1", kind="text",
            about="Base URL of a client that names none; the default yields to OPENAI_BASE_URL."),
    Setting(name="api_headers", default=MappingProxyType({}), kind="mapping",
            about="Headers of a client that names none. Values never enter a trace."),
    Setting(name="api", default="responses", kind="choice", choices=("responses", "chat"),
            about="API shape: the Responses API or Chat Completions."),
    _number("temperature", None, 0, 2, nullable=True,
            about="Sampling temperature; none sends none. Dropped for models that take none."),
    _number("max_retries", 4, 0, 10, whole=True,
            about="Retries of one request after the first attempt."),
    _number("retry_pause_base", 2.0, 0, 60, about="Seconds the first retry pause is drawn around."),
    _number("request_timeout", 120.0, 1, 3600, about="Seconds one attempt may take."),
    _number("safety_margin", 0.10, 0, 0.5,
            about="Share added to a prompt's token count before it is held against a limit."),
    _number("min_output_tokens", 256, 0, 1e6, whole=True,
            about="Tokens a reply keeps when prompt and reply compete for the window."),
    Setting(name="tokenizer", default="heuristic", kind="text",
            about="Token counter: heuristic, words, chars, tiktoken, or a registered one."),
    Setting(name="cache_documents", default=True, kind="flag",
            about="Keep ingested documents in memory for this process."),
    Setting(name="cache_embeddings", default=True, kind="flag",
            about="Keep embedding vectors in memory for this process."),
    Setting(name="cache_path", default=None, kind="text", nullable=True,
            about="SQLite file of response caches that name none; none is a temporary file."),
    Setting(name="embedder", default=None, kind="text", nullable=True,
            about="Embedder by name, such as lexical; none uses the client's own."),
    _number("max_concurrency", 4, 1, 64, whole=True,
            about="Requests in flight at once; 1 is one after the other."),
    _number("wait_seconds", 300.0, 0, 86400,
            about="Seconds a request waits for other runs' holds on one ledger."),
    Setting(name="max_cost_usd", default=5.0, kind="limit",
            about="USD a run may spend; none is no limit."),
    Setting(name="max_calls", default=400, kind="limit", whole=True,
            about="Requests a run may make, cache hits and embeddings included; none is no limit."),
    Setting(name="max_tokens_total", default=None, kind="limit", whole=True,
            about="Tokens of every prompt, reply and embedded text; none is no limit."),
    Setting(name="max_output_tokens", default=None, kind="limit", whole=True,
            about="Largest output cap one request may carry; a larger one is refused."),
    Setting(name="allowed_models", default=None, kind="names", nullable=True,
            about="Model ids a run may use, text and embedding alike; none is any."),
    Setting(name="allow_unpriced", default=False, kind="flag",
            about="Send requests to models without a price under a spending limit."),
    Setting(name="unknown_model_action", default="warn", kind="choice", choices=("warn", "error"),
            about="What a model nobody registered does."),
    Setting(name="actor", default=MappingProxyType({}), kind="mapping",
            about="Who runs: any of system, owner, run_by, purpose, approved_by."),
    Setting(name="allow_urls", default=False, kind="flag",
            about="Let a source be a web address."),
    Setting(name="allow_local_urls", default=False, kind="flag",
            about="Let a web address be a private or local one."),
)  # fmt: skip

_TABLE: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
_overrides: ContextVar[Mapping[str, Any]] = ContextVar("overrides", default=MappingProxyType({}))
_process: dict[str, Any] = {}


def configure(**settings: Any) -> dict[str, Any]:
    """Set process defaults; returns the former values of exactly those names.

    ``configure(**configure(max_cost_usd=None))`` restores. ``None`` is stored as ``None``: it
    removes a limit, it does not bring the default back.

    Raises:
        BadSettingError: an unknown name, or a limit that cannot be compared.
    """
    former = {name: _process_value(_known(name)) for name in settings}
    _process.update({name: _checked(_known(name), v) for name, v in settings.items()})
    return former


@contextlib.contextmanager
def override(**settings: Any) -> Iterator[None]:
    """Set settings for the ``with`` block alone; safe in threads and tasks."""
    checked = {name: _checked(_known(name), value) for name, value in settings.items()}
    token = _overrides.set({**_overrides.get(), **checked})
    try:
        yield
    finally:
        _overrides.reset(token)


def setting(name: str) -> Any:
    """The value of one setting in force here."""
    scoped = _overrides.get()
    return scoped[name] if name in scoped else _process_value(_known(name))


def current_settings() -> Mapping[str, Any]:
    """Every setting in force here, by name."""
    return MappingProxyType({name: setting(name) for name in _TABLE})


def _process_value(row: Setting) -> Any:
    return _process[row.name] if row.name in _process else _from_environment(row.name)


@cache
def _from_environment(name: str) -> Any:
    """The default, or what HARNESS_<NAME> said when the setting was first read."""
    row, raw = _TABLE[name], os.environ.get(f"HARNESS_{name.upper()}", "").strip()
    if not raw:
        return row.default
    if raw.lower() in {"none", "null"} and (row.nullable or row.kind == "limit"):
        return None
    try:
        return _checked(row, _parsed(row, raw))
    except BadSettingError as error:
        raise BadSettingError(f"environment variable HARNESS_{name.upper()}: {error}") from None


def _parsed(row: Setting, raw: str) -> Any:
    match row.kind:
        case "flag":
            if raw.lower() not in {"1", "0", "true", "false", "yes", "no", "on", "off"}:
                raise BadSettingError(f"{row.name} is yes or no, not {raw!r}")
            return raw.lower() in {"1", "true", "yes", "on"}
        case "names":
            return [part.strip() for part in raw.split(",") if part.strip()]
        case "mapping":
            pairs = (part.partition("=") for part in raw.split(","))
            return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}
        case "number" | "limit":
            try:
                return float(raw)
            except ValueError:
                raise BadSettingError(f"{row.name} is a number, not {raw!r}") from None
        case _:
            return raw


def _known(name: str) -> Setting:
    if name not in _TABLE:
        raise BadSettingError(f"unknown setting {name!r}; the settings are {', '.join(_TABLE)}")
    return _TABLE[name]


def checked(name: str, value: Any) -> Any:
    """``value`` as the setting ``name`` would keep it: bounds, choices and warnings are the same.

    Raises:
        BadSettingError: an unknown name, or a value outside the choices.
    """
    return _checked(_known(name), value)


def _checked(row: Setting, value: Any) -> Any:
    return _CHECKS[row.kind](row, value)


def limit(name: str, value: Any, *, whole: bool) -> float | int | None:
    """``value`` as a limit: a number at or above 0, or None (also for infinity).

    Raises:
        BadSettingError: what cannot be compared is no limit, so it is refused here.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise BadSettingError(
            f"{name} is one number at or above 0, or None for no limit, not {value!r}: "
            "a limit that cannot be compared would be ignored later"
        )
    if value < 0:
        raise BadSettingError(f"{name} is at or above 0, not {value!r}")
    if math.isinf(value):
        return None
    return math.floor(value) if whole else value


def _limit(row: Setting, value: Any) -> Any:
    return limit(row.name, value, whole=row.whole)


def read_number(value: Any) -> float | None:
    """One finite number, given as a number or as text; anything else is None."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _tuning(row: Setting, value: Any) -> Any:
    if value is None and row.nullable:
        return None
    number = read_number(value)
    if number is None:
        kept = setting(row.name)
        warn(BadSettingWarning(f"{row.name} is one number, not {value!r}; {kept!r} is kept"))
        return kept
    inside = min(max(number, row.low), row.high)
    if inside != number:
        warn(BadSettingWarning(
            f"{row.name} lies in [{row.low:g}, {row.high:g}], not {number:g}; {inside:g} is used"
        ))  # fmt: skip
    return math.floor(inside) if row.whole else inside


def _choice(row: Setting, value: Any) -> Any:
    if value not in row.choices:
        raise BadSettingError(f"{row.name} is one of {', '.join(row.choices)}, not {value!r}")
    return value


def _text(row: Setting, value: Any) -> Any:
    if value is None and row.nullable:
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise BadSettingError(f"{row.name} is text, not {value!r}")
    text = os.fspath(value)
    return (text or None) if row.nullable else text


def _flag(row: Setting, value: Any) -> Any:
    if not isinstance(value, bool):
        raise BadSettingError(f"{row.name} is True or False, not {value!r}")
    return value


def names(name: str, value: Any) -> frozenset[str] | None:
    """``value`` as a set of names: one string or several, or None for any."""
    if value is None:
        return None
    listed = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(one, str) and one.strip() for one in listed):
        raise BadSettingError(f"{name} is a list of names, not {value!r}")
    return frozenset(listed)


def _names(row: Setting, value: Any) -> Any:
    return names(row.name, value)


def _mapping(row: Setting, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise BadSettingError(f"{row.name} is a mapping, not {type(value).__name__}")
    return MappingProxyType(dict(value))


_CHECKS: Mapping[Kind, Callable[[Setting, Any], Any]] = {
    "number": _tuning,
    "limit": _limit,
    "choice": _choice,
    "text": _text,
    "flag": _flag,
    "names": _names,
    "mapping": _mapping,
}
