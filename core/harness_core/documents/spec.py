"""How a source becomes a document: one frozen set of settings."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness_core.documents.cleaning.registry import preset_steps
from harness_core.errors import BadSettingError, BadSettingWarning, warn

_OCR_MIN_CHARS = 40
_MIN_CHARS = 20


class IngestSpec(BaseModel):
    """Settings of ingestion.

    ``clean`` is a preset or a list of cleaner names (an empty one cleans nothing); ``ocr`` reads
    pages with under ``ocr_min_chars`` characters (auto), every page, or none, at ``ocr_dpi``, in
    ``ocr_lang``, several at once unless ``parallel`` is False; a document of under ``min_chars``
    characters is refused; ``extractor`` names one instead of going by the extension;
    ``cleaner_opts`` are further options of cleaners; ``layout="raw"`` keeps PDF pages as they are.

    Raises:
        BadSettingError: an unknown field, or a value outside its choices.
        UnknownMethodError: an unknown preset.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    clean: str | tuple[str, ...] = "standard"
    ocr: Literal["auto", "always", "never"] = "auto"
    ocr_lang: str = "eng"
    ocr_dpi: int = Field(default=300, ge=36, le=1200)
    ocr_min_chars: float = _OCR_MIN_CHARS
    min_chars: int = _MIN_CHARS
    extractor: str | None = None
    cleaner_opts: Mapping[str, Any] = Field(default_factory=dict)
    layout: Literal["auto", "raw"] = "auto"
    parallel: bool | None = None

    if not TYPE_CHECKING:  # type checkers see the signature that pydantic gives

        def __init__(self, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise BadSettingError(_sentence(error)) from None

    @field_validator("clean")
    @classmethod
    def _known_preset(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(value, str):
            preset_steps(value)
        return value

    @field_validator("ocr_min_chars", mode="before")
    @classmethod
    def _threshold(cls, value: Any) -> float:
        return _number("ocr_min_chars", value, _OCR_MIN_CHARS)

    @field_validator("min_chars", mode="before")
    @classmethod
    def _minimum(cls, value: Any) -> int:
        number = _number("min_chars", value, _MIN_CHARS, finite=True)
        return math.floor(number)

    @classmethod
    def of(cls, spec: Any = None) -> Self:
        """A spec from a spec, None (the defaults), a preset's name, or a mapping of fields.

        Raises:
            BadSettingError: anything else, an unknown field, or an unusable value.
        """
        if isinstance(spec, cls):
            return spec
        if spec is None:
            return cls()
        if isinstance(spec, str):
            return cls(clean=spec)
        if isinstance(spec, Mapping):
            return cls(**spec)
        raise BadSettingError(
            "an ingest spec is an IngestSpec, a preset's name, a mapping of fields or None, "
            f"not {type(spec).__name__}"
        )

    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        fields = type(self).model_fields
        return {
            name: value
            for name, value in self.model_dump(mode="json").items()
            if value != fields[name].get_default(call_default_factory=True)
        }

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the cleaners asked for, presets resolved."""
        return preset_steps(self.clean) if isinstance(self.clean, str) else self.clean


def _number(name: str, value: Any, default: int, *, finite: bool = False) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    number: float = value if is_number else math.nan
    if number >= 0 and not (finite and math.isinf(number)):
        return number
    warn(BadSettingWarning(f"{name} is a number at or above 0, not {value!r}; {default} is used"))
    return default


def _sentence(error: ValidationError) -> str:
    parts = (
        f"{'.'.join(map(str, one['loc'])) or 'spec'}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False)
    )
    return "ingest settings: " + "; ".join(parts)
