"""Collections to ask, and a scripted model that sees the labels of its excerpts."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core import MockClient
from harness_core.collections import Collection, Collections, Limits, in_this_process
from harness_core.collections.ingestion.limits import IngestFault
from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import Claim, TextForm

Excerpt = tuple[int, str]
Script = Callable[[list[Excerpt], str], str]

ANN, BOB, EVE = "user:ann", "user:bob", "user:eve"
FILES = {
    "/a.txt": "The alpha pump was repaired in March by Ann.",
    "/b.txt": "The beta pump was repaired in April by Bob.",
    "/c.txt": "The gamma pump was repaired in May by Carol.",
}


def excerpts_of(prompt: str) -> list[Excerpt]:
    """The labels and texts of an answering prompt."""
    fenced = re.search(r"<(excerpts-\w+)>\n(.*)\n</\1>", prompt, re.DOTALL)
    parts = re.split(r"\[chunk (\d{12})[^\]]*\]\n", fenced[2] if fenced else "")
    texts = [text.rstrip("\n") for text in parts[2::2]]
    return [(int(label), text) for label, text in zip(parts[1::2], texts, strict=True)]


class Model:
    """A model that answers by a script; what it was told is kept."""

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or cites_all
        self.prompts: list[str] = []
        self.client = MockClient(self._reply, concurrent=True)

    def _reply(self, messages: list[dict[str, Any]], params: dict[str, Any]) -> str:
        prompt = "\n".join(message["content"] for message in messages)
        self.prompts.append(prompt)
        if params["label"] == "answer.rewrite":
            return "pump repaired"
        if params["label"] == "rerank.score":
            return '{"score": 8, "reason": "it fits"}'
        return self.script(excerpts_of(prompt), prompt)

    def labels(self) -> list[str]:
        """The stages asked so far."""
        return [call.label for call in self.client.calls()]


def cites_all(excerpts: list[Excerpt], _prompt: str) -> str:
    """Says how every excerpt begins, and cites it."""
    return " ".join(f"{text[:60].rstrip('.')} [chunk {label}]." for label, text in excerpts)


def ingested(claim: Claim, limits: Limits) -> TextForm:
    """Files named so wait or fail; the others are read in this process."""
    if "broken" in claim.path:
        raise IngestFault("corrupt", "the file is damaged")
    return in_this_process(claim, limits)


@pytest.fixture
def model() -> Model:
    return Model()


def opened(path: Path, **settings: Any) -> Collections:
    """A store without the wait for the disk, which no test but that of a killed process needs."""
    made = Collections(path, ingestion=ingested, **settings)
    store = made.store
    assert isinstance(store, SqliteStore)
    store.database._writer.execute("PRAGMA synchronous = OFF")
    return made


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two collections of three files: docs for all, secure under access control."""
    path = tmp_path_factory.mktemp("collections") / "template.db"
    made = opened(path)
    made.create_namespace("acme")
    space = made.namespace("acme")
    docs = space.create_collection("docs", metadata_fields={"team": "text"})
    secure = space.create_collection("secure", access_control="enforced")
    grants = {"/a.txt": [ANN, "group:eng"], "/b.txt": [BOB], "/c.txt": ["*"]}
    for name, text in FILES.items():
        docs.add(name, text, metadata={"team": name[1]})
        secure.add(name, text, principals=grants[name])
    made.close()
    return path


@pytest.fixture
def engine(tmp_path: Path, template: Path, model: Model) -> Iterator[Collections]:
    shutil.copy(template, tmp_path / "store.db")
    made = opened(tmp_path / "store.db", client=model.client)
    yield made
    made.close()


@pytest.fixture
def docs(engine: Collections) -> Collection:
    """Three files that all may read."""
    return engine.namespace("acme").collection("docs")


@pytest.fixture
def secure(engine: Collections) -> Collection:
    """Ann and the engineers see a, Bob sees b, everyone sees c."""
    return engine.namespace("acme").collection("secure")
