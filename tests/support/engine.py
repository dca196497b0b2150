"""A service on loopback with the collections of the acceptance cases, and a model that is a script.

with world(tmp_path) as w:
    w.model.write = lambda request: cite(request, 1, 0)
    w.ask("docs", query="What?").json()
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx

from harness_core.client import BaseClient, OnText
from harness_core.collections import (
    Collection,
    Collections,
    KeyGrant,
    Namespace,
    in_this_process,
)
from harness_core.collections.store import FileInfo, Piece, TextForm
from harness_core.messages import Reply, Request, Usage
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.serving import running
from harness_integrations.engine.service.settings import ServiceSettings

Write = Callable[[Request], str]
_TLS = ssl.create_default_context()  # loading it anew takes longer than the request

DOCS = {
    "/incident.txt": "The database timeout was caused by an exhausted connection pool.",
    "/naive.txt": "na\u00efve \U0001f600 fa\u00e7ade. The harbour bridge became green in 1931.",
    "/plan.md": "# Plan\n\nThe next audit of the harbour takes place in May.",
}
SECURE = {
    "/a.txt": ("The canary of Ann is heliotrope.", ["user:ann", "group:eng"]),
    "/b.txt": ("The canary of Bob is vermilion.", ["user:bob"]),
    "/c.txt": ("The canary of everyone is beige.", ["*"]),
}


def cite(request: Request, *places: int) -> str:
    """An answer that cites the excerpts at those places of the prompt."""
    labels = labels_of(request)
    return " ".join(f"Fact {place} [chunk {labels[place]}]." for place in places)


def cite_first(request: Request) -> str:
    """A grade, an answer that cites the first excerpt, or a few words where there is none."""
    if request.label.endswith("score"):
        return '{"score": 7, "reason": "it fits"}'
    return cite(request, 0) if labels_of(request) else "the harbour bridge"


def labels_of(request: Request) -> list[int]:
    """The labels of the excerpts of a request."""
    excerpts = request.task.excerpts if request.task else ()
    return [label for label, _ in excerpts if label is not None]


class Scripted(BaseClient):
    """A model that is a function of the request; it keeps what it was sent."""

    model = "mock-model"
    unpriced_ok = True

    def __init__(self, write: Write | None = None) -> None:
        self.write: Write = write or cite_first
        self.requests: list[Request] = []

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        self.requests.append(request)
        text = self.write(request)
        return Reply(
            ok=True, text=text, model=self.model, finish_reason="stop",
            usage=Usage(input=1, output=1),
        )  # fmt: skip

    @property
    def sent(self) -> str:
        """Everything that was sent so far."""
        return json.dumps([[m.as_json() for m in one.messages] for one in self.requests])


class Seeing(Scripted):
    """A model that describes images."""

    def __init__(self) -> None:
        super().__init__(lambda request: "a green bridge")


class Held(Scripted):
    """A model that says when it was asked and when it was left, and waits to be let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.left, self.go = threading.Event(), threading.Event(), anyio.Event()

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        self.requests.append(request)
        self.asked.set()
        try:
            await self.go.wait()
        finally:
            self.left.set()
        return self.send(request)


@dataclass
class World:
    """A running service and what is in it."""

    url: str
    engine: Collections
    space: Namespace
    model: Scripted
    app: ServiceApp
    keys: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, path: str, key: str | None = "K", **more: Any) -> httpx.Response:
        """One request with one of the keys (K, Q, W, X, R), or none."""
        headers = httpx.Headers(more.pop("headers", None))
        if key is not None:
            headers["authorization"] = f"Bearer {self.keys[key]}"
        with httpx.Client(base_url=self.url, timeout=30, verify=_TLS) as client:
            return client.request(method, path, headers=headers, **more)

    def ask(
        self, collection: str = "docs", key: str | None = "K", raw: Any = None, **body: Any
    ) -> httpx.Response:
        """One question; ``raw`` is a body as it is."""
        asked: Any = {"query": "What happened?"} | body if raw is None else raw
        if isinstance(asked, bytes):
            more: dict[str, Any] = {
                "content": asked, "headers": {"content-type": "application/json"}
            }  # fmt: skip
        else:
            more = {"json": asked}
        return self.request("POST", path_of(collection), key, **more)

    def collection(self, name: str) -> Collection:
        """A collection of the library behind the service."""
        return self.space.collection(name)


def citing(*words: str) -> Write:
    """An answer that cites, for each word, the excerpt that holds it."""

    def write(request: Request) -> str:
        if request.task is None or not request.task.excerpts:
            return "a line to search with"
        if request.label.endswith("score"):
            return '{"score": 7, "reason": "it fits"}'
        found = [
            next(label for label, text in request.task.excerpts if word in text) for word in words
        ]
        said = zip(words, found, strict=True)
        return " ".join(f"Of {word} [chunk {label}]." for word, label in said)

    return write


def put(
    collection: Collection,
    path: str,
    text: str,
    *ends: int,
    error: Mapping[str, str] | None = None,
    **file: Any,
) -> FileInfo:
    """A ready file whose pieces end at those places of its text (one piece: at its end).

    With ``error`` it is a failed one.
    """
    store = collection._engine.store
    given = {"content_type": "text/plain", "data": text.encode(), "metadata": {}, "principals": ()}
    added = store.add_file(collection.id, path=path, **{**given, **file})
    claim = store.claim(60, added.id)
    assert claim is not None
    if error is not None:
        assert store.fail(claim, error)
        return added
    stops = ends or (len(text),)
    pieces = tuple(Piece(start=a, stop=b) for a, b in pairwise((0, *stops)))
    assert store.finish(claim, TextForm(text=text, pieces=pieces))
    return added


def error_of(response: httpx.Response) -> tuple[int, str]:
    """The status and the code of a response in the form that every failure has."""
    error = response.json()["error"]
    assert set(error) == {"code", "message", "request_id", "retryable", "details"}
    assert isinstance(error["details"], dict)
    assert error["request_id"] == response.headers["x-engine-request-id"]
    assert response.headers["x-request-id"]
    return response.status_code, error["code"]


def refused(response: httpx.Response, pointer: str | None = None) -> None:
    """Check that a request was refused for what it says, at that place of it."""
    assert error_of(response) == (400, "invalid_request")
    assert response.json()["error"]["retryable"] is False
    if pointer is not None:
        assert response.json()["error"]["details"]["pointer"] == pointer


def unavailable(response: httpx.Response, reason: str, *, retryable: bool) -> None:
    """Check that no answer could be given for a reason, and that the header says when to ask."""
    assert error_of(response) == (503, "temporarily_unavailable")
    error = response.json()["error"]
    assert (error["details"]["reason"], error["retryable"]) == (reason, retryable)
    later = error["details"].get("retry_after_seconds")
    assert response.headers.get("retry-after") == (None if later is None else str(later))


def path_of(collection: str, verb: str = ":answer", namespace: str = "acme") -> str:
    """The path of a collection."""
    return f"/namespaces/{namespace}/collections/{collection}{verb}"


@contextmanager
def world(
    folder: Path,
    *,
    settings: ServiceSettings | None = None,
    names: Sequence[str] = ("docs", "secure", "void", "busy", "broken", "mixed"),
    **engine: Any,
) -> Iterator[World]:
    """The fixture of the acceptance cases, over real HTTP."""
    model = Scripted()
    made = Collections(
        folder / "engine.db",
        **{"client": model, "vision": Seeing(), "ingestion": in_this_process, **engine},
    )
    space = made.namespace(made.create_namespace("acme").id)
    for name in names:
        _FILL[name](space)
    app = ServiceApp(made, settings, work=False)
    with running(app) as url:
        yield World(url=url, engine=made, space=space, model=model, app=app, keys=_keys(made))
    made.close()


@contextmanager
def again(w: World, **engine: Any) -> Iterator[World]:
    """Another service over the files of a running one, without its model."""
    given = {"ingestion": in_this_process, "vision": Seeing(), **engine}
    made = Collections(w.engine._path, **given)
    app = ServiceApp(made, w.app.service.settings, work=False)
    space = made.namespace(w.space.id)
    with running(app) as url:
        yield World(url=url, engine=made, space=space, model=Scripted(), app=app, keys=w.keys)
    made.close()


def _keys(engine: Collections) -> dict[str, str]:
    space = engine.namespace("acme")
    ids = {one.name: one.id for one in space.list_collections()}
    other = engine.create_namespace("other")

    def scoped(action: Any, *names: str) -> str:
        grants = [
            KeyGrant(namespace_id=space.id, collection_id=ids[name], actions=(action,))
            for name in names
            if name in ids
        ]
        elsewhere = KeyGrant(namespace_id=other.id, collection_id="*", actions=(action,))
        return engine.keys.create("scoped", grants or [elsewhere]).secret

    revoked = engine.keys.create("cluster")
    engine.keys.revoke(revoked.id)
    return {
        "K": engine.keys.create("cluster").secret,
        "Q": scoped("query", "docs", "secure"),
        "W": scoped("write", "docs"),
        "X": scoped("query"),
        "R": revoked.secret,
    }


def _docs(space: Namespace) -> None:
    docs = space.create_collection("docs")
    for path, text in DOCS.items():
        docs.add(path, text)


def _secure(space: Namespace) -> None:
    secure = space.create_collection("secure", access_control="enforced")
    for path, (text, principals) in SECURE.items():
        secure.add(path, text, principals=principals)


def _void(space: Namespace) -> None:
    space.create_collection("void")


def _busy(space: Namespace) -> None:
    space.create_collection("busy").add("/a.txt", "Waiting.", wait=False)


def _broken(space: Namespace) -> None:
    space.create_collection("broken").add("/a.pdf", b"%PDF-1.4 nothing")


def _mixed(space: Namespace) -> None:
    mixed = space.create_collection("mixed")
    mixed.add("/ready.txt", "The ready one says seven.")
    mixed.add("/failed.pdf", b"%PDF-1.4 nothing")
    mixed.add("/waiting.txt", "Waiting.", wait=False)


_FILL: dict[str, Callable[[Namespace], None]] = {
    "docs": _docs, "secure": _secure, "void": _void, "busy": _busy, "broken": _broken,
    "mixed": _mixed,
}  # fmt: skip
