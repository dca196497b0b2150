"""The settings of ingestion: what is accepted, and what unusable values become."""

import math
from typing import Any

import pytest

from harness_core.documents import IngestSpec, ingest
from harness_core.errors import BadSettingError, BadSettingWarning, UnknownMethodError


def test_a_spec_is_made_of_whatever_says_one() -> None:
    spec = IngestSpec(clean="academic", ocr="never")
    assert IngestSpec.of(spec) is spec
    assert IngestSpec.of() == IngestSpec()
    assert IngestSpec.of("academic") == IngestSpec(clean="academic")
    assert IngestSpec.of({"clean": ["urls"], "min_chars": 5}).steps == ("urls",)
    assert IngestSpec.of({"clean": []}).steps == ()
    assert IngestSpec().steps[0] == "page_numbers"


@pytest.mark.parametrize(
    "spec", [3, ["urls"], {"clen": "none"}, {"ocr": "sometimes"}, {"ocr_dpi": 0}, {"clean": None}]
)
def test_what_says_none_is_refused(spec: Any) -> None:
    with pytest.raises(BadSettingError):
        IngestSpec.of(spec)


def test_the_message_names_the_field_and_never_a_trace_of_the_library() -> None:
    with pytest.raises(BadSettingError, match="ocr_dpi") as caught:
        IngestSpec(ocr_dpi="fine")  # type: ignore[arg-type]  # the point of the test
    assert "pydantic" not in str(caught.value)


def test_an_unknown_preset_is_an_error_that_lists_them() -> None:
    with pytest.raises(UnknownMethodError, match="standard"):
        IngestSpec(clean="academc")


@pytest.mark.parametrize("value", [None, "x", "40", -1, True, math.nan])
def test_an_unusable_threshold_is_the_default_and_said(value: Any) -> None:  # I38
    with pytest.warns(BadSettingWarning, match="ocr_min_chars"):
        assert IngestSpec(ocr_min_chars=value).ocr_min_chars == 40
    with pytest.warns(BadSettingWarning, match="min_chars"):
        assert IngestSpec(min_chars=value).min_chars == 20


def test_an_unusable_threshold_fails_no_document() -> None:  # I38
    with pytest.warns(BadSettingWarning):
        document = ingest("Text of a document, long enough.", {"min_chars": None})
    assert document.warnings[0][0] == "BadSettingWarning"


def test_thresholds_take_any_size() -> None:
    assert IngestSpec(ocr_min_chars=math.inf).ocr_min_chars == math.inf
    assert IngestSpec(min_chars=10**30).min_chars == 10**30
    with pytest.warns(BadSettingWarning):
        assert IngestSpec(min_chars=math.inf).min_chars == 20  # type: ignore[arg-type]  # no int
