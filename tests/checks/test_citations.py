# ruff: noqa: RUF001 - dashes are the subject here
"""Citations are read from their brackets, and what cannot be read is reported."""

import pytest

from harness_core.checks.citations import cited


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # readers 164
        ("It fell [chunk 3].", (3,)),
        ("[chunk 1] and [chunk 12]", (1, 12)),
        ("[chunk 2] then [chunk 2]", (2,)),
        ("[CHUNK 7]", (7,)),
        ("chunk 3 and [chunky 5] and (chunk 4)", ()),
        # readers 165
        ("[chunks 1, 2, and 9]", (1, 2, 9)),
        ("[chunk 1; chunk 7]", (1, 7)),
        ("[chunks 1 & 2]", (1, 2)),
        ("[chunk\u00a04]", (4,)),
        *((f"[chunks 1{dash}4]", (1, 2, 3, 4)) for dash in "-‐‑‒–—―−"),
        ("[chunks 1 – 4]", (1, 2, 3, 4)),
        ("[chunk 1-chunk 3]", (1, 2, 3)),
        ("[chunks 1-1000000]", (1, 1000000)),
        ("[chunks 3-1]", (1, 2, 3)),
        ("[chunk 9, chunk 2 and chunk 5]", (9, 2, 5)),
        # readers 166
        ("[chunk 3 p.12, § 4.2]", (3,)),
        ("[chunk 3, pp. 12-14]", (3,)),
        ("[chunks 1, 2 sections 4 and 5]", (1, 2)),
        ("[chunk 3 § 7]", (3,)),
        ("[chunk 3 lines 10-20]", (3,)),
        ("[chunks 1-2] and [chunk 1 p.3]", (1, 2)),  # readers 167
        ("no citation", ()),  # readers 169
        ("", ()),
    ],
)
def test_ids_are_read_in_order_and_once(text: str, ids: tuple[int, ...]) -> None:
    assert cited(text).ids == ids
    assert cited(text).unparsed == ()


@pytest.mark.parametrize(
    "bracket",
    [
        "[chunk nine]",
        "[chunks 1 to 7]",
        "[chunk 1 p.7, chunk 9]",  # readers 166
        "[chunk 3 pink]",
        "[chunk 1and 2]",
        "[chunk ]",
        f"[chunk {'9' * 40}]",
    ],
)
def test_a_bracket_that_cannot_be_read_is_reported_once(bracket: str) -> None:
    found = cited(f"a {bracket} b {bracket} [chunk 4]")
    assert found.unparsed == (bracket,)
    assert found.ids == (4,)


def test_the_word_of_the_label_is_an_argument() -> None:
    assert cited("[study 2] [Studies 1, 3] [chunk 9]", "study").ids == (2, 1, 3)
    assert cited("[source 2] [sources 4 and 5]", "source").ids == (2, 4, 5)
    assert cited("[study 2]").ids == ()


@pytest.mark.parametrize(
    "text",
    [
        "[chunk " * 50_000,
        "[chunk 1, " * 50_000,
        "[chunk " + "1, " * 50_000 + "x]",
        "[chunk 1" + " " * 99_999,
    ],
)
def test_long_unclosed_brackets_are_no_trouble(text: str) -> None:
    assert cited(text).ids == ()
