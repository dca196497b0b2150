"""What a key opens, and that nothing else opens it."""

import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness_core import OpenAIClient, Trace
from harness_core.collections import Collections, KeyGrant, in_this_process
from harness_core.collections.faults import CollectionFault
from harness_integrations.engine import EngineClient
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.serving import running
from harness_integrations.langchain import AnswerCollection
from tests.engine.conftest import QUICK
from tests.support.attacks import told
from tests.support.engine import World, path_of, world
from tests.support.openai_server import OpenAIServer

ABSENT = "fil_01K6Q6N7D8E9F0G1H2J3K4M5N6"
BY_ACTION = {
    "query": [("POST", ":answer"), ("POST", ":search"), ("POST", ":read-spans")],
    "read": [("GET", ""), ("GET", "/files"), ("GET", f"/files/{ABSENT}"), ("GET", "/events")],
    "write": [
        ("PUT", "/metadata-fields"), ("PUT", "/files:upload"), ("POST", "/files"),
        ("PATCH", f"/files/{ABSENT}"), ("DELETE", f"/files/{ABSENT}"),
    ],
    "cluster": [("DELETE", "")],
}  # fmt: skip
EVERY = [(action, *one) for action, some in BY_ACTION.items() for one in some]
CLUSTER = [
    ("POST", "/namespaces"), ("DELETE", "/namespaces/acme"),
    ("POST", "/namespaces/acme/collections"), ("GET", "/keys"), ("POST", "/keys"),
    ("DELETE", "/keys/0123456789"),
]  # fmt: skip


@pytest.fixture(scope="module")
def keyed(shared: World) -> World:
    """The shared service with a key for each single action on ``docs``."""
    grant = {"namespace_id": shared.space.id, "collection_id": shared.collection("docs").id}
    for action in ("query", "read", "write"):
        made = shared.engine.keys.create("scoped", [KeyGrant(**grant, actions=(action,))])
        shared.keys[action] = made.secret
    return shared


@pytest.mark.parametrize(("action", "method", "ending"), EVERY, ids=str)
def test_what_a_key_does_not_see_is_as_what_is_not_there(
    keyed: World, action: str, method: str, ending: str
) -> None:  # SEC50
    docs, void = keyed.collection("docs"), keyed.collection("void")
    hidden = [
        ("query", path_of("void", ending)), ("query", path_of(void.id, ending)),
        ("write", path_of(void.id, ending)), ("X", path_of("docs", ending)),
        ("X", path_of(docs.id, ending)), ("X", path_of(docs.id, ending, keyed.space.id)),
        ("X", path_of(docs.id, ending, "other")), ("query", path_of("docs", ending, "other")),
    ]  # fmt: skip
    absent = [
        ("query", path_of("nothing", ending)), ("X", path_of("docs", ending, "nowhere")),
        ("K", path_of("nothing", ending)),
        ("K", path_of("col_01K6Q6N7D8E9F0G1H2J3K4M5N6", ending)),
    ]  # fmt: skip
    replies = [told(keyed.request(method, url, key)) for key, url in [*hidden, *absent]]
    assert {one[0] for one in replies} == {404}
    assert all(one == replies[0] for one in replies), action


@pytest.mark.parametrize(("action", "method", "ending"), EVERY, ids=str)
def test_a_key_does_what_its_actions_say(
    keyed: World, action: str, method: str, ending: str
) -> None:  # SEC51
    for key in ("query", "read", "write"):
        if key != action:
            response = keyed.request(method, path_of("docs", ending), key)
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (403, "forbidden"), key


@pytest.mark.parametrize(("method", "path"), CLUSTER, ids=str)
def test_a_scoped_key_changes_nothing_outside_its_collections(
    keyed: World, method: str, path: str
) -> None:  # SEC51
    for key in ("query", "read", "write"):
        assert keyed.request(method, path, key).status_code == 403
        assert keyed.request(method, path, "R").status_code == 401


def test_an_image_is_refused_unread(keyed: World, monkeypatch: pytest.MonkeyPatch) -> None:  # SEC52
    def decoded(*_: object, **__: object) -> None:
        raise AssertionError("the image was decoded")

    monkeypatch.setattr("base64.b64decode", decoded)
    for data in ("iVBORw0KGgo=", "no base64 at all"):
        image = {"data": data, "media_type": "image/png"}
        response = keyed.ask(key="query", query_image=image)
        assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")


def _tokens(key: str, expired: str, foreign: str) -> list[list[tuple[bytes, bytes]]]:
    def bearer(value: str | bytes) -> tuple[bytes, bytes]:
        token = value if isinstance(value, bytes) else value.encode()
        return b"authorization", b"Bearer " + token

    named, secret = key.rsplit("_", 1)[0][:14], key[15:]
    wrong: list[str | bytes] = [
        key[:-1], key + "A", key[:-1] + ("A" if key[-1] != "A" else "B"), key.upper(), named,
        f"{named}_", f"gek_0000000000_{secret}", f"gek_'or'1'='1_{secret}", "gek_", "x", expired,
        foreign, "x" * 257, "x" * 100_000, key + "\u00e9", key.encode() + b"\xff", "\u00e9" * 43,
    ]  # fmt: skip
    return [
        *([bearer(one)] for one in wrong), [],
        [(b"authorization", b"Bearer")], [(b"authorization", key.encode())],
        [(b"authorization", b"Basic " + key.encode())], [bearer(key), bearer(key)],
        [bearer(key), (b"x-api-key", key.encode() + b"A")], [(b"x-api-key", b"")],
        [(b"x-api-key", key.encode())] * 2, [(b"cookie", b"key=" + key.encode())],
    ]  # fmt: skip


def test_every_token_that_is_none_is_refused_alike(keyed: World, tmp_path: Path) -> None:  # SEC53
    old = keyed.engine.keys.create("cluster", expires_us=1)
    with closing(Collections(tmp_path / "other.db", pepper=b"another")) as other:
        foreign = other.keys.create("cluster").secret
    tokens = _tokens(keyed.keys["K"], old.secret, foreign)
    replies = [
        told(keyed.request("POST", path_of("docs"), None, json={"query": "x"}, headers=headers))
        for headers in [*tokens, [(b"authorization", b"Bearer " + keyed.keys["R"].encode())]]
    ]
    assert {one[0] for one in replies} == {401}
    assert all(one == replies[0] for one in replies)
    assert replies[0][1]["www-authenticate"] == "Bearer"


def test_the_parts_of_a_key_are_compared_as_bytes_and_always(
    keyed: World, monkeypatch: pytest.MonkeyPatch
) -> None:  # SEC53
    compared: list[tuple[object, object]] = []

    def noted(one: bytes, two: bytes) -> bool:
        compared.append((one, two))
        return False

    monkeypatch.setattr("harness_core.collections.keys.hmac.compare_digest", noted)
    key = keyed.keys["K"]
    for token in (key, f"gek_0000000000_{key[15:]}", "nothing", "gek_"):
        keyed.keys["tried"] = token
        assert keyed.ask(key="tried").status_code == 401
    assert len(compared) == 4
    assert all(isinstance(side, bytes) and len(side) == 32 for pair in compared for side in pair)


def test_a_name_made_again_inherits_no_grant(own: World) -> None:  # SEC54
    grants = [{"namespace": "acme", "collection": "*", "actions": ["query", "read", "write"]}]
    made = own.request("POST", "/keys", json={"kind": "scoped", "grants": grants})
    own.keys["all"] = made.json()["secret"]
    assert own.ask(key="Q").status_code == own.ask(key="all").status_code == 200
    own.request("DELETE", path_of("docs", ""))
    own.request("POST", "/namespaces/acme/collections", json={"name": "docs"})
    assert own.ask(key="Q").status_code == 404
    assert own.request("GET", path_of("docs", ""), "all").status_code == 200
    own.request("DELETE", "/namespaces/acme")
    own.request("POST", "/namespaces", json={"name": "acme"})
    own.request("POST", "/namespaces/acme/collections", json={"name": "docs"})
    for key in ("Q", "all"):
        assert own.request("GET", path_of("docs", ""), key).status_code == 404
        assert own.request("GET", "/namespaces", key).json()["items"] == []


def test_a_stolen_database_opens_nothing(own: World, tmp_path: Path) -> None:  # SEC55
    made = own.request("POST", "/keys", json={"kind": "cluster"}).json()["secret"]
    secrets = [*own.keys.values(), made]
    own.engine.close()
    files = [one for one in tmp_path.iterdir() if one.name.startswith("engine.db")]
    pepper = tmp_path / "engine.db.pepper"
    assert pepper in files
    assert pepper.stat().st_mode & 0o077 == 0
    dump = b"".join(one.read_bytes() for one in files if one != pepper)
    assert all(secret.split("_", 2)[2][:16].encode() not in dump for secret in secrets)
    assert pepper.read_bytes() not in dump
    pepper.unlink()  # the thief has the database alone
    thief = Collections(tmp_path / "engine.db", ingestion=in_this_process)
    with closing(thief), running(ServiceApp(thief, QUICK, work=False)) as url:
        for secret in secrets:
            headers = {"authorization": f"Bearer {secret}"}
            assert httpx.get(f"{url}/info", headers=headers).status_code == 401


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Everything that anything logs."""
    with caplog.at_level(logging.DEBUG):
        for name in ("httpx", "httpcore", "hpack"):  # the client of the test itself
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield caplog


def test_no_key_is_logged_when_requests_fail(
    own: World, heard: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:  # SEC56
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("an unexpected one")

    wrong = own.keys["K"][:-4] + "AAAA"
    own.keys["wrong"] = wrong
    for key in ("wrong", "R", "X", "W", "K"):
        own.ask(key=key, raw={})
    monkeypatch.setattr("harness_core.collections.collection.Collection.search", broken)
    failed = own.request("POST", path_of("docs", ":search"), json={"query": "x"})
    assert failed.status_code == 500
    assert failed.json()["error"]["request_id"] in heard.text
    said = heard.text + str([vars(record) for record in heard.records])
    for secret in own.keys.values():
        assert secret not in said
        assert secret[15:] not in said
    assert "authorization" not in said.lower()
    assert "Bearer" not in said


def test_no_provider_key_is_told_logged_or_traced(
    tmp_path: Path, heard: pytest.LogCaptureFixture, traces: list[Trace]
) -> None:  # SEC56
    with OpenAIServer() as provider:
        provider.queue(9, status=401, body={"error": {"message": "sk-heliotrope is wrong"}})
        client = OpenAIClient("gpt-4.1-mini", base_url=provider.url, api_key="sk-heliotrope")
        with world(tmp_path, settings=QUICK, names=("docs",), client=client) as made:
            response = made.ask()
            said = repr(made.engine) + repr(made.app.service) + repr(client)
    assert response.status_code == 503
    kept = json.dumps([one.export() for one in traces], default=str)
    assert kept != "[]"
    for text in (response.text, heard.text, said, kept):
        assert "heliotrope" not in text


def test_no_text_of_a_client_or_its_errors_holds_its_key(served: World) -> None:  # SEC56
    secret = served.keys["W"]
    with EngineClient(served.url, secret) as client:
        collection = client.collection("acme", "docs")
        with pytest.raises(CollectionFault) as caught:
            collection.answer({"query": "x"})
        runnable = AnswerCollection(collection)
        from langchain_core.load import dumps

        said = [
            "".join(traceback.format_exception(caught.value)), repr(vars(caught.value)),
            repr(client), repr(collection), repr(runnable), dumps(runnable),
            str(pickle.dumps(collection)), str(pickle.dumps(caught.value)),
        ]  # fmt: skip
    for text in said:
        assert secret not in text
        assert secret[15:] not in text


def test_keys_are_listed_without_what_opens_them(own: World) -> None:  # SEC55 SEC56
    listed: Any = own.request("GET", "/keys")
    assert all(secret[15:] not in listed.text for secret in own.keys.values())
    assert "mac" not in listed.json()["items"][0]
