from typing import Any

import pytest

from harness_core.config import override
from harness_core.errors import BadSettingError, UnknownModelError, UnknownModelWarning
from harness_core.models import list_models, model_info, register_model, unregister_model
from harness_core.models.table import MODELS

NEVER_BILLED = {"extractive", "mock-model", "mock-embed"}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_built_in_model_has_certain_limits_and_a_price(name: str) -> None:
    info = model_info(name)
    assert (info.id, info.source, info.certain) == (name, "builtin", True)
    assert info.context_window > 0
    assert info.input_usd is not None
    assert (info.input_usd == 0) is (name in NEVER_BILLED)
    assert info.supports_temperature is not info.reasoning
    assert info.kind == ("embedding" if "embed" in name else "chat")


def test_the_default_model_is_known() -> None:
    info = model_info("gpt-5.6-terra")
    assert (info.context_window, info.max_output, info.reasoning) == (1_050_000, 128_000, True)
    assert info.output_usd is not None


def test_the_price_list_is_over_our_own_figures() -> None:
    longest = model_info("gpt-5.6-terra").tiers[-1]
    assert longest.above == 272_000
    assert longest.input_usd == 2 * model_info("gpt-5.6-terra").input_usd  # type: ignore[operator] # priced


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("openai:gpt-4o", "gpt-4o"),
        ("openai/gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-5.6", "gpt-5.6-sol"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("chatgpt-4o-latest", "gpt-4o"),
    ],
)
def test_an_alias_has_the_limits_and_prices_of_its_target(name: str, like: str) -> None:
    info, target = model_info(name), model_info(like)
    assert (info.id, info.source, info.certain) == (name, "alias", True)
    assert (info.context_window, info.max_output) == (target.context_window, target.max_output)
    assert (info.input_usd, info.output_usd) == (target.input_usd, target.output_usd)


def test_an_alias_follows_a_target_registered_anew() -> None:  # core 130
    assert model_info("gpt-5.6").input_usd != 7
    register_model("gpt-5.6-sol", context_window=1000, max_output=100, input_usd=7, output_usd=9)
    info = model_info("gpt-5.6")
    assert (info.id, info.source, info.input_usd) == ("gpt-5.6", "alias", 7)
    assert model_info("openai:gpt-5.6-sol").input_usd == 7


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-5", "anthropic:claude-sonnet-4-5", "gemini-2.5-pro", "gpt-4-0613"]
)
def test_the_price_list_knows_models_that_our_table_does_not(name: str) -> None:
    info = model_info(name)
    assert (info.source, info.certain) == ("genai-prices", True)
    assert info.output_usd


def test_a_price_that_changes_with_the_hour_is_the_dearest_of_the_day() -> None:
    info = model_info("deepseek/deepseek-chat")
    assert (info.input_usd, info.output_usd) == (0.27, 1.1)


def test_a_charge_per_request_is_known() -> None:
    assert model_info("perplexity/sonar").request_usd > 0


def test_a_listed_price_beside_a_guessed_window_is_said() -> None:
    with pytest.warns(UnknownModelWarning, match="with a listed price"):
        assert model_info("mistral-large-latest").input_usd


def test_a_family_member_is_guessed_and_warned_of_once() -> None:
    with pytest.warns(UnknownModelWarning, match="'gpt-5-unheard-of'"):
        info = model_info("gpt-5-unheard-of")
    assert (info.source, info.certain) == ("pattern:^gpt-5", False)
    assert (info.context_window, info.max_output, info.reasoning) == (400_000, 128_000, True)
    assert info.input_usd is None
    assert model_info("gpt-5-unheard-of") is info  # a second warning would be an error here


def test_an_unknown_model_gets_guessed_limits_and_no_price() -> None:
    with pytest.warns(UnknownModelWarning):
        info = model_info("no-such-model")
    assert (info.context_window, info.max_output, info.source) == (128_000, 4_096, "default")
    assert (info.input_usd, info.output_usd, info.certain) == (None, None, False)
    assert info.supports_temperature


@pytest.mark.parametrize("name", ["gpt-4-unheard-of", "no-such-model"])
def test_a_guess_can_be_an_error(name: str) -> None:
    with override(unknown_model_action="error"), pytest.raises(UnknownModelError, match=name):
        model_info(name)


def test_a_registered_model_is_never_a_guess() -> None:
    assert register_model("mine", context_window=1000, max_output=0, reasoning=True) == "mine"
    info = model_info("mine")
    assert (info.source, info.certain, info.supports_temperature) == ("registered", True, False)
    unregister_model("mine")
    with pytest.warns(UnknownModelWarning):
        model_info("mine")


BAD: list[dict[str, Any]] = [
    {"context_window": 1000, "max_output": 1000},  # core 127
    {"context_window": 0, "max_output": 0},
    {"context_window": 1000.5, "max_output": 1},
    {"context_window": 1000, "max_output": -1},
    {"context_window": 1000, "max_output": 10, "input_usd": 1.0},  # core 128
    {"context_window": 1000, "max_output": 10, "output_usd": 1.0},
    {"context_window": 1000, "max_output": 10, "input_usd": -1.0, "output_usd": 1.0},
    {"context_window": 1000, "max_output": 10, "input_usd": "much", "output_usd": 1.0},
    {"context_window": 1000, "max_output": 10, "kind": "image"},
]


@pytest.mark.parametrize("given", BAD, ids=str)
def test_what_cannot_be_a_model_is_not_registered(given: dict[str, Any]) -> None:
    before = list_models()
    with pytest.raises(BadSettingError, match="'bad'"):
        register_model("bad", **given)
    assert list_models() == before


def test_a_blank_id_is_an_error() -> None:
    with pytest.raises(BadSettingError):
        register_model(" ", context_window=10, max_output=1)
    with pytest.raises(BadSettingError):
        model_info("")


def test_an_embedding_model_needs_an_input_price_alone() -> None:  # core 128
    register_model("vec", context_window=512, input_usd=0.5, kind="embedding", dimensions=3)
    assert (model_info("vec").output_usd, model_info("vec").dimensions) == (0.0, 3)


def test_a_price_left_out_is_unknown_and_the_table_stays_whole() -> None:  # core 129
    register_model("free", context_window=1000, max_output=10, input_usd=None, output_usd=None)
    rows = {row["id"]: row for row in list_models()}
    assert rows["free"]["input_usd_per_1m"] is None
    assert set(MODELS) < set(rows)


def test_the_table_is_sorted_and_shows_what_was_registered_last() -> None:
    register_model("gpt-4", context_window=99, max_output=9, input_usd=1, output_usd=1)
    rows = list_models()
    assert rows == sorted(rows, key=lambda row: (row["kind"], row["id"]))
    assert next(row for row in rows if row["id"] == "gpt-4")["context_window"] == 99
    assert list(rows[0]) == [
        "id", "kind", "context_window", "max_output", "reasoning",
        "input_usd_per_1m", "output_usd_per_1m", "as_of",
    ]  # fmt: skip
