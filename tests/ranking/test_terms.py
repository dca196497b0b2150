import pytest

from harness_core.ranking.terms import terms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The units, 12,400 of them!", ["the", "units", "12", "400", "of", "them"]),
        ("a b cd", ["cd"]),
        ("snake_case café Naïve", ["snake", "case", "café", "naïve"]),
        ("Привет, МИР", ["привет", "мир"]),  # core 147
        ("日本語文", ["日本", "本語", "語文"]),  # core 147
        ("語", ["語"]),
        ("テーブル", ["テー", "ーブ", "ブル"]),
        ("iPhone手机x", ["iphone", "手机"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("नमस्ते", ["नमस्ते"]),
        ("... !!", []),
        ("", []),
    ],
)
def test_the_words_of_a_text(text: str, found: list[str]) -> None:
    assert terms(text) == found


def test_a_longer_minimum_keeps_pairs_of_unspaced_scripts() -> None:
    assert terms("an old 手机 of mine", min_length=3) == ["old", "手机", "mine"]
