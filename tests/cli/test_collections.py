"""Collections and the service from the command line."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from harness_core.collections import Collections
from harness_integrations.cli.app import app
from harness_integrations.cli.serving import _first_key
from harness_integrations.engine.service import serving
from harness_integrations.engine.service.app import ServiceApp
from tests.support.openai_server import OpenAIServer
from tests.support.threads import at_once

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bridge.md").write_text("# Bridge\n\nThe harbour bridge was built in 1884.\n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_from_a_file_to_an_answer(folder: Path) -> None:
    assert run("collection", "create", "notes").exit_code == 0
    added = run("collection", "add", "notes", "bridge.md")
    assert (added.exit_code, "ready" in added.stdout) == (0, True)
    asked = run("collection", "ask", "notes", "When was the bridge built?")
    assert "1884 [[SRC:0001]]" in asked.stdout
    assert "/bridge.md" in asked.stderr
    told = json.loads(run("collection", "ask", "notes", "Who built it?", "--json").stdout)
    assert told["effort"] == "medium"


def test_a_broken_file_is_said_and_the_rest_is_kept(folder: Path) -> None:
    run("collection", "create", "notes")
    added = run("collection", "add", "notes", "bridge.md", "broken.pdf", "--json")
    assert added.exit_code == 1
    assert [one["status"] for one in json.loads(added.stdout)] == ["ready", "failed"]


def test_who_may_see_is_asked_for(folder: Path) -> None:
    run("collection", "create", "notes", "--enforced", "--field", "team=text")
    run("collection", "add", "notes", "bridge.md", "--principal", "user:ann")
    words = ("collection", "ask", "notes", "When was the bridge built?")
    assert run(*words).exit_code == 2
    assert "1884" in run(*words, "--principal", "user:ann").stdout
    assert "1884" not in run(*words, "--principal", "user:bob").stdout
    nothing = run(*words, "--principal", "user:ann", "--filter",
                  '{"field":"metadata.team","op":"eq","value":"x"}')  # fmt: skip
    assert "1884" not in nothing.stdout


def test_files_are_listed_and_filtered_by_what_was_said_of_them(folder: Path) -> None:
    run("collection", "create", "notes", "--field", "year=number")
    run("collection", "add", "notes", "bridge.md", "--metadata", "year=1884",
        "--metadata", "team=north=east")  # fmt: skip
    (row,) = json.loads(run("collection", "list", "notes", "--json").stdout)
    assert (row["path"], row["metadata"]) == ("/bridge.md", {"year": 1884, "team": "north=east"})
    (space,) = json.loads(run("collection", "list", "--json").stdout)
    assert (space["name"], space["state"], space["files"]) == ("notes", "ready", 1)
    assert "/bridge.md" in run("collection", "list", "notes").stdout
    words = ("collection", "ask", "notes", "When was the bridge built?", "--filter")
    assert "1884" in run(*words, '{"year": {"$lt": 1900}}').stdout
    assert "1884" not in run(*words, '{"year": 1900}').stdout


def test_keys_are_made_listed_and_revoked(folder: Path) -> None:
    run("collection", "create", "notes")
    secret = run("collection", "keys", "--grant", "default/notes:query,read").stdout.strip()
    with_all = run("collection", "keys", "--new").stdout.strip()
    engine = Collections(folder / "collections.db")
    assert engine.keys.check(secret).kind == "scoped"
    assert engine.keys.check(with_all).kind == "cluster"
    listed = run("collection", "keys").stdout
    assert secret not in listed
    assert run("collection", "keys", "--revoke", secret.split("_")[1]).exit_code == 0
    assert next(one for one in engine.keys.list() if one.kind == "scoped").revoked
    engine.close()


@pytest.mark.parametrize(
    "words",
    [
        ("collection", "ask", "nope", "x"),
        ("collection", "create", "Bad Name"),
        ("collection", "create", "x", "--field", "team"),
        ("collection", "keys", "--revoke", "nope"),
    ],
)
def test_mistakes_are_one_line(folder: Path, words: tuple[str, ...]) -> None:
    run("collection", "create", "notes")
    done = run(*words)
    assert done.exit_code in (1, 2)
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_service_starts_answers_and_stops_on_a_signal(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}"}
    words = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "harness_integrations.cli",
        "serve",
        "--port",
        "0",
    ]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(4)]
        url = said[1].split()[-1]
        secret = said[2].split()[-1]
        assert url.startswith("http://127.0.0.1:")
        assert said[3].strip() == f"open {url}/#key={secret}"
        headers = {"authorization": f"Bearer {secret}"}
        files = f"{url}/namespaces/default/collections/documents/files"
        added = httpx.post(
            files, headers=headers, json={"path": "/a.txt", "text": "The tide was high."}
        )
        assert added.status_code == 202
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert "Traceback" not in process.stderr.read()
    again = Collections(folder / "collections.db")
    again.process()
    kept = again.namespace("default").collection("documents").file(added.json()["id"])
    assert kept.status in ("ready", "processing")
    assert len(again.keys.list()) == 1
    again.close()


def test_of_services_that_begin_at_once_one_is_given_a_key(folder: Path) -> None:
    engines = [Collections(folder / "collections.db") for _ in range(4)]
    given: list[str | None] = []
    works = [partial(lambda one: given.append(_first_key(one)), one) for one in engines]
    assert at_once(works) == []
    (secret,) = [one for one in given if one is not None]
    assert engines[0].keys.check(secret).kind == "cluster"
    assert [one.name for one in engines[0].namespace("default").list_collections()] == ["documents"]
    for one in engines:
        one.close()


def test_a_service_that_cannot_listen_makes_no_key(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run("serve", "--port", str(taken.getsockname()[1])).exit_code != 0
    with closing(Collections(folder / "collections.db")) as engine:
        assert engine.keys.list() == []


def test_the_service_is_told_what_sees_and_from_where_to_fetch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[ServiceApp] = []
    monkeypatch.setattr(serving, "serve", lambda app, **_: served.append(app))
    assert run("serve").exit_code == 0
    assert run("serve", "--vision", "gpt-4o-mini").exit_code != 0  # no key
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    more = ("--vision", "gpt-4o-mini", "--fetch-from", "a.example", "--fetch-from", "b.example")
    assert run("serve", "--model", "extractive", *more).exit_code == 0
    bare, whole = (app.service for app in served)
    assert (bare.engine.sees_images, bare.settings.sources.hosts) == (False, ())
    assert (whole.engine.sees_images, whole.settings.sources.hosts) == (
        True, ("a.example", "b.example")
    )  # fmt: skip
    assert whole.settings.sources.schemes == ("https",)


def test_files_are_embedded_when_added_or_later_and_questions_with_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("collection", "create", "notes").exit_code == 0
    assert run("collection", "add", "notes", "bridge.md").exit_code == 0
    assert run("collection", "add", "notes", "--embedder", "e1", "bridge.md").exit_code != 0
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert "embedded 1 file(s)" in run("collection", "embed", "notes", "e1").stderr
        assert "embedded 0 file(s)" in run("collection", "embed", "notes", "e1").stderr
        (folder / "ferry.md").write_text("The ferry stopped in 1885.")
        assert run("collection", "add", "notes", "--embedder", "e1", "ferry.md").exit_code == 0
        more = ("--embedder", "e1", "--model", "extractive", "--json")
        asked = run("collection", "ask", "notes", "When did the ferry stop?", *more)
        texts = [text for body in server.bodies for text in body["input"]]
    assert "1885 [[SRC:0001]]" in json.loads(asked.stdout)["answer"]
    assert ["1884" in texts[0], "1885" in texts[1], texts[2]] == [
        True, True, "When did the ferry stop?"
    ]  # fmt: skip
