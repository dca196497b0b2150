"""The benchmark of the matchers runs, and says of ours what is promised."""

from bench.quotations import KINDS, book, by_shadow, by_verified, measured, planted


def test_planted_quotations_are_what_they_are_called() -> None:
    sentences = book(5000)
    text = " ".join(sentences)
    for one in planted(sentences, 5):
        assert (one.text in text) is (one.kind == "true")


def test_ours_accepts_no_altered_quotation_and_the_shadow_forgives_damage() -> None:
    ours, shadow = (measured(judge, 20_000, 6) for judge in (by_verified, by_shadow))
    assert [ours[kind] for kind in KINDS] == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert [shadow[kind] for kind in KINDS] == [1.0] * 5
