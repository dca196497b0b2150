"""Services that are killed, stopped or out of room: what was acknowledged is there afterwards."""

import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.processes import Served, place, rows, serving, until

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are seen in /proc"),
]

LONG = b"The harbour office counted ships and cargo that month, and wrote it down. " * 20_000
_READY = "FROM file WHERE status = 'ready'"
THINGS = ("anchor", "beacon", "crane", "dredger", "ensign", "ferry", "gangway", "hawser")
FACTS = {f"/{thing}.txt": f"The {thing} of the harbour is kept by Ines." for thing in THINGS}


def _lease_ran_out(folder: Path) -> None:
    """What a minute or two would do to the files that a dead process was at."""
    rows(folder, "UPDATE file SET lease_us = 0 WHERE status = 'processing'")


def _intact(folder: Path) -> None:
    """The store is whole, and each piece and posting belongs to a file that is ready."""
    assert rows(folder, "PRAGMA integrity_check") == [("ok",)]
    assert rows(folder, "PRAGMA foreign_key_check") == []
    ready = set(rows(folder, f"SELECT id {_READY}"))
    assert set(rows(folder, "SELECT file FROM chunk UNION SELECT file FROM body")) == ready
    assert rows(folder, "SELECT id FROM chunk EXCEPT SELECT rowid FROM fts_1") == []
    assert rows(folder, "SELECT rowid FROM fts_1 EXCEPT SELECT id FROM chunk") == []


def _found(served: Served, question: str) -> list[str]:
    """The paths of the places that an answer rests on, cited ones first."""
    response = served.ask(question)
    assert response.status_code == 200, response.text
    return [one["path"] for one in response.json()["sources"] if one["cited"]]


# --- killed while files are read ------------------------------------------------------------------


def _read(served: Served) -> None:
    """Until a file was read, and its text is on its way into the index."""
    child = until(served.child)
    until(lambda: served.child() != child)


def _one_more(served: Served) -> None:
    """Until one more file is ready."""
    before = len(_ready(served))
    until(lambda: len(_ready(served)) > before)


def _ready(served: Served) -> set[str]:
    return {path for path, one in served.files().items() if one["status"] == "ready"}


MOMENTS: Sequence[Callable[[Served], Any]] = (
    lambda served: None,  # as soon as files are acknowledged
    lambda served: until(served.child),
    _read,
    _one_more,
    lambda served: until(served.child),
)


def test_no_acknowledged_file_is_lost_when_the_service_is_killed(tmp_path: Path) -> None:
    key, facts = "", list(FACTS.items())
    for number, moment in enumerate(MOMENTS):
        with serving(tmp_path, key=key) as served:
            key = served.key
            for path, text in facts[number : number + 2]:  # one of them for the second time
                assert served.add(path, text).status_code == 202
            moment(served)
            ready = _ready(served)
            served.kill()
        _intact(tmp_path)
        assert ready <= {path for (path,) in rows(tmp_path, f"SELECT path {_READY}")}
    _lease_ran_out(tmp_path)
    added = facts[: len(MOMENTS) + 1]
    with serving(tmp_path, key=key) as served:
        until(lambda: served.statuses() == {"ready"})
        assert set(served.files()) == set(dict(added))
        for path, text in added:
            assert _found(served, f"Who keeps the {text.split()[1]}?")[0] == path
    _intact(tmp_path)


def test_the_process_that_reads_a_file_ends_with_the_service(tmp_path: Path) -> None:
    with serving(tmp_path, environment={"TMPDIR": str(tmp_path)}) as served:
        assert served.upload("/long.txt", LONG).status_code == 202
        child = until(served.child)
        served.kill()
    until(lambda: not Path(f"/proc/{child}").exists())
    assert not list(tmp_path.glob("harness-ingest-*"))


def test_a_file_whose_reading_is_killed_fails_and_the_next_is_read(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.upload("/long.txt", LONG).status_code == 202
        os.kill(until(served.child), signal.SIGKILL)
        assert served.add("/next.txt", "The tide was high.").status_code == 202
        until(lambda: served.statuses() == {"failed", "ready"})
        files = served.files()
    assert files["/long.txt"]["error"]["code"] == "corrupt"
    assert files["/next.txt"]["status"] == "ready"
    _intact(tmp_path)


# --- killed while it answers ----------------------------------------------------------------------


@pytest.mark.parametrize("answers", [1, 40])
def test_answers_are_the_same_after_a_kill_under_load(tmp_path: Path, answers: int) -> None:
    questions = [f"Who keeps the {thing}?" for thing in THINGS[:4]]
    told: list[int] = []
    with ThreadPoolExecutor(9) as pool, serving(tmp_path) as served:
        for path, text in list(FACTS.items())[:4]:
            assert served.add(path, text).status_code == 202
        until(lambda: served.statuses() == {"ready"})
        before = [_found(served, question) for question in questions]

        def ask_on(question: str) -> None:
            with suppress(httpx.TransportError):
                while True:
                    told.append(served.ask(question).status_code)

        pool.map(ask_on, 2 * questions)
        until(lambda: len(told) >= answers)
        late = pool.submit(served.add, "/late.txt", "A late file.")
        served.kill()
    assert set(told) == {200}
    _intact(tmp_path)
    _lease_ran_out(tmp_path)
    with serving(tmp_path, key=served.key) as served:
        until(lambda: served.statuses() == {"ready"})
        assert [_found(served, question) for question in questions] == before
        if late.exception() is None:
            assert "/late.txt" in served.files()


# --- told to stop ---------------------------------------------------------------------------------


def _upload_begun(served: Served, size: int) -> socket.socket:
    """An upload whose body has not come yet."""
    url = httpx.URL(served.url)
    connection = socket.create_connection((url.host, url.port or 80), timeout=60)
    head = (
        f"PUT {place('/files:upload')}?path=/late.txt HTTP/1.1", "host: x",
        f"authorization: Bearer {served.key}", f"content-length: {size}", "expect: 100-continue",
        "", "",
    )  # fmt: skip
    connection.sendall("\r\n".join(head).encode())
    assert connection.recv(4096).startswith(b"HTTP/1.1 100")  # it waits for the body now
    return connection


def _refuses(served: Served) -> bool:
    try:
        served.request("GET", "/health")
    except httpx.TransportError:  # or one that had just been let in
        return True
    return False


def test_a_stop_lets_answers_and_uploads_come_to_their_end(tmp_path: Path) -> None:
    asked, released = threading.Event(), threading.Event()

    def reply(_: object) -> str:
        asked.set()
        assert released.wait(60)
        return "The tide was high."

    with OpenAIServer(reply=reply) as provider, ThreadPoolExecutor(1) as pool:
        model = {"HARNESS_API_BASE": provider.url, "OPENAI_API_KEY": "test-key"}
        with serving(tmp_path, "--model", "gpt-4.1-mini", environment=model) as served:
            served.add("/tide.txt", "The tide was high at noon.")
            until(lambda: served.statuses() == {"ready"})
            answer = pool.submit(served.ask, "How was the tide?")
            assert asked.wait(60)
            text = b"It came while the service was stopping."
            with _upload_begun(served, len(text)) as upload:
                served.process.send_signal(signal.SIGTERM)
                until(lambda: _refuses(served))
                assert all(_refuses(served) for _ in range(30))  # it goes on waiting for them
                upload.sendall(text)
                assert upload.recv(65_536).startswith(b"HTTP/1.1 202 ")
            released.set()
            assert answer.result().status_code == 200
            assert served.process.wait(60) == 0
    assert rows(tmp_path, "SELECT path FROM file ORDER BY path") == [("/late.txt",), ("/tide.txt",)]
    _intact(tmp_path)


def test_a_stop_waits_for_the_file_at_hand(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.upload("/long.txt", LONG)
        served.add("/next.txt", "The tide was high.")
        until(served.child)
        assert served.kill(signal.SIGTERM) == 0
    statuses = rows(tmp_path, "SELECT path, status FROM file ORDER BY path")
    assert statuses[0] == ("/long.txt", "ready")
    assert statuses[1][1] in ("pending", "ready")
    _intact(tmp_path)


# --- out of room ----------------------------------------------------------------------------------


def test_where_no_room_is_left_writes_are_refused_and_reads_go_on(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.add("/tide.txt", "The tide was high at noon.")
        until(lambda: served.statuses() == {"ready"})
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (2 * 2**20, 2 * 2**20))
        _refused(served.upload("/huge.bin", bytes(3 * 2**20)))
        replies = [served.upload(f"/{n}.bin", os.urandom(700_000)) for n in range(6)]
        assert {one.status_code for one in replies} == {202, 503}
        _refused(replies[-1])
        assert _found(served, "How was the tide?") == ["/tide.txt"]
        assert served.request("GET", "/health").status_code == 200
    kept = [f"/{n}.bin" for n, one in enumerate(replies) if one.status_code == 202]
    _intact(tmp_path)
    _lease_ran_out(tmp_path)
    with serving(tmp_path, key=served.key) as served:
        assert served.add("/more.txt", "There is room again.").status_code == 202
        until(lambda: served.statuses() <= {"ready", "failed"})
        assert set(served.files()) == {"/tide.txt", "/more.txt", *kept}
        assert _found(served, "How was the tide?") == ["/tide.txt"]
    _intact(tmp_path)


def _refused(response: httpx.Response) -> None:
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (503, "temporarily_unavailable")
    assert (error["details"]["reason"], error["retryable"]) == ("store", True)


# --- two on one file ------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    with serving(tmp_path) as one, serving(tmp_path, key=one.key) as two:
        yield one, two


def test_two_services_on_one_file_share_the_work_and_answer_alike(
    tmp_path: Path, pair: tuple[Served, Served]
) -> None:
    with ThreadPoolExecutor(4) as pool:
        added = pool.map(
            lambda one: pair[one[0] % 2].add(*one[1]).status_code, enumerate(FACTS.items())
        )
        assert set(added) == {202}
    for one in pair:
        until(lambda: one.statuses() == {"ready"})  # noqa: B023 - called at once
    assert rows(tmp_path, "SELECT DISTINCT attempts FROM file") == [(1,)]
    for path, text in FACTS.items():
        question = f"Who keeps the {text.split()[1]}?"
        told = [one.ask(question).json() for one in pair]
        assert told[0]["sources"] == told[1]["sources"]
        assert told[0]["sources"][0]["path"] == path
    _intact(tmp_path)
