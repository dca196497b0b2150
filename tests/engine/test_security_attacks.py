"""Other ways in that were tried: counts, ids, lookups, logs, cursors, sizes, half-sent requests."""

import json
import logging
import socket
from contextlib import closing
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from harness_core.collections import Collections, in_this_process
from harness_core.collections.sqlite.store import SqliteStore
from harness_integrations.engine.service import serving
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.serving import running
from tests.engine.conftest import QUICK
from tests.support.engine import World, cite_first, error_of, path_of
from tests.support.processes import until
from tests.support.sockets import everything, post

FILES = path_of("docs", "/files")


def test_a_key_that_may_only_ask_learns_no_number_of_files(own: World) -> None:
    listed = "/namespaces/acme/collections"

    def seen(key: str) -> Any:
        items = own.request("GET", listed, key).json()["items"]
        return next(one for one in items if one["name"] == "secure")

    before = seen("Q")
    own.collection("secure").add("/more.txt", "Hidden.", principals=["user:bob"])
    assert seen("Q") == before
    assert before["counts"] == {}
    assert seen("K")["counts"] == {"ready": 4}
    for ending in ("", "/files", "/events"):
        assert own.request("GET", path_of("secure", ending), "Q").status_code == 403


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the catalogue is asked for from now on, in order."""
    looked: list[str] = []

    def noting(name: str, real: Any) -> Any:
        def noted(store: SqliteStore, *given: Any) -> Any:
            looked.append(name)
            return real(store, *given)

        return noted

    for name in ("namespace", "collection", "key"):
        monkeypatch.setattr(SqliteStore, name, noting(name, getattr(SqliteStore, name)))
    return looked


def test_what_is_hidden_takes_the_work_of_what_is_absent(served: World, looks: list[str]) -> None:
    def work(key: str, collection: str, namespace: str = "acme") -> list[str]:
        looks.clear()
        url = path_of(collection, "", namespace)
        assert served.request("GET", url, key).status_code == 404
        return [*looks]

    served.request("GET", "/info", "Q")
    served.request("GET", "/info", "X")  # both keys are known from here on
    assert work("Q", "void") == work("Q", "nothing")
    assert work("X", "docs") == work("X", "nothing") == work("X", "docs", "nowhere")


def test_a_key_tells_nothing_by_its_parts(served: World, looks: list[str]) -> None:
    key = served.keys["K"]
    tried = [
        f"gek_0000000000_{key[15:]}",
        f"{key[:15]}{'A' * 43}",
        f"{key[:-1]}{'B' if key[-1] == 'A' else 'A'}",
    ]
    done = []
    for token in tried:
        served.keys["tried"] = token
        looks.clear()
        response = served.request("GET", "/info", "tried")
        done.append((error_of(response), response.json()["error"]["message"], [*looks]))
    assert done[0][2] == ["key"]
    assert all(one == done[0] for one in done)


@pytest.mark.parametrize(
    "cursor", ["\0", "a'b", "x" * 65, "../", "\u202e", "%", "col_\n", " ", "\ud83d\ude00"]
)
def test_what_is_no_cursor_is_refused(served: World, cursor: str) -> None:
    raw = cursor.encode("utf-16", "surrogatepass").decode("utf-16")
    for path in (FILES, "/namespaces", "/namespaces/acme/collections", "/keys"):
        response = served.request("GET", path, params={"cursor": raw})
        assert error_of(response) == (400, "invalid_request")


def test_a_cursor_of_elsewhere_shows_nothing_of_there(served: World) -> None:
    secure = served.request("GET", path_of("secure", "/files")).json()["items"]
    for cursor in (secure[0]["id"], secure[-1]["id"], served.collection("secure").id, "0", "zzz"):
        told = served.request("GET", FILES, params={"cursor": cursor})
        assert told.status_code == 200
        assert not {one["id"] for one in told.json()["items"]} & {one["id"] for one in secure}
    for cursor in ("a", "docs", "secure"):
        told = served.request("GET", "/namespaces/acme/collections", "Q", params={"cursor": cursor})
        names = {one["name"] for one in told.json()["items"]}
        assert names <= {"docs", "secure"}
        assert told.json()["next_cursor"] in (None, "docs", "secure")


@pytest.mark.parametrize(
    "limit", ["0", "-1", "1001", "1e3", "0000000011", "000000001999999", "9" * 5000, "\u0661", ""]
)
def test_a_page_is_never_larger(served: World, limit: str) -> None:
    response = served.request("GET", FILES, params={"limit": limit})
    assert error_of(response) == (400, "invalid_request")


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**4000, 2**63, -1, 1e308, 0.5, True])
def test_a_number_of_any_size_is_no_failure(served: World, value: Any) -> None:
    for field in ("bytes", "created_at", "path"):
        clause = {"field": field, "op": "eq", "value": value}
        assert error_of(served.ask(filter=clause)) == (400, "invalid_filter")


@pytest.mark.parametrize(
    "until", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2027-01-01", "0"]
)
def test_a_key_ends_at_a_moment_that_can_be_told(own: World, until: str) -> None:
    response = own.request("POST", "/keys", json={"kind": "cluster", "expires_at": until})
    assert error_of(response) == (400, "invalid_request")
    assert own.request("GET", "/keys").status_code == 200


def test_a_key_ends_at_the_moment_that_was_asked_for(own: World) -> None:
    until = "2037-01-02T03:04:05+01:00"
    made = own.request("POST", "/keys", json={"kind": "cluster", "expires_at": until}).json()
    (listed,) = [
        one for one in own.request("GET", "/keys").json()["items"] if one["id"] == made["id"]
    ]
    assert listed["expires_at"] == "2037-01-02T02:04:05.000000Z"


def _with_nul(url: str, key: str) -> list[httpx.Response]:
    def send(method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"}
        return httpx.request(method, url + path, headers=headers, timeout=30, **more)

    span = {"file_id": "fil_\0", "unit": "file"}
    docs = path_of("docs", "")
    return [
        send("POST", f"{docs}:read-spans", json={"spans": [span]}),
        send("POST", f"{docs}:search", json={"query": "a\0b"}),
        send("POST", f"{docs}:answer", json={"query": "a\0b", "instructions": "\0",
             "history": [{"role": "user", "content": "\0"}]}),
        send("POST", f"{docs}:answer",
             json={"query": "x", "filter": {"field": "path\0", "op": "eq", "value": "\0"}}),
        send("POST", "/keys", json={"kind": "scoped", "grants": [
            {"namespace": "acme\0", "collection": "docs\0", "actions": ["query"]}]}),
        send("POST", f"{docs}/files", json={"path": "/\0", "text": "x"}),
        send("POST", f"{docs}/files", json={"path": "/n", "text": "x", "metadata": {"\0": "\0"}}),
        send("POST", f"{docs}/files", json={"path": "/n", "text": "x", "principals": ["\0"]}),
        send("POST", f"{docs}/files", json={"path": "/n", "text": "x", "content_type": "a/\0"}),
        send("PUT", f"{docs}/metadata-fields", json={"fields": {"\0": "text"}}),
        send("POST", "/namespaces", json={"name": "a\0"}),
        send("GET", f"{docs}/files", params={"cursor": "\0"}),
        send("DELETE", "/keys/a%00"),
    ]  # fmt: skip


def test_a_nul_anywhere_is_no_failure(served: World) -> None:
    codes = [one.status_code for one in _with_nul(served.url, served.keys["K"])]
    assert codes == [200, 200, 200, *[400] * 9, 404]


@pytest.mark.service
def test_a_nul_anywhere_is_no_failure_on_a_server_of_databases(database_url: str) -> None:
    from tests.support.engine import Scripted

    engine = Collections(
        database_url, client=Scripted(cite_first), ingestion=in_this_process, pepper=b"p" * 32
    )
    with closing(engine), running(ServiceApp(engine, QUICK, work=False)) as url:
        engine.create_namespace("acme")
        engine.namespace("acme").create_collection("docs").add("/a.txt", "The tide was high.")
        codes = [one.status_code for one in _with_nul(url, engine.keys.create("cluster").secret)]
    assert codes == [200, 200, 200, *[400] * 9, 404]


def test_no_request_writes_a_line_of_its_own_in_the_log(
    served: World, caplog: pytest.LogCaptureFixture
) -> None:
    forged = "x\r\nINFO req_0 forged line"
    with caplog.at_level(logging.INFO, logger="harness_integrations.engine"):
        served.request("GET", f"/{quote(forged)}")
        served.request("GET", FILES, params={"cursor": forged, "limit": forged})
        served.ask(raw={"query": forged, forged: 1})
        served.ask(query=forged)
        served.request("POST", FILES, json={"path": f"/{forged}", "text": forged})
        served.request("GET", "/info", headers={"x-request-id": "a%0d%0aforged"})
        until(lambda: len(caplog.records) >= 6)  # a line follows its response
    assert len(caplog.records) == 6
    for record in caplog.records:
        assert "\n" not in record.getMessage()
        assert "forged" not in record.getMessage()


def test_a_body_of_two_lengths_is_refused_and_the_connection_closed(served: World) -> None:
    inner = (
        f"GET /info HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {served.keys['K']}\r\n\r\n"
    ).encode()
    lengths = ("content-length: 5", "transfer-encoding: chunked")
    with closing(post(served, *lengths, body=b"0\r\n\r\n" + inner)) as connection:
        told = everything(connection)
    assert told.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in told.lower()
    assert told.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("said", [b"", b"G", b"GET / HTTP/1.1\r\nhost: x\r\nx-a: "])
def test_a_request_that_never_begins_is_let_go(
    served: World, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    url = httpx.URL(served.url)
    with socket.create_connection((url.host, url.port or 80), timeout=10) as connection:
        connection.sendall(said)
        assert everything(connection) == b""


def test_a_head_that_never_ends_is_let_go_after_a_whole_request_too(
    served: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    url = httpx.URL(served.url)
    with socket.create_connection((url.host, url.port or 80), timeout=10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        told = b""
        while not told.endswith(b'{"status":"ok"}'):
            told += connection.recv(65_536)
        connection.sendall(b"GET /he")  # and no more
        assert everything(connection) == b""


def test_a_mismatch_of_the_fence_is_put_on_record(
    own: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # SEC40
    from harness_core.collections.filters import compile_filter
    from harness_core.collections.sqlite.snapshot import SqliteSnapshot

    real = SqliteSnapshot.visible
    monkeypatch.setattr(
        SqliteSnapshot, "visible", lambda one, *_: real(one, compile_filter(None, {}), None)
    )
    with caplog.at_level(logging.ERROR, logger="harness_integrations.engine"):
        response = own.ask("secure", query="Which canary?", principals=["user:eve"])
    assert error_of(response) == (500, "internal_error")
    assert response.json()["error"]["request_id"] in caplog.text
    assert "FenceError" in caplog.text
    assert "vermilion" not in caplog.text + response.text
    assert own.model.requests == []


def test_what_needs_no_key_tells_nothing_of_what_is_kept(served: World) -> None:
    for path in ("/", "/health", "/ready", "/openapi.json", "/page/page.js"):
        response = served.request("GET", path, None)
        assert response.status_code == 200
        for name in ("acme", "secure", "canary", "/a.txt", "mock-model", "engine.db"):
            if path == "/openapi.json" and name in ("acme", "secure"):
                continue  # names of its examples
            assert name not in response.text, (path, name)
    for path, operations in served.request("GET", "/openapi.json").json()["paths"].items():
        for method in operations:
            if method in ("get", "post", "put", "patch", "delete"):
                url = path.format(
                    namespace="acme", collection="docs", file="f", key="k", part="p", token="t"
                )
                asked = served.request(method.upper(), url, None)
                opened = path in ("/", "/health", "/ready", "/openapi.json")
                if not opened and path not in ("/page/{part}", "/spans/{token}"):
                    assert asked.status_code == 401, path


def test_replies_are_not_kept_by_what_stands_between(served: World) -> None:
    for response in (
        served.ask(), served.ask(key=None), served.request("GET", FILES), served.ask(raw={}),
        served.request("POST", path_of("docs", ":search"), json={"query": "x"}),
    ):  # fmt: skip
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in response.headers
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    assert served.request("OPTIONS", path_of("docs"), headers=asked).status_code == 405


def test_one_file_is_not_told_by_another_collection(served: World) -> None:
    (file, *_) = served.request("GET", path_of("secure", "/files")).json()["items"]
    absent = "fil_01K6Q6N7D8E9F0G1H2J3K4M5N6"
    for method in ("GET", "PATCH", "DELETE"):
        more: dict[str, Any] = {"json": {}} if method == "PATCH" else {}
        names = (file["id"], absent)
        bodies = [served.request(method, f"{FILES}/{name}", **more) for name in names]
        assert [error_of(one) for one in bodies] == [(404, "not_found")] * 2
        messages = {json.dumps({**one.json()["error"], "request_id": ""}) for one in bodies}
        assert len(messages) == 1
    assert served.request("GET", path_of("secure", f"/files/{file['id']}")).status_code == 200
