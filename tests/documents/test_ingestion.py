"""Documents from sources: assembling, statistics, the cache, third-party extractors."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_core import documents as api
from harness_core.config import override
from harness_core.documents import (
    Block,
    Extracted,
    ingest,
    list_extractors,
    register_cleaner,
    register_extractor,
)
from harness_core.documents.cache import DocumentCache, settings_key
from harness_core.documents.cache import documents as cache
from harness_core.documents.types import Document
from harness_core.errors import (
    BadSettingError,
    BrokenDocumentError,
    EmptyDocumentError,
    MissingDepError,
    UnknownMethodError,
)
from harness_core.models import count_tokens

TEXT = "Revenue rose to 45.2 million.\n\nPage 3\n\nMargin was 41 percent.\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    return path


# --- assembling -----------------------------------------------------------------------------------


def test_a_document_is_counted_and_logged(file: Path) -> None:  # I37
    document = ingest(file)
    assert [(block.block_id, block.text) for block in document.blocks] == [
        (1, "Revenue rose to 45.2 million."),
        (2, "Margin was 41 percent."),
    ]
    stats = dict(document.stats)
    log = stats.pop("clean_log")
    assert stats == {
        "blocks": 2,
        "chars": 51,
        "chars_removed": 6,
        "tokens": sum(count_tokens(block.text) for block in document.blocks),
        "pages": None,
        "clean_steps": [
            "page_numbers", "hyphenation", "control_chars", "ligatures", "collapse_whitespace",
        ],
        "unread_pages": [],
    }  # fmt: skip
    assert [row["chars_removed"] for row in log] == [6, 0, 0, 0, 0]
    assert ingest(file, {"clean": ["urls"]}).stats["clean_steps"] == ["urls"]


def test_too_little_text_is_refused_with_the_counts() -> None:  # I39
    with pytest.raises(EmptyDocumentError, match=r"<inline text>: 5 characters.*at least 20"):
        ingest("Hello")
    with pytest.raises(EmptyDocumentError, match="page_numbers 6"):
        ingest("Page 3\n\nshort")
    with pytest.raises(EmptyDocumentError, match="0 characters"):
        ingest("", {"min_chars": 0})


def test_the_step_is_told_of(file: Path) -> None:
    told: list[tuple[str, Any]] = []
    document = ingest(file, record=lambda label, detail: told.append((label, dict(detail))))
    ingest(file, record=lambda label, detail: told.append((label, dict(detail))))
    assert told == [
        ("ingest", {
            "cached": False, "source": "a.txt", "blocks": 2, "tokens": document.stats["tokens"],
            "clean_steps": document.stats["clean_steps"], "settings": {},
        }),
        ("ingest", {"cached": True, "blocks": 2, "settings": {}}),
    ]  # fmt: skip


def test_an_unknown_cleaner_or_extractor_is_told_by_name(file: Path) -> None:
    with pytest.raises(UnknownMethodError, match="nope"):
        ingest(file, {"clean": ["nope"]})
    with pytest.raises(UnknownMethodError, match="nope"):
        ingest(file, {"extractor": "nope"})


def test_a_text_file_of_binary_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "junk.md"
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(BrokenDocumentError, match="binary"):
        ingest(path)


# --- cache ----------------------------------------------------------------------------------------


def test_a_file_is_ingested_once_until_it_changes(file: Path) -> None:  # I7
    first = ingest(file)
    assert ingest(file) is first
    file.write_text(TEXT + "\nA sentence more.")
    assert ingest(file).stats["chars"] > first.stats["chars"]
    stat = file.stat()
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    assert ingest(file) is not first


def test_every_setting_is_part_of_the_key(file: Path) -> None:  # I6
    kept = [ingest(file, spec) for spec in ("standard", "none", {"min_chars": 21}, "minimal")]
    assert len({id(document) for document in kept}) == 4
    assert kept[0].text != kept[1].text


def test_texts_are_told_apart_by_what_is_ingested() -> None:  # I8
    joined, one = ingest(["first part", "second part"]), ingest("first part\nsecond part")
    assert (len(joined.blocks), len(one.blocks)) == (2, 1)
    assert ingest("first part\n\nsecond part") is joined


def test_a_cleaner_registered_again_starts_a_new_entry(file: Path) -> None:  # I9
    said = {"word": "one"}
    spec = {"clean": ["mark"]}
    register_cleaner("mark", lambda text, opts: f"{text} {said['word']}")
    assert "one" in ingest(file, spec).text
    said["word"] = "two"
    assert "two" not in ingest(file, spec).text
    register_cleaner("mark", lambda text, opts: f"{text} {said['word']}")
    assert "two" in ingest(file, spec).text


def test_an_extractor_registered_again_starts_a_new_entry(file: Path) -> None:
    register_extractor("mine", "txt", lambda path, opts: ["first version of it"])
    assert ingest(file, {"min_chars": 1}).text == "first version of it"
    register_extractor("mine", "txt", lambda path, opts: ["second version of it"])
    assert ingest(file, {"min_chars": 1}).text == "second version of it"


def test_the_tokenizer_is_part_of_the_key(file: Path) -> None:
    with override(tokenizer="words"):
        words = ingest(file).stats["tokens"]
    assert (words, ingest(file).stats["tokens"] == words) == (9, False)


def test_the_cache_can_be_off_and_flushed(file: Path) -> None:
    with override(cache_documents=False):
        assert ingest(file) is not ingest(file)
    assert len(cache) == 0
    first = ingest(file)
    api.flush_documents()
    assert ingest(file) is not first


def _document(text: str) -> Document:
    return Document(blocks=(Block(text=text),), source="s", label="l")


def test_the_cache_keeps_to_its_budget_and_the_newest() -> None:  # I11
    small = DocumentCache(budget=3000)
    for number in range(1000):
        small.put(number, _document("x" * 500))
        small.get(0)
    assert small.get(999) is not None
    assert small.get(0) is not None  # used all the time
    assert len(small) == 3
    small.put("huge", _document("x" * 10_000))
    assert small.get("huge") is not None
    assert len(small) == 1


def test_settings_are_told_apart_at_every_depth() -> None:  # I12
    nested: list[dict[str, Any]] = [
        {"a": {"b": {"c": 1}}},
        {"a": {"b": {"d": 1}}},
        {"a": {"b": 1, "c": None}},
    ]
    texts: list[dict[str, Any]] = [
        {"a": '1","b":"2'},
        {"a": "1", "b": "2"},
        {"a": ["1", "2"]},
        {"a": "1,2"},
    ]
    keys = [settings_key(fields) for fields in nested + texts]
    assert len(set(keys)) == len(keys)
    assert settings_key({"a": 1, "b": 2}) == settings_key({"b": 2, "a": 1})


def test_documents_are_ingested_from_threads_without_trouble(file: Path) -> None:
    found: list[Document] = []
    threads = [threading.Thread(target=lambda: found.append(ingest(file))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {document.text for document in found} == {ingest(file).text}


# --- extractors of others -------------------------------------------------------------------------


def _pages(pages: Any, unread: Any = ()) -> Callable[..., Extracted]:
    return lambda path, opts: Extracted(
        blocks=(Block(text="text on the second page", page=2),), pages=pages, unread_pages=unread
    )


@pytest.mark.parametrize("pages", ["9", [9], -1, float("inf"), float("nan"), True, 1, None])
def test_a_page_count_that_is_none_is_ignored(file: Path, pages: Any) -> None:  # I19
    register_extractor("mine", ["txt"], _pages(pages))
    assert ingest(file).stats["pages"] == 2


def test_pages_are_the_highest_number_known(file: Path) -> None:  # I18, I19
    register_extractor("mine", ["txt"], _pages(5, unread=[7, 3, 3, -1, "iv"]))
    document = ingest(file)
    assert (document.stats["pages"], document.unread_pages) == (7, (3, 7, "iv"))


def test_the_last_registered_extractor_reads_an_extension(file: Path) -> None:  # I21
    register_extractor("one", [".TXT"], lambda path, opts: "the first extractor read it")
    register_extractor("two", "txt", lambda path, opts: iter(["the second extractor read it"]))
    assert ingest(file).text == "the second extractor read it"
    register_extractor("one", "txt", lambda path, opts: ["the first again, as the last"])
    assert ingest(file).text == "the first again, as the last"
    assert ingest(file, {"extractor": "txt"}).blocks[0].text == "Revenue rose to 45.2 million."
    with pytest.raises(BadSettingError):
        register_extractor("", "txt", lambda path, opts: [])


def test_rows_may_be_mappings_and_blank_ones_are_dropped(file: Path) -> None:
    def rows(path: Path, opts: Any) -> list[Any]:
        return [
            {"text": "a row with its place", "page": 4, "section": "S", "kind": "table"},
            {"text": None}, "  ", Block(text="a block as it is"), "a plain string",
        ]  # fmt: skip

    register_extractor("mine", "txt", rows)
    assert [(b.text, b.page, b.section, b.kind) for b in ingest(file).blocks] == [
        ("a row with its place", 4, "S", "table"),
        ("a block as it is", None, None, "body"),
        ("a plain string", None, None, "body"),
    ]


def test_extractors_are_listed_with_what_they_need() -> None:
    rows = {row["name"]: row for row in list_extractors()}
    assert list(rows) == ["txt", "md", "html", "pdf", "docx", "image"]
    assert set(rows["pdf"]) == {"name", "extensions", "description", "needs", "available"}
    assert rows["pdf"]["needs"] == ["pypdfium2"]
    assert rows["txt"]["available"] is True


def test_a_missing_package_is_named_with_its_extra(
    pdf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness_core.documents.extractors import registry

    path = pdf([["text of the page"]])
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(MissingDepError, match=r"harness-integrations\[documents\]"):
        ingest(path)


def test_the_public_names_are_there_at_every_use() -> None:
    for _ in range(2):
        for name in api.__all__:
            assert getattr(api, name) is not None
    with pytest.raises(AttributeError):
        api.nothing  # noqa: B018 - the point of the test
