"""What is refused, with which status, in which order; never with what was sent."""

import base64
import json
import struct
import zlib
from typing import Any

import httpx
import pytest

from harness_core.collections.contract import BODY_BYTES
from tests.support.engine import World, path_of


def _error(response: httpx.Response) -> tuple[int, str]:
    error = response.json()["error"]
    assert set(error) == {"code", "message", "request_id", "retryable", "details"}
    assert error["request_id"] == response.headers["x-engine-request-id"]
    assert response.headers["x-request-id"]
    return response.status_code, error["code"]


def _refused(response: httpx.Response, pointer: str | None = None) -> None:
    assert _error(response) == (400, "invalid_request")
    assert response.json()["error"]["retryable"] is False
    if pointer is not None:
        assert response.json()["error"]["details"]["pointer"] == pointer


def _bearer(value: bytes) -> dict[str, Any]:
    return {"headers": [(b"authorization", value)]}


@pytest.mark.parametrize(
    "more",
    [
        {},
        _bearer(b"Basic Zm9vOmJhcg=="),
        _bearer(b"Bearer"),
        _bearer(b"Bearer gek_0123456789_" + b"x" * 43),
        _bearer("Bearer gek_\u00e9".encode()),
        _bearer(b"Bearer " + b"x" * 60_000),
    ],
    ids=["none", "basic", "blank", "unknown", "non-ascii", "long"],
)
def test_without_a_live_key_nothing_is_answered(served: World, more: Any) -> None:  # AC15 SEC53
    response = served.request("POST", path_of("docs"), None, json={"query": "x"}, **more)
    assert _error(response) == (401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_revoked_or_truncated_key_is_none(served: World) -> None:  # AC15 SEC53
    assert _error(served.ask(key="R")) == (401, "unauthenticated")
    served.keys["short"] = served.keys["K"][:-1]
    assert _error(served.ask(key="short")) == (401, "unauthenticated")


def test_a_key_comes_in_either_header(served: World) -> None:  # AC16
    key = served.keys["K"].encode()
    for headers in (
        [(b"x-api-key", key)],
        [(b"authorization", b"bearer " + key)],
        [(b"authorization", b"Bearer " + key), (b"x-api-key", key)],
    ):
        response = served.request(
            "POST", path_of("docs"), None, json={"query": "x"}, headers=headers
        )
        assert response.status_code == 200


def test_two_different_keys_are_none(served: World) -> None:  # AC17 SEC53
    one, two = served.keys["K"].encode(), served.keys["Q"].encode()
    for headers in (
        [(b"authorization", b"Bearer " + one), (b"x-api-key", two)],
        [(b"x-api-key", one), (b"x-api-key", one)],
        [(b"authorization", b"Bearer " + one), (b"authorization", b"Bearer " + one)],
    ):
        response = served.request(
            "POST", path_of("docs"), None, json={"query": "x"}, headers=headers
        )
        assert _error(response) == (401, "unauthenticated")


def test_outside_the_scope_is_as_absent(served: World) -> None:  # AC18 AC21 SEC50
    elsewhere = path_of(served.collection("docs").id, namespace="other")
    responses = [
        served.ask("docs", key="X"),
        served.ask("no-such"),
        served.ask("void", key="Q"),
        served.ask(served.collection("void").id, key="Q"),
        served.request("POST", elsewhere, json={"query": "x"}),
        served.request("POST", path_of("docs", namespace="no-such"), json={"query": "x"}),
        served.request("POST", path_of("docs", namespace="NO"), json={"query": "x"}),
    ]
    assert {_error(one) for one in responses} == {(404, "not_found")}
    bodies = [one.json()["error"] | {"request_id": ""} for one in responses]
    assert all(body == bodies[0] for body in bodies)


def test_a_key_without_query_is_forbidden(served: World) -> None:  # AC19 SEC51
    assert _error(served.ask(key="W")) == (403, "forbidden")


@pytest.mark.parametrize("query", [None, "", "   ", "\u200b", "x" * 32_001, 5])
def test_a_question_holds_text(served: World, query: Any) -> None:  # AC22
    _refused(served.ask(query=query), "/query")
    _refused(served.ask(raw={}), "/query")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("effort", "low"),
        ("effort", "Medium"),
        ("effort", None),
        ("sources", "some"),
        ("sources", None),
        ("sources", []),
        ("top_k", 3),
        ("instructions", "x" * 8_001),
        ("instructions", 5),
        ("history", None),
        ("history", {}),
        ("history", [{"role": "user", "content": "x"}] * 33),
    ],
)
def test_each_member_keeps_its_rules(served: World, member: str, value: Any) -> None:
    # AC24 AC25 AC26 AC28 AC31
    _refused(served.ask(**{member: value}), f"/{member}")


@pytest.mark.parametrize(
    ("turn", "pointer"),
    [
        ({"role": "system", "content": "x"}, "/history/0/role"),
        ({"role": "user", "content": "x" * 32_001}, "/history/0/content"),
        ({"role": "user"}, "/history/0/content"),
        ({"role": "user", "content": "x", "name": "y"}, "/history/0/name"),
    ],
)
def test_a_turn_keeps_its_rules(served: World, turn: Any, pointer: str) -> None:  # AC26 AC28
    _refused(served.ask(history=[turn]), pointer)


def test_principals_follow_the_collection(served: World) -> None:  # AC33 AC34 AC35 AC40
    _refused(served.ask(principals=["user:ann"]), "/principals")
    _refused(served.ask(principals=[]), "/principals")
    assert served.ask(principals=None).status_code == 200
    _refused(served.ask("secure"), "/principals")
    _refused(served.ask("secure", principals=None), "/principals")


@pytest.mark.parametrize(
    "principals",
    [["x"] * 4_097, ["x" * 257], ["\u00e9" * 129], [5], [""], ["*"], "user:ann"],
    ids=["many", "long", "bytes", "number", "empty", "star", "text"],
)
def test_principals_are_bounded(served: World, principals: Any) -> None:  # AC42 SEC35
    response = served.ask("secure", principals=principals)
    _refused(response)
    assert response.json()["error"]["details"]["pointer"].startswith("/principals")


@pytest.mark.parametrize("given", [[], "x", {}, {"and": {}}, 5, True])
def test_a_filter_that_is_none(served: World, given: Any) -> None:  # AC53
    assert _error(served.ask(filter=given)) == (400, "invalid_filter")


def _png(width: int = 1, height: int = 1, fill: int = 0) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )  # fmt: skip

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    made = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\0"))
    return made + chunk(b"IEND", b"") + b"\0" * max(0, fill - len(made) - 12)


def _image(data: bytes | str, media_type: str = "image/png") -> dict[str, str]:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return {"data": text, "media_type": media_type}


def test_an_image_is_described(served: World) -> None:  # AC57 AC60 AC61
    told = served.ask(query_image=_image(_png()))
    assert (told.status_code, told.json()["image_description"]) == (200, "a green bridge")
    assert served.ask(query_image=_image(_png(fill=4_194_304))).status_code == 200
    assert served.ask().json()["image_description"] is None


def test_an_image_needs_a_cluster_key(served: World) -> None:  # AC58 SEC52
    for data in (_png(), "not base64"):
        assert _error(served.ask(key="Q", query_image=_image(data))) == (403, "forbidden")


@pytest.mark.parametrize(
    "image",
    [
        _image("data:image/png;base64," + base64.b64encode(_png()).decode()),
        _image(base64.b64encode(_png()).decode().rstrip("=") + "==="),
        _image(" " + base64.b64encode(_png()).decode()),
        _image(b"\xff\xd8\xff\xe0 not a png"),
        _image(b""),
        _image(_png(fill=4_194_305)),
        _image(_png(40_000, 40_000)),
        _image(_png(), "image/gif"),
        {**_image(_png()), "url": "x"},
    ],
    ids=["uri", "padding", "space", "jpeg", "empty", "large", "pixels", "gif", "member"],
)
def test_an_image_keeps_its_rules(served: World, image: Any) -> None:  # AC26 AC59
    _refused(served.ask(query_image=image))


def test_the_body_has_a_limit_to_the_byte(served: World) -> None:  # AC62
    plain = b'{"query":"x"}'
    assert served.ask(raw=plain.ljust(BODY_BYTES)).status_code == 200
    response = served.ask(raw=plain.ljust(BODY_BYTES + 1))
    assert _error(response) == (413, "request_too_large")
    assert response.json()["error"]["details"]["limit_bytes"] == BODY_BYTES


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 400),
        ({"content-type": ""}, 400),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 400),
        ({"content-type": "application/json", "content-encoding": "identity"}, 200),
    ],
)
def test_content_headers_are_checked(served: World, headers: Any, status: int) -> None:  # AC66
    response = served.request("POST", path_of("docs"), content=b'{"query":"x"}', headers=headers)
    assert response.status_code == status


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b'"x"', '{"query":"x"}'.encode("utf-16"), b'\xef\xbb\xbf{"query":"x"}',
        b'{"query":NaN}', b'{"query":"x","filter":1e999}', b'{"query":"a","query":"b"}',
        b'{"query":"\\ud800"}', b'{"query":"\xff"}', b"[" * 100_000,
        b'{"query":"x","filter":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"query":' + b"7" * 5_000 + b"}",
        b'{"query":"x","filter":' + b'{"not":' * 70 + b"1" + b"}" * 71,
    ],
)  # fmt: skip
def test_json_is_read_strictly(served: World, body: bytes) -> None:  # AC67
    _refused(served.ask(raw=body))


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "OPTIONS", "DELETE", "TRACE"])
def test_other_methods_are_refused(served: World, method: str) -> None:  # AC68
    for key in ("K", None):
        response = served.request(method, path_of("docs"), key)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        if method == "HEAD":
            assert response.content == b""
        else:
            assert _error(response) == (405, "invalid_request")


@pytest.mark.parametrize(
    "ending",
    [
        "docs:answer/",
        "docs:Answer",
        "docs",
        "a%2Fb:answer",
        "a:b:answer",
        "docs%2F:answer",
        ":answer",
        "docs%00:answer",
    ],
)
def test_other_paths_are_nowhere(served: World, ending: str) -> None:  # AC69
    response = served.request("POST", f"/namespaces/acme/collections/{ending}", json={"query": "x"})
    assert _error(response) == (404, "not_found")


def test_an_unknown_query_parameter_is_refused(served: World) -> None:
    _refused(served.request("POST", path_of("docs") + "?debug=1", json={"query": "x"}))


def test_checks_come_in_their_order(served: World) -> None:
    bad: dict[str, Any] = {"content": b"x" * (BODY_BYTES + 1), "headers": {"content-type": "x"}}
    post = path_of("docs")
    assert served.request("PUT", post, None, **bad).status_code == 405
    assert served.request("POST", post, None, **bad).status_code == 401
    assert served.request("POST", path_of("nope"), **bad).status_code == 404
    assert served.request("POST", post, "W", **bad).status_code == 403
    assert served.request("POST", post, **bad).status_code == 400
    huge = served.ask(raw=b"{" * (BODY_BYTES + 1))
    assert huge.status_code == 413
    image = _image("no base64")
    assert served.ask("secure", key="Q", query_image=image, top_k=1).status_code == 400
    assert served.ask("secure", key="Q", query_image=image).status_code == 403
    unlisted = {"field": "metadata.x", "op": "eq", "value": "y"}
    principals = served.ask("docs", principals=[], filter=unlisted)
    assert _error(principals) == (400, "invalid_request")
    assert _error(served.ask("void", filter=unlisted)) == (400, "invalid_filter")
    assert _error(served.ask("void")) == (409, "collection_empty")


def test_no_error_repeats_what_was_sent(served: World) -> None:  # SEC67
    canary = "heliotrope-canary"
    bodies: list[Any] = [
        {"query": "x", canary: 1}, {"query": [canary]}, {"query": "x", "effort": canary},
        {"query": "x", "filter": {"field": "path", "op": canary, "value": canary}},
        {"query": "x", "filter": canary}, {"query": "x", "history": [canary]},
        {"query": "x", "principals": [canary]}, {"query": "x", "query_image": {"data": canary}},
    ]  # fmt: skip
    for body in bodies:
        response = served.ask(raw=body)
        assert response.status_code == 400
        error = response.json()["error"]
        assert canary not in error["message"].replace(f"/{canary}", "")
        assert not {"Traceback", "sqlite", "SELECT"} & set(json.dumps(error).split())
    broken = served.ask(raw=json.dumps({"query": canary})[:-1].encode())
    assert canary not in broken.text
