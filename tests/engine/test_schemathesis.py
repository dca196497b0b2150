"""The service against its own OpenAPI document, by requests that schemathesis makes up."""

import os
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
ANSWER = "/namespaces/{namespace}/collections/{collection}:answer"
EVENTS = "/namespaces/{namespace}/collections/{collection}/events"
COLLECTION = "/namespaces/{namespace}/collections/{collection}"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, settings=QUICK, names=("docs", "secure")) as one:
        yield one


def _run(w: World, folder: Path, name: str, *words: str) -> None:
    file = w.collection(name).files()[0].id
    settings = folder / "schemathesis.toml"
    settings.write_text(
        f'[parameters]\n"path.namespace" = "acme"\n"path.collection" = "{name}"\n'
        f'"path.file" = "{file}"\n'
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "core"), str(ROOT), *filter(None, sys.path)]),
        "SCHEMATHESIS_HOOKS": "tests.support.schemathesis_hooks",
        "COLLECTION_ACCESS": w.collection(name).access_control,
    }
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings),
            "run", f"{w.url}/openapi.json", "-H", f"Authorization: Bearer {w.keys['K']}",
            "--continue-on-failure", "--request-timeout", "20", "--seed", "1", *words,
        ],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize(("name", "phases"), [("docs", "coverage,fuzzing"), ("secure", "fuzzing")])
def test_answer_does_what_its_document_says(
    made: World, tmp_path: Path, name: str, phases: str
) -> None:
    _run(made, tmp_path, name, "--include-path", ANSWER, "--phases", phases,
         "--max-examples", "20")  # fmt: skip


def test_the_other_endpoints_keep_to_their_statuses_and_shapes(made: World, tmp_path: Path) -> None:
    # What a path, a key or a metadata field may be is more than a schema says; a POST without its
    # verb is nowhere (404), not a method that is missing (405).
    _run(
        made, tmp_path, "docs", "--exclude-path", ANSWER, "--exclude-path", EVENTS,
        "--exclude-path", COLLECTION, "--exclude-method", "DELETE", "--phases", "fuzzing",
        "--exclude-checks", "positive_data_acceptance", "--max-examples", "3",
    )  # fmt: skip
