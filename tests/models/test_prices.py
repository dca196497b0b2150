import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.errors import UnknownModelWarning
from harness_core.messages import Usage
from harness_core.models import (
    PICO,
    ModelInfo,
    bound,
    estimate_cost,
    model_info,
    price,
    register_model,
    to_pico,
    usd,
)
from harness_core.models.pricelist import Tier


def priced(**more: object) -> ModelInfo:
    given = {"id": "m", "context_window": 10**6, "max_output": 1000, "input_usd": 2.0}
    return ModelInfo(**{**given, "output_usd": 8.0, **more})  # type: ignore[arg-type] # a test's own


STEPS = (Tier(above=1000, input_usd=4.0, output_usd=12.0, cached_input_usd=0.4),)


def test_money_is_whole_pico_dollars_per_token() -> None:
    assert price(priced(), Usage(input=120_000, output=4_000)) == 272 * PICO // 1000
    assert price(priced(input_usd=0.000001), Usage(input=1, output=0)) == 1


def test_cached_input_is_charged_at_its_own_rate_where_there_is_one() -> None:
    usage = Usage(input=100, output=0, cached_input=60)
    assert price(priced(cached_input_usd=0.5), usage) == (40 * 2 + 60 // 2) * 10**6
    assert price(priced(), usage) == 100 * 2 * 10**6


def test_a_longer_prompt_is_charged_whole_at_its_step() -> None:
    model = priced(cached_input_usd=0.2, tiers=STEPS)
    assert price(model, Usage(input=1000, output=1)) == (1000 * 2 + 8) * 10**6
    assert price(model, Usage(input=1001, output=1)) == (1001 * 4 + 12) * 10**6


def test_a_price_is_rounded_once_and_a_bound_up() -> None:
    model = priced(input_usd=0.0000003, output_usd=0.0)
    assert [price(model, Usage(input=n, output=0)) for n in (1, 2, 5)] == [0, 1, 2]
    assert [bound(model, n, 0) for n in (1, 2, 5)] == [1, 1, 2]


def test_a_charge_per_request_is_part_of_price_and_bound() -> None:
    model = priced(request_usd=0.005)
    assert price(model, Usage(input=0, output=0)) == bound(model, 0, 0) == 5 * PICO // 1000


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(input=5), Usage(output=5)], ids=["none", "input", "output"]
)
def test_unknown_counts_have_no_price(usage: Usage) -> None:
    assert price(priced(), usage) is None


def test_a_model_without_a_price_has_none_and_never_zero() -> None:
    register_model("unpriced", context_window=1000, max_output=10)
    assert price("unpriced", Usage(input=1, output=1)) is None
    assert bound("unpriced", 1, 1) is None
    assert estimate_cost("unpriced", 1) is None
    with pytest.warns(UnknownModelWarning):
        assert estimate_cost("no-such-model", 1, 1) is None


def test_a_free_model_costs_zero() -> None:
    assert price(priced(input_usd=0.0, output_usd=0.0), Usage(input=9, output=9)) == 0
    assert bound(priced(input_usd=0.0, output_usd=0.0), 9, 9) == 0


def test_an_embedding_model_is_priced_by_its_input() -> None:
    register_model("vec", context_window=512, input_usd=0.5, kind="embedding")
    assert price("vec", Usage(input=10)) == 5 * 10**6
    assert bound("vec", 10, 0) == 5 * 10**6
    assert price("text-embedding-3-small", Usage(input=10**6)) == PICO // 50


def test_a_missing_output_price_matters_only_when_there_is_output() -> None:
    model = priced(output_usd=None)
    assert price(model, Usage(input=1, output=0)) == 2 * 10**6
    assert price(model, Usage(input=1, output=1)) is None
    assert bound(model, 1, 1) is None


def test_a_dearer_cached_rate_or_an_earlier_dearer_step_is_in_the_bound() -> None:
    assert bound(priced(cached_input_usd=3.0), 10, 0) == 30 * 10**6
    cheaper = (Tier(above=1000, input_usd=1.0, output_usd=1.0, cached_input_usd=None),)
    assert bound(priced(tiers=cheaper), 1001, 0) == 1001 * 2 * 10**6


RATE = st.integers(0, 40 * 10**6).map(lambda n: n / 10**6)


@st.composite
def models(draw: st.DrawFn) -> ModelInfo:
    cached = st.one_of(st.none(), RATE)
    starts = draw(st.lists(st.integers(1, 5000), max_size=3, unique=True).map(sorted))
    tiers = tuple(
        Tier(
            above=start, input_usd=draw(RATE), output_usd=draw(RATE), cached_input_usd=draw(cached)
        )
        for start in starts
    )
    return priced(
        input_usd=draw(RATE), output_usd=draw(RATE), cached_input_usd=draw(cached), tiers=tiers
    )


@settings(max_examples=200, deadline=None)
@given(models(), st.data())
def test_no_usage_within_the_bound_costs_more(model: ModelInfo, data: st.DataObject) -> None:
    prompt, output = data.draw(st.integers(0, 10_000)), data.draw(st.integers(0, 2_000))
    used = data.draw(st.integers(0, prompt))
    usage = Usage(
        input=used,
        output=data.draw(st.integers(0, output)),
        cached_input=data.draw(st.one_of(st.none(), st.integers(0, used))),
    )
    held, cost = bound(model, prompt, output), price(model, usage)
    assert held is not None
    assert cost is not None
    assert held >= cost


@pytest.mark.parametrize("name", ["gpt-5.6-terra", "claude-sonnet-4-5", "gemini-2.5-pro"])
def test_listed_steps_are_in_price_and_bound(name: str) -> None:
    above = model_info(name).tiers[0].above
    for prompt in (above, above + 1, above * 2):
        held, cost = bound(name, prompt, 100), price(name, Usage(input=prompt, output=100))
        assert held == cost is not None


def test_pico_dollars_round_a_limit_down_and_a_bound_up() -> None:
    assert to_pico(0.1) == PICO // 10
    assert to_pico(5) == 5 * PICO
    assert (to_pico(1e-13), to_pico(1e-13, down=False)) == (0, 1)
    assert usd(PICO // 4) == 0.25


# --- estimates ----------------------------------------------------------------------------------


def test_an_estimate_is_in_usd() -> None:
    assert estimate_cost(priced(), 120_000, 4_000) == 0.272
    assert estimate_cost(priced(cached_input_usd=0.5), 100, 0, cached_input=100) == 50 / 10**6


def test_lists_are_requests_and_are_summed() -> None:
    assert estimate_cost(priced(), [1000, 2000], [10, 20]) == estimate_cost(priced(), 3000, 30)
    assert estimate_cost(priced(), []) == estimate_cost(priced(), [], []) == 0
    steps = priced(tiers=STEPS)
    assert estimate_cost(steps, [600, 600]) == estimate_cost(priced(), 1200)


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf])
def test_an_unknown_count_makes_the_cost_unknown(unknown: float | None) -> None:  # core 131
    assert estimate_cost(priced(), unknown) is None
    assert estimate_cost(priced(), [1, unknown]) is None
    assert estimate_cost(priced(), 1, unknown) is None
