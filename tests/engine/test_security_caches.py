"""What is kept from one request for the next, and what of a run anyone can be told."""

import json
import re
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness_core import ResponseCache, Trace, flush_caches
from harness_core.collections import AnswerCache
from harness_integrations.engine.service.settings import ServiceSettings
from tests.collections.meanings import embedder, meant
from tests.engine.conftest import QUICK
from tests.support.engine import Scripted, World, error_of, path_of, world
from tests.support.hostile import copying
from tests.support.sockets import everything, post

ANN, TEAM, BOB, EVE = "user:ann", "group:eng", "user:bob", "user:eve"
CANARIES = {ANN: "heliotrope", TEAM: "heliotrope", BOB: "vermilion"}
ASK: dict[str, Any] = {"query": "Which canary?"}
CLAUSE = {"field": "path", "op": "prefix", "value": "/"}


def _answered(made: World, who: str, key: str = "K", **more: Any) -> tuple[int, str]:
    """The credits of an answer for one who asks, after a check that it holds no other's canary."""
    response = made.ask("secure", key=key, **{**ASK, "principals": [who], **more})
    told = response.json()
    for other, canary in CANARIES.items():
        assert (canary in response.text) is (CANARIES.get(who) == canary), other
    return told["usage"]["credits"], told["answer"]


def test_a_kept_answer_is_for_those_who_see_the_same_files(tmp_path: Path) -> None:  # SEC60
    with world(tmp_path, settings=QUICK, names=("secure",), answer_cache=AnswerCache()) as made:
        made.model.write = copying
        asked = [_answered(made, who)[0] for who in (ANN, ANN, TEAM, BOB, EVE, BOB, "user:eva")]
        assert asked == [1, 0, 0, 1, 1, 0, 0]  # a grant counts by what it shows, not by its name
        assert _answered(made, ANN, filter=CLAUSE)[0] == 1
        turned = dict(reversed(CLAUSE.items()))
        assert _answered(made, ANN, filter=turned)[0] == 0
        for more in (
            {"query": "Which canary is it?"}, {"effort": "high"}, {"instructions": "Be short."},
            {"history": [{"role": "user", "content": "Earlier."}]},
        ):  # fmt: skip
            assert _answered(made, ANN, **more)[0] > 0
            assert _answered(made, ANN, **more)[0] == 0
        assert _answered(made, ANN, sources="none")[0] == 0  # the mode only shows it otherwise
        (anns,) = [one for one in made.collection("secure").files() if one.path == "/a.txt"]
        made.collection("secure").update(anns.id, principals=[TEAM])
        response = made.ask("secure", **ASK, principals=[ANN])
        assert response.json()["usage"]["credits"] == 1
        assert "heliotrope" not in response.text


def test_collections_keep_their_answers_apart(tmp_path: Path) -> None:  # SEC60
    with world(tmp_path, settings=QUICK, names=("secure",), answer_cache=AnswerCache()) as made:
        made.model.write = copying
        twin = made.space.create_collection("twin", access_control="enforced")
        twin.add("/a.txt", "The canary of the twin is cerise.", principals=[ANN])
        _answered(made, ANN)
        told = made.ask("twin", **ASK, principals=[ANN])
        assert "cerise" in told.text
        assert "heliotrope" not in told.text


def test_a_kept_reply_of_the_model_is_found_by_the_whole_prompt(tmp_path: Path) -> None:  # SEC61
    model = Scripted(copying)
    cached = model.with_cache(ResponseCache(tmp_path / "cache.db"))
    with world(tmp_path, settings=QUICK, names=("secure",), client=cached) as made:
        sent = []
        for who in (ANN, TEAM, BOB, EVE, ANN, BOB):
            before = len(model.requests)
            assert _answered(made, who)[0] == 1
            sent.append(len(model.requests) - before)
        assert sent == [1, 0, 1, 1, 0, 0]
        assert not any(who in str([m.content for one in model.requests for m in one.messages])
                       for who in (ANN, TEAM, BOB))  # fmt: skip


def test_a_kept_vector_holds_nothing_of_a_file(tmp_path: Path) -> None:  # SEC62
    flush_caches()
    embedded: list[str] = []

    def listening(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return meant(texts)

    with world(
        tmp_path, settings=QUICK, names=("secure",), embedder=embedder(listening)
    ) as made:  # fmt: skip
        embedded.clear()
        found = [
            made.request(
                "POST", path_of("secure", ":search"),
                json={**ASK, "principals": [who], "include_text": True},
            )
            for who in (ANN, BOB, EVE)
        ]  # fmt: skip
        assert embedded == ["Which canary?"]
        assert ["vermilion" in one.text for one in found] == [False, True, False]
        assert ["heliotrope" in one.text for one in found] == [True, False, False]


def test_answers_are_kept_for_nobody_unless_that_is_asked_for(own: World) -> None:  # SEC63
    own.model.write = copying
    told = [_answered(own, ANN)[0] for _ in range(3)]
    assert told == [1, 1, 1]
    assert len(own.model.requests) == 3


def test_no_caller_learns_what_another_asked(tmp_path: Path) -> None:  # SEC63
    with world(tmp_path, settings=QUICK, names=("secure",), answer_cache=AnswerCache()) as made:
        made.model.write = copying
        assert [_answered(made, ANN, key)[0] for key in ("K", "Q", "Q", "K")] == [1, 1, 0, 0]
        again = made.ask("secure", **ASK, principals=[ANN])
        assert set(again.json()) == {
            "request_id", "answer", "effort", "image_description", "sources", "usage",
        }  # fmt: skip
        assert set(again.json()["usage"]) == {"credits"}
        assert not [name for name in again.headers if "cache" in name and name != "cache-control"]
        assert again.headers["cache-control"] == "no-store"


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)


def test_no_trace_leaves_the_service_or_holds_an_image(
    own: World, traces: list[Trace], tmp_path: Path
) -> None:  # SEC64
    before = {one.name for one in tmp_path.iterdir()}
    response = own.ask(query_image={"data": PNG, "media_type": "image/png"})
    assert response.status_code == 200
    assert "trace" not in response.text + str(response.headers)
    paths = own.request("GET", "/openapi.json").json()["paths"]
    assert not [path for path in paths if re.search("trace|prompt|debug|metrics", path)]
    for path in ("/traces", "/trace", f"/traces/{response.json()['request_id']}", "/debug"):
        assert own.request("GET", path).status_code == 404
    assert {one.name for one in tmp_path.iterdir()} == before  # nor is one written
    (kept,) = traces
    assert kept.requests
    assert PNG not in json.dumps(kept.export(), default=str)
    assert PNG[:32] not in str(own.model.sent)


@pytest.mark.parametrize(
    "more",
    [
        {"json": {**ASK, "replay": {"steps": []}}}, {"json": {**ASK, "client": "replay"}},
        {"json": {**ASK, "trace": "/tmp/trace.json"}}, {"json": {**ASK, "seed": "0"}},
        {"json": ASK, "headers": {"x-replay": "1", "x-harness-replay": "trace.json"}},
        {"json": ASK, "params": {"replay": "trace.json"}},
    ],
    ids=str,
)  # fmt: skip
def test_no_request_turns_a_replay_on(served: World, more: Any) -> None:  # SEC65
    response = served.request("POST", path_of("docs"), **more)
    if "headers" in more:
        assert response.status_code == 200
        assert len(served.model.requests) == 1
    else:
        assert error_of(response) == (400, "invalid_request")
    assert not {field for field in ServiceSettings.__slots__ if "replay" in field}


def _with_id(made: World, *lines: str) -> tuple[bytes, dict[bytes, bytes]]:
    body = b'{"query":"x"}'
    more = (f"content-length: {len(body)}", "connection: close")
    with closing(post(made, *lines, *more, body=body)) as connection:
        head = everything(connection).partition(b"\r\n\r\n")[0]
    first, *rest = head.split(b"\r\n")
    named = [line.partition(b":") for line in rest]
    return first, {name.lower(): value.strip() for name, _, value in named}


@pytest.mark.parametrize(
    "lines",
    [
        ["x-request-id: a%0d%0ax-evil: 1"], ["x-request-id: a\r\n x-evil: 1"],
        ["x-request-id: a\nx-evil: 1", "x-request-id: b"], ["x-request-id: a\rx-evil: 1"],
        ["x-request-id: a\r\nx-evil: 1", "x-request-id: b"],
        ["x-request-id: " + "x" * 70_000], ["x-request-id: \u00e9"], ["x-request-id: a\0b"],
        ["x-request-id: one", "x-request-id: two"], ["x-request-id: a,b"], ["x-request-id:"],
        ["x-request-id: <script>"], ["x-request-id: " + "x" * 129],
    ],
    ids=lambda lines: repr(lines)[:40],
)  # fmt: skip
def test_no_request_id_becomes_a_header(
    served: World, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:  # SEC66
    with caplog.at_level("DEBUG", logger="harness_integrations.engine"):
        first, headers = _with_id(served, *lines)
    assert first in (b"HTTP/1.1 200 OK", b"HTTP/1.1 400 Bad Request")
    assert b"x-evil" not in headers
    assert headers[b"x-request-id"] == headers[b"x-engine-request-id"]
    assert headers[b"x-engine-request-id"].startswith(b"req_")
    assert "evil" not in caplog.text
    assert "script" not in caplog.text


CANARY = "heliotrope-zyx"


def _malformed() -> list[bytes]:
    """A hundred bodies that are wrong, each with the canary in it."""
    odd: list[Any] = [
        None, 5, [CANARY], {CANARY: 1}, "\u200b", True, CANARY * 2000, "x" * 40_000 + CANARY,
    ]  # fmt: skip
    members = [
        "query", "effort", "sources", "filter", "history", "instructions", "principals",
        "query_image",
    ]  # fmt: skip
    found = [{"query": CANARY, name: value} for name in members for value in odd]
    clauses = [
        {"field": CANARY, "op": "eq", "value": 1}, {"field": "path", "op": CANARY, "value": 1},
        {"field": "path", "op": "eq", "value": [CANARY]}, {"and": [{"or": [CANARY]}]},
        {"field": "created_at", "op": "gt", "value": CANARY}, {"not": {"not": CANARY}},
        {"field": f"metadata.{CANARY}", "op": "eq", "value": 1}, {"and": CANARY},
        {"field": "path", "op": "eq", "value": f"{CANARY}\0"}, {"field": "path", "op": "eq"},
        {"field": "path' OR 1=1 --", "op": "eq", "value": CANARY},
        {"field": "bytes", "op": "gte", "value": f"1; DROP TABLE file; {CANARY}"},
    ]  # fmt: skip
    found += [{"query": CANARY, "filter": one} for one in clauses]
    turns = [{"role": CANARY, "content": "x"}, {"role": "user", "content": [CANARY]}, CANARY, {},
             {"role": "user", "content": CANARY, "name": CANARY}]  # fmt: skip
    found += [{"query": CANARY, "history": [one]} for one in turns]
    images = [{"data": CANARY, "media_type": "image/png"}, {"data": PNG, "media_type": CANARY},
              {"data": PNG[:40], "media_type": "image/png"}, {CANARY: CANARY}]  # fmt: skip
    found += [{"query": CANARY, "query_image": one} for one in images]
    found += [{"query": CANARY, f"{CANARY}{place}": place} for place in range(5)]
    raw = [
        b'{"query":"%s"', b'["%s"]', b'"%s"', b'{"query":"%s","query":"%s"}', b'{"query":%s}',
        b'{"query":"%s\xff"}', b'{"query":"%s\\ud800"}', b'\xef\xbb\xbf{"query":"%s"}',
        b'{"query":"%s","filter":NaN}', b'{"query":"%s","filter":1e999}', b"%s",
    ]  # fmt: skip
    said = [one.replace(b"%s", CANARY.encode()) for one in raw]
    return [*(json.dumps(one).encode() for one in found), *said]


LEAKS = re.compile(
    r"Traceback|File \"|sqlite|psycopg|SELECT|INSERT|pydantic|\.py\b|/tmp|Error\(|line \d", re.I
)


def test_a_hundred_malformed_requests_are_told_nothing(served: World) -> None:  # SEC67
    bodies = _malformed()
    assert len(bodies) >= 100
    refused = 0
    for collection in ("docs", "secure"):
        for body in bodies:
            response = served.ask(collection, raw=body)
            if response.status_code == 200:  # nothing was wrong with it after all
                continue
            refused += 1
            status, code = error_of(response)
            assert (status, code) in ((400, "invalid_request"), (400, "invalid_filter"))
            error = response.json()["error"]
            details = error["details"]
            for name in ("pointer", "field"):  # where it is: the one thing that is named
                details.pop(name, None)
            said = json.dumps(error).replace(f"/{CANARY}", "")
            assert CANARY not in said
            assert not LEAKS.search(said), said
            assert not {"/a.txt", "/b.txt", "/c.txt"} & set(re.findall(r"/\w\.txt", said))
    assert refused >= 190


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/{CANARY}"),
        ("GET", f"/namespaces/{CANARY}"),
        ("DELETE", f"/keys/{CANARY}"),
        ("GET", path_of("docs", f"/files/{CANARY}")),
        ("GET", path_of(CANARY, "/files")),
        ("GET", path_of("docs", f"/files?cursor={CANARY}%00")),
        ("GET", f"/info?{CANARY}=1"),
        ("GET", path_of("docs", f"/files?limit={CANARY}")),
        ("GET", f"/page/{CANARY}"),
        ("GET", path_of("docs", f"/files?filter={CANARY}")),
        ("GET", f"/spans/{CANARY}"),
        ("PUT", path_of("docs", f"/files:upload?path={CANARY}")),
        (CANARY.upper(), "/info"),
        ("PUT", path_of("docs", f"/files:upload?path=/x&metadata={CANARY}")),
        ("POST", f"/namespaces/acme/collections/{CANARY}:{CANARY}"),
    ],
)
def test_no_path_or_parameter_comes_back(
    served: World, method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:  # SEC67
    with caplog.at_level("DEBUG", logger="harness_integrations.engine"):
        response = served.request(method, path)
    assert 400 <= response.status_code < 500
    assert error_of(response)[1] in ("invalid_request", "invalid_filter", "not_found")
    assert CANARY not in response.text.replace(f"/{CANARY}", "")
    assert CANARY not in str(response.headers)
    assert not LEAKS.search(response.text)
    assert CANARY not in caplog.text


def test_a_failure_inside_tells_nothing(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:  # SEC67
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"no such column: '/b.txt' in SELECT {CANARY}")

    monkeypatch.setattr("harness_core.collections.sqlite.snapshot.SqliteSnapshot.visible", broken)
    asked = {"query": "x", "principals": [EVE]}
    for verb in (":answer", ":search"):
        response = own.request("POST", path_of("secure", verb), json=asked)
        assert error_of(response) == (500, "internal_error")
        assert CANARY not in response.text
        assert "/b.txt" not in response.text
        assert not LEAKS.search(response.text)


def test_what_is_no_http_is_told_nothing(served: World) -> None:  # SEC67
    url = httpx.URL(served.url)
    for said in (f"GET /{CANARY}\r\n\r\n", f"{CANARY}\r\n\r\n", f"GET / HTTP/9.9 {CANARY}\r\n\r\n"):
        with socket.create_connection((url.host, url.port or 80), timeout=10) as connection:
            connection.sendall(said.encode())
            told = everything(connection).decode()
        assert told.startswith("HTTP/1.1 400")
        assert CANARY not in told
