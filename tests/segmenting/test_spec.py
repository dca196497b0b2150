import math
from typing import Any

import pytest

from harness_core.errors import (
    BadSettingError,
    BadSettingWarning,
    ClampedWarning,
    NearMissWarning,
    UnknownMethodError,
)
from harness_core.segmenting import SegmentSpec, register_segmenter

DEFAULTS = {
    "method": "paragraph",
    "max_tokens": 1200,
    "overlap_tokens": 0,
    "min_tokens": 0,
    "separators": None,
    "prefix_section": True,
    "semantic_window": 2,
    "semantic_percentile": 90,
    "context_source": "metadata",
    "proposition_batch_tokens": 900,
    "parallel": None,
}


def test_the_defaults() -> None:
    assert SegmentSpec().model_dump() == DEFAULTS


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({"max_tokens": -50}, {"max_tokens": 32}),  # S5
        ({"max_tokens": 100, "overlap_tokens": 500}, {"overlap_tokens": 99}),  # S5
        ({"overlap_tokens": 500, "max_tokens": 100}, {"overlap_tokens": 99}),  # S5
        ({"max_tokens": math.inf}, {"max_tokens": 1_000_000}),
        ({"overlap_tokens": -1}, {"overlap_tokens": 0}),
        ({"min_tokens": 5000}, {"min_tokens": 1200}),
        ({"semantic_window": 0}, {"semantic_window": 1}),
        ({"semantic_window": 11}, {"semantic_window": 10}),
        ({"semantic_percentile": 10}, {"semantic_percentile": 50}),
        ({"semantic_percentile": 100}, {"semantic_percentile": 99.5}),
        ({"proposition_batch_tokens": 5}, {"proposition_batch_tokens": 200}),
        ({"proposition_batch_tokens": 1e9}, {"proposition_batch_tokens": 4000}),
    ],
)
def test_a_number_out_of_range_is_moved_to_the_bound(
    given: dict[str, Any], used: dict[str, Any]
) -> None:
    with pytest.warns(ClampedWarning) as heard:
        spec = SegmentSpec(**given)
    assert len(heard) == 1
    assert spec.model_dump().items() >= used.items()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", None),  # S6
        ("semantic_percentile", None),  # S6
        ("max_tokens", math.nan),
        ("max_tokens", "many"),
        ("overlap_tokens", True),
        ("method", None),
        ("prefix_section", "maybe"),
        ("prefix_section", None),
        ("separators", 5),
        ("separators", [1, 2]),
        ("context_source", None),
        ("parallel", "yes"),
    ],
)
def test_an_unusable_value_becomes_the_default(name: str, value: Any) -> None:
    with pytest.warns(BadSettingWarning, match=name):
        spec = SegmentSpec(**{name: value})
    assert getattr(spec, name) == DEFAULTS[name]


@pytest.mark.parametrize("name", ["max_tokens", "semantic_window", "min_tokens"])
@pytest.mark.parametrize("value", [[100, 200], (100,), {"a": 1}, {100}])
def test_several_numbers_are_an_error(name: str, value: Any) -> None:
    with pytest.raises(BadSettingError, match=name):
        SegmentSpec(**{name: value})


def test_an_unknown_context_source_is_an_error() -> None:
    with pytest.raises(BadSettingError, match="metadata or llm"):
        SegmentSpec(context_source="web")


def test_sizes_are_whole_and_a_percentile_is_not() -> None:
    spec = SegmentSpec(max_tokens="150.9", semantic_percentile=92.5)
    assert (spec.max_tokens, spec.semantic_percentile) == (150, 92.5)


@pytest.mark.parametrize("name", ["max_token", "maxtokens", "Max.Tokens", "overlap-tokens"])  # S7
def test_a_name_close_to_a_setting_is_said_and_kept(name: str) -> None:
    with pytest.warns(NearMissWarning, match="did you mean"):
        spec = SegmentSpec(**{name: 7})
    assert spec.model_extra == {name: 7}
    assert (spec.max_tokens, spec.overlap_tokens) == (1200, 0)


def test_other_names_are_kept_in_silence() -> None:
    spec = SegmentSpec(stride=7)
    assert spec.changed() == {"stride": 7}


def test_what_differs_from_the_defaults() -> None:
    spec = SegmentSpec(method="sentence", max_tokens=1200, min_tokens=20, separators=["--", ""])
    assert spec.changed() == {"method": "sentence", "min_tokens": 20, "separators": ("--",)}


def test_a_spec_is_read_from_a_spec_a_mapping_a_name_or_nothing() -> None:
    spec = SegmentSpec(max_tokens=300)
    assert SegmentSpec.of(spec) is spec
    assert SegmentSpec.of({"max_tokens": 300}) == spec
    assert SegmentSpec.of("fixed").method == "fixed"
    assert SegmentSpec.of(None) == SegmentSpec()
    with pytest.raises(BadSettingError):
        SegmentSpec.of(5)  # type: ignore[arg-type]  # what a caller may get wrong


def test_a_method_nobody_registered_is_an_error_with_a_hint() -> None:
    with pytest.raises(UnknownMethodError, match="did you mean paragraph"):
        SegmentSpec.of("paragraf")
    register_segmenter("paragraf", lambda document, _spec: [document.text])
    assert SegmentSpec.of("paragraf").method == "paragraf"


def test_a_spec_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        SegmentSpec().max_tokens = 5
