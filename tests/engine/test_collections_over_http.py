"""The endpoints that are ours: making collections, adding files, keys, events."""

import base64
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from harness_core import OpenAIClient
from tests.support.engine import World, path_of

FILES = path_of("docs", "/files")
GRANT = {"namespace": "acme", "collection": "*"}


def _upload(
    own: World, path: str, data: bytes, collection: str = "docs", **more: Any
) -> httpx.Response:
    url = path_of(collection, "/files:upload")
    headers = {"content-type": more.pop("content_type", "application/octet-stream")}
    return own.request("PUT", url, params={"path": path, **more}, content=data, headers=headers)


def test_a_collection_from_nothing_to_an_answer(own: World) -> None:
    made = own.request("POST", "/namespaces", json={"name": "new"})
    assert made.status_code == 201
    assert made.json()["id"].startswith("ns_")
    body = {"name": "c", "metadata_fields": {"team": "text"}}
    collection = own.request("POST", "/namespaces/new/collections", json=body)
    assert collection.status_code == 201
    assert collection.json()["state"] == "empty"
    files = "/namespaces/new/collections/c/files"
    added = own.request(
        "POST",
        files,
        json={"path": "/a.txt", "text": "The bridge is green.", "metadata": {"team": "x"}},
    )
    assert (added.status_code, added.json()["status"]) == (202, "pending")
    own.engine.process()
    told = own.request("POST", "/namespaces/new/collections/c:answer", json={"query": "bridge"})
    assert told.status_code == 200
    listed = own.request("GET", "/namespaces").json()["items"]
    assert [one["name"] for one in listed] == ["acme", "new", "other"]
    assert own.request("DELETE", "/namespaces/new/collections/c").status_code == 204
    assert own.request("GET", "/namespaces/new/collections/c").status_code == 404
    assert own.request("DELETE", "/namespaces/new").status_code == 204
    assert own.request("GET", "/namespaces/new").status_code == 404


def test_a_name_is_given_once(own: World) -> None:
    again = own.request("POST", "/namespaces", json={"name": "acme"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_exists")
    for name in ("Acme", "a/b", "", "x" * 64, "ns_01K6Q6N7D8E9F0G1H2J3K4M5N6"):
        assert own.request("POST", "/namespaces", json={"name": name}).status_code == 400


def test_uploaded_bytes_become_a_file(own: World) -> None:
    added = _upload(own, "/up.md", b"# Up\n\nThe tide was high.", metadata='{"team":"x"}')
    assert (added.status_code, added.json()["bytes"]) == (202, 24)
    assert own.engine.process() >= 1
    found = own.request("GET", f"{FILES}/{added.json()['id']}").json()
    assert (found["status"], found["metadata"]) == ("ready", {"team": "x"})
    assert _upload(own, "/up.md", b"x", metadata="[1]").status_code == 400
    no_path = own.request("PUT", path_of("docs", "/files:upload"), content=b"x")
    assert no_path.status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/a/../b",
        "/./a",
        "//a",
        "a",
        "/a\0b",
        "/a\\b",
        "/a%2f..%2fb",
        "/" + "x" * 1025,
    ],
)
def test_a_path_that_is_none_is_refused(served: World, path: str) -> None:  # SEC01
    assert _upload(served, path, b"x").status_code == 400
    body = {"path": path, "text": "x"}
    assert served.request("POST", FILES, json=body).status_code == 400


def test_paths_are_compared_composed(own: World) -> None:  # SEC02
    for path in ("/caf\u00e9.txt", "/cafe\u0301.txt"):
        _upload(own, path, b"The tide was high.")
        own.engine.process()
    found = own.request("GET", FILES).json()["items"]
    assert sum("caf" in one["path"] for one in found) == 1


def test_a_file_is_text_or_data(served: World) -> None:
    for body in (
        {"path": "/x.txt"},
        {"path": "/x.txt", "text": "a", "data": "YQ=="},
        {"path": "/x.txt", "data": "*"},
        {"path": "/x.txt", "uri": "file:///etc/passwd"},
    ):
        assert served.request("POST", FILES, json=body).status_code == 400  # SEC04: no URIs at all


def test_base64_data_is_decoded(own: World) -> None:
    data = base64.b64encode(b"plain bytes").decode()
    added = own.request("POST", FILES, json={"path": "/d.txt", "data": data})
    assert added.json()["bytes"] == 11


def test_other_bodies_have_the_smaller_limit(served: World) -> None:
    response = served.request("POST", FILES, json={"path": "/x.txt", "text": "x" * 1_048_576})
    assert (response.status_code, response.json()["error"]["details"]) == (
        413,
        {"limit_bytes": 1_048_576},
    )


def test_files_come_a_page_at_a_time(served: World) -> None:
    seen, cursor = [], None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = served.request("GET", FILES, params=params).json()
        seen += [one["path"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == ["/incident.txt", "/naive.txt", "/plan.md"]
    wanted = json.dumps({"field": "path", "op": "prefix", "value": "/plan"})
    only = served.request("GET", FILES, params={"filter": wanted}).json()["items"]
    assert [one["path"] for one in only] == ["/plan.md"]
    for params in ({"limit": "0"}, {"limit": "1001"}, {"limit": "\u0661"}, {"filter": "{"}):
        assert served.request("GET", FILES, params=params).status_code == 400


def test_a_change_is_merged_into_the_metadata(own: World) -> None:
    file = own.collection("docs").add("/m.txt", "Text.", metadata={"a": 1, "b": 2})
    url = f"{FILES}/{file.id}"
    changed = own.request("PATCH", url, json={"metadata": {"b": None, "c": 3, "$unset": ["a"]}})
    assert changed.json()["metadata"] == {"b": None, "c": 3}
    assert own.request("PATCH", url, json={"path": "/n.txt"}).json()["path"] == "/n.txt"
    assert own.request("PATCH", url, json={"metadata": {"$unset": "a"}}).status_code == 400
    assert own.request("PATCH", url, json={"status": "ready"}).status_code == 400


def test_keys_are_told_once_and_revoked_at_once(own: World) -> None:
    grants = [{"namespace": "acme", "collection": "docs", "actions": ["query"]}]
    made = own.request("POST", "/keys", json={"kind": "scoped", "grants": grants})
    assert made.status_code == 201
    own.keys["new"] = made.json()["secret"]
    assert own.ask(key="new").status_code == 200
    assert own.ask("secure", key="new", principals=["x"]).status_code == 404
    listed = own.request("GET", "/keys")
    assert made.json()["id"] in listed.text
    assert made.json()["secret"] not in listed.text
    assert own.request("DELETE", f"/keys/{made.json()['id']}").status_code == 204
    assert own.ask(key="new").status_code == 401
    assert own.request("DELETE", "/keys/nope").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "scoped"},
        {"kind": "root"},
        {"kind": "cluster", "grants": [{**GRANT, "actions": ["read"]}]},
        {"kind": "scoped", "grants": [{**GRANT, "actions": []}]},
        {"kind": "cluster", "expires_at": "tomorrow"},
        {"kind": "cluster", "expires_at": "2027-01-01T00:00:00"},
    ],
)
def test_a_key_keeps_its_rules(served: World, body: Any) -> None:
    assert served.request("POST", "/keys", json=body).status_code == 400


def test_an_expired_key_is_none(own: World) -> None:  # SEC53
    body = {"kind": "cluster", "expires_at": "2020-01-01T00:00:00Z"}
    own.keys["old"] = own.request("POST", "/keys", json=body).json()["secret"]
    assert own.ask(key="old").status_code == 401


def test_a_name_made_again_inherits_no_grant(own: World) -> None:  # SEC54
    assert own.ask(key="Q").status_code == 200
    own.request("DELETE", path_of("docs", ""))
    own.request("POST", "/namespaces/acme/collections", json={"name": "docs"})
    assert own.ask(key="Q").status_code == 404


def test_what_a_scoped_key_sees_and_may_do(served: World) -> None:
    listed = served.request("GET", "/namespaces/acme/collections", "Q").json()["items"]
    assert sorted(one["name"] for one in listed) == ["docs", "secure"]
    assert [one["name"] for one in served.request("GET", "/namespaces", "Q").json()["items"]] == [
        "acme"
    ]
    assert served.request("GET", FILES, "Q").status_code == 403
    assert served.request("DELETE", path_of("docs", ""), "W").status_code == 403
    assert served.request("GET", "/keys", "Q").status_code == 403
    assert served.request("GET", "/namespaces/acme", "X").status_code == 404
    assert served.request("DELETE", "/namespaces/other", "X").status_code == 403
    assert served.request("GET", "/info", "X").status_code == 200
    assert served.request("GET", "/info", None).status_code == 401


def test_spans_of_others_are_as_absent(served: World) -> None:  # SEC39
    url = path_of("secure", ":read-spans")
    mine = served.ask("secure", query="canary", principals=["user:ann"]).json()["sources"]
    span = next(one["span"] for one in mine if one["path"] == "/a.txt")
    absent = {**span, "file_id": "fil_01K6Q6N7D8E9F0G1H2J3K4M5N6"}
    body = {"spans": [span, absent], "principals": ["user:bob"]}
    parts = served.request("POST", url, json=body).json()["parts"]
    assert [{k: v for k, v in part.items() if k != "span"} for part in parts] == [
        {"error": "not_found"}
    ] * 2
    beyond = {"spans": [{**span, "end": 10_000}], "principals": ["user:ann"]}
    assert served.request("POST", url, json=beyond).json()["parts"][0]["error"] == "out_of_range"


def test_search_ranks_what_may_be_seen(served: World) -> None:
    body = {"query": "canary", "principals": ["user:ann"], "include_text": True}
    found = served.request("POST", path_of("secure", ":search"), json=body).json()["results"]
    assert sorted(one["path"] for one in found) == ["/a.txt", "/c.txt"]
    assert all("canary" in one["text"] for one in found)


def test_the_service_says_what_it_is(served: World) -> None:
    info = served.request("GET", "/info", "Q").json()
    assert info["efforts"] == ["medium", "high"]
    assert info["contract"] == "engine-answer/0.1.0-preview@2026-09-14"
    checks = served.request("GET", "/ready", None).json()["checks"]
    assert checks == {"store": True, "model": True}


def test_without_a_key_for_its_model_a_service_is_not_ready(own: World) -> None:
    own.engine._engine = replace(own.engine._engine, client=OpenAIClient())
    response = own.request("GET", "/ready", None)
    error = response.json()["error"]
    assert (response.status_code, error["details"]["reason"]) == (503, "model_unavailable")
    assert error["details"]["checks"] == {"store": True, "model": False}
    assert error["retryable"] is False


def test_the_database_holds_no_secret(own: World) -> None:  # SEC55
    own.engine.close()
    dump = b"".join(p.read_bytes() for p in _files(own))
    for secret in own.keys.values():
        assert secret[-24:].encode() not in dump


def _files(own: World) -> list[Any]:
    from pathlib import Path

    folder = Path(str(own.engine._path)).parent
    return [one for one in folder.iterdir() if one.suffix != ".pepper"]
