"""The stream of events: from a snapshot on, resumed, and only for as long as the key lives."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import httpx

from tests.support.engine import World, path_of

Told = tuple[int, str, dict[str, Any]]


@contextmanager
def _stream(
    w: World, name: str = "docs", key: str = "K", **headers: str
) -> Iterator[Iterator[str]]:
    given = {"authorization": f"Bearer {w.keys[key]}", **headers}
    with httpx.stream("GET", w.url + path_of(name, "/events"), headers=given, timeout=10) as one:
        assert one.headers["content-type"].startswith("text/event-stream")
        yield one.iter_lines()


def _event(lines: Iterator[str]) -> Told:
    """The next event; ``StopIteration`` where the stream has ended."""
    while not (line := next(lines)).startswith("id: "):
        pass
    kind, data = next(lines).removeprefix("event: "), next(lines).removeprefix("data: ")
    return int(line.removeprefix("id: ")), kind, json.loads(data)


def _ends(lines: Iterator[str]) -> bool:
    """Whether nothing more is told but a few signs of life."""
    rest = list(islice(lines, 100))
    return len(rest) < 100 and not any(line.startswith("event: ") for line in rest)


def test_a_stream_begins_with_what_is_and_goes_on_with_what_happens(own: World) -> None:
    docs = own.collection("docs")
    with _stream(own) as lines:
        newest, kind, snapshot = _event(lines)
        assert kind == "snapshot"
        assert (snapshot["state"], snapshot["counts"]) == ("ready", {"ready": 3})
        assert newest == docs.events(0, 1000)[-1].seq
        ready = docs.add("/new.txt", "New.")
        failed = docs.add("/bad.pdf", b"%PDF-1.4 nothing")
        docs.delete(ready.id)
        told = [_event(lines) for _ in range(3)]
    assert [kind for _, kind, _ in told] == ["file.ready", "file.failed", "file.deleted"]
    assert [data["file_id"] for _, _, data in told] == [ready.id, failed.id, ready.id]
    assert all(data["at"].endswith("Z") for _, _, data in told)
    assert newest < told[0][0] < told[1][0] < told[2][0]


def test_a_collection_tells_when_it_is_first_ready_and_when_it_failed(own: World) -> None:
    with _stream(own, "void") as lines:
        _event(lines)
        own.collection("void").add("/bad.pdf", b"%PDF-1.4 nothing")
        own.collection("void").add("/a.txt", "Text.")
        kinds = [_event(lines)[1] for _ in range(4)]
    assert kinds == ["file.failed", "collection.failed", "file.ready", "collection.ready"]


def test_a_stream_resumes_after_the_event_that_was_seen(own: World) -> None:
    seqs = [one.seq for one in own.collection("docs").events(0, 1000)]
    with _stream(own, **{"last-event-id": str(seqs[0])}) as lines:
        assert _event(lines)[:2] == (seqs[0], "snapshot")
        assert [_event(lines)[0] for _ in seqs[1:]] == seqs[1:]
        assert next(line for line in lines if line) == ": still here"
    for bad in ("x", "-1", "1.5", ""):
        headers = {"last-event-id": bad}
        assert own.request("GET", path_of("docs", "/events"), headers=headers).status_code == 400


def test_more_than_one_batch_is_told_without_a_pause(own: World) -> None:
    docs, store = own.collection("docs"), own.engine.store
    for number in range(130):
        file = docs.add(f"/{number}.txt", "x", wait=False)
        store.delete_file(docs.id, file.id)
    with _stream(own, **{"last-event-id": "0"}) as lines:
        _event(lines)
        seqs = [_event(lines)[0] for _ in range(134)]
    assert seqs == sorted(set(seqs))


def test_a_stream_ends_with_its_key(own: World) -> None:
    grants = [{"namespace": "acme", "collection": "docs", "actions": ["read"]}]
    made = own.request("POST", "/keys", json={"kind": "scoped", "grants": grants}).json()
    own.keys["reader"] = made["secret"]
    with _stream(own, key="reader") as lines:
        assert _event(lines)[1] == "snapshot"
        own.engine.keys.revoke(made["id"])
        assert _ends(lines)


def test_a_stream_ends_with_its_collection(own: World) -> None:
    with _stream(own) as lines:
        assert _event(lines)[1] == "snapshot"
        own.space.delete_collection("docs")
        assert _ends(lines)
