"""How chunks are to be read: one frozen set of settings for all readers."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from harness_core.errors import BadSettingError
from harness_core.specs import Range, number_in, sentence, unusable, warn_near_miss
from harness_core.stages import check_effort, effort_for

_RANGES: Mapping[str, Range] = {
    "max_answer_tokens": Range(16, 1e6),
    "max_chunk_tokens": Range(16, 1e6),
    "max_summary_tokens": Range(16, 1e6),
    "top_k": Range(1, 1e4),
    "min_score": Range(-math.inf, math.inf, whole=False),
    "mmr": Range(0, 1, whole=False),
    "rerank_candidates": Range(1, 1e4),
    "rerank_min_score": Range(0, 10, whole=False),
    "fan_in": Range(2, 32),
    "max_levels": Range(1, 12),
    "max_rounds": Range(1, 20),
    "preview_tokens": Range(100, 1e5),
    "screen_tokens": Range(1, 1e6),
    "delay_between_calls": Range(0, 600, whole=False),
    "max_concurrency": Range(1, 64),
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "context_order": ("relevance", "document", "edges"),
    "restate": ("auto", "always", "never"),
    "on_overflow": ("warn", "error"),
    "resolve": ("first", "model"),
}


class ReadSpec(BaseModel):
    """Settings of a read. Caps are tokens of one reply.

    ``conversation`` is what was said before, for what the question refers to; never a source.
    ``model`` None is the client's; ``skim_model`` and ``summary_model`` are cheaper ones for the
    per-chunk stages. ``instructions`` (style, language, format) go with answering and merging.
    ``effort`` is one value or one per stage. ``premise`` checks what the question takes for
    granted; ``verify`` checks quotations and lets the check decide. A number outside its range is
    moved to the nearest bound with ``ClampedWarning``; an unusable one takes the default with
    ``BadSettingWarning``. Further names are kept, for custom readers.

    Raises:
        BadSettingError: a choice outside its list, or a value of the wrong type.
        UnknownMethodError: a reader that nobody registered.
        UnknownEffortKeyError: an effort name that reaches no stage.
    """

    model_config = ConfigDict(frozen=True, extra="allow", arbitrary_types_allowed=True)

    reader: str = "map_reduce"
    model: str | None = None
    instructions: str | None = None
    conversation: str | None = None
    temperature: float | None = None
    max_answer_tokens: int = 1500
    max_chunk_tokens: int = 700
    max_summary_tokens: int = 500
    top_k: int = 6
    min_score: float = -math.inf
    mmr: float = 1.0
    context_order: Literal["relevance", "document", "edges"] = "relevance"
    rerank_candidates: int = 20
    rerank_min_score: float = 4
    fan_in: int = 5
    max_levels: int = 5
    max_rounds: int = 4
    preview_tokens: int = 1200
    restate: Literal["auto", "always", "never"] = "auto"
    members: tuple[str, ...] | None = None
    cite: bool = False
    skim_model: str | None = None
    summary_model: str | None = None
    parallel: bool | None = None
    max_concurrency: int | None = None
    delay_between_calls: float = 0.0
    on_overflow: Literal["warn", "error"] = "warn"
    effort: str | Mapping[str, str] | None = None
    premise: bool = False
    verify: bool = False
    fields: Any = None
    resolve: Literal["first", "model"] = "first"
    require_quote: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    screen_tokens: int = 4000

    def __init__(self, reader: str = "map_reduce", /, **settings: Any) -> None:
        try:
            super().__init__(**_tidy({"reader": reader, **settings}))
        except ValidationError as error:
            raise BadSettingError(sentence(error)) from None
        check_effort(self.effort)

    @classmethod
    def of(cls, spec: Any = None) -> Self:
        """A spec from a spec, a reader's name, a mapping of settings, or None.

        Raises:
            BadSettingError: anything else.
        """
        if isinstance(spec, cls):
            return spec
        if spec is None:
            return cls()
        if isinstance(spec, str):
            return cls(spec)
        if isinstance(spec, Mapping):
            settings = dict(spec)
            return cls(settings.pop("reader", "map_reduce"), **settings)
        raise BadSettingError(
            "a read spec is a ReadSpec, a reader's name, a mapping of settings or None, "
            f"not {type(spec).__name__}"
        )

    def having(self, **changes: Any) -> Self:
        """The spec with some settings changed, checked like new ones."""
        settings = {**self.given(), **changes}
        return type(self)(settings.pop("reader", self.reader), **settings)

    def given(self) -> dict[str, Any]:
        """The settings that differ from their defaults, extra ones included."""
        fields = type(self).model_fields
        mine = {name: getattr(self, name) for name in fields}
        mine |= self.model_extra or {}
        return {
            name: value
            for name, value in mine.items()
            if name not in fields or value != fields[name].default
        }

    def effort_of(self, label: str) -> str | None:
        """The effort of requests with that stage label."""
        return effort_for(self.effort, label)


def _tidy(given: Mapping[str, Any]) -> dict[str, Any]:
    for name in given:
        if name not in ReadSpec.model_fields:
            warn_near_miss(name, ReadSpec.model_fields)
    return {
        name: _READ_AS[name](name, value) if name in _READ_AS else value
        for name, value in given.items()
    }


def _reader(_name: str, value: Any) -> str:
    from harness_core.reading.registry import known_reader

    return known_reader(value)


def _number(name: str, value: Any) -> Any:
    if value is None and _default(name) is None:
        return None
    return number_in(name, value, _RANGES[name], _default(name))


def _choice(name: str, value: Any) -> Any:
    if value not in _CHOICES[name]:
        raise BadSettingError(f"{name} is one of {', '.join(_CHOICES[name])}, not {value!r}")
    return value


def _flag(name: str, value: Any) -> Any:
    if isinstance(value, bool) or value is _default(name):
        return value
    return unusable(name, value, "True or False", _default(name))


def _names(_name: str, value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


_READ_AS: Mapping[str, Callable[[str, Any], Any]] = {
    "reader": _reader,
    **dict.fromkeys(_RANGES, _number),
    **dict.fromkeys(_CHOICES, _choice),
    **dict.fromkeys(("cite", "premise", "verify", "require_quote", "parallel"), _flag),
    **dict.fromkeys(("members", "include", "exclude"), _names),
}


def _default(name: str) -> Any:
    return ReadSpec.model_fields[name].default
