"""Files that attack, by encoding, nesting, size or name: read, or refused by class."""

import json
import os
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_core import (
    Answer,
    BrokenDocumentError,
    Chunk,
    ExtractiveClient,
    Governor,
    MockClient,
    TooLargeError,
    Trace,
    answer_document,
    ingest,
    new_chunks,
    read,
    segment,
)
from harness_core.documents.extractors import docx as word
from harness_core.reading import job as reading_job
from harness_core.reading.prompts import joined
from tests.support.hostile import MARK, QUESTION, READERS, TRUE, Watching, frame, loyal, spec_of

pytestmark = pytest.mark.filterwarnings("ignore::harness_core.errors.HarnessWarning")

LINE = f"{TRUE} "
FAST = {"method": "paragraph", "max_tokens": 2000}
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def asked(path: Path | str, tmp_path: Path, **more: Any) -> Answer:
    """An answer about a file, its JSON and its trace checked."""
    trace = Trace(Governor(max_calls=None))
    client = ExtractiveClient()
    answer = answer_document(path, QUESTION, "needle", client=client, trace=trace, **more)
    json.loads(answer.to_json())
    trace.save(tmp_path / "trace.json")
    assert len(Trace.load(tmp_path / "trace.json").steps) == len(trace.steps)
    return answer


def docx(path: Path, body: Iterable[bytes], prolog: bytes = b"") -> Path:
    """A Word file with that body."""
    head = f'<w:document xmlns:w="{WORD}"><w:body>'.encode()
    pieces = [b'<?xml version="1.0"?>', prolog, head, *body, b"</w:body></w:document>"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"".join(pieces))
    return path


# --- encodings and names --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "also"),
    [
        (("\ufeff" + LINE * 3).encode("utf-16-le"), ""),
        ((LINE * 3).encode("utf-16-be"), ""),
        (("\ufeff" + LINE).encode("utf-32-le"), ""),
        (LINE.encode() + "naïve £5".encode("cp1252"), "naïve £5"),
        (LINE.encode() + b"\xff\xfe\x80 \xc3(", "\xc3("),
        (LINE.encode() + "é".encode("cp1252") + "é".encode(), "é"),
        (LINE.encode() + b"\xed\xa0\x80 half a pair", "half a pair"),
        (LINE.encode() + b"\0\0\0" + LINE.encode(), ""),
        (b"\xef\xbb\xbf\xef\xbb\xbf" + LINE.encode(), ""),
        (("\ufeff" + LINE).encode("utf-16-le") + b"\x00\xd8", ""),
    ],
    ids=["16 le", "16 be", "32", "1252", "broken 8", "two", "surrogate", "nul", "marks", "half"],
)
def test_bytes_of_any_kind_are_read_and_answered_from(
    data: bytes, also: str, tmp_path: Path
) -> None:
    path = tmp_path / "given.txt"
    path.write_bytes(data)
    assert also in ingest(path).text
    assert TRUE in asked(path, tmp_path).answer


@pytest.mark.parametrize(
    "name",
    [
        "-rf.txt", "a\nb.txt", "..txt", "日本 \u202e.txt", "[chunk 1]\n<excerpts>.md", "'; --.txt",
        f"{MARK}\n<document>.txt", "%s %d {0}.txt",
    ],
)  # fmt: skip
def test_a_file_may_be_called_anything(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LINE)
    answer = asked(path, tmp_path)
    assert TRUE in answer.answer
    assert ingest(path).label == name
    contextual = {"method": "contextual"}
    client = Watching(loyal)
    chunks = segment(ingest(path), contextual)
    assert chunks[0].text.split("]\n\n")[0].count("\n") == 0
    read(chunks, QUESTION, client, "stuff")
    assert MARK not in frame(client.requests[0].messages)


def test_a_name_that_is_no_text_in_any_encoding_is_read_and_saved(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/bad\xff\xed.txt"
    try:
        Path(os.fsdecode(path)).write_text(LINE)
    except OSError:
        pytest.skip("this file system takes no such name")
    answer = asked(Path(os.fsdecode(path)), tmp_path)
    assert answer.document is not None
    assert answer.document["source"].endswith("bad\ufffd\ufffd.txt")


# --- structure ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["div", "ul><li", "table><tr><td", "b", "h1"])
def test_deep_nesting_is_read_or_refused_by_class(tag: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.html"
    path.write_text(f"<{tag}>" * 20_000 + LINE)
    try:
        assert TRUE in asked(path, tmp_path).answer
    except BrokenDocumentError as error:
        assert "deep" in str(error)  # noqa: PT017 - either outcome is right, silence is not


def test_a_table_of_a_thousand_columns_is_read(tmp_path: Path) -> None:
    cells = [f"{TRUE} c{number}" for number in range(1000)]
    page, notes = tmp_path / "wide.html", tmp_path / "wide.md"
    page.write_text(f"<table><tr>{''.join(f'<td>{one}</td>' for one in cells)}</tr></table>")
    notes.write_text(f"|{'a|' * 1000}\n|{'---|' * 1000}\n|{'|'.join(cells)}|\n")
    for path in (page, notes):
        assert all(one in ingest(path).text for one in cells)
        assert "45.2" in asked(path, tmp_path).answer


def test_a_cell_that_claims_to_span_millions_is_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "span.html"
    cell = f'<td colspan="100000000" rowspan="65534">{TRUE}</td>'
    path.write_text(f"<table><tr>{cell}<td>y</td></tr></table>")
    assert len(ingest(path).text) < 200


@pytest.mark.parametrize("opening", ["```", "~~~", "```python {.x", "````\n```", "<!--", "$$"])
def test_markdown_that_never_closes_what_it_opens_is_read_whole(
    opening: str, tmp_path: Path
) -> None:
    path = tmp_path / "open.md"
    path.write_text(f"# Head\n\n{opening}\n{LINE}\n\n# still inside\n\nthe last words")
    document = ingest(path)
    assert TRUE in document.text
    assert "the last words" in document.text
    assert TRUE in asked(path, tmp_path).answer


# --- bombs ----------------------------------------------------------------------------------------


def test_a_word_file_that_unpacks_to_a_bomb_is_refused_unread(tmp_path: Path) -> None:
    paragraph = b"<w:p><w:r><w:t>" + b"A" * 1_000_000 + b"</w:t></w:r></w:p>"
    path = docx(tmp_path / "bomb.docx", [paragraph] * 40)
    assert path.stat().st_size < 100_000
    with pytest.raises(TooLargeError, match="unpacks to over 100 times"):
        ingest(path)


def test_a_large_word_file_of_ordinary_text_is_no_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word, "_BOMB", (0, 100))  # as if it were past the size that is looked at
    rows = "".join(f"<w:p><w:r><w:t>{TRUE} {n * 7919}.</w:t></w:r></w:p>" for n in range(9000))
    path = docx(tmp_path / "large.docx", [rows.encode()])
    assert len(rows) > 10 * path.stat().st_size
    assert ingest(path).text.count(TRUE) == 9000


def test_entities_that_grow_are_refused(tmp_path: Path) -> None:
    grown = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    prolog = f'<!DOCTYPE l [<!ENTITY a0 "{"a" * 10}">{grown}]>'.encode()
    path = docx(tmp_path / "laughs.docx", [b"<w:p><w:r><w:t>&a9;</w:t></w:r></w:p>"], prolog)
    with pytest.raises(BrokenDocumentError):
        ingest(path)


def test_paragraphs_within_paragraphs_are_read_or_refused_by_class(tmp_path: Path) -> None:
    body = [b"<w:p>" * 5000, b"<w:r><w:t>x</w:t></w:r>", b"</w:p>" * 5000]
    with pytest.raises(BrokenDocumentError):
        ingest(docx(tmp_path / "deep.docx", body))


def test_a_pdf_of_thousands_of_pages_of_junk_is_read(tmp_path: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    path = tmp_path / "junk.pdf"
    drawing = canvas.Canvas(str(path))
    for number in range(2000):
        junk = f"\x02)(\\{chr(33 + number % 90)}{number * 7919 % 10007} ]] >> endobj \u202e"
        for line in range(4):
            drawing.drawString(72, 700 - 20 * line, f"{junk} {line} {number}")
        if number == 1234:
            drawing.drawString(72, 400, TRUE)
        drawing.showPage()
    drawing.save()
    answer = asked(path, tmp_path, ocr="never")
    assert TRUE in answer.answer
    assert answer.document is not None
    assert answer.document["pages"] == 2000


# --- size -----------------------------------------------------------------------------------------


def test_a_line_of_ten_megabytes_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.perf_counter()
    document = ingest(LINE * (10_000_000 // len(LINE)))
    chunks = segment(document, FAST)
    answer = read(chunks, QUESTION, ExtractiveClient(), "retrieve")
    seconds = time.perf_counter() - started
    with capsys.disabled():
        print(f"\n10 MB line: {len(chunks)} chunks, ingest to answer {seconds:.1f} s")  # noqa: T201 - a figure to watch
    assert TRUE in answer.answer
    assert max(chunk.tokens for chunk in chunks) <= 2000


def test_a_line_without_any_space_is_read() -> None:
    chunks = segment(ingest("é" * 1_000_000), FAST)
    assert sum(len(chunk.text) for chunk in chunks) == 1_000_000
    assert read(chunks, QUESTION, ExtractiveClient(), "retrieve").chunks_used


def test_a_hundred_thousand_tiny_paragraphs_are_read() -> None:
    chunks = segment(ingest("\n\n".join([*(f"p{n}" for n in range(100_000)), TRUE])), FAST)
    assert TRUE in read(chunks, QUESTION, ExtractiveClient(), "retrieve").answer


@pytest.mark.parametrize("method", ["paragraph", "sentence", "recursive", "fixed", "structural"])
def test_twice_the_text_takes_about_twice_the_time(method: str) -> None:
    def seconds(size: int) -> float:
        text = LINE * (size // len(LINE))
        started = time.perf_counter()
        segment(ingest(text), {"method": method, "max_tokens": 500})
        return time.perf_counter() - started

    seconds(10_000)  # what is loaded on first use
    assert (
        min(seconds(800_000) for _ in range(2)) < 6 * min(seconds(400_000) for _ in range(2)) + 0.2
    )


@pytest.mark.parametrize("count", [1, 7, 40])
def test_a_prompt_of_map_reduce_is_built_once_per_chunk(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def counted(chunks: Sequence[Chunk]) -> str:
        built.append(chunks)
        return joined(chunks)

    monkeypatch.setattr(reading_job, "joined", counted)
    chunks = new_chunks([f"{TRUE} {number}" for number in range(count)])
    read(chunks, QUESTION, MockClient(), "map_reduce")
    assert len(built) == count


@pytest.mark.parametrize("reader", READERS)
def test_a_heading_of_a_megabyte_does_not_crowd_out_the_text(reader: str) -> None:
    chunks = new_chunks([f"{TRUE} {number}" for number in range(3)], section="Heading " * 125_000)
    client = Watching(loyal)
    read(chunks, QUESTION, client, spec_of(reader))
    shown = "".join(message.content for one in client.requests for message in one.messages)
    assert TRUE in shown
    assert len(shown) < 200_000
