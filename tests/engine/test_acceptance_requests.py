"""What a request may hold: each member within its rules, read strictly."""

import base64
import json
from typing import Any

import pytest

from harness_core.collections.contract import BODY_BYTES
from tests.support.engine import World, citing, error_of, path_of, refused
from tests.support.images import image, png

EMOJI = "\U0001f600"


@pytest.mark.parametrize(
    "body",
    [
        {}, {"query": None}, {"query": ""}, {"query": "   "}, {"query": "\u200b"},
        {"query": "x" * 32_001}, {"query": 5},
    ],
    ids=["missing", "null", "empty", "blank", "invisible", "long", "number"],
)  # fmt: skip
def test_a_question_holds_text(served: World, body: Any) -> None:  # AC22
    refused(served.ask(raw=body), "/query")


def test_a_question_is_counted_in_code_points(served: World) -> None:  # AC23
    for effort in ("medium", "high"):
        response = served.ask(query=EMOJI * 32_000, effort=effort)
        assert response.status_code == 200, response.text
        assert response.json()["sources"]
        assert response.headers["x-answer-partial"] == "question_cut"
    refused(served.ask(query=EMOJI * 32_001), "/query")
    plain = served.ask(query="What happened? " * 2_133)
    assert "x-answer-partial" not in plain.headers
    assert served.model.sent.count("What happened? ") >= 2_133


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("effort", "low"), ("effort", "Medium"), ("effort", None),  # AC24
        ("sources", "some"), ("sources", None), ("sources", []),  # AC25
        ("top_k", 3),  # AC26
        ("history", [{"role": "user", "content": "x"}] * 33), ("history", None),  # AC28
        ("history", {}),
    ],
)  # fmt: skip
def test_each_member_keeps_its_rules(served: World, member: str, value: Any) -> None:
    refused(served.ask(**{member: value}), f"/{member}")


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
    refused(served.ask(history=[turn]), pointer)


def test_a_full_history_fits(served: World) -> None:  # AC27
    served.model.write = citing("1931")
    turns = [{"role": "user", "content": "h" * 32_000}] * 32
    response = served.ask(history=turns)
    assert (response.status_code, response.json()["answer"]) == (200, "Of 1931 [[SRC:0001]].")


def test_principals_follow_the_collection(served: World) -> None:  # AC33 AC34 AC35 AC40
    refused(served.ask(principals=["user:ann"]), "/principals")
    refused(served.ask(principals=[]), "/principals")
    assert served.ask(principals=None).status_code == 200
    for key in ("K", "Q"):
        refused(served.ask("secure", key=key), "/principals")
        refused(served.ask("secure", key=key, principals=None), "/principals")
    assert {one.label for one in served.model.requests} == {"stuff.answer"}
    assert len(served.model.requests) == 1


def test_every_principal_of_a_full_list_counts(served: World) -> None:  # AC41
    many = [f"{place:04d}".ljust(256, "x") for place in range(4_095)]
    response = served.ask("secure", query="canary", principals=[*many, "user:ann"])
    assert response.status_code == 200
    assert {one["path"] for one in response.json()["sources"]} == {"/a.txt", "/c.txt"}


@pytest.mark.parametrize(
    "principals",
    [["x"] * 4_097, ["x" * 257], ["\u00e9" * 129], [5], [""], ["*"], "user:ann"],
    ids=["many", "long", "bytes", "number", "empty", "star", "text"],
)
def test_principals_are_bounded(served: World, principals: Any) -> None:  # AC42 SEC35
    response = served.ask("secure", principals=principals)
    refused(response)
    assert response.json()["error"]["details"]["pointer"].startswith("/principals")


@pytest.mark.parametrize("given", [[], "x", {}, {"and": {}}, 5, True])
def test_a_filter_that_is_none(served: World, given: Any) -> None:  # AC53
    response = served.ask(filter=given)
    assert error_of(response) == (400, "invalid_filter")
    assert response.json()["error"]["retryable"] is False


def test_an_image_is_described(served: World) -> None:  # AC57 AC60 AC61
    told = served.ask(query_image=image(png()))
    assert (told.status_code, told.json()["image_description"]) == (200, "a green bridge")
    assert "a green bridge" in served.model.sent
    assert len(png(size=4_194_304)) == 4_194_304
    assert served.ask(query_image=image(png(size=4_194_304))).status_code == 200
    assert served.ask().json()["image_description"] is None


def test_an_image_needs_a_cluster_key(served: World) -> None:  # AC58 SEC52
    for data in (png(), "not base64"):
        assert error_of(served.ask(key="Q", query_image=image(data))) == (403, "forbidden")


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        (image("data:image/png;base64," + base64.b64encode(png()).decode()), "/query_image/data"),
        (image(base64.b64encode(png()).decode().rstrip("=") + "==="), "/query_image/data"),
        (image(" " + base64.b64encode(png()).decode()), "/query_image/data"),
        (image(b"\xff\xd8\xff\xe0 not a png"), "/query_image"),
        (image(b""), "/query_image/data"),
        (image(png(size=4_194_305)), "/query_image/data"),
        (image(png(40_000, 40_000)), "/query_image"),
        (image(png(), "image/gif"), "/query_image/media_type"),
        ({**image(png()), "url": "x"}, "/query_image/url"),  # AC26
    ],
    ids=["uri", "padding", "space", "jpeg", "empty", "large", "pixels", "gif", "member"],
)
def test_an_image_keeps_its_rules(served: World, given: Any, pointer: str) -> None:  # AC59
    response = served.ask(query_image=given)
    refused(response)
    assert response.json()["error"]["details"]["pointer"].startswith(pointer)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 400),
        ({}, 400),
        ({"content-type": ""}, 400),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 400),
        ({"content-type": "application/json", "content-encoding": "identity"}, 200),
    ],
)
def test_content_headers_are_checked(served: World, headers: Any, status: int) -> None:  # AC66
    response = served.request("POST", path_of("docs"), content=b'{"query":"x"}', headers=headers)
    assert response.status_code == status
    if status == 400:
        refused(response)


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
    ids=[
        "nothing", "cut", "array", "text", "utf-16", "bom", "nan", "1e999", "twice", "surrogate",
        "latin-1", "brackets", "closed brackets", "digits", "deep",
    ],
)  # fmt: skip
def test_json_is_read_strictly(served: World, body: bytes) -> None:  # AC67
    refused(served.ask(raw=body))


def test_the_body_has_a_limit_to_the_byte(served: World) -> None:  # AC62
    plain = json.dumps({"query": "x"}).encode()
    assert served.ask(raw=plain.ljust(BODY_BYTES)).status_code == 200
    response = served.ask(raw=plain.ljust(BODY_BYTES + 1))
    assert error_of(response) == (413, "request_too_large")
    assert response.json()["error"]["details"] == {"limit_bytes": 6_291_456}
