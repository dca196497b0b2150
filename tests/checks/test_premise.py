# ruff: noqa: RUF001 - marks of other scripts are the subject here
"""A verdict is read only from a reply that opens with its marker."""

import pytest

from harness_core.checks.premise import is_bare_premise, is_none_reply, read_premise


@pytest.mark.parametrize(
    ("reply", "premise"),
    [
        ("FALSE_PREMISE: Revenue fell.", "Revenue fell."),
        ("  FALSE_PREMISE: Revenue fell.\n", "Revenue fell."),
        ("false premise: Revenue fell.", "Revenue fell."),
        ("**FALSE_PREMISE:** Revenue fell.", "Revenue fell."),
        ("**FALSE_PREMISE**: Revenue fell.", "Revenue fell."),
        ("**FALSE_PREMISE: Revenue fell.**", "Revenue fell."),
        ('"FALSE_PREMISE: Revenue fell."', "Revenue fell."),
        ("`FALSE_PREMISE` — Revenue fell.", "Revenue fell."),
        ("[FALSE_PREMISE] - Revenue fell.", "Revenue fell."),
        ("FALSE_PREMISE\nRevenue fell.", "Revenue fell."),
        ("FALSE_PREMISE：収入は減った。", "収入は減った。"),
        ('FALSE_PREMISE: He said "no"', 'He said "no"'),
        ("FALSE_PREMISE: one.\nTwo.", "one.\nTwo."),
        ("Revenue fell. FALSE_PREMISE: it did.", None),
        ("The marker FALSE_PREMISE: is used so", None),
        ("False premises are common: yes", None),
        ("FALSE_PREMISE it fell", None),
        ("FALSE_PREMISE:", None),
        ("FALSE_PREMISE: **", None),
        ("FALSE_PREMISE", None),
        ("NOT_IN_DOCUMENT", None),
        ("", None),
        (None, None),
    ],
)
def test_a_premise_is_what_follows_the_marker(reply: str | None, premise: str | None) -> None:
    assert read_premise(reply) == premise


@pytest.mark.parametrize(
    "reply", ["FALSE_PREMISE", "FALSE_PREMISE:", "**False premise:** ...", "FALSE_PREMISE -\n"]
)
def test_a_marker_alone_is_no_verdict_and_no_answer(reply: str) -> None:
    assert is_bare_premise(reply)
    assert read_premise(reply) is None


def test_a_verdict_or_an_answer_is_no_bare_marker() -> None:
    assert not is_bare_premise("FALSE_PREMISE: it fell")
    assert not is_bare_premise("It fell.")
    assert not is_bare_premise(None)


@pytest.mark.parametrize(
    "reply",
    ["NONE", "none", " None. ", "**NONE**", '"NONE"', "「NONE」", "NONE。", "_NONE_", "(none)\n"],
)
def test_none_alone_means_nothing_to_copy(reply: str) -> None:
    assert is_none_reply(reply)


@pytest.mark.parametrize(
    "reply", [None, "", "None of the patients died.", "NONE, but see below", "NONEXISTENT", "..."]
)
def test_a_passage_that_opens_with_none_is_evidence(reply: str | None) -> None:
    assert not is_none_reply(reply)


@pytest.mark.parametrize(
    "reply", ["*" * 200_000 + "x", "FALSE_PREMISE" + "*" * 100_000 + " " * 100_000 + "x"]
)
def test_long_decoration_is_no_trouble(reply: str) -> None:
    assert read_premise(reply) is None
    assert not is_none_reply(reply)
