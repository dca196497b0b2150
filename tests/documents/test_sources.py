"""A source is a file, a web address or text; a typo never becomes the document."""

from pathlib import Path
from typing import Any

import pytest

from harness_core.documents import ingest
from harness_core.documents.sources import INLINE, locate
from harness_core.errors import (
    PathAsTextWarning,
    SourceNotFoundError,
    UnsupportedFormatError,
    UrlError,
)

PROSE = "The company had a revenue of 45.2"


@pytest.mark.parametrize("source", ["no_such.pdf", "a b.MD", "x/y/z.docx", Path("no_such.xyz")])
def test_a_path_that_names_no_file_is_an_error(source: Any) -> None:  # I1
    with pytest.raises(SourceNotFoundError) as caught:
        locate(source)
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize(
    "source",
    [
        PROSE,  # I2
        "This needs version 2.10.3",  # I2
        "See the  notes.txt",
        "two\nlines.md",
        "ends with a word.",
        "x" * 5000 + ".pdf",
        "/" * 4090 + "\u00e9.pdf",
        "null \0 byte",
        "",
    ],
)
def test_prose_is_text(source: str) -> None:
    assert locate(source).kind == "text"


def test_a_string_like_an_unknown_path_is_text_and_said() -> None:  # I3
    with pytest.warns(PathAsTextWarning, match=r"annual\.pfd"):
        document = ingest("reports/2024/annual.pfd")
    assert document.text == "reports/2024/annual.pfd"
    assert [name for name, _ in document.warnings] == ["PathAsTextWarning"]
    assert ingest("reports/2024/annual.pfd").warnings == document.warnings  # I10: said, not shown


def test_a_file_name_may_hold_a_line_end(tmp_path: Path) -> None:  # I4
    path = tmp_path / "two\nlines.txt"
    path.write_text("Text of the file, long enough.")
    assert ingest(str(path)).text == "Text of the file, long enough."


def test_long_text_is_never_taken_for_a_path(monkeypatch: pytest.MonkeyPatch) -> None:  # I5
    def refuse(path: object) -> bool:
        raise AssertionError(f"asked about {str(path)[:20]!r}")

    monkeypatch.setattr("os.path.exists", refuse)
    monkeypatch.setattr("os.path.isfile", refuse)
    text = "word " * 1000
    assert locate(text).label == INLINE


def test_texts_in_a_list_are_joined_by_a_blank_line() -> None:  # I8
    assert locate(["a", "b"]).value == "a\n\nb"
    assert locate(("only",)).value == "only"
    assert len(ingest(["first element", "second element"]).blocks) == 2
    assert len(ingest("first element\nsecond element").blocks) == 1


@pytest.mark.parametrize("source", [b"bytes", bytearray(b"x"), 3, None, ["a", 1], {"a": 1}])
def test_anything_else_is_refused(source: Any) -> None:
    with pytest.raises(UnsupportedFormatError, match="not"):
        locate(source)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    for source in (tmp_path, str(tmp_path)):
        with pytest.raises(UnsupportedFormatError, match="folder"):
            locate(source)


def test_a_format_nobody_reads_is_refused_with_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xyz"
    path.write_text("text")
    with pytest.raises(UnsupportedFormatError, match="docx"):
        ingest(path)
    assert ingest(path, {"extractor": "txt", "min_chars": 1}).text == "text"


def test_a_document_knows_where_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Text of the file, long enough.")
    (tmp_path / "sub").mkdir()
    document = ingest(tmp_path / "sub" / ".." / "a.txt")
    assert (document.source, document.label) == (path.resolve().as_posix(), "a.txt")
    assert ingest(PROSE).source == INLINE


def test_an_address_ending_like_a_file_is_an_address() -> None:  # I34
    assert locate(" HTTPS://example.org/a.pdf ").kind == "url"
    assert locate("see https://example.org/a").kind == "text"
    with pytest.raises(UrlError, match="allow_urls"):
        ingest("https://example.org/a.pdf")


def test_a_lone_surrogate_is_no_crash() -> None:
    assert ingest("some text \ud800 and more of it").text == "some text \ufffd and more of it"
