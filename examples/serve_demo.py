"""A service with three files, asked four ways: each gives the same answer with the same sources.

It runs offline. The stand-in for a model copies the sentence that fits best, once for each half of
the question, so that the answer rests on two files.
"""

import json
import shutil
import subprocess
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request as WebRequest
from urllib.request import urlopen

from harness_core import BaseClient, ExtractiveClient, example_document
from harness_core.client import OnText
from harness_core.collections import Collection, Collections, Source
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
Told = tuple[str, Listed]


def told(name: str, answer: str, sources: Listed) -> None:
    """One way of asking, and what it gave."""
    cited = [f"{ref} {path}" for ref, path, *_ in sources if f"[[{ref}]]" in answer]
    print(f"{name:<12}{answer}\n{'':<12}cites {', '.join(cited)}; {len(sources)} sources")


def listed(sources: list[Source]) -> Listed:
    """Sources as all four ways give them."""
    return [(one.ref, one.path, one.span.wire(), one.score) for one in sources]


def fill(address: str, key: str, ferries: Collection) -> None:
    """Upload three files, and wait until they are ready."""
    files = {
        "report.pdf": (Path(example_document("pdf")).read_bytes(), "application/pdf"),
        "report.docx": (Path(example_document("docx")).read_bytes(), "application/octet-stream"),
        "memo.md": (MEMO.encode(), "text/markdown"),
    }
    for name, (data, kind) in files.items():
        by_plain_http(f"{address}/files:upload?path=/{name}", key, "PUT", body=data, kind=kind)
    while ferries.info().counts.get("ready", 0) < len(files):
        time.sleep(0.1)
    print(f"Files       {', '.join(one.path for one in ferries.files())}")


def by_web(address: str, key: str) -> tuple[str, Told]:
    """Ask without any package of ours: by curl, or without it by what Python has."""
    body = json.dumps({"query": QUESTION}).encode()
    if shutil.which("curl"):
        way, web = "curl", by_curl(address, key, body)
    else:
        way = "plain HTTP"
        web = by_plain_http(address, key, "POST", body=body, kind="application/json")
    return way, (
        web["answer"],
        [(one["ref"], one["path"], one["span"], one["score"]) for one in web["sources"]],
    )


def by_frameworks(url: str, key: str) -> tuple[Told, Told]:
    """Ask through LangChain and through LlamaIndex."""
    with EngineClient(url, key, capabilities=["answer", "read_spans"]) as client:
        remote = client.collection("acme", "ferries")
        chain = AnswerCollection(remote).invoke(QUESTION)
        response = CollectionQueryEngine(remote).query(QUESTION)
    nodes = [(node.metadata, node.score or 0.0) for node in response.source_nodes]
    return (chain.answer, listed(chain.sources)), (
        str(response),
        [(about["ref"], about["path"], about["span"], score) for about, score in nodes],
    )


def ask_in_four_ways(engine: Collections) -> dict[str, Told]:
    """Serve, add, ask: the answer and the sources by the way they came."""
    engine.create_namespace("acme")
    here = engine.namespace("acme").create_collection("ferries")
    key = engine.keys.create("cluster").secret
    with running(ServiceApp(engine)) as url:
        print(f"Serving     {url}")
        fill(url + COLLECTION, key, here)
        way, web = by_web(f"{url}{COLLECTION}:answer", key)
        chain, response = by_frameworks(url, key)
        library = here.answer({"query": QUESTION})
    return {
        way: web, "LangChain": chain, "LlamaIndex": response,
        "library": (library.answer, listed(library.sources)),
    }  # fmt: skip


def main() -> None:
    """Ask four ways, compare."""
    with (
        tempfile.TemporaryDirectory(prefix="harness-serve-") as folder,
        closing(Collections(Path(folder, "answers.sqlite3"), client=TwoHalves())) as engine,
    ):
        ways = ask_in_four_ways(engine)
    for name, (answer, sources) in ways.items():
        told(name, answer, sources)
    print(f"Identical   {all(way == ways['library'] for way in ways.values())}")


if __name__ == "__main__":
    main()
