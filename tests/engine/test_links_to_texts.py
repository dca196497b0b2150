"""Links to texts: one span, for a while, as long as the asker may read it."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness_core.collections.reading_back import INLINE_BYTES
from harness_integrations.engine.service.settings import Clock
from tests.engine.conftest import QUICK
from tests.support.engine import SECURE, World, error_of, path_of, refused, world

NOW = 2_000_000_000.0


class Time:
    """The wall clock of the service."""

    now = NOW


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def w(tmp_path: Path, time: Time) -> Iterator[World]:
    settings = replace(QUICK, clock=Clock(wall=lambda: time.now))
    with world(tmp_path, settings=settings, names=("docs", "secure")) as made:
        yield made


def _parts(w: World, name: str, *spans: Any, **more: Any) -> list[dict[str, Any]]:
    body = {"spans": spans, "delivery": "url", **more}
    response = w.request("POST", path_of(name, ":read-spans"), json=body)
    assert response.status_code == 200
    return list(response.json()["parts"])


def _file(w: World, name: str, path: str) -> str:
    return next(one.id for one in w.collection(name).files() if one.path == path)


def _whole(w: World, name: str, path: str) -> dict[str, Any]:
    return {"file_id": _file(w, name, path), "unit": "file"}


def _open(w: World, link: str) -> httpx.Response:
    assert link.startswith(w.url)
    return w.request("GET", link.removeprefix(w.url), None)


def test_a_link_opens_the_text_of_its_span_without_a_key(w: World) -> None:
    span = {"file_id": _file(w, "docs", "/naive.txt"), "unit": "chars", "start": 6, "end": 14}
    (part,) = _parts(w, "docs", span)
    assert (part["span"], "text" in part) == (span, False)
    assert (part["content_type"], part["size_bytes"]) == ("text/plain", 12)
    told = _open(w, part["url"])
    assert (told.status_code, told.text) == (200, "\U0001f600 fa\u00e7ade")
    assert len(told.content) == part["size_bytes"]
    expires = datetime.fromisoformat(part["expires_at"])
    assert part["expires_at"].endswith("Z")
    assert expires == datetime.fromtimestamp(NOW + 900, UTC)


def test_a_text_is_served_as_nothing_but_text(w: World) -> None:  # SEC11
    w.collection("docs").add("/x.txt", "<script>alert(1)</script>")
    (part,) = _parts(w, "docs", _whole(w, "docs", "/x.txt"))
    headers = _open(w, part["url"]).headers
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-disposition"].startswith("attachment;")
    assert "sandbox" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_a_link_ends_after_fifteen_minutes(w: World, time: Time) -> None:
    (part,) = _parts(w, "docs", _whole(w, "docs", "/plan.md"))
    time.now = NOW + 899
    assert _open(w, part["url"]).status_code == 200
    time.now = NOW + 900
    assert error_of(_open(w, part["url"])) == (404, "not_found")


def test_a_link_cannot_be_made_or_changed(w: World) -> None:
    (part,) = _parts(w, "docs", _whole(w, "docs", "/plan.md"))
    head, _, token = part["url"].rpartition("/")
    whole = base64.urlsafe_b64decode(token + "==")
    other = whole.replace(b"2000000900", b"2000009900")
    assert other != whole
    forged = [
        base64.urlsafe_b64encode(one).decode().rstrip("=")
        for one in (other, bytes(32) + whole[32:], whole[32:], whole[:-1], b"", b"{}")
    ]
    for one in (*forged, token[:-2], token + "AAAA", "\u00e9", "a.b", "*"):
        response = w.request("GET", f"{head.removeprefix(w.url)}/{one}", None)
        assert error_of(response) == (404, "not_found"), one


def test_a_link_opens_what_the_asker_may_read_and_nothing_else(w: World) -> None:  # SEC36
    spans = [_whole(w, "secure", path) for path in SECURE]
    mine, others, everyones = _parts(w, "secure", *spans, principals=["group:eng", "user:x"])
    assert (others["error"], "url" in others) == ("not_found", False)
    assert _open(w, mine["url"]).text == SECURE["/a.txt"][0]
    assert _open(w, everyones["url"]).text == SECURE["/c.txt"][0]
    for name in ("group:eng", "user:ann", "user:x"):
        assert name not in str(base64.urlsafe_b64decode(mine["url"].rpartition("/")[2] + "=="))
    collection = w.collection("secure")
    collection.update(spans[0]["file_id"], principals=["user:ann"])
    assert error_of(_open(w, mine["url"])) == (404, "not_found")
    collection.update(spans[0]["file_id"], principals=["group:eng"])
    assert _open(w, mine["url"]).status_code == 200
    collection.update(spans[2]["file_id"], principals=[])
    assert error_of(_open(w, everyones["url"])) == (404, "not_found")
    assert _parts(w, "secure", *spans, principals=[])[2]["error"] == "not_found"


def test_a_link_ends_with_its_file(w: World) -> None:
    (part,) = _parts(w, "docs", _whole(w, "docs", "/plan.md"))
    w.collection("docs").delete(part["span"]["file_id"])
    assert error_of(_open(w, part["url"])) == (404, "not_found")
    (part,) = _parts(w, "docs", _whole(w, "docs", "/naive.txt"))
    w.request("DELETE", "/namespaces/acme")
    assert error_of(_open(w, part["url"])) == (404, "not_found")


def test_what_is_wrong_with_a_span_is_said_in_either_delivery(w: World) -> None:
    span = {"file_id": _file(w, "docs", "/plan.md"), "unit": "chars", "start": 0, "end": 10_000}
    assert _parts(w, "docs", span)[0]["error"] == "out_of_range"
    url = path_of("docs", ":read-spans")
    body = {"spans": [span], "delivery": "post"}
    refused(w.request("POST", url, json=body), "/delivery")


def test_links_begin_with_the_public_address(tmp_path: Path) -> None:
    settings = replace(QUICK, public_url="https://engine.example/v1/")
    with world(tmp_path, settings=settings, names=("docs",)) as own:
        (part,) = _parts(own, "docs", _whole(own, "docs", "/plan.md"))
        head, _, token = part["url"].rpartition("/")
        assert head == "https://engine.example/v1/spans"
        assert own.request("GET", f"/spans/{token}", None).status_code == 200


def test_one_reply_holds_four_mebibytes_of_text(w: World) -> None:
    docs = w.collection("docs")
    half = docs.add("/half.txt", "x" * (INLINE_BYTES // 2)).id
    small = _whole(w, "docs", "/plan.md")
    spans = [{"file_id": half, "unit": "file"}] * 3 + [small]
    url = path_of("docs", ":read-spans")
    parts = w.request("POST", url, json={"spans": spans}).json()["parts"]
    assert [part.get("error") for part in parts] == [None, None, "too_large", "too_large"]
    assert "text" not in parts[2]
    assert parts[2]["size_bytes"] == INLINE_BYTES // 2
    assert all("url" in part for part in _parts(w, "docs", *spans))
