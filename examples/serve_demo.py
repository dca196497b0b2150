"""A service with three files, asked four ways: each gives the same answer with the same sources.

It runs offline. The stand-in for a model copies the sentence that fits best, once for each half of
the question, so that the answer rests on two files.
"""

import json
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request as WebRequest
from urllib.request import urlopen

from harness_core import BaseClient, ExtractiveClient, example_document
from harness_core.client import OnText
from harness_core.collections import Collections, Source
from harness_core.messages import Reply, Request
from harness_integrations.engine import EngineClient, ServiceApp
from harness_integrations.engine.service.serving import running
from harness_integrations.langchain import AnswerCollection
from harness_integrations.llama_index import CollectionQueryEngine

QUESTION = "How big was the deficit of the pension scheme? Who is the harbour master of Skerrin?"
MEMO = "# Skerrin\n\nThe harbour master of Skerrin is Ines Roe. Her office is on the north quay.\n"
COLLECTION = "/namespaces/acme/collections/ferries"


class TwoHalves(BaseClient):
    """Answers each half of a question with the sentence that fits it best."""

    model = "extractive"
    unpriced_ok = True

    def __init__(self) -> None:
        self._one = ExtractiveClient()

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Ask for each half, and join."""
        task = request.task
        if task is None or task.kind != "answer":
            return self._one.send(request)
        halves = [half.strip() + "?" for half in task.question.split("?") if half.strip()]
        replies = [
            self._one.send(replace(request, task=replace(task, question=half))) for half in halves
        ]
        return replace(replies[0], text=" ".join(one.text for one in replies))


def by_curl(url: str, key: str, body: bytes) -> Any:
    """Post JSON with the program curl."""
    headers = ["-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json"]
    command = ["curl", "-sS", "--fail-with-body", url, *headers, "--data-binary", "@-"]
    done = subprocess.run(command, input=body, capture_output=True, check=True)  # noqa: S603 - ours
    return json.loads(done.stdout)


def by_plain_http(url: str, key: str, method: str, *, body: bytes, kind: str) -> Any:
    """The same without a program."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": kind}
    with urlopen(WebRequest(url, body, headers, method=method)) as response:  # noqa: S310 - ours, on loopback
        return json.load(response)


Listed = list[tuple[str, str, dict[str, Any], float]]


def told(name: str, answer: str, sources: Listed) -> None:
    """One way of asking, and what it gave."""
    cited = [f"{ref} {path}" for ref, path, *_ in sources if f"[[{ref}]]" in answer]
    print(f"{name:<12}{answer}\n{'':<12}cites {', '.join(cited)}; {len(sources)} sources")


def listed(sources: list[Source]) -> Listed:
    """Sources as all four ways give them."""
    return [(one.ref, one.path, one.span.wire(), one.score) for one in sources]


def main() -> None:
    """Serve, add, ask four ways, compare."""
    folder = Path(tempfile.mkdtemp(prefix="harness-serve-"))
    engine = Collections(folder / "collections.sqlite3", client=TwoHalves())
    engine.create_namespace("acme")
    here = engine.namespace("acme").create_collection("ferries")
    key = engine.keys.create("cluster").secret
    with running(ServiceApp(engine)) as url:
        print(f"Serving     {url}")
        files = {
            "report.pdf": (Path(example_document("pdf")).read_bytes(), "application/pdf"),
            "report.docx": (
                Path(example_document("docx")).read_bytes(),
                "application/octet-stream",
            ),
            "memo.md": (MEMO.encode(), "text/markdown"),
        }
        for name, (data, kind) in files.items():
            path = f"{COLLECTION}/files:upload?path=/{name}"
            by_plain_http(url + path, key, "PUT", body=data, kind=kind)
        while here.info().counts.get("ready", 0) < len(files):
            time.sleep(0.1)
        print(f"Files       {', '.join(one.path for one in here.files())}")

        body, address = json.dumps({"query": QUESTION}).encode(), f"{url}{COLLECTION}:answer"
        if shutil.which("curl"):
            way, web = "curl", by_curl(address, key, body)
        else:
            way = "plain HTTP"
            web = by_plain_http(address, key, "POST", body=body, kind="application/json")
        with EngineClient(url, key, capabilities=["answer", "read_spans"]) as client:
            remote = client.collection("acme", "ferries")
            chain = AnswerCollection(remote).invoke(QUESTION)
            response = CollectionQueryEngine(remote).query(QUESTION)
        library = here.answer({"query": QUESTION})
    ways: dict[str, tuple[str, Listed]] = {
        way: (
            web["answer"],
            [(s["ref"], s["path"], s["span"], s["score"]) for s in web["sources"]],
        ),
        "LangChain": (chain.answer, listed(chain.sources)),
        "LlamaIndex": (
            str(response),
            [
                (n.metadata["ref"], n.metadata["path"], n.metadata["span"], n.score or 0.0)
                for n in response.source_nodes
            ],
        ),
        "library": (library.answer, listed(library.sources)),
    }
    for name, (answer, sources) in ways.items():
        told(name, answer, sources)
    print(f"Identical   {all(way == ways['library'] for way in ways.values())}")
    engine.close()


if __name__ == "__main__":
    main()
