"""Several services on one PostgreSQL: real processes that answer alike and share the work."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.engine import DOCS, SECURE, path_of
from tests.support.postgres import Server
from tests.support.processes import until

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
PEPPER = "a pepper that both of them know"
QUESTIONS = ("What caused the timeout?", "When is the audit?", "What is green?", "harbour bridge")


@dataclass
class Served:
    """A service in a process of its own."""

    process: "subprocess.Popen[str]"
    url: str
    said: str

    def request(self, method: str, path: str, key: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"}
        return httpx.request(method, self.url + path, headers=headers, timeout=60, **more)


@dataclass
class Pair:
    """Two services on one database, and a cluster key that the first one made."""

    one: Served
    two: Served
    key: str
    database: str

    @property
    def both(self) -> tuple[Served, Served]:
        return self.one, self.two

    def files(self, at: Served, collection: str) -> list[dict[str, Any]]:
        """The files of a collection as one of them sees it."""
        found = at.request("GET", path_of(collection, "/files", "default"), self.key)
        items: list[dict[str, Any]] = found.json()["items"]
        return items

    def create(self, name: str, access: str = "off") -> None:
        made = self.one.request(
            "POST", "/namespaces/default/collections", self.key,
            json={"name": name, "access_control": access},
        )  # fmt: skip
        assert made.status_code == 201, made.text

    def add(self, at: Served, collection: str, path: str, text: str, *principals: str) -> None:
        added = at.request(
            "POST", path_of(collection, "/files", "default"), self.key,
            json={"path": path, "text": text, "principals": principals},
        )  # fmt: skip
        assert added.status_code == 202, added.text

    def wait(self, at: Served, collection: str, status: str) -> None:
        """Until every file has the status, as one of them sees it."""
        until(lambda: {file["status"] for file in self.files(at, collection)} == {status})


@contextmanager
def serving(database: str) -> Iterator[Served]:
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}", "HARNESS_PEPPER": PEPPER,
    }  # fmt: skip
    words = ["-m", "harness_integrations.cli", "serve", "--port", "0", "--path", database]
    with subprocess.Popen(
        [sys.executable, *words], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(3)]
        try:
            yield Served(process=process, url=said[1].split()[-1], said="".join(said))
        finally:
            process.kill()


@contextmanager
def paired(postgres: Server) -> Iterator[Pair]:
    database = postgres.new_database()
    with ExitStack() as stack:
        one = stack.enter_context(serving(database))
        two = stack.enter_context(serving(database))
        assert "heliotrope" not in one.said + two.said
        key = one.said.split()[-1]
        yield Pair(one=one, two=two, key=key, database=database)


@pytest.fixture(scope="module")
def pair(postgres: Server) -> Iterator[Pair]:
    with paired(postgres) as made:
        yield made


def test_both_answer_alike(pair: Pair) -> None:
    pair.create("docs")
    pair.create("secure", "enforced")
    for path, text in DOCS.items():
        pair.add(pair.one, "docs", path, text)
    for path, (text, principals) in SECURE.items():
        pair.add(pair.one, "secure", path, text, *principals)
    for name in ("docs", "secure"):
        pair.wait(pair.two, name, "ready")
    asked = [("docs", {"query": question}) for question in QUESTIONS] + [
        ("secure", {"query": "What is the canary?", "principals": [who]})
        for who in ("user:ann", "user:bob", "user:eve")
    ]
    with ThreadPoolExecutor(8) as pool:
        for verb in (":answer", ":search"):
            told = [
                list(pool.map(lambda one: said(at, pair.key, verb, *one), asked))  # noqa: B023 - run at once
                for at in pair.both
            ]
            assert told[0] == told[1]
            assert all(told[0])


def said(at: Served, key: str, verb: str, collection: str, body: dict[str, Any]) -> Any:
    """A reply but for its own id."""
    response = at.request("POST", path_of(collection, verb, "default"), key, json=body)
    assert response.status_code == 200, response.text
    return {name: value for name, value in response.json().items() if name != "request_id"}


def test_a_key_made_at_one_holds_at_both_until_it_is_revoked(pair: Pair) -> None:
    made = pair.one.request("POST", "/keys", pair.key, json={"kind": "cluster"}).json()
    assert pair.two.request("GET", "/namespaces", made["secret"]).status_code == 200
    gone = pair.one.request("DELETE", f"/keys/{made['id']}", pair.key)
    assert gone.status_code == 204
    assert pair.two.request("GET", "/namespaces", made["secret"]).status_code == 401


def test_a_batch_is_read_by_both_and_no_file_twice(pair: Pair, postgres: Server) -> None:
    pair.create("batch")
    for number in range(6):
        pair.add(pair.both[number % 2], "batch", f"/{number}.txt", f"File {number} of a batch.")
    for at in pair.both:
        pair.wait(at, "batch", "ready")
    rows = postgres.execute(
        "SELECT f.attempts FROM harness.file f JOIN harness.collection c "
        "ON c.number = f.collection WHERE c.name = 'batch'",
        pair.database,
    )
    assert [row["attempts"] for row in rows] == [1] * 6


def test_one_takes_over_what_another_was_killed_at(postgres: Server) -> None:
    with paired(postgres) as pair:
        pair.create("docs")
        pair.two.process.send_signal(signal.SIGSTOP)
        pair.add(pair.one, "docs", "/a.txt", "The tide was high.")
        pair.wait(pair.one, "docs", "processing")
        pair.one.process.kill()
        pair.one.process.wait()
        postgres.execute("UPDATE harness.file SET lease_us = 0", pair.database)  # it ran out
        pair.two.process.send_signal(signal.SIGCONT)
        pair.wait(pair.two, "docs", "ready")
        rows = postgres.execute("SELECT attempts, pieces FROM harness.file", pair.database)
        assert rows == [{"attempts": 2, "pieces": 1}]
        pieces = postgres.execute("SELECT count(*) AS n FROM harness.chunk", pair.database)
        assert pieces == [{"n": 1}]
