# ruff: noqa: RUF001 - marks and letters of other scripts are the subject here
"""Quotations are found word for word, and no number, sign, unit or denial may differ."""

import pytest

from harness_core.checks.normalise import normalised, trimmed
from harness_core.checks.quotations import is_verbatim, verify_quotation
from harness_core.checks.runs import run_share
from harness_core.checks.sources import Source

REPORT = (
    "Revenue rose 12% to $45.2 million in fiscal 2023, the company said. "
    "Management “expects further growth” in the second half of the year."
)
NBSP, THIN, NARROW, FIGURE = "\u00a0", "\u2009", "\u202f", "\u2007"


@pytest.mark.parametrize(
    "quotation",
    [  # readers 135
        "Revenue  rose   12% to $45.2 million",
        "REVENUE ROSE 12% TO $45.2 MILLION",
        'Management "expects further growth" in the second half',
        "“Revenue rose 12%”",
        "...rose 12% to $45.2 million...",
        "the company said —",
    ],
)
def test_surface_differences_do_not_matter(quotation: str) -> None:
    check = verify_quotation(quotation, REPORT)
    assert check.verified is True
    assert check.match == 1.0


@pytest.mark.parametrize(  # readers 136
    "quotation",
    ["Revenue rose 12% to $54.2 million in fiscal 2023", "Revenue fell 12% to $45.2 million"],
)
def test_one_changed_word_is_refused_and_most_of_it_matches(quotation: str) -> None:
    check = verify_quotation(quotation, REPORT)
    assert check.verified is False
    assert check.match is not None
    assert 0.2 < check.match < 1
    other = verify_quotation("Bees pollinate almonds across California every spring", REPORT)
    assert other.verified is False
    assert other.match is not None
    assert other.match < check.match


@pytest.mark.parametrize(  # readers 137
    ("quotation", "source"),
    [
        ("", REPORT),
        ("...", REPORT),
        ("  \n ", REPORT),
        ("rose 12%", ""),
        ("rose 12%", " \n"),
        ("x", None),
    ],
)
def test_nothing_to_look_for_or_in_is_no_verdict(quotation: str, source: str | None) -> None:
    check = verify_quotation(quotation, source)
    assert check.verified is None
    assert check.match is None
    assert check.status == "unchecked"
    assert check.similarity is check.coverage is check.edits is check.critical_ok is None
    assert is_verbatim(quotation, source) is None


@pytest.mark.parametrize(  # readers 138
    ("piece", "left"),
    [
        ('"growth."', "growth"),
        ("…growth…", "growth"),
        ("growth -", "growth"),
        ("- growth", "growth"),
        ("12%", "12%"),
        ("(as restated)", "(as restated)"),
        ("45.2", "45.2"),
        (".45 in all.", ".45 in all"),
        ("...12", "12"),
        ("-5%", "-5%"),
        ("-$5", "-$5"),
        ("-.5", "-.5"),
        (",5 mg", ",5 mg"),
        ("\u2212 5 mg", "- 5 mg"),
        ("、増加。", "増加"),
    ],
)
def test_edges_lose_marks_and_keep_signs(piece: str, left: str) -> None:
    assert trimmed(normalised(piece)).norm == left


@pytest.mark.parametrize(
    ("quotation", "source", "verified"),
    [
        # readers 139
        ("-5%", "Sales fell 5% in May.", False),
        ("sales fell -", "Sales fell 5% in May.", True),
        ("- Sales fell", "Sales fell 5% in May.", True),
        ("\u2013 Sales fell", "Sales fell 5% in May.", True),
        ("-$5 million", "It made $5 million.", False),
        ("$5 million", "It made -$5 million.", False),
        ("-5 points", "a change of \u20145 points", False),
        ("+5 points", "a change of 5 points", False),
        # readers 140
        ("5% of patients", "In all 25% of patients left.", False),
        ("12%", "A change of -12% was seen.", False),
        ("12%", "A change of \u221212% was seen.", False),
        ("12%", "A change of \u2212 12% was seen.", False),
        ("We enrolled 20.", "We enrolled 200 patients.", False),
        ("the value was 45.", "The value was 45.2 in all.", False),
        ("5 mg", "A dose of 0.5 mg.", False),
        ("5 mg", "A dose of .5 mg.", False),
        ("5 mg", "A dose of 0·5 mg.", False),
        ("5 mg", "A dose of 1/5 mg.", False),
        ("5 mg", "A dose of 2:5 mg.", False),
        ("/5 mg", "A dose of 2/5 mg.", False),
        ("dose of 5 mg", "A dose of 5 mg/kg.", False),
        ("dose of 5 mg/kg", "A dose of 5 mg/kg.", True),
        ("growth of 5%", "A growth of 5%/year.", False),
        ("area of 5 m", "An area of 5 m² in all.", False),
        ("area of 5 cm", "An area of 5 cm2 in all.", False),
        ("the 5 men", "Of the 5 men² two left.", True),
        ("yes", "It said yes/no.", True),
        ("½ mg", "A dose of 1½ mg.", False),
        ("½ mg", "A dose of 1 ½ mg.", False),
        ("dose of 1", "A dose of 1 ½ mg.", False),
        ("10^5 cells", "There were 2×10^5 cells.", False),
        ("5 cells", "There were 10^5 cells.", False),
        ("cost 1,20", "It cost 1,204 in all.", False),
        ("204", "It cost 1,204 in all.", False),
        ("204", "It cost 1'204 in all.", False),
        ("19 patients", "There were COVID-19 patients.", False),
        ("19 patients", "There were covid19 patients.", False),
        ("-19 patients", "There were COVID-19 patients.", False),
        ("rose 5", "It rose 5% in May.", False),
        ("to 10", "It went to 10⁻⁵ at last.", False),
        ("to 10", "It went to 10⁵ at last.", False),
        ("to 12", "It went to 12³ at last.", True),
        ("aged 18", "Adults aged 18-65 took part.", False),
        ("aged 18", "Adults aged 18\u201365 took part.", False),
        ("0.05", "at p <0.05 only", False),
        ("5 mW", "a laser of 5 MW power", False),
        ("5 mW laser", "a 5 mw laser", True),
        ("A LASER OF 5 MW", "a laser of 5 mW power", True),
        # readers 142
        *(
            ("200 patients", f"There were 1{space}200 patients.", False)
            for space in (NBSP, THIN, NARROW, FIGURE)
        ),
        *(
            ("1 200 patients", f"There were 1{space}200 patients.", True)
            for space in (NBSP, THIN, NARROW, FIGURE)
        ),
        ("There were 1", f"There were 1{NBSP}200 patients.", False),
        ("200 patients", "There were 1 200 patients.", True),
        # readers 143
        ("42 people", "The answer\u201442 people said it.", True),
        ("42 people", "The answer--42 people said it.", True),
        ("42 people", "The answer\u201542 people said it.", True),
        ("42 people", "The answer\u201342 people said it.", True),
        ("42 people", "The answer: \u201342 people said it.", False),
        ("42 people", "From 10\u201342 people said it.", False),
        ("1,204 people", "The population-1,204 people moved.", True),
        ("42 people", "The population-42 people moved.", False),
        # at the edges of the source, and beside marks that join nothing
        ("12 mg daily", "12 mg daily.", True),
        ("a sum of 45", "a sum of 45", True),
        ("五人", "五人参加。", True),
        ("十五", "共十五", True),
        ("参加十", "参加十五人", False),
        ("204 men", "First,204 men came.", True),
        ("12 men", "The end.12 men came.", True),
        ("12 men", "(At last).12 men came.", False),
        (".5 mg", "a dose..5 mg", False),
        ("-5 men", "There were --5 men.", False),
        ("There were 1", "There were 1 200 patients.", True),
        ("to 12", "It went to 12,³ at last.", True),
        ("a dose of 5", "A dose of 5. Then more.", True),
        # readers 145
        ("inferior to placebo", "It was non-inferior to placebo.", False),
        ("significant", "A non-significant change.", False),
        ("significant", "A non\u2011significant change.", False),
        ("HIV", "Many were HIV-negative then.", False),
        ("the drug can", "The drug can't help.", False),
        ("the drug", "The drug's effect.", True),
        # readers 148
        *(
            ("65 years", f"aged 18{dash}{gap}65 years", False)
            for dash in "-\u2013"
            for gap in ("\n", "\r\n", "\n  ", "\u2028")
        ),
        ("aged 18", "aged 18-\n65 years", False),
        ("18-\n65 years", "aged 18-\n65 years", True),
        ("18-65 years", "aged 18-\n65 years", True),
        ("65 years", "the mean -\n65 years", True),
        ("Anglo", "the Anglo-\nSaxon time", False),
        ("Saxon time", "the Anglo-\nSaxon time", False),
        ("Saxon time", "the Anglo\u2013\nSaxon time", False),
        ("the Anglo-Saxon time", "the Anglo-\nSaxon time", True),
        # years with a footnote
        ("in 2019", "It began in 2019.12 Later it ended.", True),
        ("in 2019", "It began in 2019.12", True),
        ("closed at 1999", "It closed at 1999.95", False),
        ("heated to 1999", "It was heated to 1999.5 Kelvin.", False),
        ("in 2019", "It rose 3 in 2019.1234 Then", False),
        # readers 157
        ("该药物对成年患者有效", "研究表明，该药物对成年患者有效。", True),
        ("この薬は有効", "結果、この薬は有効であった。", True),
        ("ยานี้ได้ผล", "พบว่ายานี้ได้ผลดี", True),
        ("20人", "共有120人参加。", False),
        ("五人", "共有十五人参加。", False),
        ("20", "共有20万人参加。", False),
        ("환자", "모든 환자는 회복했다", True),
        ("환자", "모든 환자복은 회복했다", False),
        # invisible marks do not make an edge
        ("inferior to it", "non-\u00adinferior to it", False),
        ("5%", "a change of -\u200e5%", False),
        ("inferior", "non\u00adinferior", False),
    ],
)
def test_words_and_numbers_are_never_cut(quotation: str, source: str, verified: bool) -> None:
    check = verify_quotation(quotation, source)
    assert check.verified is verified
    assert check.match is not None
    assert (check.match == 1) is verified
    assert is_verbatim(quotation, source) is verified


def test_a_number_cut_out_of_unspaced_text_still_matches_in_part() -> None:  # readers 157
    check = verify_quotation("共有20人", "共有120人参加。")
    assert check.verified is False
    assert check.match is not None
    assert 0 < check.match < 1


@pytest.mark.parametrize(  # readers 149
    ("quotation", "source", "verified"),
    [
        ("an investigator-blinded trial", "It was an investigatorblinded trial.", True),
        ("investigator-blinded", "It was an **investigatorblinded** trial.", True),
        ("investigator", "It was an investigatorblinded trial.", False),
        ("blinded", "It was an investigatorblinded trial.", False),
        ("20-30 people", "It had 2030 people.", False),
        ("COVID-19 wards", "There are COVID19 wards.", False),
        ("an investigator-blinded ... trial", "It was an investigatorblinded long trial.", False),
        ("investigator-blinded\n\nfor long", "It was investigatorblinded. It ran for long.", False),
        ("an investigatorblinded trial", "It was an investigator-blinded trial.", False),
        ("nonsmokers well-being", "The non-smokers wellbeing fell.", False),
    ],
)
def test_a_hyphen_lost_in_the_source_is_forgiven_and_no_other(
    quotation: str, source: str, verified: bool
) -> None:
    assert verify_quotation(quotation, source).verified is verified


@pytest.mark.parametrize(  # readers 150
    ("quotation", "source", "verified"),
    [
        ("The drug was ... effective in adults", "The drug was not effective in adults.", False),
        ("It ... worked", "It never worked.", False),
        ("The drug ... effective", "The drug wasn't effective.", False),
        ("The drug was … effective", "The drug was hardly effective.", False),
        ("The drug is [...] effective", "The drug is (not very) effective.", False),
        ("The drug is (..) effective", "The drug is by no means effective.", False),
        ("it is . . . effective", "It is without doubt in no case effective.", False),
        ("该药物...有效", "该药物并不有效。", False),
        ("ยานี้...ได้ผล", "ยานี้ไม่ได้ผล", False),
        ("이 약은 ... 있다", "이 약은 효과가 없고 부작용이 있다", False),
        ("le médicament ... efficace", "le médicament n'est pas efficace", False),
        ("o remédio ... eficaz", "o remédio não é muito eficaz", False),
        ("препарат ... эффективен", "препарат совсем не эффективен", False),
        ("das Mittel ... wirksam", "das Mittel ist nicht wirksam", False),
        ("The drug was not ... in adults", "The drug was not effective in adults.", True),
        ("the drug ... works", "the drug წამალი works", False),
        ("the drug ... works", "the drug மருந்து works", False),
        ("The trial ... was positive", "The trial (registration no. X1) was positive.", True),
        ("The trial ... was positive", "The trial, registration no. X1, was positive.", True),
        ("The drug ... worked in adults", "The drug, given daily, worked in adults.", True),
        # readers 151
        ("The drug was safe ... in men", "The drug was safe. It was tested in men.", False),
        (
            "The drug was safe. ... It helped men",
            "The drug was safe. Not all agreed. It helped men.",
            True,
        ),
        ("It helped men ... The drug was safe", "The drug was safe. It helped men.", False),
        ("It rose ... by two", "It rose. It fell. It rose quickly by two.", True),
        ("The drug was ... It helped men", "The drug was not safe. It helped men.", False),
    ],
)
def test_an_elision_leaves_out_no_denial_and_splices_no_sentences(
    quotation: str, source: str, verified: bool
) -> None:
    assert verify_quotation(quotation, source).verified is verified


def test_when_too_many_gaps_would_have_to_be_read_the_quotation_is_refused() -> None:  # readers 151
    source = "It is not so for a. " + "a b not c. " * 3000 + "a plain c."
    assert verify_quotation("a plain ... c", source).verified is True
    assert verify_quotation("a ... c", source).verified is False


LIST = (
    "The trial had three aims:\n(a) to lower pain\n(b) to spare opioids\n\n"
    "It met two of them. Pain fell by 12 points on the scale. Nobody died."
)


@pytest.mark.parametrize(  # readers 153
    ("quotation", "verified"),
    [
        ("It met two of them.\n\nNobody died.", True),
        ("Nobody died.\n\nIt met two of them.", True),
        ("- It met two of them.\n- Nobody died.", True),
        ("1. It met two of them.\n2. Nobody died.", True),
        ("(a) to lower pain\n(b) to spare opioids", True),
        ("a) to lower pain\nb) to spare opioids", True),
        ('"It met two of them." "Nobody died."', True),
        ("“It met two of them”, “Nobody died”", True),
        ("- It met two of them.\n- Everybody recovered.\n- Nobody died.", False),
        ("1. It met two of them.\n3. Nobody died.", False),
        ("(3) Nobody died.", False),
        ("It met two of them\nNobody died", True),
        ("Pain fell\nNobody died", True),
        ("of them\nNobody died", True),
        ("met two\nPain fell by 12", True),
        ("Pain fell\n\non the scale", False),
        ("Pain fell by ...\n... on the scale", True),
        ("It met ...\n... the scale", True),
    ],
)
def test_lists_and_separate_quotations_are_checked_item_by_item(
    quotation: str, verified: bool
) -> None:
    assert verify_quotation(quotation, LIST).verified is verified


WRAPPED = (
    "The drug was given to 120 patients\nin four centres between May and\n"
    "June of 2019 at the Mayo Clinic\nand elsewhere."
)


@pytest.mark.parametrize(  # readers 155
    ("quotation", "verified"),
    [
        ("given to 120 patients\nin four centres between\nMay and June of 2019", True),
        ("given to 120 patients in four\ncentres", True),
        ("given to 210 patients\nin four centres", False),
        ("given to 120 patients\nin centres", False),
        ("given to 120 patients\nJune of 2019", False),
        ("The drug was given to 120 patients\nMayo Clinic", False),
        ("at the\nMayo Clinic", True),
        ("June of 2019\nMayo Clinic", False),
    ],
)
def test_wrapped_lines_are_one_passage(quotation: str, verified: bool) -> None:
    assert verify_quotation(quotation, WRAPPED).verified is verified


@pytest.mark.parametrize(  # readers 156
    ("quotation", "source", "verified"),
    [
        ("The **main** result was 5 mg", "The main result was 5 mg.", True),
        ("The main result was 5 mg", "The **main result** was 5 mg.", True),
        ("result was 5 mg", "The result was **5** mg.", True),
        ("a value of 0.45** in men", "A value of 0.45 in men.", False),
        ("a value of 0.45 in men", "A value of 0.45** in men.", False),
        ("a value of 0.45** in men", "A value of 0.45** in **men**.", True),
    ],
)
def test_bold_is_no_difference_and_a_star_of_significance_is(
    quotation: str, source: str, verified: bool
) -> None:
    assert verify_quotation(quotation, source).verified is verified


def test_a_markdown_chunk_verifies_as_its_own_evidence() -> None:  # readers 156
    chunk = "## Results\n\n- **Pain** fell by 5%...\n- 1,204 took part\n\n| a | b |\n|---|---|\n"
    check = verify_quotation(chunk, chunk, whole=True)
    assert (check.verified, check.match, check.status) == (True, 1.0, "exact")


def test_a_whole_piece_is_not_split_and_not_trimmed() -> None:
    source = "One thing. Another thing. A third."
    assert verify_quotation("One thing.\n\nA third.", source).verified is True
    assert verify_quotation("One thing.\n\nA third.", source, whole=True).verified is False
    assert verify_quotation("value of 45.", "a value of 45.2 in all", whole=True).verified is False
    assert verify_quotation("...", source, whole=True).verified is None


@pytest.mark.parametrize(  # readers 159
    ("quotation", "share"),
    [("alpha beta gamma", 1.0), ("alpha beta gamma omega", 0.75), ("omega psi", 0.0)],
)
def test_the_longest_run_is_counted_in_whole_words(quotation: str, share: float) -> None:
    source = Source("alpha beta gamma delta epsilon")
    assert run_share([normalised(quotation)], source) == share


def test_a_paraphrase_from_the_same_words_matches_less_than_half() -> None:  # readers 159
    source = "The committee approved the plan after a long debate on its cost in March."
    check = verify_quotation("In March its cost after debate the committee long approved", source)
    assert check.verified is False
    assert check.match is not None
    assert check.match < 0.5


def test_a_changed_word_at_the_end_costs_one_part_and_in_the_middle_half() -> None:
    source = "one two three four five six seven eight nine ten"
    assert verify_quotation("one two three four five six seven eight nine x", source).match == 0.9
    assert verify_quotation("one two three four x six seven eight nine ten", source).match == 0.5


def test_a_source_is_prepared_once() -> None:
    source = Source("Pain fell by 12 points.")
    assert verify_quotation("fell by 12", source).verified is True
    assert source.normal is source.normal
    assert verify_quotation("fell by 13", source).verified is False


@pytest.mark.parametrize(
    "hostile",
    [
        "\x00\x00 a \x00",
        "\ud800 lone \udfff surrogates 5%",
        "\u202e5% evif\u202c \u200f\u200e\u2066x\u2069",
        "القيمة هي ٥٪ من المرضى",
        "لم يكن الدواء فعالا ... في البالغين",
        "该药物对120名患者有效，但不适用于儿童。",
        "a\u0301" * 500 + "\u0301" * 50_000,
        "x" * 300_000,
        "." * 200_000,
        "**" * 100_000,
        '" ' * 50_000,
        "(" * 100_000,
        "-\n" * 50_000,
        "1 " * 30_000,
        "...a" * 5_000,
        "a\n\n" * 5_000,
        "A\n" * 5_000,
        "İΣς ŉ ǰ ΐ",
        "\u0000" * 10 + "NOT",
    ],
)
def test_hostile_text_is_checked_and_never_raises(hostile: str) -> None:
    for quotation, source in ((hostile, REPORT), ("rose 12%", hostile), (hostile, hostile)):
        assert verify_quotation(quotation, source).verified in (True, False, None)


def test_a_line_of_ten_megabytes_is_no_problem() -> None:
    line = "word " * 2_000_000
    assert verify_quotation("word word word", line).verified is True
    assert verify_quotation("word ward word", line).verified is False
    assert verify_quotation(line[:1_000_000], line).verified is True


def test_a_wrapped_line_is_set_apart_only_right_at_the_end_of_a_sentence() -> None:
    source = "Alpha beta gamma. Then Delta epsilon zeta."
    assert verify_quotation("Alpha beta gamma\nDelta epsilon", source).verified is True
    assert verify_quotation("Alpha beta\nDelta epsilon", source).verified is False
    assert verify_quotation("Alpha beta\nThen Delta", source).verified is True


def test_long_quotations_get_no_other_spelling_and_many_passages_are_refused() -> None:
    source = "an investigatorblinded trial " + "of many words " * 500
    assert verify_quotation("an investigator-blinded trial", source).verified is True
    assert is_verbatim(source.replace("torb", "tor-b"), source) is False
    lines = [f"Line {at} is here." for at in range(1001)]
    quotation = "\n\n".join(reversed(lines))
    assert is_verbatim("\n\n".join(lines), "\n".join(lines)) is True
    assert is_verbatim(quotation, "\n".join(lines)) is False
