"""Recorded exchanges: what a provider of each API said, replayed without a socket.

``python -m tests.support.cassettes`` (with ``core`` and ``.`` on the path) records them anew from
the server of ``openai_server`` and our own; keys, addresses and headers that change are left out.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

FOLDER = Path(__file__).parents[1] / "clients" / "cassettes"
ADDRESS = "http://provider.test/v1"
_KEPT = ("accept", "content-type")
_CHANGING = ("date", "server", "connection")


def cassette(name: str, *, record: bool = False) -> AbstractContextManager[Any]:
    """The cassette ``name`` in place of the network; without ``record`` it only plays."""
    import vcr  # type: ignore[import-untyped]  # it ships no types

    tape = vcr.VCR(
        cassette_library_dir=str(FOLDER),
        record_mode=vcr.mode.ALL if record else vcr.mode.NONE,
        match_on=("method", "uri", "body"),
        before_record_request=_without_secrets,
        before_record_response=_without_changes,
        decode_compressed_response=True,
    )
    context: AbstractContextManager[Any] = tape.use_cassette(f"{name}.yaml")
    return context


def _without_secrets(request: Any) -> Any:
    request.uri = ADDRESS.removesuffix("/v1") + urlsplit(request.uri).path
    request.headers = {
        name: value for name, value in request.headers.items() if name.lower() in _KEPT
    }
    return request


def _without_changes(response: Any) -> Any:
    response["headers"] = {
        name: value for name, value in response["headers"].items() if name.lower() not in _CHANGING
    }
    return response


def record_all(talks: dict[str, Callable[[str], object]]) -> None:
    """Record each talk, a function of the base URL, under its name."""
    from tests.support.openai_server import OpenAIServer

    for name, talk in talks.items():
        (FOLDER / f"{name}.yaml").unlink(missing_ok=True)
        with OpenAIServer() as server, cassette(name, record=True):
            talk(server.url)


def record_answer() -> None:
    """Record an answer of our own service."""
    from tests.engine.test_acceptance_adapters import exchanged, recorded_collection
    from tests.support.engine import world

    (FOLDER / "collection_answer.yaml").unlink(missing_ok=True)
    with TemporaryDirectory() as folder, world(Path(folder), names=()) as w:
        recorded_collection(w)
        with cassette("collection_answer", record=True):
            exchanged(w.url, w.keys["K"])


if __name__ == "__main__":
    from tests.clients.test_cassettes import TALKS

    record_all(TALKS)
    record_answer()
