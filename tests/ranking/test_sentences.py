import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.ranking.sentences import sentence_spans, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It grew. Sales rose! Why? Nobody knows.",
         ["It grew.", "Sales rose!", "Why?", "Nobody knows."]),
        ("Dr. Smith and Mr. Jones met Prof. Lee. They spoke.",
         ["Dr. Smith and Mr. Jones met Prof. Lee.", "They spoke."]),
        ("See Fig. 2, e.g. Table 3, cf. Eq. 4. Done.",
         ["See Fig. 2, e.g. Table 3, cf. Eq. 4.", "Done."]),
        ("The Disco. Then home.", ["The Disco.", "Then home."]),
        ("Revenue was 45.2 million. In 2024. 12 units.",
         ["Revenue was 45.2 million.", "In 2024.", "12 units."]),
        ("It said. and went on.", ["It said. and went on."]),
        ('He left. "Why?" she asked. (Nobody.) \u00bfQui\u00e9n? \u00a1Yo!',
         ["He left.", '"Why?" she asked.', "(Nobody.) \u00bfQui\u00e9n?", "\u00a1Yo!"]),
        ("One line.\nNext line.", ["One line.\nNext line."]),
        ("A heading\n\nA paragraph.\n\n\n  Another.", ["A heading", "A paragraph.", "Another."]),
        ("これは文。「はい。」次!?", ["これは文。", "「はい。」", "次!?"]),
        ("本当\uff01\uff1f次", ["本当\uff01\uff1f", "次"]),
        ("\u0647\u0644\u061f \u0646\u0639\u0645.", ["\u0647\u0644\u061f", "\u0646\u0639\u0645."]),
        ("\u0939\u093e\u0964 \u0928\u0939\u0940\u0902\u0964",
         ["\u0939\u093e\u0964", "\u0928\u0939\u0940\u0902\u0964"]),
        ("\u03a4\u03b9; \u039d\u03b1\u03b9.", ["\u03a4\u03b9; \u039d\u03b1\u03b9."]),
        ("", []),
        (" \n\n ", []),
    ],
)  # fmt: skip
def test_where_sentences_end(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='ab A9.!?\n\t"。」)', max_size=60))
def test_spans_cover_everything_but_white_space(text: str) -> None:
    spans = sentence_spans(text)
    assert [text[start:end] for start, end in spans] == sentences(text)
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    assert edges == sorted(edges)
    assert all(not text[a:b].strip() for a, b in zip(edges[::2], edges[1::2], strict=True))


@pytest.mark.parametrize("run", [". ", " ", ".", "\n", "。", ". \t", 'A. "'])
def test_long_runs_take_linear_time(run: str) -> None:
    assert isinstance(sentences(run * 200_000), list)
