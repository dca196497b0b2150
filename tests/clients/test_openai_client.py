"""The client against a real server on this machine: attempts, pauses, streams, both APIs."""

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest

from harness_core.client import Client
from harness_core.clients.openai import OpenAIClient
from harness_core.clients.wire.retries import pause_after
from harness_core.config import override
from harness_core.errors import BadSettingError, BadSettingWarning, MissingDepError
from harness_core.messages import Message, Reply, Request, Texts
from tests.support.openai_server import OpenAIServer

ASK = Request(
    messages=(Message("system", "Be brief."), Message("user", "hello there")),
    max_output=50,
    label="stuff.answer",
)
APIS = pytest.mark.parametrize("api", ["responses", "chat"])


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def make(server: OpenAIServer) -> Callable[..., OpenAIClient]:
    def made(**given: Any) -> OpenAIClient:
        client = OpenAIClient("gpt-4o", "test-key", server.url + "/", **given)
        client.pause = Pauses()
        return client

    return made


class Pauses(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)

    async def later(self, seconds: float) -> None:
        self.append(seconds)


Make = Callable[..., OpenAIClient]


@APIS
def test_a_request_comes_back_as_a_reply(server: OpenAIServer, make: Make, api: str) -> None:
    client = make(api=api)
    reply = client.send(ASK)
    assert isinstance(client, Client)
    assert (reply.ok, reply.text, reply.status) == (True, "echo: hello there", 200)
    assert (reply.model, reply.label, reply.attempts) == ("gpt-4o", "stuff.answer", 1)
    assert (reply.usage.input, reply.usage.output) == (12, 4)
    path = "/v1/responses" if api == "responses" else "/v1/chat/completions"
    assert server.requests[0].path == path
    assert server.requests[0].headers["content-type"] == "application/json"


@APIS
@pytest.mark.anyio
async def test_the_async_twin_sends_and_reads_the_same(
    server: OpenAIServer, make: Make, api: str
) -> None:
    client = make(api=api)
    here, there = client.send(ASK), await client.asend(ASK)
    assert here.text == there.text
    assert server.bodies[0] == server.bodies[1]


@APIS
def test_a_stream_is_shown_in_pieces_and_returned_whole(
    server: OpenAIServer, make: Make, api: str
) -> None:
    pieces: list[str] = []
    client = make(api=api)
    streamed, plain = client.send(ASK, on_text=pieces.append), client.send(ASK)
    assert pieces == ["echo: ", "hello ", "there"]
    assert (streamed.text, streamed.usage) == (plain.text, plain.usage)
    assert streamed.finish_reason == plain.finish_reason
    assert server.bodies[0]["stream"] is True
    assert ("stream_options" in server.bodies[0]) == (api == "chat")
    assert "stream" not in server.bodies[1]


@APIS
@pytest.mark.anyio
async def test_the_async_twin_streams_the_same(make: Make, api: str) -> None:
    pieces: list[str] = []
    reply = await make(api=api).asend(ASK, on_text=pieces.append)
    assert "".join(pieces) == reply.text == "echo: hello there"


@APIS
def test_a_stream_that_breaks_after_its_first_piece_is_not_asked_again(
    server: OpenAIServer, make: Make, api: str
) -> None:
    start = 3 if api == "chat" else 5
    server.queue(drop_after=start)
    pieces: list[str] = []
    reply = make(api=api).send(ASK, on_text=pieces.append)
    assert pieces
    assert (reply.ok, reply.status, reply.attempts, reply.sent) == (False, 0, 1, True)
    assert "Transport error" in str(reply.error)
    assert reply.usage.input is None


@APIS
def test_a_stream_that_breaks_before_its_first_piece_is_asked_again(
    server: OpenAIServer, make: Make, api: str
) -> None:
    server.queue(drop_after=1)
    pieces: list[str] = []
    reply = make(api=api).send(ASK, on_text=pieces.append)
    assert "".join(pieces) == reply.text == "echo: hello there"
    assert reply.attempts == 2


@pytest.mark.parametrize(
    ("api", "events", "said"),
    [
        ("chat", [{"error": {"message": "overloaded"}}], "overloaded"),
        ("responses", [{"type": "error", "message": "overloaded"}], "overloaded"),
        ("responses", [{"type": "response.created", "response": {}}], "before the reply"),
        ("chat", [{"choices": [{"index": 0, "delta": {"content": "x"}}]}], "before the reply"),
        ("chat", ["no json"], "status 200"),
        ("responses", [{"type": "response.failed",
                        "response": {"status": "failed", "error": {"message": "broke"}}}], "broke"),
    ],
)  # fmt: skip
def test_a_failure_told_inside_a_stream_fails_the_reply(
    server: OpenAIServer, make: Make, api: str, events: list[Any], said: str
) -> None:
    server.queue(events=events)
    reply = make(api=api).send(ASK, on_text=lambda _: None)
    assert (reply.ok, reply.status, reply.attempts) == (False, 200, 1)
    assert said in str(reply.error)


def test_an_error_of_the_listener_is_the_listeners_own(make: Make) -> None:
    def listener(_: str) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        make().send(ASK, on_text=listener)


# --- attempts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_a_passing_trouble_is_tried_again(server: OpenAIServer, make: Make, status: int) -> None:
    server.queue(status=status)
    client = make(retry_pause_base=2)
    reply = client.send(ASK)
    assert (reply.ok, reply.attempts, len(server.requests)) == (True, 2, 2)
    assert isinstance(client.pause, Pauses)
    assert 1 <= client.pause[0] <= 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501])  # core 36
def test_a_lasting_trouble_is_not(server: OpenAIServer, make: Make, status: int) -> None:
    server.queue(status=status, body={"error": {"message": "no " * 600}})
    reply = make().send(ASK)
    assert (reply.ok, reply.status, reply.attempts, reply.retryable) == (False, status, 1, False)
    assert len(server.requests) == 1
    assert len(str(reply.error)) < 850
    assert reply.cause is not None
    assert reply.sent


def test_patience_ends_and_says_how_often_it_tried(server: OpenAIServer, make: Make) -> None:
    server.queue(4, status=429, body={"error": {"code": "rate_limit_exceeded"}})  # core 36
    reply = make(max_retries=3).send(ASK)
    assert (reply.status, reply.attempts, reply.retryable) == (429, 4, True)
    assert len(server.requests) == 4


@pytest.mark.parametrize("field", ["code", "type"])
def test_a_spent_account_is_not_waited_for(server: OpenAIServer, make: Make, field: str) -> None:
    server.queue(status=429, body={"error": {field: "insufficient_quota"}})  # core 37
    reply = make().send(ASK)
    assert (reply.status, reply.attempts, reply.retryable) == (429, 1, False)
    assert "quota" in str(reply.error)


def test_a_lost_connection_is_tried_again_and_then_told(server: OpenAIServer, make: Make) -> None:
    server.queue(3, drop=True)
    reply = make(max_retries=2).send(ASK)
    assert (reply.status, reply.attempts, reply.retryable, reply.sent) == (0, 3, True, True)
    assert str(reply.error).startswith("Transport error")


def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    client = OpenAIClient("gpt-4o", "k", "http://127.0.0.1:9/v1", max_retries=1)
    client.pause = Pauses()
    reply = client.send(ASK)
    assert (reply.ok, reply.sent, reply.attempts, reply.status) == (False, False, 2, 0)


def test_a_slow_server_times_out(make: Make) -> None:
    def late(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("too slow")

    client = make(max_retries=0, http_client=httpx.Client(transport=httpx.MockTransport(late)))
    reply = client.send(ASK)
    assert (reply.ok, reply.status, reply.sent) == (False, 0, True)
    assert "ReadTimeout" in str(reply.error)


@pytest.mark.anyio
async def test_the_async_twin_pauses_and_tries_again(server: OpenAIServer, make: Make) -> None:
    client, pauses = make(retry_pause_base=2), Pauses()
    client.apause = pauses.later
    server.queue(status=503, headers={"Retry-After": "7"})
    reply = await client.asend(ASK)
    assert (reply.ok, reply.attempts, pauses) == (True, 2, [7.0])


@pytest.mark.parametrize(
    ("made", "after", "base", "low", "high"),
    [
        (1, "7", 2.0, 7, 7),
        (1, "0", 2.0, 0, 0),
        (1, "500", 2.0, 60, 60),
        (1, "Wed, 21 Oct 2026 07:28:00 GMT", 2.0, 1, 2),
        (1, "-3", 2.0, 1, 2),
        (1, "nan", 2.0, 1, 2),
        (3, None, 2.0, 4, 8),
        (20, None, 2.0, 30, 60),
        (3, None, 0.0, 0, 0),
    ],
)
def test_how_long_a_pause_is(
    made: int, after: str | None, base: float, low: float, high: float
) -> None:
    assert pause_after(made, after, base, lambda: 0.0) == low
    assert pause_after(made, after, base, lambda: 1.0) == high


def test_a_200_that_is_no_json_is_a_failure_of_that_request(
    server: OpenAIServer, make: Make
) -> None:
    server.queue(body="<html>hello</html>")  # core 38
    reply = make().send(ASK)
    assert (reply.ok, reply.status, reply.sent, reply.attempts) == (False, 200, True, 1)
    assert "could not read" in str(reply.error)


# --- embeddings ---------------------------------------------------------------------------------


def test_texts_come_back_as_unit_vectors(server: OpenAIServer, make: Make) -> None:
    found = make(extra_body={"seed": 1}).embed(Texts(texts=("a b", "c"), label="embed.chunks"))
    assert found.vectors is not None
    assert found.vectors.shape == (2, 8)
    assert (found.vectors**2).sum(axis=1) == pytest.approx([1, 1])
    assert (found.usage.input, found.model) == (3, "text-embedding-3-small")
    assert found.label == "embed.chunks"
    assert server.bodies == [{"model": "text-embedding-3-small", "input": ["a b", "c"]}]


@pytest.mark.anyio
async def test_embedding_is_retried_like_text(server: OpenAIServer, make: Make) -> None:
    client = make(embedding_model="e-1")
    client.apause = Pauses().later
    server.queue(status=500)
    assert (await client.aembed(Texts(texts=("a",)))).attempts == 2
    server.queue(status=400)
    failed = await client.aembed(Texts(texts=("a",), model="e-2"))
    assert (failed.ok, failed.status, failed.model, failed.attempts) == (False, 400, "e-2", 1)


# --- settings -----------------------------------------------------------------------------------


def test_what_is_not_given_follows_the_settings_at_each_request(server: OpenAIServer) -> None:
    client = OpenAIClient(api_key="k")
    assert (client.model, client.api) == ("gpt-5.6-terra", "responses")
    with override(model="gpt-4o", api="chat", api_base=f"{server.url}//", max_retries=0):
        server.queue(status=500)
        reply = client.send(ASK)
    assert (reply.model, reply.attempts) == ("gpt-4o", 1)
    assert server.requests[0].path == "/v1/chat/completions"


def test_an_unknown_api_is_refused_and_a_bad_number_is_bounded() -> None:
    with pytest.raises(BadSettingError, match="api"):
        OpenAIClient(api="soap")
    with pytest.warns(BadSettingWarning, match="max_retries"):
        client = OpenAIClient(max_retries=99)
    assert "max_retries=10" in repr(client)


def test_a_client_with_a_cache_shares_the_connection(server: OpenAIServer, make: Make) -> None:
    client = make()
    cached = client.with_cache(object())
    assert client.cache is None
    assert cached.send(ASK).ok
    assert "cache=True" in repr(cached)


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, make: Make) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(MissingDepError, match=r"harness-integrations\[openai\]"):
        make().send(ASK)


# --- event loops --------------------------------------------------------------------------------


def test_one_client_serves_several_event_loops(make: Make) -> None:
    client = make()
    replies: list[Reply] = []

    async def ask() -> None:
        replies.append(await client.asend(ASK))

    for backend in ("asyncio", "trio", "asyncio"):
        anyio.run(ask, backend=backend)
    assert [reply.ok for reply in replies] == [True] * 3


@pytest.mark.anyio
async def test_requests_side_by_side_share_one_pool(server: OpenAIServer, make: Make) -> None:
    client = make()
    replies: list[Reply] = []

    async def ask() -> None:
        replies.append(await client.asend(ASK))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(ask)
    assert len(replies) == len(server.requests) == 8
    assert len(client._async_sdks) == 1


@pytest.mark.anyio
async def test_a_callers_own_http_client_is_used_and_left_open(make: Make) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"output_text": request.url.host})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as mine:
        client = make(async_http_client=mine)
        assert (await client.asend(ASK)).text == "127.0.0.1"
        assert not mine.is_closed
