"""A write that is sent again with its idempotency key is told the first reply, and done once."""

import threading
from typing import Any

import httpx
import pytest

from harness_core.collections.faults import IdempotencyConflictError, TemporarilyUnavailableError
from harness_integrations.engine.faults import fault_of
from tests.support.engine import World, error_of, path_of, refused

FILES = path_of("docs", "/files")
ADDED = {"path": "/once.txt", "text": "Added once."}


def _write(w: World, method: str, path: str, name: str, key: str = "K", **more: Any) -> Any:
    headers = {"idempotency-key": name, **more.pop("headers", {})}
    return w.request(method, path, key, headers=headers, **more)


def _alike(first: httpx.Response, second: httpx.Response) -> None:
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers.get("content-type") == first.headers.get("content-type")
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"


def test_a_write_sent_again_is_told_the_first_reply(own: World) -> None:
    new: dict[str, Any] = {"json": {"name": "new"}}
    writes: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/namespaces", new),
        ("POST", "/namespaces/acme/collections", new),
        ("POST", FILES, {"json": ADDED}),
        ("PUT", path_of("docs", "/files:upload?path=/up.txt"), {"content": b"Uploaded."}),
        ("PUT", path_of("docs", "/metadata-fields"), {"json": {"fields": {"team": "text"}}}),
        ("DELETE", path_of("docs", ""), {}),
        ("DELETE", "/namespaces/other", {}),
    ]
    for number, (method, path, more) in enumerate(writes):
        first, again = (_write(own, method, path, f"write-{number}", **more) for _ in range(2))
        assert first.is_success
        _alike(first, again)
    assert error_of(_write(own, "POST", "/namespaces", "2", **new)) == (409, "already_exists")


def test_what_was_done_is_told_though_the_reply_could_not_be_kept(
    own: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(*_: Any) -> None:
        raise TemporarilyUnavailableError("store", retryable=True)

    monkeypatch.setattr(own.engine.store, "end_once", busy)
    assert _write(own, "POST", FILES, "unkept", json=ADDED).status_code == 202
    assert "could not be kept" in caplog.text
    refused(_write(own, "POST", FILES, "unkept-2", json={**ADDED, "path": "none"}), "/path")


def test_a_file_is_added_changed_and_deleted_once(own: World) -> None:
    before = len(own.collection("docs").files())
    added = [_write(own, "POST", FILES, "add", json=ADDED) for _ in range(2)]
    _alike(*added)
    assert len(own.collection("docs").files()) == before + 1
    file = f"{FILES}/{added[0].json()['id']}"
    changes = [_write(own, "PATCH", file, "change", json={"path": "/other.txt"}) for _ in range(2)]
    _alike(*changes)
    _alike(*(_write(own, "DELETE", file, "delete") for _ in range(2)))
    assert own.request("DELETE", file).status_code == 404


def test_a_key_stands_for_one_request(own: World) -> None:
    _write(own, "POST", FILES, "one", json=ADDED)
    upload = path_of("docs", "/files:upload")
    for other in (
        _write(own, "POST", FILES, "one", json={**ADDED, "text": "Other."}),
        _write(own, "POST", path_of("secure", "/files"), "one", json=ADDED),
        _write(own, "PUT", upload, "one", params={"path": "/a"}, content=b"x"),
    ):
        assert error_of(other) == (409, "idempotency_conflict")
        assert other.json()["error"]["retryable"] is False
    body: dict[str, Any] = {"params": {"path": "/a.txt"}, "content": b"x"}
    first = _write(own, "PUT", upload, "up", headers={"content-type": "text/plain"}, **body)
    assert first.status_code == 202
    again = _write(own, "PUT", upload, "up", headers={"content-type": "text/csv"}, **body)
    assert error_of(again) == (409, "idempotency_conflict")


def test_the_keys_of_one_caller_are_not_anothers(own: World) -> None:
    first = _write(own, "POST", FILES, "one", json=ADDED)
    mine = _write(own, "POST", FILES, "one", key="W", json=ADDED)
    assert mine.json()["id"] != first.json()["id"]
    _alike(mine, _write(own, "POST", FILES, "one", key="W", json=ADDED))


def test_a_failure_is_not_kept(own: World) -> None:
    taken: dict[str, Any] = {"json": {"name": "docs"}}
    path = "/namespaces/acme/collections"
    assert _write(own, "POST", path, "one", **taken).status_code == 409
    own.request("DELETE", path_of("docs", ""))
    made = _write(own, "POST", path, "one", **taken)
    assert made.status_code == 201
    assert "idempotency-replayed" not in made.headers


def test_a_request_still_at_work_is_not_begun_again(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    store = own.engine.store
    add_file = store.add_file

    def slow(*args: Any, **more: Any) -> Any:
        begun.set()
        assert go_on.wait(10)
        return add_file(*args, **more)

    monkeypatch.setattr(store, "add_file", slow)
    told: list[httpx.Response] = []
    first = threading.Thread(
        target=lambda: told.append(_write(own, "POST", FILES, "one", json=ADDED))
    )
    first.start()
    assert begun.wait(10)
    meanwhile = _write(own, "POST", FILES, "one", json=ADDED)
    assert error_of(meanwhile) == (409, "idempotency_conflict")
    assert meanwhile.json()["error"]["retryable"] is True
    assert meanwhile.headers["retry-after"] == "1"
    go_on.set()
    first.join()
    _alike(told[0], _write(own, "POST", FILES, "one", json=ADDED))


@pytest.mark.parametrize("name", ["", "a b", "x" * 256, "\u00e9".encode("latin-1"), "a\tb"])
def test_a_key_is_visible_text(served: World, name: Any) -> None:
    refused(_write(served, "POST", FILES, name, json=ADDED))


def test_a_key_is_given_once(served: World) -> None:
    headers = [("idempotency-key", "a"), ("idempotency-key", "b")]
    refused(served.request("POST", FILES, json=ADDED, headers=headers))


def test_what_may_not_be_seen_is_told_no_reply(own: World) -> None:
    _write(own, "DELETE", path_of("docs", ""), "one")
    for key in ("X", "Q"):
        assert error_of(_write(own, "DELETE", path_of("docs", ""), "one", key)) == (
            404,
            "not_found",
        )
    assert error_of(_write(own, "DELETE", path_of("docs", ""), "two")) == (404, "not_found")


def test_a_secret_is_never_kept(served: World) -> None:
    refused(_write(served, "POST", "/keys", "one", json={"kind": "cluster"}))


@pytest.mark.parametrize("running", [True, False])
def test_a_client_raises_the_fault_that_the_service_meant(running: bool) -> None:
    meant = IdempotencyConflictError(running=running)
    raised = fault_of(409, meant.envelope("req_1")["error"])
    assert type(raised) is IdempotencyConflictError
    assert (raised.retryable, raised.details) == (running, meant.details)
