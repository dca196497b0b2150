"""One recorded exchange per API, replayed with every socket shut."""

import socket
from collections.abc import Callable

import pytest

from harness_core.clients.openai import OpenAIClient
from harness_core.messages import Embeddings, Message, Reply, Request, Texts
from tests.support.cassettes import ADDRESS, FOLDER, cassette

ASK = Request(
    messages=(Message("system", "Answer in one word."), Message("user", "Which river is it?")),
    max_output=40,
    temperature=0.0,
)
KEY = "key-of-the-recording"


def _client(address: str, api: str) -> OpenAIClient:
    return OpenAIClient("gpt-4o", KEY, address, api=api, max_retries=0)


def responses(address: str) -> Reply:
    return _client(address, "responses").send(ASK)


def chat(address: str) -> Reply:
    return _client(address, "chat").send(ASK)


def chat_stream(address: str) -> Reply:
    return _client(address, "chat").send(ASK, on_text=lambda _: None)


def responses_stream(address: str) -> Reply:
    return _client(address, "responses").send(ASK, on_text=lambda _: None)


def embeddings(address: str) -> Embeddings:
    return _client(address, "chat").embed(Texts(texts=("a river", "a lake")))


TALKS: dict[str, Callable[[str], object]] = {
    one.__name__: one for one in (responses, responses_stream, chat, chat_stream, embeddings)
}


@pytest.fixture(autouse=True)
def shut(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a replay opened a socket")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("talk", [responses, responses_stream, chat, chat_stream])
def test_a_recorded_exchange_is_read_as_it_was(talk: Callable[[str], Reply]) -> None:
    with cassette(talk.__name__) as tape:
        reply = talk(ADDRESS)
    assert (reply.ok, reply.text, reply.status) == (True, "echo: Which river is it?", 200)
    assert (reply.usage.input, reply.usage.output) == (16, 6)
    assert reply.finish_reason == ("completed" if "responses" in talk.__name__ else "stop")
    assert tape.play_count == 1


def test_recorded_vectors_are_read_as_they_were() -> None:
    with cassette("embeddings"):
        found = embeddings(ADDRESS)
    assert found.vectors is not None
    assert found.vectors.shape == (2, 8)
    assert found.usage.input == 4


def test_a_request_that_was_not_recorded_is_not_sent() -> None:
    with cassette("chat"):
        other = _client(ADDRESS, "chat").send(
            Request(messages=(Message("user", "Something else?"),), max_output=40)
        )
    assert (other.ok, other.status) == (False, 0)


@pytest.mark.parametrize("name", sorted(TALKS))
def test_a_cassette_holds_no_key_and_no_address(name: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text("utf-8")
    assert "provider.test" in text
    for secret in (KEY, "uthorization", "127.0.0.1", "User-Agent", "stainless"):
        assert secret not in text
