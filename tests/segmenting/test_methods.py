import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.config import override
from harness_core.errors import SegmentFallbackWarning
from harness_core.models import count_tokens
from harness_core.segmenting.methods.recursive import pieces
from harness_core.segmenting.methods.structural import NO_SECTION, is_heading
from tests.support.segmenting import cut, document, texts

FREE = ("paragraph", "sentence", "fixed", "recursive", "structural", "page", "contextual")
HOSTILE = {
    "base64": "QUJDRGVmZ2hp" * 400,
    "a long address": "https://example.org/" + "a1/b2?c=%20&" * 300,
    "no spaces": "電子文書管理" * 500,
    "emoji": "😀" * 600,
    "one long line": "alpha, beta; gamma. Delta " * 200,
}
PLAIN = st.text(
    alphabet=st.sampled_from([*"abZ09 .,;#!?\n\n\t-/", "é", "。", "電", "😀", "Ж"]),
    min_size=1,
    max_size=300,
)


def _words(first: int, last: int) -> str:
    return " ".join(f"w{number}" for number in range(first, last + 1))


@pytest.mark.parametrize("method", FREE)
def test_a_document_of_one_paragraph_is_one_chunk(method: str) -> None:  # S1
    chunks = cut(document(("Revenue rose to 45.2 million.", 1)), method)
    assert chunks.method == method
    assert [chunk.quoted for chunk in chunks] == ["Revenue rose to 45.2 million."]
    assert [chunk.chunk_id for chunk in chunks] == [1]
    assert chunks[0].tokens == count_tokens(chunks[0].text)


@pytest.mark.parametrize("method", FREE)
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_chunk_is_over_the_cap(method: str, kind: str) -> None:  # S2
    chunks = cut(document((HOSTILE[kind], 1)), {"method": method, "max_tokens": 64})
    assert len(chunks) > 5
    assert all(count_tokens(chunk.text) == chunk.tokens <= 64 for chunk in chunks)
    together = "".join("".join(chunk.quoted.split()) for chunk in chunks)
    assert together == "".join(HOSTILE[kind].split())


@given(
    st.sampled_from(FREE),
    st.lists(st.tuples(PLAIN.filter(str.strip), st.sampled_from([1, 2, 3])), min_size=1),
    st.integers(32, 80),
    st.integers(0, 79),
    st.integers(0, 80),
)
@settings(max_examples=80, deadline=None)
def test_whatever_the_text_chunks_fit_and_are_numbered(
    method: str, rows: list[tuple[str, int]], cap: int, overlap: int, floor: int
) -> None:
    spec = {
        "method": method,
        "max_tokens": cap,
        "overlap_tokens": min(overlap, cap - 1),
        "min_tokens": min(floor, cap),
    }
    chunks = cut(document(*rows), spec)
    assert max(count_tokens(chunk.text) for chunk in chunks) <= cap
    assert [chunk.chunk_id for chunk in chunks] == list(range(1, len(chunks) + 1))


@pytest.mark.parametrize("method", ["paragraph", "sentence", "fixed", "recursive"])
def test_overlap_never_turns_the_order_around(method: str) -> None:  # S5
    rows = [f"{_words(5 * n + 1, 5 * n + 5).capitalize()}." for n in range(60)]
    chunks = cut(document(*rows), {"method": method, "max_tokens": 100, "overlap_tokens": 99})
    firsts = [int(chunk.text.split()[0].strip("Ww.")) for chunk in chunks]
    lasts = [int(chunk.text.split()[-1].strip("Ww.")) for chunk in chunks]
    assert firsts == sorted(firsts)
    assert lasts == sorted(set(lasts))


@pytest.mark.usefixtures("by_words")
def test_paragraphs_are_packed_with_a_blank_line_between() -> None:
    rows = ("# Title", _words(1, 20), _words(21, 40), _words(41, 50))
    chunks = cut(document(*rows), {"max_tokens": 32})
    assert texts(chunks) == [f"# Title\n\n{rows[1]}", f"{rows[2]}\n\n{rows[3]}"]


@pytest.mark.usefixtures("by_words")
def test_a_chunk_over_two_pages_or_sections_has_neither() -> None:  # S10
    rows = ((_words(1, 10), 1, "A"), (_words(11, 20), 2, "A"), (_words(21, 45), 2, "B"))
    chunks = cut(document(*rows), {"max_tokens": 32})
    assert [(one.page, one.section, one.block_id) for one in chunks] == [
        (None, "A", None),
        (2, "B", 3),
    ]


def test_sentences_are_found_in_many_scripts() -> None:  # S30
    several = [
        "Выручка выросла. Прибыль упала. Долг погашен.",
        "Τα έσοδα αυξήθηκαν. Τα κέρδη μειώθηκαν.",  # noqa: RUF001
        "ارتفعت الإيرادات؟ نعم ارتفعت. وانخفض الدين.",
        "收入增长。利润下降。债务已还。",
        "売上が伸びた。利益は減った。",
    ]
    for text in several:
        chunks = cut(document(" ".join([text] * 12)), {"method": "sentence", "max_tokens": 40})
        assert len(chunks) > 3
        ends = tuple(".。؟")
        assert all(chunk.text.endswith(ends) for chunk in chunks)


@pytest.mark.usefixtures("by_words")
def test_fixed_windows_share_fewer_words_than_the_overlap() -> None:
    chunks = cut(
        document(_words(1, 80)), {"method": "fixed", "max_tokens": 32, "overlap_tokens": 8}
    )
    assert texts(chunks) == [_words(1, 32), _words(26, 57), _words(51, 80)]


@pytest.mark.usefixtures("by_words")
def test_the_last_fixed_window_is_kept_when_it_repeats_earlier_words() -> None:  # S20
    closing = "as we said before"
    chunks = cut(
        document(f"{closing} {_words(1, 28)} {closing}"), {"method": "fixed", "max_tokens": 32}
    )
    assert texts(chunks) == [f"{closing} {_words(1, 28)}", closing]


@pytest.mark.usefixtures("by_words")
def test_fixed_windows_are_found_without_counting_the_text_over_and_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # S20
    sizes: list[int] = []

    def count(text: str) -> int:
        sizes.append(len(text))
        return count_tokens(text)

    monkeypatch.setattr("harness_core.segmenting.cutting.count_tokens", count)
    text = "word " * 400_000
    chunks = cut(document(text), {"method": "fixed", "max_tokens": 100_000})
    assert [chunk.tokens for chunk in chunks] == [100_000] * 4
    assert sum(sizes) < 8 * len(text)


@given(PLAIN, st.integers(16, 60))
@settings(max_examples=60, deadline=None)
def test_recursive_pieces_add_up_to_the_text(text: str, cap: int) -> None:  # S19
    found = pieces(text, cap)
    assert "".join(found) == text
    assert all(count_tokens(piece) <= cap for piece in found)


def test_recursive_chunks_add_up_to_the_text() -> None:  # S19
    given_text = document("One, two; three. Four five.\n\n\nSix\tseven. " * 30)
    chunks = cut(given_text, {"method": "recursive", "max_tokens": 40})
    assert len(chunks) > 5
    assert "".join(texts(chunks)) == given_text.text


@pytest.mark.usefixtures("by_words")
def test_recursive_cuts_at_the_strongest_separator_that_is_needed() -> None:
    one, two, three = _words(1, 20), f"{_words(21, 40)}, {_words(41, 60)}", _words(61, 65)
    assert pieces(f"{one}\n\n{two}\n\n{three}", 32) == [
        f"{one}\n\n",
        f"{_words(21, 40)}, ",
        f"{_words(41, 60)}\n\n",
        three,
    ]
    assert pieces(f"\n{one}\n \n{three}", 24, ["\n"]) == [f"\n{one}\n \n", three]


@pytest.mark.usefixtures("by_words")
def test_recursive_overlap_glues_no_words() -> None:  # S19
    text = f"{_words(1, 30)}\n{_words(31, 58)}\n{_words(59, 80)}"
    chunks = cut(document(text), {"method": "recursive", "max_tokens": 32, "overlap_tokens": 4})
    assert {word for chunk in chunks for word in chunk.text.split()} == set(text.split())
    assert texts(chunks)[1] == f"{_words(27, 30)}\n{_words(31, 58)}\n"


@pytest.mark.parametrize(
    "text",
    [
        "# Title",
        "1. Introduction",
        "2.1 Результаты",
        "3) Übersicht",
        "4.\t概要",
        "1 مقدمة",
        "RISK FACTORS",
        "ÉTATS FINANCIERS & NOTES",
        "ВЫВОДЫ И ИТОГИ",
    ],
)
def test_a_heading_is_known_by_its_form(text: str) -> None:  # S15
    assert is_heading(text)


@pytest.mark.parametrize(
    "text",
    ["Revenue rose.", "#hashtag", "12,400 units", "1. small", "OK", "2024", "# " + "word " * 60],
)
def test_what_is_no_heading(text: str) -> None:
    assert not is_heading(text)


def test_sections_stay_apart_and_open_with_their_heading() -> None:  # S12
    rows = (
        ("Intro text.", 1, None),
        ("1. Methods", 1, "Methods"),
        ("We measured.", 1, "Methods"),
        ("It rained.", 2, "Results"),
        ("We measured again.", 3, "Methods"),
    )
    chunks = cut(document(*rows), "structural")
    assert texts(chunks) == [
        "Intro text.",
        "## Methods\n\nWe measured.",  # S16
        "## Results\n\nIt rained.",
        "## Methods\n\nWe measured again.",
    ]
    assert [chunk.section for chunk in chunks] == [NO_SECTION, "Methods", "Results", "Methods"]
    assert [chunk.page for chunk in chunks] == [1, 1, 2, 3]
    assert [chunk.source_text for chunk in chunks][:2] == [None, "We measured."]


def test_without_a_prefix_the_heading_stays_where_it_was() -> None:
    rows = (("## 1. Methods:", 1, "Methods"), ("We measured.", 1, "Methods"))
    chunks = cut(document(*rows), {"method": "structural", "prefix_section": False})
    assert texts(chunks) == ["## 1. Methods:\n\nWe measured."]
    assert chunks[0].source_text is None
    assert texts(cut(document(*rows), "structural")) == ["## Methods\n\nWe measured."]  # S16


def test_a_section_that_is_only_its_heading_is_kept_bare() -> None:  # S13
    rows = (("Annual Report", 1, "Annual Report"), ("Sales rose.", 1, "Sales"))
    chunks = cut(document(*rows), "structural")
    assert texts(chunks) == ["Annual Report", "## Sales\n\nSales rose."]


def test_headings_found_in_the_text_keep_their_years() -> None:  # S14
    rows = ("2022 Results", "We sold 5.", "2023 Results", "We sold 7.")
    chunks = cut(document(*rows), "structural")
    assert [chunk.section for chunk in chunks] == ["2022 Results", "2023 Results"]
    assert texts(chunks)[1] == "## 2023 Results\n\nWe sold 7."


def test_a_structural_chunk_that_is_split_keeps_its_section() -> None:  # S31
    label = "A heading that goes on " * 12
    chunks = cut(
        document(("Body text here.", 4, label)), {"method": "structural", "max_tokens": 48}
    )
    assert len(chunks) > 1
    assert chunks.extra["cap_enforced"] == 1
    assert {(chunk.section, chunk.page) for chunk in chunks} == {(label, 4)}
    assert {chunk.source_text for chunk in chunks} == {"Body text here."}


def test_pages_in_order_each_one_chunk() -> None:
    rows = (("b", 2), ("a", 1, "First"), ("c", 2), ("d", 10))
    chunks = cut(document(*rows), "page")
    assert texts(chunks) == ["a", "b\n\nc", "d"]
    assert [(chunk.page, chunk.section, chunk.block_id) for chunk in chunks] == [
        (1, "First", 2),
        (2, None, 1),
        (10, None, 4),
    ]


def test_page_labels_keep_the_order_they_come_in() -> None:
    rows = (("preface", "iv"), ("start", 1), ("more", 2))
    assert texts(cut(document(*rows), "page")) == ["preface", "start", "more"]


def test_blocks_without_a_page_are_kept_after_the_page_they_follow() -> None:  # S17
    rows = ("cover", ("one", 1), ("note", None), ("more note", None), ("two", 2), ("end", None))
    with pytest.warns(SegmentFallbackWarning, match="no page"):
        chunks = cut(document(*rows), "page")
    assert texts(chunks) == ["cover", "one", "note\n\nmore note", "two", "end"]
    assert [chunk.page for chunk in chunks] == [None, 1, None, 2, None]


def test_a_document_without_pages_is_cut_into_paragraphs() -> None:
    with pytest.warns(SegmentFallbackWarning, match="no pages"):
        chunks = cut(document("one", "two"), "page")
    assert chunks.method == "page->paragraph"
    assert texts(chunks) == ["one\n\ntwo"]


@pytest.mark.usefixtures("by_words")
def test_a_page_over_the_cap_is_split_and_stays_on_its_page() -> None:
    chunks = cut(document((_words(1, 40), 7)), {"method": "page", "max_tokens": 32})
    assert [(chunk.tokens, chunk.page) for chunk in chunks] == [(32, 7), (8, 7)]


def test_a_tokenizer_may_change_between_segmentations() -> None:
    given_text = document(_words(1, 100))
    with override(tokenizer="words"):
        assert len(cut(given_text, {"max_tokens": 50})) == 2
    assert len(cut(given_text, {"max_tokens": 50})) > 2
