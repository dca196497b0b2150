"""A service per module for tests that only read, one per test for those that change it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from harness_core import Trace
from harness_integrations.engine.service.app import ServiceApp
from harness_integrations.engine.service.settings import ServiceSettings
from tests.support.engine import Scripted, World, world

QUICK = ServiceSettings(poll_seconds=0.01, heartbeat_seconds=0.05)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The service of the acceptance cases; its model is put back after each test."""
    with world(tmp_path_factory.mktemp("engine"), settings=QUICK) as made:
        yield made


@pytest.fixture
def served(shared: World) -> World:
    """The shared service with a fresh script."""
    fresh = Scripted()
    shared.model.write, shared.model.requests = fresh.write, []
    return shared


@pytest.fixture
def own(tmp_path: Path) -> Iterator[World]:
    """A service of the test's own."""
    with world(tmp_path, settings=QUICK) as made:
        yield made


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[Trace]:
    """The trace of each answer that begins in this test."""
    begun: list[Trace] = []

    class Kept(Trace):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            begun.append(self)

    monkeypatch.setattr("harness_core.collections.asking.Trace", Kept)
    return begun


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The sizes of the pieces of body that the service took, by request."""
    taken: list[list[int]] = []
    whole = ServiceApp.__call__

    async def counting(app: ServiceApp, scope: Any, receive: Any, send: Any) -> None:
        pieces: list[int] = []
        taken.append(pieces)

        async def counted() -> Any:
            message = await receive()
            pieces.append(len(message.get("body", b"")))
            return message

        await whole(app, scope, counted, send)

    monkeypatch.setattr(ServiceApp, "__call__", counting)
    return taken
