"""Bad input gives a clear error of its own class, and nothing is sent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_core import (
    Governor,
    MockClient,
    OpenAIClient,
    ReadSpec,
    ReplayClient,
    ResponseCache,
    Trace,
    answer_document,
    configure,
    estimate,
    example_document,
    override,
    read,
)
from harness_core.errors import (
    AuthError,
    BadKeyError,
    BadOverrideError,
    BadQuestionError,
    BadRecipeError,
    BadSettingError,
    BrokenDocumentError,
    CacheError,
    EmptyDocumentError,
    EncryptedDocumentError,
    HarnessError,
    NoCriteriaError,
    NoFieldsError,
    ReplayUnreadableError,
    SourceNotFoundError,
    TraceError,
    UnknownMethodError,
    UnknownOverrideError,
    UnsupportedFormatError,
)
from tests.support.openai_server import OpenAIServer
from tests.support.reading import QUESTION, the_chunks

TEXT = ["Revenue was 45.2 million in 2025. It rose a little, as the board had said it would."]

Bad = Callable[[Path], Any]


def a_file(name: str, data: bytes) -> Bad:
    def make(folder: Path) -> str:
        file = folder / name
        file.write_bytes(data)
        return str(file)

    return make


def encrypted(folder: Path) -> str:
    encryption = pytest.importorskip("reportlab.lib.pdfencrypt").StandardEncryption
    canvases = pytest.importorskip("reportlab.pdfgen.canvas")
    file = folder / "locked.pdf"
    canvas = canvases.Canvas(str(file), encrypt=encryption("secret", "owner", canPrint=0))
    canvas.drawString(72, 720, "Revenue was 45.2 million.")
    canvas.save()
    return str(file)


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        (lambda folder: str(folder / "missing.pdf"), SourceNotFoundError, "missing.pdf"),
        (lambda folder: "missing.pdf", SourceNotFoundError, "missing.pdf"),
        (a_file("empty.md", b""), EmptyDocumentError, "empty.md"),
        (a_file("blank.txt", b" \n\n \t"), EmptyDocumentError, "blank.txt"),
        (str, UnsupportedFormatError, "is a folder"),
        (a_file("broken.pdf", b"%PDF-1.7\nnot really"), BrokenDocumentError, "broken.pdf"),
        (encrypted, EncryptedDocumentError, "locked.pdf"),
        (a_file("junk.md", bytes(range(256)) * 40), BrokenDocumentError, "junk.md"),
        (a_file("odd.xyz", b"some text in it"), UnsupportedFormatError, "xyz"),
        (lambda folder: [], EmptyDocumentError, None),
        (lambda folder: 42, UnsupportedFormatError, None),
    ],
)
def test_a_source_that_cannot_be_read_is_named(
    tmp_path: Path, source: Bad, error: type[HarnessError], said: str | None
) -> None:
    client = MockClient()
    given = source(tmp_path)
    with pytest.raises(error, match=said):
        answer_document(given, QUESTION, "fast", client=client)
    assert (client.calls(), client.embeds()) == ([], [])
    with pytest.raises(error):
        estimate(given, QUESTION, "fast", client=client)


@pytest.mark.parametrize(
    ("question", "recipe", "more", "error"),
    [
        (" \n ", "fast", {}, BadQuestionError),
        (None, "fast", {}, BadQuestionError),
        (QUESTION, "quickly", {}, BadRecipeError),
        (QUESTION, {"reed": "stuff"}, {}, BadRecipeError),
        (QUESTION, {"read": "stuff", "segmnt": "page"}, {}, BadRecipeError),
        (QUESTION, 7, {}, BadRecipeError),
        (QUESTION, "fast", {"max_token": 100}, UnknownOverrideError),
        (QUESTION, "fast", {"max_tokens": None}, BadOverrideError),
        (QUESTION, "fast", {"reader": "skimm"}, UnknownMethodError),
        (QUESTION, "fast", {"method": "paragraf"}, UnknownMethodError),
        (QUESTION, "fast", {"clean": "spotless"}, UnknownMethodError),
        (QUESTION, "fast", {"context_order": "sideways"}, BadSettingError),
        (QUESTION, "fast", {"ocr": "perhaps"}, BadSettingError),
    ],
)
def test_what_is_asked_badly_is_refused_before_the_document_is_touched(
    tmp_path: Path, question: Any, recipe: Any, more: dict[str, Any], error: type[HarnessError]
) -> None:
    client = MockClient()
    missing = tmp_path / "missing.pdf"  # would be an error of its own, were it looked at
    with pytest.raises(error):
        answer_document(missing, question, recipe, client=client, **more)
    with pytest.raises(error):
        estimate(missing, question, recipe, client=client, **more)
    assert client.calls() == []


@pytest.mark.parametrize(
    "settings",
    [
        {"max_csot_usd": 1},
        {"max_cost_usd": float("nan")},
        {"max_cost_usd": "5"},
        {"max_calls": -1},
        {"api": "carrier pigeon"},
        {"allow_urls": "yes"},
        {"actor": "me"},
    ],
)
def test_a_setting_that_cannot_be_kept_is_refused_where_it_is_set(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettingError, match=next(iter(settings))):
        configure(**settings)
    with pytest.raises(BadSettingError), override(**settings):
        raise AssertionError("unreachable")


def test_settings_that_contradict_each_other_are_refused() -> None:
    from harness_core import call

    client = MockClient()
    with pytest.raises(BadSettingError, match="max_output"):
        call(client, "Hello?", max_output=10, extra_body={"max_tokens": 20})
    with pytest.raises(BadSettingError, match="governor"):
        trace_with_another_governor()
    assert client.calls() == []


def trace_with_another_governor() -> None:
    from harness_core.calls.ambient import trace_for

    trace_for(Trace(), Governor(max_calls=1))


@pytest.mark.parametrize(
    ("reader", "error"), [("extract", NoFieldsError), ("screen", NoCriteriaError)]
)
def test_a_reader_without_what_it_needs_says_so(reader: str, error: type[HarnessError]) -> None:
    client = MockClient()
    with pytest.raises(error):
        read(the_chunks(2), QUESTION, client, ReadSpec(reader))
    assert client.calls() == []


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"{ not json", ReplayUnreadableError),
        (b'{"something": "else"}', ReplayUnreadableError),
        (b"", ReplayUnreadableError),
        (b"\x00\xff\xfe", ReplayUnreadableError),
    ],
)
def test_a_broken_trace_file_is_no_recording(
    tmp_path: Path, data: bytes, error: type[HarnessError]
) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(data)
    with pytest.raises(error):
        ReplayClient(file)
    with pytest.raises(TraceError):
        Trace.load(file)


def test_a_trace_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("mine")
    with pytest.raises(TraceError):
        Trace(path=file)
    assert file.read_text() == "mine"


def test_a_cache_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    client = MockClient()
    with pytest.raises(CacheError, match=str(tmp_path)):
        read(the_chunks(1), QUESTION, client.with_cache(ResponseCache(tmp_path)), "stuff")
    assert client.calls() == []


def test_a_key_with_a_newline_is_refused_without_being_shown() -> None:
    with pytest.raises(BadKeyError) as caught:
        answer_document(
            example_document("md"), QUESTION, client=OpenAIClient("gpt-x", api_key="sk-abc\ndef")
        )
    assert "sk-abc" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::harness_core.errors.UnknownModelWarning")
def test_no_key_is_told_before_the_document_is_touched(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="OPENAI_API_KEY"):
        answer_document(tmp_path / "missing.pdf", QUESTION, "scanned")


def test_without_a_key_a_cache_answers_up_to_its_first_miss(tmp_path: Path) -> None:  # core 6
    with (
        OpenAIServer(reply=lambda messages: "45.2 million.") as server,
        ResponseCache(tmp_path / "replies") as kept,
    ):

        def client(key: str | None) -> Any:
            given = OpenAIClient("gpt-4o-mini", api_key=key, base_url=server.url)
            return given.with_cache(kept)

        first = answer_document(TEXT, QUESTION, client=client("sk-test"))
        again = answer_document(TEXT, QUESTION, client=client(None))
        assert (again.answer, again.totals().cached) == (first.answer, 1)
        with pytest.raises(AuthError):
            answer_document(TEXT, "What else rose?", client=client(None))
        assert len(server.requests) == 1


def test_a_client_and_a_trace_are_what_they_are_called() -> None:
    wrong: Any = "gpt"
    with pytest.raises(BadSettingError, match="client"):
        answer_document(["Revenue was 45.2 million."], QUESTION, client=wrong)
    with pytest.raises(BadSettingError, match="trace"):
        read(the_chunks(1), QUESTION, MockClient(), trace=wrong)
