"""Fields of a structured reply."""

from typing import Any

import pytest

from harness_core.reading.fields import (
    bool_is_true,
    int_field,
    is_placeholder,
    number_field,
    records_field,
    text_field,
)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (" a ", "a"), (None, ""), (["a", "b"], "a\nb"), ({"x": "a", "y": ["b", None]}, "a\nb"),
        (5, "5"), (True, "true"), ([], ""),
    ],
)  # fmt: skip
def test_a_text_joins_what_is_nested(given: Any, text: str) -> None:
    assert text_field({"x": given}, "x") == text
    assert text_field({"xs": given}, "x") == ""


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (7, 7), ("7", 7), (" 7.5 ", 7.5), ([7], 7), ([[7]], 7), ([7, 8], None), (None, None),
        (True, None), ("seven", None), (float("inf"), None), ("nan", None), ({"x": 7}, None),
    ],
)  # fmt: skip
def test_a_number_is_one_finite_number(given: Any, number: float | None) -> None:
    assert number_field({"x": given}, "x") == number


@pytest.mark.parametrize(("given", "number"), [(7.0, 7), ("7", 7), (7.5, None), (None, None)])
def test_a_whole_number_is_whole(given: Any, number: int | None) -> None:
    assert int_field({"x": given}, "x") == number


@pytest.mark.parametrize(
    ("given", "true"), [(True, True), ([True], True), ("true", False), (1, False), (None, False)]
)
def test_only_true_is_true(given: Any, true: bool) -> None:
    assert bool_is_true({"x": given}, "x") is true


@pytest.mark.parametrize(
    ("given", "count"), [([{"a": 1}, 7, {"b": 2}], 2), ({"a": 1}, 1), (None, 0), ("x", 0)]
)
def test_records_are_the_objects_of_a_list(given: Any, count: int) -> None:
    assert len(records_field({"x": given}, "x")) == count


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("None", True),
        ("N/A.", True),
        ("(null)", True),
        ("", True),
        ("-", True),
        ("Nonesuch", False),
    ],
)
def test_a_placeholder_only_says_that_there_is_nothing(text: str, yes: bool) -> None:
    assert is_placeholder(text) is yes
