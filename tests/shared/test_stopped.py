"""A read that could not begin is told apart by its cause; a price that is missing is warned of."""

import pytest

from harness_core import CallCapError, CostCapError, Trace, UnpricedModelError, UnpricedModelWarning
from harness_integrations.shared.stopped import unaffordable


@pytest.mark.parametrize(("error", "reason"), [(CallCapError, "calls"), (CostCapError, "cost")])
def test_a_limit_that_was_set_is_told_in_the_answer_alone(
    error: type[Exception], reason: str
) -> None:
    answer = unaffordable(error("too much"), "Why?", "stuff", Trace())
    assert (answer.partial, answer.found, answer.notes["stop_reason"]) == (True, False, reason)


def test_a_model_without_a_price_is_warned_of() -> None:
    with pytest.warns(UnpricedModelWarning, match="nothing was read: 'new-1' has no price"):
        answer = unaffordable(UnpricedModelError("'new-1' has no price"), "Why?", "stuff", Trace())
    assert answer.notes["stop_reason"] == "unpriced"
