# ruff: noqa: RUF001 - damaged letters are the subject here
"""The shadow matcher forgives what extraction damages, and nothing in what is critical."""

import pytest

from harness_core.checks.alignment import TooLongError, closest
from harness_core.checks.critical import critical_tokens
from harness_core.checks.quotations import QuoteCheck, verify_quotation
from harness_core.checks.sources import Source

SOURCE = (
    "The modern clinic admitted 1,204 patients in 2019. A dose of 5 mg lowered pain by -12% and "
    "the difficult effect was not signifi\ncant. The investi-\ngators used 37 °C and saw well-\n"
    "known harms. Temperatures reached 25% more."
)


def shadow(check: QuoteCheck) -> tuple[str, int | None, bool | None]:
    return check.status, check.edits, check.critical_ok


@pytest.mark.parametrize(
    ("quotation", "expected"),
    [
        ("The modern clinic admitted 1,204 patients", ("exact", 0, True)),
        ("the difﬁcult eﬀect was not", ("exact", 0, True)),  # ligatures
        ("The investigators used 37 °C", ("exact", 0, True)),  # hyphen at a line break
        ("and saw well-known harms", ("exact", 0, True)),  # ... that belongs there
        ("the difficult effect was not significant", ("exact", 0, True)),  # a break inside a word
        ("The modem clinic admitted 1,204 patients", ("near", 1, True)),  # rn read as m
        ("The modern cl1nic adm1tted 1,204 patients", ("near", 1, True)),  # i read as 1
        ("The modern clinics admitted 1,204 patients", ("near", 1, True)),
        (
            "The modern clinic admitted 1204 patients in 2019",
            ("near", 1, True),
        ),  # grouping is no difference
        ("The modern clinic admitted 1,205 patients", ("altered", 1, False)),
        ("The modern clinic admitted l,204 patients", ("altered", 1, False)),
        ("A dose of 5 g lowered pain by -12%", ("altered", 1, False)),
        ("A dose of 5 mg lowered pain by 12%", ("altered", 1, False)),
        ("lowered pain by −12% and the difficult effect was significant", ("altered", 4, False)),
        ("used 37 K and saw", ("altered", 2, False)),
        ("5% more", ("altered", 0, False)),  # in 25%
        ("12% and the difficult effect", ("altered", 0, False)),  # in -12%
        ("modem", ("altered", 1, True)),  # too short to be near
    ],
)
def test_damage_is_forgiven_and_a_critical_difference_never(
    quotation: str, expected: tuple[str, int, bool]
) -> None:
    assert shadow(verify_quotation(quotation, SOURCE)) == expected


def test_what_is_not_there_is_absent() -> None:
    check = verify_quotation("Bees pollinate almonds across California", SOURCE)
    assert check.status == "absent"
    assert (check.similarity, check.coverage) == (0.0, 0.0)


def test_what_decides_is_never_the_shadow_matcher() -> None:
    near = verify_quotation("The modem clinic admitted 1,204 patients", SOURCE)
    assert (near.verified, near.status) == (False, "near")


def test_pieces_are_weighed_by_length_and_the_worst_counts() -> None:
    check = verify_quotation("The modern clinic admitted 1,204 patients ... pain by -13%", SOURCE)
    assert check.status == "altered"
    assert check.critical_ok is False
    assert check.similarity is not None
    assert 0.95 < check.similarity < 1
    assert check.coverage == pytest.approx(0.939, abs=0.02)


def test_coverage_counts_words_that_are_the_same() -> None:
    check = verify_quotation("The modern clinic accepted 1,204 patients in 2019", SOURCE)
    assert check.coverage == pytest.approx(8 / 9, abs=0.001)  # 1 and 204 are two words
    assert check.similarity is not None
    assert check.similarity < 0.95


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a 5 mg dose", ["5 mg"]),
        ("a 5mg dose", ["5 mg"]),
        ("a 5-mg dose", ["5 mg"]),
        ("5 mg/kg daily", ["5 mg/kg"]),
        ("1,204.5 and 1 204 and 1'204", ["1204.5 ", "1204 ", "1204 "]),
        ("0,5 and 0·5 and .5", ["0.5 ", "0.5 ", "0.5 "]),
        ("-5% and \u22125 %", ["-5 %", "-5 %"]),
        ("from 5-10 days", ["5 ", "10 days"]),
        ("p < 0.05 and p>0.05", ["<0.05 ", ">0.05 "]),
        ("$5 million", ["$5 million"]),
        ("37 °C or 37 C or 310 K", ["37 °C", "37 c", "310 K"]),
        ("5 mW and 5 MW", ["5 mW", "5 MW"]),
        ("10⁵ and 10^5", ["10⁵ ", "10^5 "]),
        ("pat1ents are no number", ["not:no"]),
        ("COVID-19 and covid19", ["19 ", "19 "]),
        ("it is not so, nor can't it", ["not:not", "not:nor", "not:can't"]),
        ("1½ cups", ["1½ "]),
    ],
)
def test_critical_tokens_are_numbers_units_and_denials(text: str, tokens: list[str]) -> None:
    from harness_core.checks.folding import Folded

    assert critical_tokens(Folded(text).cased) == tokens


def test_the_closest_stretch_is_exact_to_the_character() -> None:
    text = "x" * 500 + " the quick brown fox jumps over the lazy dog " + "y" * 500
    stretch = closest("quick browm fox jumped over", text)
    assert stretch is not None
    assert text[stretch.start : stretch.stop] == "quick brown fox jumps over"


def test_a_text_too_long_to_align_is_narrowed_by_its_words_or_left_unchecked() -> None:
    passage = "".join(f"unmistakable{at} phrase number{at} here. " for at in range(400))
    text = "filler words " * 30_000 + passage + "filler words " * 10_000
    damaged = passage.replace("unmistakable7 ", "unmistakeable7 ")
    stretch = closest(damaged, text)
    assert stretch is not None
    assert text[stretch.start : stretch.stop].strip() == passage.strip()
    with pytest.raises(TooLongError):
        closest("nothing of this occurs there ever " * 500, text)
    assert verify_quotation("nothing of this occurs there ever " * 500, text).status == "unchecked"


def test_all_copies_of_a_quotation_are_looked_at() -> None:
    check = verify_quotation("5% of them", Source("25% of them, then 15% of them, then 5% of them"))
    assert shadow(check) == ("exact", 0, True)
