"""Hostile paths and files sent to the service: refused or failed, with nothing left behind."""

import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness_core.collections import Limits, in_a_process
from tests.engine.conftest import QUICK
from tests.support import hostile_files as hostile
from tests.support.engine import World, path_of, world
from tests.support.uploads import listed, put, settled

PATHS = [
    "/../../etc/passwd", "/a/../b", "/./a", "//a", "a", "", "/", "/a\0b", "/a\\b",
    "/a%2f..%2fb", "/a%5Cb", "/" + "x" * 1025, "/a\r\nb", "/\u0085",
]  # fmt: skip


def _written(made: World) -> set[str]:
    """Everything in the folder of the store, the store and its side files aside."""
    folder = Path(str(made.engine._path)).parent
    return {one.name for one in folder.iterdir() if not one.name.startswith("engine.db")}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_none_is_refused_and_nothing_is_written(
    served: World, path: str
) -> None:  # SEC01
    before = listed(served, "docs")
    body = {"path": path, "text": "x"}
    renamed = f"/files/{before[0]['id']}"
    for response in (
        put(served, path, b"x", to="docs"),
        served.request("POST", path_of("docs", "/files"), json=body),
        served.request("PATCH", path_of("docs", renamed), json={"path": path}),
    ):
        assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_request")
    assert listed(served, "docs") == before
    assert _written(served) == set()


def test_forms_of_one_path_are_one_file(own: World) -> None:  # SEC02
    settled(own, "/caf\u00e9.txt", b"The first tide.")
    settled(own, "/cafe\u0301.txt", b"The second tide.")
    (only,) = listed(own)
    assert only["path"] == "/caf\u00e9.txt"
    other = settled(own, "/other.txt", b"The third tide.")
    url = path_of("void", f"/files/{other['id']}")
    taken = own.request("PATCH", url, json={"path": "/cafe\u0301.txt"})
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "already_exists")
    assert len({one["path"] for one in listed(own)}) == len(listed(own)) == 2


def test_a_thousand_hostile_uploads_leave_rows_and_no_files(
    own: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SEC03
    aside = tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(aside))
    headers, url = {"authorization": f"Bearer {own.keys['K']}"}, path_of("void", "/files:upload")
    with httpx.Client(base_url=own.url, headers=headers, timeout=60) as client:

        def upload(number: int) -> int:
            path = f"/../{number}" if number % 3 else f"/..{number}/x.txt"
            told = client.put(url, params={"path": path}, content=b"%d" % number)
            return told.status_code

        codes = [upload(number) for number in range(1000)]
    assert (codes.count(400), codes.count(202)) == (666, 334)
    assert _written(own) == {"aside"}
    assert list(aside.iterdir()) == []


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "http://169.254.169.254/", "https://localhost/", "ftp://a/b"]
)
def test_nothing_is_fetched_unless_it_was_configured(served: World, uri: str) -> None:  # SEC04
    body = {"path": "/x.txt", "uri": uri}
    response = served.request("POST", path_of("docs", "/files"), json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_request")
    assert "/x.txt" not in [one["path"] for one in listed(served, "docs")]


def test_a_small_archive_that_unfolds_is_stopped_early(own: World) -> None:  # SEC05
    bomb = hostile.bomb()
    assert len(bomb) < 250_000
    put(own, "/bomb.docx", bomb)
    tracemalloc.start()
    own.engine.process()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [one["error"]["code"] for one in listed(own)] == ["zip_limits"]
    assert peak < 64 * 2**20


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(hostile.overlapping(), "zip_limits", id="SEC06"),
        pytest.param(hostile.with_false_size(), "corrupt", id="SEC07"),
    ],
)
def test_an_archive_that_lies_fails(own: World, data: bytes, code: str) -> None:  # SEC06 SEC07
    found = settled(own, "/lies.docx", data)
    assert (found["status"], found["error"]["code"]) == ("failed", code)
    assert settled(own, "/plain.docx", hostile.docx())["status"] == "ready"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_before_it_is_parsed(own: World, encoding: str) -> None:  # SEC08
    found = settled(own, "/entities.docx", hostile.with_entities(encoding))
    assert (found["status"], found["error"]["code"]) == ("failed", "corrupt")
    assert "document type" in found["error"]["message"]


@pytest.mark.parametrize("kind", ["image/svg+xml", "message/rfc822", "application/xml"])
def test_no_parser_is_given_a_kind_that_is_not_read(own: World, kind: str) -> None:  # SEC08 SEC10
    evil = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg>&a;</svg>'
    found = settled(own, "/evil", evil, content_type=kind)
    assert (found["status"], found["error"]["code"]) == ("failed", "unsupported_type")


def test_nested_mail_is_not_read_at_any_depth(own: World) -> None:  # SEC10
    started = time.monotonic()
    found = settled(own, "/mail.eml", hostile.nested_mail(), content_type="message/rfc822")
    assert (found["status"], found["error"]["code"]) == ("failed", "unsupported_type")
    assert settled(own, "/after.txt", b"The tide was high.")["status"] == "ready"
    assert time.monotonic() - started < 10


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service that reads each file in a process of its own, under small limits."""
    limits = Limits(seconds=30, memory_bytes=2**30)
    folder = tmp_path_factory.mktemp("guarded")
    with world(
        folder, settings=QUICK, names=("void",), ingestion=in_a_process, limits=limits
    ) as made:  # fmt: skip
        yield made


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (hostile.pdf_of_a_million_pages, {"too_large"}),
        (hostile.pdf_nested, {"no_text", "corrupt", "too_large", "extract_timeout"}),
        (hostile.pdf_with_a_wide_image, {"no_text", "too_large", "extract_timeout"}),
        (hostile.pdf_with_a_script, {None}),
        (hostile.encrypted_pdf, {"encrypted"}),
    ],
    ids=["pages", "nested", "image", "script", "encrypted"],
)
def test_a_hostile_pdf_costs_no_more_than_its_process(
    guarded: World, make: Any, codes: set[str | None]
) -> None:  # SEC09
    pytest.importorskip("reportlab", reason="reportlab is not installed")
    pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed")
    found = settled(guarded, f"/{make.__name__}.pdf", make(), content_type=hostile.PDF)
    assert found.get("error", {}).get("code") in codes


def test_a_file_over_its_time_fails_and_the_next_is_read(tmp_path: Path) -> None:  # SEC09
    with world(
        tmp_path, settings=QUICK, names=("void",), ingestion=_slow_once,
        limits=Limits(seconds=20),
    ) as made:  # fmt: skip
        assert settled(made, "/slow.txt", b"x")["error"]["code"] == "extract_timeout"
        assert settled(made, "/next.txt", b"The tide was high.")["status"] == "ready"


def _slow_once(claim: Any, limits: Limits) -> Any:
    slow = claim.path == "/slow.txt"
    return in_a_process(claim, Limits(seconds=0.01) if slow else limits)


@pytest.mark.parametrize(
    ("data", "kind", "code"),
    [
        (b"<html><script>alert(1)</script>", "image/png", "unsupported_type"),
        (b"\x89PNG\r\n\x1a\n<script>alert(1)</script>", "text/plain", "corrupt"),
        (b"%PDF-1.4 <script>alert(1)</script>", "text/html", "corrupt"),
        (b"<script>alert(1)</script>", hostile.PDF, "corrupt"),
        (b"GIF89a/*<script>alert(1)</script>*/", "text/markdown", "corrupt"),
    ],
)
def test_bytes_that_are_something_else_fail(
    own: World, data: bytes, kind: str, code: str
) -> None:  # SEC11
    found = settled(own, "/polyglot", data, content_type=kind)
    assert (found["status"], found["error"]["code"]) == ("failed", code)


def test_markup_comes_back_as_text_in_json_alone(own: World) -> None:  # SEC11
    markup = b"<script>alert('tide')</script> The tide was high."
    file = settled(own, "/page.txt", markup, content_type="text/plain")
    span = {"file_id": file["id"], "unit": "file"}
    read = own.request("POST", path_of("void", ":read-spans"), json={"spans": [span]})
    assert read.json()["parts"][0]["text"] == markup.decode()
    for response in (read, own.ask("void", query="tide"), own.request("GET", path_of("void", ""))):
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"


MARKS = "e" + "\u0301\u0316" * 500_000


@pytest.mark.parametrize(
    "text",
    [
        "The \u202etide\u202c was \u2066high\u2069 \u200f\u200e\u061c.",
        "The t\u200bi\u200cd\u200de\ufeff tide\u2060 hi\u00adgh \U000e0041\U000e007f.",
        "The tide " + "\U0001f600x" * 500_000,
        f"The tide was high. {MARKS} The tide fell.",
    ],
    ids=["bidi", "zero-width", "one-line", "combining"],
)
def test_spans_of_strange_text_are_exact(own: World, text: str) -> None:  # SEC12
    file = settled(own, "/strange.txt", text.encode())
    assert file["status"] == "ready"
    found = own.request(
        "POST", path_of("void", ":search"),
        json={"query": "tide", "limit": 100, "include_text": True},
    ).json()["results"]  # fmt: skip
    whole = {"file_id": file["id"], "unit": "file"}
    spans = [whole, *(one["span"] for one in found)][:100]
    read = own.request("POST", path_of("void", ":read-spans"), json={"spans": spans}).json()
    everything, *parts = [part["text"] for part in read["parts"]]
    assert found
    for one, part in zip(found, parts, strict=False):
        assert everything[one["span"]["start"] : one["span"]["end"]] == one["text"] == part
    assert own.ask("void", query="tide").status_code == 200


def test_uploads_side_by_side_leave_one_version_with_its_grants(own: World) -> None:  # SEC13
    def upload(number: int) -> dict[str, Any]:
        added = put(
            own, "/one.txt", f"The canary of turn {number}.".encode(), to="secure",
            principals=f'["turn:{number}"]',
        )  # fmt: skip
        found: dict[str, Any] = added.json()
        return found

    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(upload, range(8)))
        gone = pool.submit(
            own.request, "DELETE", path_of("secure", f"/files/{added[3]['id']}")
        )  # fmt: skip
        while own.engine.process():
            pass
        assert gone.result().status_code in (204, 404)
    own.engine.process()
    (one,) = [file for file in listed(own, "secure") if file["path"] == "/one.txt"]
    (number,) = [place for place, file in enumerate(added) if file["id"] == one["id"]]
    assert one["principals"] == [f"turn:{number}"]
    for place in range(8):
        told = own.ask("secure", query="canary", principals=[f"turn:{place}"]).json()
        mine = [source for source in told["sources"] if source["path"] == "/one.txt"]
        assert len(mine) == (place == number)
    assert _orphans(own) == 0


def _orphans(made: World) -> int:
    """Pieces, texts, grants and bytes that no living file holds."""
    store: Any = made.engine.store
    with store.database.read() as connection:
        asked = "SELECT count(*) FROM {} WHERE file NOT IN (SELECT id FROM file)"
        counts: list[int] = [
            connection.execute(asked.format(table)).fetchone()[0]
            for table in ("chunk", "body", "allowed", "meta")
        ]
        unused = "SELECT count(*) FROM blob WHERE sha256 NOT IN (SELECT sha256 FROM file)"
        return sum([*counts, connection.execute(unused).fetchone()[0]])
