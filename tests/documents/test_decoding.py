"""Bytes become the same text whatever they were written in."""

import codecs
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.documents.decoding import decode, decode_html, require_text
from harness_core.documents.paragraphs import paragraphs
from harness_core.errors import BrokenDocumentError

TEXT = "Café revenue rose — 45 €.\n\nThe second paragraph stands here.\n"

ENCODED = {
    "utf-8": TEXT.encode(),
    "utf-8 with mark": codecs.BOM_UTF8 + TEXT.encode(),
    "windows line ends": TEXT.replace("\n", "\r\n").encode(),
    "old mac line ends": TEXT.replace("\n", "\r").encode(),
    "cp1252": TEXT.encode("cp1252"),
    "utf-16-le with mark": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "utf-16-be with mark": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "utf-32-le with mark": codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
    "utf-32-be with mark": codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"),
    "odd last byte": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le") + b"\x41",
}


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED.keys())
def test_every_encoding_of_a_text_reads_the_same(data: bytes) -> None:  # I22
    assert decode(data) == TEXT
    require_text(data, "a.txt")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_told_by_its_zeros(encoding: str) -> None:  # I22
    plain = "Plain words, enough of them to tell.\nAnd a second line.\n"
    assert decode(plain.encode(encoding)) == plain


def test_latin_1_bytes_that_windows_leaves_undefined_still_read() -> None:  # I22
    assert decode(b"caf\xe9 \x81") == "café \x81"


def test_a_declared_charset_is_used_only_where_utf8_does_not_fit() -> None:
    assert decode("Größe".encode("cp1250"), "windows-1250") == "Größe"
    assert decode("Größe".encode(), "windows-1251") == "Größe"
    assert decode(b"\x93quoted\x94", "iso-8859-1") == "\u201cquoted\u201d"
    assert decode(b"caf\xe9", "no-such-charset") == "café"
    assert decode(b"caf\xe9", "hex") == "café"


def test_a_page_is_read_as_its_own_meta_element_says() -> None:
    page = '<html><head><meta charset="koi8-r"></head><body>Привет</body></html>'
    assert "Привет" in decode_html(page.encode("koi8-r"))
    declared = '<?xml version="1.0" encoding="windows-1251"?><p>Привет</p>'
    assert "Привет" in decode_html(declared.encode("cp1251"))
    assert "Привет" in decode_html(page.encode("cp1251"), "windows-1251")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"%PDF-1.4 rest", "a PDF"),
        (b"PK\x03\x04rest", "ZIP"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (bytes(range(256)) * 4, "binary data"),
        (b"\x00\x01\x02\x03\xff\xfe\xfd", "binary data"),
    ],
)
def test_what_is_no_text_is_refused_and_named(data: bytes, found: str) -> None:
    with pytest.raises(BrokenDocumentError, match=found):
        require_text(data, "notes.md")


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\ufeff")))
def test_any_text_survives_utf8(text: str) -> None:
    assert decode(codecs.BOM_UTF8 + text.encode()) == text


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([None, "utf-16", "latin-1", "shift_jis"]))
def test_no_bytes_make_decoding_fail(data: bytes, charset: str | None) -> None:
    for text in (decode(data, charset), decode_html(data, charset)):
        assert "\r" not in text
        assert all(isinstance(part, str) for part in paragraphs(text))


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", " \t ", "\u2003\u202f"])
def test_a_line_of_any_blanks_separates_paragraphs(blank: str) -> None:  # I24
    assert paragraphs(f"one\n{blank}\ntwo") == ["one", "two"]


def test_paragraphs_keep_inner_lines_and_drop_what_cannot_be_seen() -> None:
    assert paragraphs("  first \nline  \n\n \u2028 \n\n   second") == ["  first \nline", "second"]
    assert paragraphs("") == []


LOCALE_CODE = """
import hashlib, sys
from harness_core import segment
chunks = segment(sys.argv[1], {"max_tokens": 40})
print(hashlib.sha256(repr([(c.text, c.tokens) for c in chunks]).encode()).hexdigest())
"""


def test_every_locale_reads_the_same_chunks(tmp_path: Path) -> None:  # I23
    file = tmp_path / "été.md"
    file.write_text(TEXT * 20, encoding="utf-8")
    digests = set()
    for locale in ("C", "C.UTF-8", "tr_TR.ISO-8859-9"):
        variables = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", LOCALE_CODE, os.fsencode(file)],
            env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, check=True,
        )  # fmt: skip
        digests.add(done.stdout)
    assert len(digests) == 1
