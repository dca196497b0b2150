"""How a document is to be cut: the segment spec, read leniently and never silently."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness_core.errors import BadSettingError
from harness_core.specs import Range, number_in, unusable, warn_near_miss

_RANGES: Mapping[str, Range] = {
    "max_tokens": Range(32, 1e6),
    "overlap_tokens": Range(0, 1e6),
    "min_tokens": Range(0, 1e6),
    "semantic_window": Range(1, 10),
    "semantic_percentile": Range(50, 99.5, whole=False),
    "proposition_batch_tokens": Range(200, 4000),
}
_BELOW_CAP: Mapping[str, int] = {"overlap_tokens": 1, "min_tokens": 0}
_CONTEXT_SOURCES = ("metadata", "llm")


class SegmentSpec(BaseModel):
    """Settings of a segmentation; sizes in tokens.

    A number outside its range is moved to the nearest bound with ``ClampedWarning``; what is no
    usable value becomes the default with ``BadSettingWarning``. Further names are kept, for custom
    segmenters; one that is a letter away from a setting warns ``NearMissWarning``.

    Raises:
        BadSettingError: several numbers where one is meant, or an unknown ``context_source``.
        UnknownMethodError: a ``method`` that is not registered.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    method: str = "paragraph"
    max_tokens: int = 1200
    overlap_tokens: int = 0
    min_tokens: int = 0
    separators: tuple[str, ...] | None = None
    prefix_section: bool = True
    semantic_window: int = 2
    semantic_percentile: float = 90
    context_source: str = "metadata"
    proposition_batch_tokens: int = 900
    parallel: bool | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**_tidy(settings))

    @classmethod
    def of(cls, spec: "SegmentSpec | Mapping[str, Any] | str | None") -> "SegmentSpec":
        """A spec from a spec, a mapping of settings, the name of a method, or None."""
        if isinstance(spec, SegmentSpec):
            return spec
        if isinstance(spec, str):
            return cls(method=spec)
        if isinstance(spec, Mapping):
            return cls(**spec)
        if spec is None:
            return cls()
        raise BadSettingError(
            f"a segment spec is a spec, a mapping, the name of a method or None, not {spec!r}"
        )

    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults, extra ones included."""
        fields = type(self).model_fields
        return {
            name: value
            for name, value in self.model_dump().items()
            if name not in fields or value != fields[name].default
        }


def _tidy(given: Mapping[str, Any]) -> dict[str, Any]:
    tidy = dict(given)
    for name in tidy.keys() & _READERS.keys():
        tidy[name] = _READERS[name](tidy[name])
    for name, bounds in _RANGES.items():  # max_tokens first: two others stay below it
        if name in tidy:
            cap = tidy.get("max_tokens", _default("max_tokens"))
            high = cap - _BELOW_CAP[name] if name in _BELOW_CAP else bounds.high
            tidy[name] = _number(name, tidy[name], bounds._replace(high=high))
    for name in given:
        if name not in SegmentSpec.model_fields:
            warn_near_miss(name, SegmentSpec.model_fields)
    return tidy


def _default(name: str) -> Any:
    return SegmentSpec.model_fields[name].default


def _unusable(name: str, value: object, wanted: str) -> Any:
    return unusable(name, value, wanted, _default(name))


def _number(name: str, value: Any, bounds: Range) -> Any:
    if hasattr(value, "__len__") and not isinstance(value, (str, bytes)):
        raise BadSettingError(f"{name} is one number, not {value!r}")
    return number_in(name, value, bounds, _default(name))


def _method(value: Any) -> Any:
    from harness_core.segmenting.registry import known_segmenter

    if not isinstance(value, str):
        return _unusable("method", value, "the name of a segmenter")
    return known_segmenter(value)


def _separators(value: Any) -> Any:
    listed = [value] if isinstance(value, str) else value
    if listed is None:
        return None
    if not isinstance(listed, Sequence) or not all(isinstance(one, str) for one in listed):
        return _unusable("separators", value, "a list of texts")
    return tuple(one for one in listed if one) or None


def _prefix_section(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return _unusable("prefix_section", value, "True or False")


def _context_source(value: Any) -> Any:
    if not isinstance(value, str):
        return _unusable("context_source", value, "metadata or llm")
    if value not in _CONTEXT_SOURCES:
        raise BadSettingError(f"context_source is metadata or llm, not {value!r}")
    return value


def _parallel(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    return _unusable("parallel", value, "True, False or None")


_READERS = {
    "method": _method,
    "separators": _separators,
    "prefix_section": _prefix_section,
    "context_source": _context_source,
    "parallel": _parallel,
}
