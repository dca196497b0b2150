"""How much is done, counted in calls rather than seconds: it must not grow with the product."""

import sys
from collections.abc import Callable
from types import FrameType

from harness_core.checks.quotations import is_verbatim, verify_quotation
from harness_core.checks.sources import Source


def calls(function: Callable[[], object]) -> int:
    count = 0

    def counted(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def book(sentences: int) -> Source:
    source = Source(
        " ".join(
            f"In case {at} the value was {at}.5 mg and the drug was given."
            for at in range(sentences)
        )
    )
    verify_quotation("warm up the source and everything derived from it", source)
    assert source.sentences.ends
    return source


def test_a_quotation_costs_no_more_calls_in_a_source_ten_times_as_long() -> None:
    short, long = book(300), book(3000)
    for quotation in (
        "In case 200 the value was 200.5 mg",
        "In case 200 the value was 201.5 mg and the drug was given",
        "Something that nobody wrote anywhere in here at all",
        "In case 200 ... 200.5 mg and the drug",
    ):
        before = calls(lambda text=quotation: verify_quotation(text, short))  # type: ignore[misc] # bound now
        after = calls(lambda text=quotation: verify_quotation(text, long))  # type: ignore[misc] # bound now
        assert after < 3 * before + 2000


def test_common_words_with_elisions_are_read_within_a_budget() -> None:  # readers 160
    source = book(6000)
    quotation = "the ... the ... the ... was not"
    assert is_verbatim(quotation, source) is False
    assert calls(lambda: is_verbatim(quotation, source)) < 1_500_000
    assert is_verbatim("case 5999 ... the drug was given", source) is True


def test_a_near_quotation_of_unspaced_text_is_scored_in_linear_work() -> None:  # readers 160
    text = "".join(chr(0x4E00 + at * 7 % 2000) for at in range(5000))
    source = Source(text)
    quotation = text[100:250] + "龘" + text[251:400]
    check = verify_quotation(quotation, source)
    assert check.verified is False
    assert check.match == 0.5
    assert calls(lambda: verify_quotation(quotation, source)) < 60_000


def test_many_quotations_of_one_text_prepare_it_once() -> None:
    text = "\n".join(f"Line {at} holds {at} mg of it." for at in range(3000))
    first = calls(lambda: verify_quotation("Line 7 holds 7 mg", text))
    second = calls(lambda: verify_quotation("Line 8 holds 8 mg", text))
    assert second < first / 10
