"""Recorded against a server on this machine; replayed with no socket at all."""

import os
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.support.openai_server import Json, OpenAIServer

FACTS = {
    "dunlin": "The Dunlin carries 120 passengers and was built in 1962.",
    "heron": "The Heron carries 48 passengers and was built in 1987.",
}


def answered(messages: Sequence[Json]) -> str:
    """What the server says: the facts that the last message names, else that there are none."""
    said = str(messages[-1].get("content") or "").lower()
    found = [fact for name, fact in FACTS.items() if name in said]
    if "json" in said or "extract" in said:
        number = re.search(r"(\d+) passengers", " ".join(found))
        return f'{{"name": "Dunlin", "passengers": {number[1] if number else 0}}}'
    return " ".join(found) or "I do not know."


@pytest.fixture
def server(
    harness_recording: HarnessRecording, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenAIServer | None]:
    """The provider while a test is recorded; None, and no way out, while it is replayed."""
    if not harness_recording.sends:

        def blocked(*address: Any) -> None:
            raise AssertionError(f"a replay tried to connect to {address[1:]}")

        monkeypatch.setattr(socket.socket, "connect", blocked)
        monkeypatch.setattr(socket, "getaddrinfo", blocked)
        for name in [name for name in os.environ if name.startswith("OPENAI_")]:
            monkeypatch.delenv(name)
        yield None
        return
    with OpenAIServer(reply=answered) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-thiskeyisonnodisk0123456789")
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_BASE", running.url)
        yield running
