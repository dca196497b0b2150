"""A quotation falls into passages, and a passage into the pieces its elisions leave."""

import pytest

from harness_core.checks.passages import Join, split_passages, without_bold


def shape(quotation: str) -> list[tuple[str, list[str]]]:
    return [
        (one.join.name.lower(), [piece.norm for piece in one.pieces])
        for one in split_passages(quotation)
    ]


@pytest.mark.parametrize(
    ("quotation", "expected"),
    [
        ("", []),
        ("...\n\n—", []),
        ("One two.", [("apart", ["one two"])]),
        ("one\ntwo", [("apart", ["one two"])]),
        ("one\nTwo", [("apart", ["one"]), ("wrap", ["two"])]),
        ("One.\ntwo", [("apart", ["one"]), ("apart", ["two"])]),
        ("One”).\ntwo", [("apart", ["one”)".replace("”", '"')]), ("apart", ["two"])]),
        ("一。\n二", [("apart", ["一"]), ("apart", ["二"])]),
        ("one\n\ntwo", [("apart", ["one"]), ("apart", ["two"])]),
        ('one\n"two"', [("apart", ["one"]), ("apart", ["two"])]),
        ("- one\n- two", [("apart", ["one"]), ("apart", ["two"])]),
        ("• one\n* two\n+ three", [("apart", ["one"]), ("apart", ["two"]), ("apart", ["three"])]),
        ("1. one\n2) two\n4. four", [("apart", ["one"]), ("apart", ["two 4. four"])]),
        ("the\n2. two", [("apart", ["the 2. two"])]),
        ("(a) one\n(b) two", [("apart", ["one"]), ("apart", ["two"])]),
        ("in group\n(b) two", [("apart", ["in group (b) two"])]),
        ("-5% less\n- 5 more", [("apart", ["-5% less"]), ("apart", ["5 more"])]),
        ('"one" "two"', [("apart", ["one"]), ("apart", ["two"])]),
        ("“one”, “two”; “three”", [("apart", ["one"]), ("apart", ["two"]), ("apart", ["three"])]),
        ('"one", two', [("apart", ['one", two'])]),
        ("one ... two", [("apart", ["one", "two"])]),
        (
            "one … two [...] three (..) four . . . five",
            [("apart", ["one", "two", "three", "four", "five"])],
        ),
        ("one .. two", [("apart", ["one .. two"])]),
        ("one ...\ntwo", [("apart", ["one"]), ("elided", ["two"])]),
        ("one ...\nTwo", [("apart", ["one"]), ("elided", ["two"])]),
        ("one\n\n[...] two", [("apart", ["one"]), ("elided", ["two"])]),
        ("one\n\n...\n\ntwo", [("apart", ["one"]), ("elided", ["two"])]),
        ("one\r\nTwo\u2028Three", [("apart", ["one"]), ("wrap", ["two"]), ("wrap", ["three"])]),
    ],
)
def test_passages_and_pieces(quotation: str, expected: list[tuple[str, list[str]]]) -> None:
    found = shape(quotation)
    assert [pieces for _, pieces in found] == [pieces for _, pieces in expected]
    assert [join for join, _ in found[1:]] == [join for join, _ in expected[1:]]


def test_an_elision_outweighs_a_break_and_a_break_a_wrap() -> None:
    assert Join.ELIDED > Join.APART > Join.WRAP


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a **bold** word", "a bold word"),
        ("**5.2** mg and **(n)**", "5.2 mg and (n)"),
        ("0.4** and 0.5**", "0.4** and 0.5**"),
        ("a ** spaced ** star", "a ** spaced ** star"),
        ("**half", "**half"),
        ("**over\na line**", "over\na line"),
        ("**not over\n\na paragraph**", "**not over\n\na paragraph**"),
    ],
)
def test_paired_asterisks_are_bold_and_stars_of_significance_are_not(text: str, plain: str) -> None:
    assert without_bold(text) == plain
