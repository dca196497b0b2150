# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""What holds for every text: a copy verifies, an alteration of what matters never does."""

import re

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from harness_core.checks.normalise import folded, normalised
from harness_core.checks.quotations import is_verbatim, verify_quotation

TOKENS = [
    *("the", "drug", "was", "not", "effective", "Patients", "received", "in", "a", "HIV-negative"),
    *("12%", "-5", "\u22125%", "1,204", "0.5", ".45", "mg", "5mg", "COVID-19", "(n", "=", "12)"),
    *("18-65", "1\u00a0200", "$45.2", "p<0.05", "10⁵", "...", "…", "—", "–", "--", "[...]", "no."),
    *("“so", "called”", '"yes",', '"no"', "can't", "l’eau", "**bold**", "0.4**", "*", "a)", "(b)"),
    *("2.", "End.", "Really?",  "Yes!", "so;", "thus:", "3", "•", "-"),
    *("中文", "日本語。", "120人", "ไม่"),
    *("İstanbul", "ΟΔΟΣ", "naïve", "e\u0301t", "한국은", "القيمة", "٥٪", "X1"),
    *("½", "1½", "°C", "37", "(5)"),
]  # fmt: skip
JOINS = [" ", " ", " ", " ", "\n", "  ", "\n\n", "\r\n"]


@st.composite
def copies(draw: st.DrawFn) -> tuple[str, str]:
    """A source and a part of it cut at white space."""
    tokens = draw(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=25))
    joins = draw(st.lists(st.sampled_from(JOINS), min_size=len(tokens), max_size=len(tokens)))
    first = draw(st.integers(0, len(tokens) - 1))
    last = draw(st.integers(first, len(tokens) - 1))
    parts = [token + join for token, join in zip(tokens, joins, strict=True)]
    return "".join(parts), "".join(parts[first : last + 1])


def cuts_a_number(source: str, quotation: str) -> bool:
    """The edges that are refused on purpose: a sign or a fraction spaced off from its number."""
    mixed = re.search(r"\d\s+(?:½|\d/\d)", source)
    spaced = re.search(r"[-–\u2212]\s+\S*\d", source)
    return bool(mixed or spaced) and source.strip() != quotation.strip()


@given(copies())
@settings(max_examples=400, deadline=None)
def test_every_part_of_a_source_between_spaces_verifies(pair: tuple[str, str]) -> None:
    source, quotation = pair
    assume(not cuts_a_number(source, quotation))
    check = verify_quotation(quotation, source)
    assert check.verified is not False
    assert check.match in (None, 1.0)
    if check.verified:
        assert check.status == "exact"
        assert check.edits == 0


@given(copies())
@settings(max_examples=100, deadline=None)
def test_a_whole_source_is_its_own_evidence(pair: tuple[str, str]) -> None:
    source, _ = pair
    assert verify_quotation(source, source, whole=True).verified is not False


NAMES = ["Alpha", "Bravo", "Carol", "Delta", "Echo", "Foxtrot", "Golf", "Hotel"]
UNITS = [
    "mg",
    "µg",
    "g",
    "kg",
    "ml",
    "%",
    "mmol/l",
    "°C",
    "years",
    "mW",
    "MW",
    "million",
    "billion",
]
DENIALS = ["not ", "never ", "hardly ", ""]


@st.composite
def sentences(draw: st.DrawFn) -> list[str]:
    """Six facts, no two of them about the same name."""
    return [
        f"In arm {name} the mean value was {draw(st.sampled_from(['', '-', '+']))}"
        f"{draw(st.integers(1, 4999))}{draw(st.sampled_from(['', '.5', '.05', ',204']))}"
        f" {draw(st.sampled_from(UNITS))} and the therapy was {draw(st.sampled_from(DENIALS))}"
        f"effective in {draw(st.integers(1, 99))} of {draw(st.integers(100, 999))} patients."
        for name in draw(st.permutations(NAMES))[:6]
    ]


def with_another_digit(fact: str, draw: st.DrawFn) -> str:
    at = draw(st.sampled_from([found.start() for found in re.finditer(r"\d", fact)]))
    return fact[:at] + str((int(fact[at]) + draw(st.integers(1, 9))) % 10) + fact[at + 1 :]


def with_more_or_fewer_digits(fact: str, draw: st.DrawFn) -> str:
    number = draw(st.sampled_from(list(re.finditer(r"\d+", fact))))
    changed = draw(st.sampled_from([number[0] + "0", "1" + number[0], number[0][1:] or "77"]))
    return fact[: number.start()] + changed + fact[number.end() :]


def with_another_sign(fact: str, draw: st.DrawFn) -> str:
    found = re.search(r"(?<=was )[-+]?(?=\d)", fact)
    assert found
    signs = {"-", "+", "", "±", "<", "\u2212"} - (
        {"-", "\u2212"} if found[0] == "-" else {found[0]}
    )
    return fact[: found.start()] + draw(st.sampled_from(sorted(signs))) + fact[found.end() :]


def with_another_unit(fact: str, draw: st.DrawFn) -> str:
    found = re.search(r"(?<= )\S+(?= and the)", fact)
    assert found
    return (
        fact[: found.start()]
        + draw(st.sampled_from(sorted({*UNITS} - {found[0]})))
        + fact[found.end() :]
    )


def with_another_denial(fact: str, draw: st.DrawFn) -> str:
    found = re.search(r"(?<=therapy was )(?:not |never |hardly )?(?=effective)", fact)
    assert found
    return (
        fact[: found.start()]
        + draw(st.sampled_from(sorted({*DENIALS} - {found[0]})))
        + fact[found.end() :]
    )


def with_what_denies_left_out(fact: str, draw: st.DrawFn) -> str:
    assume(re.search("was (?:not|never|hardly) ", fact))
    dots = draw(st.sampled_from(["...", "…", "[...]", ". . .", "(…)"]))
    return re.sub("was (?:not|never|hardly) ", f"was {dots} ", fact)


def with_a_moved_point(fact: str, draw: st.DrawFn) -> str:
    found = re.search(r"\d[.,]\d", fact)
    assume(found)
    assert found
    return fact[: found.start() + 1] + draw(st.sampled_from(["", " "])) + fact[found.end() - 1 :]


ALTERATIONS = [
    with_another_digit, with_more_or_fewer_digits, with_another_sign, with_another_unit,
    with_another_denial, with_what_denies_left_out, with_a_moved_point,
]  # fmt: skip


@st.composite
def altered(draw: st.DrawFn) -> tuple[str, str, str]:
    """A source, a sentence of it, and that sentence altered."""
    facts = draw(sentences())
    fact = draw(st.sampled_from(facts))
    return (
        draw(st.sampled_from([" ", "\n", "\n\n"])).join(facts),
        fact,
        draw(st.sampled_from(ALTERATIONS))(fact, draw),
    )


@given(
    altered(), st.sampled_from(["{}", "“{}”", "- {}", "1. {}", "**{}**", "... {} ...", "{}\n\n{}"])
)
@settings(max_examples=500, deadline=None)
def test_no_quotation_with_an_altered_number_sign_unit_or_denial_verifies(
    texts: tuple[str, str, str], form: str
) -> None:
    source, fact, other = texts
    assert is_verbatim(form.format(fact, fact), source) is True
    check = verify_quotation(form.format(other, fact), source)
    assert check.verified is False
    assert check.match is not None
    assert check.match < 1
    elided = other.count(".") > fact.count(".") or "…" in other
    regrouped = re.sub("[ ,]", "", fact) == re.sub("[ ,]", "", other)
    if not elided and not regrouped:  # the shadow reads no elisions and forgives grouping
        assert check.critical_ok is False
        assert check.status in ("altered", "absent")


@given(st.text(max_size=200), st.text(max_size=400))
@example("\ud800", "\ud800")
@example("a\u0301" * 80, "á" * 80)
@settings(max_examples=200, deadline=None)
def test_any_two_texts_can_be_compared(quotation: str, source: str) -> None:
    check = verify_quotation(quotation, source)
    assert check.match is None or 0 <= check.match <= 1
    assert (check.match == 1) is (check.verified is True)
    for share in (check.similarity, check.coverage):
        assert share is None or 0 <= share <= 1


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_folding_keeps_one_character_for_one(text: str) -> None:
    normal = normalised(text)
    assert len(normal.norm) == len(normal.kept)
    assert normalised(normal.norm).norm == normal.norm


def test_every_character_folds_to_one_character() -> None:
    assert all(len(folded(chr(code))) == 1 for code in range(0x110000))
