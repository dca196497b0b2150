"""The service against its own OpenAPI document, by requests that schemathesis makes up."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.engine.conftest import QUICK
from tests.support.engine import World, world

pytestmark = pytest.mark.skipif(
    find_spec("schemathesis") is None, reason="schemathesis is not installed"
)
ROOT = Path(__file__).parents[2]
COLLECTION = "/namespaces/{namespace}/collections/{collection}"
LISTING = "get_namespaces_namespace_collections_collection_files"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, settings=QUICK, names=("docs", "secure")) as one:
        one.engine.create_namespace("spare")
        one.space.create_collection("spare")
        one.app.stop()  # a stream of events ends after what there is to say
        yield one


def configuration(w: World, folder: Path, name: str) -> Path:
    """What is asked stays where it is; what is deleted is spare."""
    first, second, *_ = w.collection(name).files()
    settings = folder / "schemathesis.toml"
    settings.write_text(f"""
[parameters]
"path.namespace" = "acme"
"path.collection" = "{name}"
"path.file" = "{first.id}"

[[operations]]
include-name = "DELETE /namespaces/{{namespace}}"
parameters = {{ "path.namespace" = "spare" }}

[[operations]]
include-name = "DELETE {COLLECTION}"
parameters = {{ "path.collection" = "spare" }}

[[operations]]
include-name = "DELETE {COLLECTION}/files/{{file}}"
parameters = {{ "path.file" = "{second.id}" }}

# A POST without its verb is nowhere (404), not a method that is missing (405).
[[operations]]
include-path = "{COLLECTION}"
checks.unsupported_method.enabled = false
""")
    return settings


def command(w: World, settings: Path, *words: str) -> list[str]:
    """The command line; the key is sent both ways, since either header may be made up."""
    key = w.keys["K"]
    return [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings),
        "run", f"{w.url}/openapi.json", "-H", f"Authorization: Bearer {key}",
        "-H", f"X-API-Key: {key}", "--continue-on-failure", "--request-timeout", "20",
        *words,
    ]  # fmt: skip


def environment(w: World, name: str) -> dict[str, str]:
    """The hooks, and what they are to know."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "core"), str(ROOT), *filter(None, sys.path)]),
        "SCHEMATHESIS_HOOKS": "tests.support.schemathesis_hooks",
        "COLLECTION_ACCESS": w.collection(name).access_control,
    }


def _run(w: World, folder: Path, settings: Path, name: str, *words: str) -> None:
    done = subprocess.run(
        command(w, settings, "--seed", "1", *words), cwd=folder, env=environment(w, name),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    cases = re.search(r"(\d+) generated", done.stdout)
    assert cases is not None
    assert int(cases[1]) > 10, "so few cases mean that a schema cannot be generated from"


def test_every_endpoint_does_what_its_document_says(made: World, tmp_path: Path) -> None:
    # What takes filters, as :answer does, takes long; it is among what follows from what was made.
    settings = configuration(made, tmp_path, "docs")
    _run(made, tmp_path, settings, "docs", "--phases", "examples,coverage",
         "--exclude-path-regex", ":search$", "--exclude-operation-id", LISTING)  # fmt: skip


def test_answer_does_what_its_document_says_where_access_is_enforced(
    made: World, tmp_path: Path
) -> None:
    settings = configuration(made, tmp_path, "secure")
    _run(made, tmp_path, settings, "secure", "--phases", "fuzzing", "--max-examples", "10",
         "--include-path-regex", ":answer$")  # fmt: skip


def test_what_was_made_can_be_used_and_is_gone_when_it_was_deleted(
    made: World, tmp_path: Path
) -> None:
    settings = tmp_path / "schemathesis.toml"
    settings.touch()
    _run(made, tmp_path, settings, "docs", "--phases", "stateful", "--max-examples", "10")
