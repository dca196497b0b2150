"""Adding files: bounds, reasons for failing, and nothing lost when a process dies."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from docx import Document as Docx
from hypothesis import given
from hypothesis import strategies as st

from harness_core.collections import Collection, Collections, Limits, in_a_process, in_this_process
from harness_core.collections.faults import InvalidRequestError, TemporarilyUnavailableError
from harness_core.collections.ingestion import processing
from harness_core.collections.ingestion.archives import check_archive
from harness_core.collections.ingestion.extraction import extracted
from harness_core.collections.ingestion.limits import IngestFault
from harness_core.collections.ingestion.processing import process_next
from harness_core.collections.store import Claim

ASK = {"query": "pump"}


def claim(path: str, data: bytes, content_type: str = "text/plain") -> Claim:
    return Claim(file_id="fil_x", token="", path=path, content_type=content_type, data=data)


def docx(*paragraphs: str) -> bytes:
    document, file = Docx(), io.BytesIO()
    for text in paragraphs:
        document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def failed(limits: Limits, data: bytes, content_type: str) -> str:
    with pytest.raises(IngestFault) as caught:
        in_this_process(claim("/x", data, content_type), limits)
    return caught.value.reason


def test_a_file_read_in_its_own_process_is_the_one_read_here() -> None:
    job = claim("/a.docx", docx("The pump was repaired.", "The valve was closed."), DOCX)
    assert in_a_process(job, Limits()) == in_this_process(job, Limits())


def test_the_process_has_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    seen: list[dict[str, str]] = []
    real = subprocess.Popen

    def watched(*args: object, **kwargs: object) -> object:
        seen.append(kwargs["env"])  # type: ignore[arg-type]  # it is a mapping
        return real(*args, **kwargs)  # type: ignore[call-overload]  # handed on as it came

    monkeypatch.setattr(subprocess, "Popen", watched)
    in_a_process(claim("/a.txt", b"text"), Limits())
    assert "OPENAI_API_KEY" not in seen[0]


def test_a_slow_file_is_given_up() -> None:  # SEC09
    with pytest.raises(IngestFault) as caught:
        in_a_process(claim("/a.txt", b"text"), Limits(seconds=0.01))
    assert caught.value.reason == "extract_timeout"


def test_a_file_that_takes_too_much_memory_fails() -> None:
    with pytest.raises(IngestFault) as caught:
        in_a_process(claim("/a.txt", b"word " * 10_000_000), Limits(memory_bytes=400 * 2**20))
    assert caught.value.reason in ("too_large", "corrupt")


@pytest.mark.parametrize(
    ("data", "content_type", "reason"),
    [
        (b"GIF89a", "image/gif", "unsupported_type"),
        (b"\x89PNG\r\n", "text/plain", "corrupt"),  # SEC11
        (b"<html>", "application/pdf", "corrupt"),
        (b"", "text/plain", "no_text"),
        (b"  \n ", "text/plain", "no_text"),
        (b"%PDF-1.4 nothing", "application/pdf", "corrupt"),
        (b"PK\x03\x04 nothing", DOCX, "corrupt"),
    ],
)
def test_a_file_fails_for_a_reason(data: bytes, content_type: str, reason: str) -> None:
    assert failed(Limits(), data, content_type) == reason


def test_text_and_pages_are_bounded() -> None:
    assert failed(Limits(characters=10), b"more than ten", "text/plain") == "too_large"
    from harness_core import example_document

    pdf = Path(example_document("pdf")).read_bytes()
    assert failed(Limits(pages=1), pdf, "application/pdf") == "too_large"


def archive(path: Path, **parts: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name.replace("_", "."), data)
    return path


def zip_reason(path: Path, limits: Limits | None = None) -> str:
    with pytest.raises(IngestFault) as caught:
        check_archive(path, limits or Limits())
    return caught.value.reason


def test_an_archive_is_measured_by_what_it_unpacks_to(tmp_path: Path) -> None:  # SEC05
    bomb = archive(tmp_path / "bomb.zip", a_xml=b"\0" * 20_000_000)
    assert zip_reason(bomb) == "zip_limits"
    plain = archive(tmp_path / "plain.zip", a_xml=os.urandom(1000), b_xml=os.urandom(1000))
    check_archive(plain, Limits())
    assert zip_reason(plain, Limits(zip_bytes=1500)) == "zip_limits"
    assert zip_reason(plain, Limits(zip_entry_bytes=999)) == "zip_limits"
    assert zip_reason(plain, Limits(zip_entries=1)) == "zip_limits"


def test_entries_that_overlap_are_refused(tmp_path: Path) -> None:  # SEC06
    path = tmp_path / "overlap.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a.xml", os.urandom(1000))
        first = made.filelist[0]
        made.filelist.append(first)
    assert zip_reason(path) in ("zip_limits", "corrupt")


def test_a_false_size_is_damage(tmp_path: Path) -> None:  # SEC07
    path = archive(tmp_path / "false.zip", a_xml=b"x" * 5000)
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02") + 24  # the size in the directory
    data[place : place + 4] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    assert zip_reason(path) == "corrupt"


def test_a_document_type_is_refused(tmp_path: Path) -> None:  # SEC08
    path = archive(tmp_path / "dtd.zip", a_xml=b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')
    assert zip_reason(path) == "corrupt"


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/a/../b", "/./a", "//a", "a", "", "/a\0b", "/a\\b", "/a%2f..%2fb", "/",
     "/a/", "/" + "x" * 1024, "/a\nb", "/\ud800"],
)  # fmt: skip
def test_a_path_that_is_none_is_refused(docs: Collection, path: str) -> None:  # SEC01
    with pytest.raises(InvalidRequestError):
        docs.add(path, "text")
    assert len(docs.files()) == 3


def test_composed_and_decomposed_paths_are_one(docs: Collection) -> None:  # SEC02
    docs.add("/caf\u00e9.txt", "The first pump.")
    docs.add("/cafe\u0301.txt", "The second pump.")
    assert [f.path for f in docs.files()].count("/caf\u00e9.txt") == 1


def test_a_new_version_takes_over_when_it_is_ready(docs: Collection) -> None:
    old = docs.files()[0]
    new = docs.add(old.path, "A new pump text.", wait=False)
    assert {old.id, new.id} <= {file.id for file in docs.files()}
    assert docs.text(old.id) == "The alpha pump was repaired in March by Ann."
    docs._engine.store.claim(0)  # another process that dies at once
    time.sleep(0.001)
    while docs.file(new.id).status != "ready":
        process_next(docs._engine.store, docs._engine.ingestion, Limits(lease_seconds=0))
    assert old.id not in {file.id for file in docs.files()}
    assert docs.text(new.id) == "A new pump text."
    assert "file.deleted" in [event.type for event in docs.events()]


def test_metadata_may_spell_a_nul_and_hold_none(docs: Collection) -> None:
    spelled = {"a": "\\u0000", "b": "\\\\u0000", "c\\u0000": 1}
    assert docs.add("/spelled.txt", "x", metadata=spelled).metadata == spelled
    for held in ({"a": "\0"}, {"a": "\\\0"}, {"\0": 1}, {"a": ["\\\\", {"b": "\0"}]}):
        with pytest.raises(InvalidRequestError):
            docs.add("/held.txt", "x", metadata=held)


def test_a_file_deleted_meanwhile_never_becomes_ready(docs: Collection) -> None:  # SEC13
    from harness_core.collections.store import Piece, TextForm

    added = docs.add("/late.txt", "The late pump.", wait=False)
    store = docs._engine.store
    taken = store.claim(60, added.id)
    assert taken is not None
    docs.delete(added.id)
    form = TextForm(text="The late pump.", pieces=(Piece(start=0, stop=14),))
    assert not store.finish(taken, form)
    assert not [hit for hit in docs.search({"query": "late"}).results if hit.path == "/late.txt"]


@pytest.mark.parametrize("path", ["/late.txt", "/broken.txt"])
def test_what_was_read_is_kept_once_the_store_is_no_longer_busy(
    docs: Collection, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    store = docs._engine.store
    busy = iter((True, True, False))

    def sometimes(keep: Callable[..., bool]) -> Callable[..., bool]:
        def kept(*given: Any) -> bool:
            if next(busy):
                raise TemporarilyUnavailableError("store", retryable=True)
            return keep(*given)

        return kept

    monkeypatch.setattr(processing, "_PAUSE_SECONDS", 0)
    for name in ("finish", "fail"):
        monkeypatch.setattr(store, name, sometimes(getattr(store, name)))
    status = docs.add(path, "The late pump.").status
    assert status == ("failed" if "broken" in path else "ready")
    assert next(busy, None) is None  # it was not read anew


def test_a_store_that_stays_busy_is_not_tried_for_ever(
    docs: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> bool:
        raise TemporarilyUnavailableError("store", retryable=True)

    added = docs.add("/late.txt", "The late pump.", wait=False)
    store = docs._engine.store
    monkeypatch.setattr(store, "finish", never)
    monkeypatch.setattr(processing, "_BUSY_SECONDS", 0)
    with pytest.raises(TemporarilyUnavailableError):
        process_next(store, in_this_process, Limits(), added.id)


def test_a_broken_file_leaves_the_collection_as_it_was(docs: Collection) -> None:
    before = docs.search(ASK).results
    assert docs.add("/broken.txt", "x").status == "failed"
    assert docs.search(ASK).results == before
    assert docs.events()[-1].payload["error"]["code"] == "corrupt"


PARTS = ["a ", "b. ", "\n", "\n\n", "😀", "é", "\u200b", "x" * 700, "漢字。"]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=30).map("".join))
def test_every_visible_character_is_in_exactly_one_piece(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:  # SEC12
    path = tmp_path_factory.mktemp("x") / "a.txt"
    path.write_text(f"begin {text}", "utf-8")
    form = extracted(path, Limits(piece_tokens=40))
    covered = [form.text[piece.start : piece.stop] for piece in form.pieces]
    assert "".join("".join(covered).split()) == "".join(form.text.split())
    assert all(one.stop <= two.start for one, two in pairwise(form.pieces))
    assert all(piece == piece.strip() for piece in covered)


SCRIPT = textwrap.dedent(
    """
    import sys, time
    from harness_core.collections import Collections, Limits, in_this_process
    def say(line):  # in one write: two threads speak
        sys.stdout.write(line + "\\n")
        sys.stdout.flush()
    def slow(claim, limits):
        say("working")
        time.sleep(0.02)
        return in_this_process(claim, limits)
    engine = Collections(sys.argv[1], ingestion=slow, limits=Limits(lease_seconds=0.2))
    made = engine.namespace("acme").collection("docs")
    with engine.worker():
        for number in range(1000):
            file = made.add(f"/{number:04}.txt", f"The pump word{number} was repaired.", wait=False)
            say(file.id)
    """
)


@pytest.mark.parametrize("lines", [3, 12, 30])
def test_a_killed_process_loses_no_acknowledged_file_and_no_index(
    tmp_path: Path, lines: int
) -> None:
    path = tmp_path / "killed.db"
    engine = Collections(path, ingestion=in_this_process, limits=Limits(lease_seconds=0.2))
    engine.create_namespace("acme")
    made = engine.namespace("acme").create_collection("docs")
    made.add("/before.txt", "The pump before was repaired.")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    said = [process.stdout.readline().strip() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    said += [line.strip() for line in process.stdout]
    process.stdout.close()
    process.wait()
    acknowledged = {line for line in said if line.startswith("fil_")}
    assert acknowledged <= {file.id for file in made.files()}
    assert [hit.path for hit in made.search({"query": "before"}).results] == ["/before.txt"]
    while made.info().counts.get("ready") != len(made.files()):
        engine.process()
    for file in made.files():
        number = file.path[1:-4]
        word = "before" if number == "before" else f"word{int(number)}"
        assert made.search({"query": word}).results[0].path == file.path
    engine.close()


def test_two_workers_share_the_work(docs: Collection, engine: Collections) -> None:
    with engine.worker(), engine.worker():
        added = [docs.add(f"/{n}.txt", f"The pump n{n}.", wait=False) for n in range(10)]
        while any(docs.file(file.id).status != "ready" for file in added):
            time.sleep(0.01)
    ready = [event for event in docs.events() if event.type == "file.ready"]
    assert len(ready) == 13
