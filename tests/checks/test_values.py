# ruff: noqa: RUF001 - numbers in other scripts are the subject here
"""A quotation carries its value when it is in the source and says the value."""

import math

import pytest

from harness_core.checks.numbers import read_numbers
from harness_core.checks.values import carries_value, states


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,204 patients", {1204, 1.204}),
        ("1.204 Patienten", {1204, 1.204}),
        ("1,204.5 and 1.204,5", {1204.5}),
        ("1\u00a0204", {1204}),
        ("1'204 and 1’204", {1204}),
        ("1 204", {1204, 1, 204}),
        ("1,00,000 rupees", {100_000}),
        ("0·5 or 1,5 or .5 or 0.125", {0.5, 1.5, 0.125}),
        ("12% of", {12, 0.12}),
        ("12 percent, 13 Prozent", {12, 0.12, 13, 0.13}),
        ("$45.2 million", {45.2, 45_200_000}),
        ("£5m and 7bn", {5, 5_000_000, 7, 7_000_000_000}),
        ("5m tall", {5}),
        ("1.2e5 or 1.2 × 10^5 or 3×10⁻³", {120_000, 0.003}),
        ("3/4 of", {3, 4, 0.75}),
        ("1½ and 1 1/2", {1, 1.5, 2}),
        ("18-65 years", {18, 65}),
        ("12.05.2019", {12, 5, 2019}),
        ("COVID-19, B12, covid19, GPT-4", set()),
        ("mid-2019, phase-2", {2019, 2}),
        ("the 3rd, 5mg", {3, 5}),
        ("٥٪", {5, 0.05}),
        ("twenty-five", {25}),
        ("one hundred and five", {105}),
        ("two thousand three hundred forty", {2340}),
        ("three hundred thousand", {300_000}),
        ("one, two three", {1, 2, 3}),
        ("thirty percent", {30, 0.3}),
        ("two-thirds; half; a quarter", {2 / 3, 0.5, 0.25}),
        ("treinta y cinco", {35}),
        ("dos mil millones de euros", {2_000_000_000}),
        ("doscientos veintiún", {221}),
        ("cento e vinte e cinco", {125}),
        ("quatre-vingt-dix-sept", {97}),
        ("soixante et onze", {71}),
        ("deux cents", {200}),
        ("ventitré, centoventi", {23, 120}),
        ("fünfundzwanzig", {25}),
        ("zweitausenddreihundertfünf", {2305}),
        ("dreißig", {30}),
        ("tweeëntwintig", {22}),
        ("二十五", {25}),
        ("三千零二十", {3020}),
        ("二〇一九年", {2019}),
        ("20万人", {20, 200_000}),
        ("1.5亿", {1.5, 150_000_000}),
        ("一亿二千万", {120_000_000}),
        ("百分之二十", {20, 0.2}),
        ("三点五", {3.5}),
        ("Phase II/III", {2, 3}),
        ("stage IVb and grade XIV", {4, 14}),
        ("due to illness, once, in my mil, an elf", set()),
        ("due pazienti di cui parla il rapporto", {2}),
    ],
)
def test_numbers_are_read_in_any_form(text: str, numbers: set[float]) -> None:
    assert sorted(read_numbers(text)) == pytest.approx(sorted(numbers), rel=1e-9)


SOURCE = "The trial enrolled 120 patients. Revenue was twelve million dollars. Пациентов было пять."


@pytest.mark.parametrize(
    ("value", "field_type", "quotation", "carried"),
    [
        (120, "integer", "The trial enrolled 120 patients", True),
        (-120, "number", "The trial enrolled 120 patients", True),
        (120.0, "number", "enrolled 120", True),
        (5000, "integer", "The trial enrolled 120 patients", False),  # readers 133
        (12_000_000, "integer", "Revenue was twelve million dollars", True),
        (12, "integer", "Revenue was twelve million dollars", False),
        (120, "integer", "The trial enrolled 120 nurses", False),
        (5, "integer", "Пациентов было пять", True),
        (5, "integer", "пять", False),
        ("dollars", "string", "dollars", True),
        ("x", "string", "twelve million", True),
        ("x", "string", "dollars", False),
        (True, "boolean", "The trial enrolled 120 patients", True),
        ("twelve", "number", "Revenue was twelve million dollars", False),
    ],
)
def test_a_value_is_carried_by_a_quotation_that_says_it(
    value: object, field_type: str, quotation: str, carried: bool
) -> None:
    assert carries_value(value, field_type, quotation, SOURCE) is carried


def test_a_value_is_not_carried_by_a_quotation_that_is_not_there() -> None:
    assert states(130, "integer", "The trial enrolled 130 patients")
    assert not carries_value(130, "integer", "The trial enrolled 130 patients", SOURCE)
    assert not carries_value(130, "integer", "", SOURCE)
    assert not carries_value(120, "integer", "enrolled 120", "")


@pytest.mark.parametrize(
    "text", ["9" * 5000, "1e999", "1/0", "1 1/0", "one " * 5000, "\ud8005", "五" * 5000]
)
def test_odd_numbers_raise_nothing(text: str) -> None:
    assert all(math.isfinite(value) for value in read_numbers(text))
