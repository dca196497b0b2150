"""The form that is filled: what fields may be, and how values are read."""

from enum import Enum
from typing import Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from harness_core.errors import BadSettingError, NoFieldsError
from harness_core.reading.extraction_fields import (
    Field,
    as_fields,
    form_schema,
    read_given,
    same_value_key,
)


class Arm(Enum):
    """Arms of a trial."""

    DRUG = "drug"
    PLACEBO = "placebo"


class Form(BaseModel):
    """Every kind of field."""

    title: str
    n: Optional[int] = None  # noqa: UP045 - the older spelling is read as well
    dose: float | None
    open_label: bool
    arm: Arm
    phase: Literal["II", "III"]


def test_fields_may_be_given_in_several_ways() -> None:
    n = Field("n", "integer", "patients")
    same: list[Any] = [
        [n],
        n,
        [{"name": "n", "type": "integer", "description": "patients"}],
        {"n": {"type": "integer", "description": "patients"}},
        {"n": n},
    ]
    assert all(as_fields(given) == (n,) for given in same)
    assert as_fields(["n", "dose"]) == (Field("n"), Field("dose"))
    assert as_fields({"n": "integer", "dose": "in mg"}) == (
        Field("n", "integer"), Field("dose", description="in mg"),
    )  # fmt: skip


def test_a_model_class_gives_its_fields() -> None:
    assert [(field.name, field.type, field.enum) for field in as_fields(Form)] == [
        ("title", "string", ()), ("n", "integer", ()), ("dose", "number", ()),
        ("open_label", "boolean", ()), ("arm", "enum", ("drug", "placebo")),
        ("phase", "enum", ("II", "III")),
    ]  # fmt: skip


class Nested(BaseModel):
    """A form that is no flat one."""

    forms: list[str]


@pytest.mark.parametrize(
    "given",
    [
        ["status"], ["n__quote"], ["2n"], ["a b"], [""], ["n", "n"], 7, [7], [{"type": "integer"}],
        {"n": {"kind": "integer"}}, {"n": {"type": "date"}}, {"n": {"type": "enum"}}, Nested,
        {"page": "integer"},
    ],
)  # fmt: skip
def test_fields_that_cannot_be_used_are_refused(given: Any) -> None:
    with pytest.raises(BadSettingError):
        as_fields(given)


@pytest.mark.parametrize("given", [None, [], {}])
def test_no_fields_are_an_error_of_their_own(given: Any) -> None:
    with pytest.raises(NoFieldsError):
        as_fields(given)


def test_every_field_may_be_null_and_has_a_quotation() -> None:
    schema = form_schema([Field("n", "number"), Field("arm", enum=("drug", "placebo"))])
    assert schema["properties"] == {
        "n": {"type": ["number", "null"], "description": "n"},
        "n__quote": {"type": ["string", "null"]},
        "arm": {
            "type": ["string", "null"], "description": "arm", "enum": ["drug", "placebo", None],
        },
        "arm__quote": {"type": ["string", "null"]},
    }  # fmt: skip
    assert schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False


UNREADABLE = object()


def value(field: Field, given: Any) -> Any:
    found = read_given(field, {field.name: given})
    return None if found is None else UNREADABLE if found.value is None else found.value


@pytest.mark.parametrize(
    ("given", "whole", "number"),
    [
        (120, 120, 120), ("120", 120, 120), ("120 patients", 120, 120), ([120], 120, 120),
        (5.0, 5, 5.0), (5.5, UNREADABLE, 5.5), ("1,204", 1204, 1204), ("-3", -3, -3),
        ("\u22123", -3, -3), ("0,85", UNREADABLE, 0.85), ("1,5", UNREADABLE, 1.5),
        ("1.234.567", 1234567, 1234567), ("1\u202f200", 1200, 1200), (".45", UNREADABLE, 0.45),
        ("45.2%", UNREADABLE, 45.2), ("p = 3e-5", UNREADABLE, 3e-5), ("5 m", 5, 5),
        ("$1,234.50", UNREADABLE, 1234.5), (2**63, 2**63, 2**63), (True, UNREADABLE, UNREADABLE),
    ],
)  # fmt: skip
def test_numbers(given: Any, whole: Any, number: Any) -> None:
    assert value(Field("n", "integer"), given) == whole
    assert value(Field("n", "number"), given) == number


@pytest.mark.parametrize(
    "given",
    [
        "120 (60 per arm)", "3 million", "3M", "3 M", "5k", "2 bn", "10-20", "1/2", "phase-3",
        "about a dozen", "two", "1 200", "12,34,56", "1.2 x 10^6", "COVID-19", [1, 2], {"a": 1},
        float("inf"), float("nan"), "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_not_plainly_one_number_is_unreadable(given: Any) -> None:
    assert value(Field("n", "integer"), given) is UNREADABLE
    assert value(Field("n", "number"), given) is UNREADABLE


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (True, True), ("yes", True), (" Y ", True), (1, True), ("1", True), (False, False),
        ("No", False), (0, False), ("unclear", UNREADABLE), (2, UNREADABLE), (None, None),
        ("", None), ([], None), ({}, None), ("not reported", None), ("N/A", None),
    ],
)  # fmt: skip
def test_truth_values(given: Any, read: Any) -> None:
    assert value(Field("open_label", "boolean"), given) is read


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("drug", "drug"), (" DRUG ", "drug"), ("none", "none"), ("null", "null"), ("None", None),
        ("other", UNREADABLE), (None, None),
    ],
)  # fmt: skip
def test_enum_values_as_declared_come_before_everything(given: Any, read: Any) -> None:
    assert value(Field("arm", enum=("drug", "none", "null")), given) == read


def test_texts_keep_what_they_are_given() -> None:
    field = Field("design")
    assert value(field, ["a", "b"]) == "a\nb"
    assert value(field, "Not reported.") is None
    placeholder = read_given(field, {"design": "N/A", "design__quote": "N/A here"})
    assert placeholder is not None
    assert placeholder.placeholder
    assert placeholder.quote == "N/A here"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("RCT", "rct.", True), ("\u201cRCT\u201d", "RCT", True), ("RCT", "cohort", False),
        (5, 5.0, True), (0.1 + 0.2, 0.3, True), (3000000001, 3000000002, False),
        (2**60, 2**60 + 1, False), ("...", "...", True), ("-", "!", False),
    ],
)  # fmt: skip
def test_values_that_are_the_same(one: Any, other: Any, same: bool) -> None:
    assert (same_value_key(one) == same_value_key(other)) is same


@given(st.text(max_size=40))
def test_any_text_is_read_or_not_but_never_raises(text: str) -> None:
    for kind in ("string", "integer", "number", "boolean"):
        read_given(Field("x", kind), {"x": text})


@given(st.integers(-(10**30), 10**30))
def test_every_whole_number_is_read_exactly(number: int) -> None:
    field = Field("n", "integer")
    assert (
        value(field, number) == value(field, str(number)) == value(field, f"{number:,}") == number
    )
