import math
from typing import Any

import pytest

from harness_core.config import override
from harness_core.errors import BadSettingWarning, BudgetError, ClampedWarning
from harness_core.models import budget, register_model
from harness_core.models.table import MODELS


@pytest.mark.parametrize(
    ("model", "output", "room"),
    [("gpt-4", 1_843, 5_529), ("gpt-4o", 16_384, 98_816), ("gpt-5.6-terra", 128_000, 817_000)],
)
def test_a_quarter_is_kept_for_the_reply(model: str, output: int, room: int) -> None:
    divided = budget(model)
    assert (divided.output, divided.input, divided.margin) == (output, room, 0.1)


def test_a_reserve_and_an_overhead_are_taken_off() -> None:
    divided = budget("gpt-4o", 1024, 200)
    assert (divided.input, divided.output, divided.overhead) == (113_976, 1024, 200)
    assert budget("gpt-4o", "1024", "200") == divided
    assert (divided.context_window, divided.certain) == (128_000, True)


@pytest.mark.parametrize(
    "model", sorted(name for name, row in MODELS.items() if row.kind == "chat")
)
def test_every_built_in_chat_model_has_room(model: str) -> None:  # core 132
    divided = budget(model)
    assert 0 < divided.input < divided.context_window


@pytest.mark.parametrize("overhead", [1e9, math.inf, "a lot", math.nan])
def test_an_overhead_without_room_or_sense_is_an_error(overhead: Any) -> None:  # core 132
    with pytest.raises(BudgetError):
        budget("gpt-4o", overhead=overhead)


def test_the_error_names_the_figures() -> None:
    with pytest.raises(BudgetError, match=r"8192.*7372.*256.*9000"):
        budget("gpt-4", overhead=9000)


def test_an_overhead_left_out_or_negative_is_none() -> None:
    assert budget("gpt-4", overhead=None) == budget("gpt-4", overhead=-5) == budget("gpt-4")


def test_a_reserve_is_kept_within_the_models_cap() -> None:
    assert budget("gpt-4o", 10**9).output == 16_384
    assert budget("gpt-4o", 0).output == 1


def test_a_reserve_that_leaves_no_input_shrinks_to_the_least_reply() -> None:
    divided = budget("gpt-4", 8_000)
    assert (divided.output, divided.input) == (256, 7_372 - 256)
    with override(min_output_tokens=100):
        assert budget("gpt-4", 8_000).output == 100
    register_model("tiny", context_window=200, max_output=50)
    assert budget("tiny").output == 50


def test_an_unreadable_reserve_warns_and_keeps_a_quarter() -> None:
    with pytest.warns(BadSettingWarning, match="reserve_output"):
        assert budget("gpt-4", "some") == budget("gpt-4")


def test_a_margin_is_clamped_and_an_unreadable_one_takes_the_setting() -> None:
    with pytest.warns(ClampedWarning):
        assert budget("gpt-4", safety_margin=0.9).margin == 0.5
    with pytest.warns(BadSettingWarning), override(safety_margin=0.2):
        assert budget("gpt-4", safety_margin="wide").margin == 0.2
    with override(safety_margin=0):
        assert budget("gpt-4").input == 8192 - 2048


def test_an_embedding_model_reserves_nothing() -> None:
    assert budget("text-embedding-3-small").output == 0
