"""Who may ask, over which path, and what a request is called."""

from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.support.engine import World, error_of, path_of
from tests.support.sockets import everything, post


def _post(w: World, path: str, key: str | None = "K", **more: Any) -> httpx.Response:
    return w.request("POST", path, key, json={"query": "x"}, **more)


def _told_to_log_in(response: httpx.Response) -> None:
    assert error_of(response) == (401, "unauthenticated")
    assert response.json()["error"]["retryable"] is False
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"Basic Zm9vOmJhcg==",
        b"Bearer",
        b"Bearer gek_0123456789_" + b"x" * 43,
        "Bearer gek_\u00e9".encode(),
        b"Bearer " + b"x" * 60_000,
    ],
    ids=["none", "basic", "no token", "unknown", "non-ascii", "long"],
)
def test_without_a_live_key_nothing_is_answered(
    served: World, header: bytes | None
) -> None:  # AC15 SEC53
    headers = [] if header is None else [(b"authorization", header)]
    _told_to_log_in(_post(served, path_of("docs"), None, headers=headers))
    assert served.model.requests == []


def test_a_blank_token_is_no_key(served: World) -> None:  # AC15
    head = ("authorization: Bearer   ", "content-length: 0", "connection: close")
    with closing(post(served, *head, key=None)) as connection:
        told = everything(connection)
    assert told.startswith(b"HTTP/1.1 401")
    assert b"www-authenticate: Bearer" in told
    assert b'"code":"unauthenticated"' in told


def test_a_revoked_or_truncated_key_is_none(served: World) -> None:  # AC15 SEC53
    _told_to_log_in(served.ask(key="R"))
    served.keys["short"] = served.keys["K"][:-1]
    _told_to_log_in(served.ask(key="short"))


def test_a_key_comes_in_either_header(served: World) -> None:  # AC16
    key = served.keys["K"].encode()
    for headers in (
        [(b"x-api-key", key)],
        [(b"authorization", b"bearer " + key)],
        [(b"authorization", b"Bearer " + key), (b"x-api-key", key)],
    ):
        assert _post(served, path_of("docs"), None, headers=headers).status_code == 200


def test_two_different_keys_are_none(served: World) -> None:  # AC17 SEC53
    one, two = served.keys["K"].encode(), served.keys["Q"].encode()
    for headers in (
        [(b"authorization", b"Bearer " + one), (b"x-api-key", two)],
        [(b"x-api-key", one), (b"x-api-key", one)],
        [(b"authorization", b"Bearer " + one), (b"authorization", b"Bearer " + one)],
    ):
        _told_to_log_in(_post(served, path_of("docs"), None, headers=headers))


def test_outside_the_scope_is_as_absent(own: World) -> None:  # AC18 SEC50
    own.space.create_collection("gone")
    assert own.ask("gone").status_code == 409
    assert own.request("DELETE", path_of("gone", "")).status_code == 204
    responses = [
        own.ask("docs", key="X"),
        own.ask("no-such"),
        own.ask("gone"),
        own.ask("void", key="Q"),
        own.ask(own.collection("void").id, key="Q"),
        _post(own, path_of("docs", namespace="no-such")),
        _post(own, path_of("docs", namespace="NO")),
    ]
    assert {error_of(one) for one in responses} == {(404, "not_found")}
    bodies = [one.json()["error"] | {"request_id": ""} for one in responses]
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["retryable"] is False


def test_a_key_without_query_is_forbidden(served: World) -> None:  # AC19 SEC51
    assert error_of(served.ask(key="W")) == (403, "forbidden")


def test_a_scoped_key_asks_what_it_was_granted(served: World) -> None:
    assert served.ask(key="Q").status_code == 200
    assert served.ask("secure", key="Q", principals=["user:ann"]).status_code == 200


def test_ids_name_what_names_name(served: World) -> None:  # AC20
    docs = served.collection("docs").id
    assert (docs[:4], served.space.id[:3]) == ("col_", "ns_")
    by_name = served.ask(query="x").json()
    for path in (
        path_of(docs, namespace=served.space.id),
        path_of(docs),
        path_of("docs", namespace=served.space.id),
    ):
        by_id = _post(served, path)
        assert by_id.status_code == 200
        assert by_id.json() | {"request_id": ""} == by_name | {"request_id": ""}


def test_an_id_names_nothing_in_another_namespace(served: World) -> None:  # AC21
    docs = served.collection("docs").id
    elsewhere = [
        _post(served, path_of(docs, namespace="other")),
        _post(served, path_of("docs", namespace="other")),
    ]
    assert [error_of(one) for one in elsewhere] == [(404, "not_found")] * 2


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "OPTIONS", "DELETE", "TRACE"])
def test_other_methods_are_refused(served: World, method: str) -> None:  # AC68
    for key in ("K", None):
        response = served.request(method, path_of("docs"), key)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        if method == "HEAD":
            assert response.content == b""
        else:
            assert error_of(response) == (405, "invalid_request")


@pytest.mark.parametrize(
    "ending",
    [
        "docs:answer/", "docs:Answer", "docs", "a%2Fb:answer", "a:b:answer", "docs%2F:answer",
        ":answer", "docs%00:answer",
    ],
)  # fmt: skip
def test_other_paths_are_nowhere(served: World, ending: str) -> None:  # AC69
    response = _post(served, f"/namespaces/acme/collections/{ending}")
    assert error_of(response) == (404, "not_found")
    assert "location" not in response.headers


@pytest.mark.parametrize("sent", ["my-id-1", "A.b:c-d_9", "x" * 128])
def test_a_valid_request_id_is_echoed(served: World, sent: str) -> None:  # AC70
    good = _post(served, path_of("docs"), headers={"X-Request-Id": sent})
    bad = served.request("POST", path_of("docs"), json={}, headers={"X-Request-Id": sent})
    assert (good.status_code, bad.status_code) == (200, 400)
    for response in (good, bad):
        assert response.headers["x-request-id"] == sent
        assert response.headers["x-engine-request-id"].startswith("req_")
    assert good.json()["request_id"] == good.headers["x-engine-request-id"]
    assert bad.json()["error"]["request_id"] == bad.headers["x-engine-request-id"]


@pytest.mark.parametrize(
    "sent",
    [[b"a b"], [b"x" * 129], ["\u00e9".encode()], [b"one", b"two"], [b"-x"], [b""], [b"x" * 60000]],
    ids=["blank", "129", "non-ascii", "twice", "dash", "empty", "long"],
)
def test_any_other_request_id_is_not(served: World, sent: list[bytes]) -> None:  # AC71 SEC66
    response = _post(served, path_of("docs"), headers=[(b"x-request-id", one) for one in sent])
    assert response.status_code == 200
    assert response.headers["x-engine-request-id"] == response.json()["request_id"]
    assert response.headers["x-request-id"] == response.headers["x-engine-request-id"]
