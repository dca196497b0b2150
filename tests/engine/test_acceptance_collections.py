"""What a question may read: states, grants, filters, and files that come and go meanwhile."""

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness_core import ResponseCache
from harness_core.collections import AnswerCache
from harness_core.messages import Request
from tests.collections.test_filters import FIELDS, MATCHES, RECORDS, REFUSED
from tests.engine.conftest import QUICK
from tests.support.engine import (
    DOCS,
    Scripted,
    World,
    citing,
    error_of,
    path_of,
    put,
    world,
)


def _paths(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return sorted(one["path"] for one in response.json()["sources"])


def _canaries(w: World, *principals: str, **more: Any) -> list[str]:
    return _paths(w.ask("secure", query="canary", principals=list(principals), **more))


# --- grants -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        ("user:ann", ["/a.txt", "/c.txt"]),  # AC36
        ("group:eng", ["/a.txt", "/c.txt"]),
        ("user:bob", ["/b.txt", "/c.txt"]),  # AC37
        ("user:eve", ["/c.txt"]),  # AC38
    ],
)
def test_principals_bound_what_an_answer_uses(served: World, who: str, seen: list[str]) -> None:
    assert _canaries(served, who) == seen
    hidden = {"/a.txt": "heliotrope", "/b.txt": "vermilion"}
    for path, canary in hidden.items():
        assert (canary in served.model.sent) is (path in seen)


def test_nobody_sees_nothing(served: World) -> None:  # AC39
    response = served.ask("secure", query="canary", principals=[])
    assert _paths(response) == []
    assert response.json()["answer"] == "The files do not say."
    assert served.model.requests == []


def test_a_revoked_grant_is_gone_at_the_next_request(tmp_path: Path) -> None:  # AC84 SEC36
    warm = {
        "client": Scripted().with_cache(ResponseCache(tmp_path / "cache.db")),
        "answer_cache": AnswerCache(),
    }
    with world(tmp_path, settings=QUICK, names=("secure",), **warm) as w:
        assert _canaries(w, "user:ann") == _canaries(w, "user:ann") == ["/a.txt", "/c.txt"]
        files = path_of("secure", "/files")
        listed = w.request("GET", files).json()["items"]
        file = next(one for one in listed if one["path"] == "/a.txt")
        body = {"principals": ["user:bob"]}
        assert w.request("PATCH", f"{files}/{file['id']}", json=body).status_code == 200
        assert _canaries(w, "user:ann") == ["/c.txt"]
        assert _canaries(w, "user:bob") == ["/a.txt", "/b.txt", "/c.txt"]


# --- states -----------------------------------------------------------------------------------


def test_an_empty_collection_is_a_conflict(served: World) -> None:  # AC43
    response = served.ask("void")
    assert error_of(response) == (409, "collection_empty")
    error = response.json()["error"]
    assert (error["retryable"], error["details"]) == (False, {})


def _come_back_later(response: httpx.Response) -> None:
    assert error_of(response) == (409, "collection_not_ready")
    error = response.json()["error"]
    seconds = error["details"]["retry_after_seconds"]
    assert error["retryable"] is True
    assert isinstance(seconds, int)
    assert 1 <= seconds <= 300
    assert response.headers["retry-after"] == str(seconds)


def test_a_collection_whose_files_are_processed_says_when_to_come_back(
    served: World,
) -> None:  # AC44
    _come_back_later(served.ask("busy"))


def test_a_collection_whose_files_failed_says_not_to(served: World) -> None:  # AC45
    response = served.ask("broken")
    assert error_of(response) == (409, "collection_not_ready")
    error = response.json()["error"]
    assert error["retryable"] is False
    assert "retry_after_seconds" not in error["details"]
    assert "retry-after" not in response.headers


def test_a_partly_ready_collection_answers_from_what_is_ready(served: World) -> None:  # AC46
    assert _paths(served.ask("mixed")) == ["/ready.txt"]
    assert "Waiting." not in served.model.sent


def _delete(w: World, collection: str, path: str) -> None:
    files = w.request("GET", path_of(collection, "/files")).json()["items"]
    file = next(one["id"] for one in files if one["path"] == path)
    assert w.request("DELETE", path_of(collection, f"/files/{file}")).status_code == 204


def test_without_its_ready_file_a_collection_is_being_processed(own: World) -> None:  # AC47
    _delete(own, "mixed", "/ready.txt")
    _come_back_later(own.ask("mixed"))


def test_deleting_takes_effect_at_once(own: World) -> None:  # AC48
    *others, last = DOCS
    for path in others:
        _delete(own, "docs", path)
    assert _paths(own.ask()) == [last]
    _delete(own, "docs", last)
    assert error_of(own.ask()) == (409, "collection_empty")


def _event(lines: Iterator[str]) -> str:
    for line in lines:
        if line.startswith("event: "):
            return line.removeprefix("event: ")
    raise AssertionError("the stream ended")


def test_a_file_is_answered_from_once_its_event_was_told(own: World) -> None:  # AC49
    files, url = path_of("docs", "/files"), own.url + path_of("docs", "/events")
    headers = {"authorization": f"Bearer {own.keys['K']}"}
    found = 0
    with (
        own.engine.worker() as worker,
        httpx.stream("GET", url, headers=headers, timeout=10) as stream,
    ):
        lines = stream.iter_lines()
        assert _event(lines) == "snapshot"
        for place in range(100):
            text = f"Event number{place} took place."
            own.request("POST", files, json={"path": f"/e{place}.txt", "text": text})
            worker.wake()
            while _event(lines) != "file.ready":
                pass
            found += f"/e{place}.txt" in _paths(own.ask(query=f"number{place}"))
    assert found == 100


# --- filters ----------------------------------------------------------------------------------


def _stored(time: str) -> int:
    """A time as the store keeps it: microseconds, from a day before the year 1 on."""
    passed = datetime.fromisoformat(time) - datetime.min.replace(tzinfo=UTC)
    return (passed + timedelta(days=1)) // timedelta(microseconds=1)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The records of the vectors: two that can be answered from and one that failed."""
    folder = tmp_path_factory.mktemp("filters")
    with world(folder, settings=QUICK, names=("void",)) as made:
        target = made.collection("void")
        target.set_fields(FIELDS)
        for record in RECORDS:
            file = {name: record[name] for name in ("content_type", "metadata")}
            data, error = b"x" * record["bytes"], None
            if record["status"] == "failed":
                error = {"code": "corrupt", "message": "the file is damaged"}
            put(target, record["path"], "Text.", data=data, error=error, **file)
        with sqlite3.connect(folder / "engine.db") as store:
            for record in RECORDS:
                times = [_stored(record[name]) for name in ("created_at", "updated_at")]
                store.execute(
                    "UPDATE file SET created_us = ?, updated_us = ? WHERE path = ?",
                    (*times, record["path"]),
                )
        yield made


def _names(items: list[dict[str, Any]]) -> str:
    names = {record["path"]: name for name, record in zip("ABC", RECORDS, strict=True)}
    return "".join(sorted(names[one["path"]] for one in items))


@pytest.mark.parametrize("vector", sorted(MATCHES))
def test_a_filter_matches_over_http_what_it_matches(filled: World, vector: str) -> None:  # AC50
    given, wanted = MATCHES[vector]
    listed = filled.request("GET", path_of("void", "/files"), params={"filter": json.dumps(given)})
    assert _names(listed.json()["items"]) == wanted
    answered = filled.ask("void", filter=given)
    assert answered.status_code == 200
    assert _names(answered.json()["sources"]) == wanted.replace("C", "")


@pytest.mark.parametrize("vector", sorted(REFUSED))
def test_a_filter_is_refused_over_http_with_its_reason(filled: World, vector: str) -> None:  # AC50
    given, field, reason = REFUSED[vector]
    for response in (
        filled.ask("void", filter=given),
        filled.request("POST", path_of("void", ":search"), json={"query": "x", "filter": given}),
        filled.request("GET", path_of("void", "/files"), params={"filter": json.dumps(given)}),
    ):
        assert error_of(response) == (400, "invalid_filter")
        details: dict[str, Any] = response.json()["error"]["details"]
        said = {name: one for name, one in (("field", field), ("reason", reason)) if one}
        assert {**said, "pointer": details["pointer"]} == details
        assert details["pointer"].startswith("/filter")


def test_a_filter_that_matches_nothing_is_no_conflict(served: World) -> None:  # AC51
    response = served.ask(filter={"field": "path", "op": "eq", "value": "/none"})
    assert _paths(response) == []
    assert response.json()["answer"] == "The files do not say."


def test_a_null_filter_is_none(served: World) -> None:  # AC52
    with_null, without = served.ask(filter=None).json(), served.ask().json()
    assert with_null | {"request_id": ""} == without | {"request_id": ""}
    assert len(without["sources"]) == len(DOCS)


LEVEL = {"field": "metadata.level", "op": "gte", "value": 7}
FIELDS_PATH = path_of("docs", "/metadata-fields")


def test_a_field_is_listed_before_it_filters(own: World) -> None:  # AC54
    own.collection("docs").add("/7.txt", "Seven happened.", metadata={"level": 7})
    refused = own.ask(filter=LEVEL)
    assert error_of(refused) == (400, "invalid_filter")
    details = refused.json()["error"]["details"]
    assert (details["field"], details["reason"]) == ("metadata.level", "not_listed")
    own.request("PUT", FIELDS_PATH, json={"fields": {"level": "number"}})
    assert _paths(own.ask(filter=LEVEL)) == ["/7.txt"]


def test_a_field_that_changes_its_type_is_read_anew(own: World) -> None:  # AC55
    docs = own.collection("docs")
    docs.add("/7.txt", "Seven happened.", metadata={"level": "7"})
    docs.add("/abc.txt", "Letters happened.", metadata={"level": "abc"})
    as_text = own.request("PUT", FIELDS_PATH, json={"fields": {"level": "text"}}).json()
    assert as_text["unreadable"] == {"level": 0}
    letters = {"field": "metadata.level", "op": "eq", "value": "abc"}
    assert _paths(own.ask(filter=letters)) == ["/abc.txt"]
    as_number = own.request("PUT", FIELDS_PATH, json={"fields": {"level": "number"}}).json()
    assert as_number["unreadable"] == {"level": 1}
    assert _paths(own.ask(filter=LEVEL)) == ["/7.txt"]
    empty = {"field": "metadata.level", "op": "eq", "value": None}
    assert _paths(own.ask(filter=empty)) == sorted(["/abc.txt", *DOCS])


def test_a_filter_only_narrows(served: World) -> None:  # AC56
    hidden = {"field": "path", "op": "eq", "value": "/b.txt"}
    assert _canaries(served, "user:ann", filter=hidden) == []
    assert "vermilion" not in served.model.sent


# --- changes meanwhile ------------------------------------------------------------------------


def test_answers_stay_whole_while_files_come_and_go(own: World) -> None:  # AC85
    docs, versions = own.collection("docs"), dict[str, int]()

    def replace(version: int) -> None:
        file = docs.add("/x.txt", f"The tide of version{version} was high.", wait=False)
        versions[file.id] = version
        own.engine.process()

    replace(0)

    def write(request: Request) -> str:
        return citing(re.findall(r"version\d+", str(request.task))[0])(request)

    own.model.write = write
    over = threading.Event()

    def ask(_: int) -> list[tuple[str, str, list[str]]]:
        told = list[tuple[str, str, list[str]]]()
        while not over.is_set() or not told:
            response = own.ask(query="tide")
            assert response.status_code == 200, response.text
            body = response.json()
            ids = [one["span"]["file_id"] for one in body["sources"] if one["path"] == "/x.txt"]
            told.append((body["answer"], body["sources"][0]["span"]["file_id"], ids))
        return told

    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask, place) for place in range(20)]
        try:
            for version in range(1, 16):
                extra = docs.add(f"/extra{version}.txt", f"The tide again, part {version}.")
                replace(version)
                docs.delete(extra.id)
        finally:
            over.set()
        told = [one for each in asked for one in each.result()]
    for answer, cited, ids in told:
        assert ids == [cited]  # one version of the file, never none and never two
        assert answer == f"Of version{versions[cited]} [[SRC:0001]]."
    assert len({cited for _, cited, _ in told}) > 1
