"""The client of any server of the contract: strict going out, tolerant coming in."""

import copy
import datetime
import json
import pickle
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from harness_core.collections.contract import AnswerRequest
from harness_core.collections.faults import (
    CollectionEmptyError,
    CollectionFault,
    CollectionNotReadyError,
    FilterError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    TemporarilyUnavailableError,
    UnauthenticatedError,
)
from harness_core.errors import AuthError, BadSettingError
from harness_integrations.engine.client import EngineClient, RemoteCollection, UnlistedSourceWarning
from harness_integrations.engine.faults import (
    ProtocolError,
    RequestTooLargeError,
    TransportError,
    UnknownFaultError,
)
from tests.support.engine import World, cite

SOURCE = {
    "ref": "SRC:0001",
    "span": {"file_id": "fil_01K6Q6N7D8E9F0G1H2J3K4M5N6", "unit": "chars", "start": 0, "end": 77},
    "path": "/reports/incident.txt",
    "content_type": "text/plain",
    "score": 0.81,
    "cited": True,
}
EXAMPLE = {
    "request_id": "req_example",
    "answer": "Checkout stalled because the connection pool was exhausted [[SRC:0001]].",
    "effort": "medium",
    "sources": [SOURCE],
    "usage": {"credits": 1},
}
Handler = Callable[[httpx.Request], httpx.Response]


def _fault(status: int, code: str, *, retryable: bool = False, **details: Any) -> httpx.Response:
    error = {
        "code": code,
        "message": "no",
        "request_id": "req_1",
        "retryable": retryable,
        "details": details,
    }
    return httpx.Response(status, json={"error": error})


class Server:
    """A foreign server: what it answers, and what it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def awaited(self, request: httpx.Request) -> httpx.Response:
        return self(request)

    def collection(self, **more: Any) -> RemoteCollection:
        client = EngineClient(
            "https://engine.example.com/v1/", "secret-key", transport=httpx.MockTransport(self),
            async_transport=httpx.MockTransport(self.awaited), sleep=self.pauses.append, **more,
        )  # fmt: skip
        return client.collection("acme", "incident-logs")


def test_the_example_of_the_contract_is_sent_and_read() -> None:
    server = Server(httpx.Response(200, json=EXAMPLE))
    result = server.collection().answer({"query": "What caused it?", "sources": "cited"})
    sent = server.asked[0]
    assert (
        str(sent.url)
        == "https://engine.example.com/v1/namespaces/acme/collections/incident-logs:answer"
    )
    assert json.loads(sent.content) == {"query": "What caused it?", "sources": "cited"}
    assert sent.headers["authorization"] == "Bearer secret-key"
    assert sent.extensions["timeout"]["connect"] == 5
    assert sent.extensions["timeout"]["read"] == 50
    assert result.sources[0].span.end == 77
    assert result.image_description is None


def test_an_image_is_given_more_time() -> None:
    server = Server(httpx.Response(200, json=EXAMPLE))
    image = {"data": "aGk=", "media_type": "image/png"}
    server.collection().answer({"query": "x", "query_image": image})
    assert server.asked[0].extensions["timeout"]["read"] == 95


@pytest.mark.anyio
async def test_asking_with_await_is_the_same() -> None:
    server = Server(httpx.Response(200, json=EXAMPLE))
    result = await server.collection().aanswer(AnswerRequest(query="x"))
    assert result.answer == EXAMPLE["answer"]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (_fault(400, "invalid_request", pointer="/query"), InvalidRequestError),
        (_fault(400, "invalid_filter", field="path", reason="op_not_allowed"), FilterError),
        (_fault(401, "unauthenticated"), UnauthenticatedError),
        (_fault(403, "forbidden"), ForbiddenError),
        (_fault(404, "not_found"), NotFoundError),
        (_fault(409, "collection_empty"), CollectionEmptyError),
        (_fault(409, "collection_not_ready"), CollectionNotReadyError),
        (_fault(413, "request_too_large"), RequestTooLargeError),
        (_fault(500, "internal_error"), CollectionFault),
        (_fault(503, "temporarily_unavailable"), TemporarilyUnavailableError),
        (_fault(418, "teapot"), UnknownFaultError),
    ],
)
def test_a_fault_has_the_class_of_the_library(
    response: httpx.Response, kind: type[CollectionFault]
) -> None:  # AC91
    server = Server(response)
    with pytest.raises(kind) as caught:
        server.collection().answer({"query": "x"})
    assert type(caught.value) is kind
    assert caught.value.status == response.status_code
    assert caught.value.retryable is False
    assert caught.value.request_id == "req_1"
    assert len(server.asked) == 1
    assert str(pickle.loads(pickle.dumps(caught.value))) == "no"  # noqa: S301 - our own bytes
    if isinstance(caught.value, FilterError):
        assert (caught.value.field, caught.value.reason) == ("path", "op_not_allowed")


def test_what_may_help_is_asked_again_after_a_pause() -> None:  # AC91
    busy = _fault(503, "temporarily_unavailable", retryable=True, retry_after_seconds=7)
    server = Server(busy, httpx.Response(200, json=EXAMPLE))
    assert server.collection().answer({"query": "x"}).answer
    assert server.pauses == [7.0]


def test_a_service_says_how_long_to_wait_in_a_header_too() -> None:
    busy = httpx.Response(503, text="busy", headers={"retry-after": "9"})
    server = Server(busy, httpx.Response(200, json=EXAMPLE))
    assert server.collection().answer({"query": "x"}).answer
    assert server.pauses == [9.0]


def test_nothing_is_asked_again_sooner_than_the_service_says() -> None:
    server = Server(_fault(503, "temporarily_unavailable", retryable=True, retry_after_seconds=61))
    with pytest.raises(TemporarilyUnavailableError) as caught:
        server.collection().answer({"query": "x"})
    assert caught.value.retryable
    assert server.pauses == []


def test_the_callers_deadline_holds_over_all_attempts() -> None:
    busy = _fault(503, "temporarily_unavailable", retryable=True, retry_after_seconds=7)
    server = Server(busy, busy, busy)
    collection = server.collection(max_seconds=10, attempts=9, clock=lambda: sum(server.pauses))
    with pytest.raises(TemporarilyUnavailableError):
        collection.answer({"query": "x"})
    assert server.pauses == [7.0]
    assert [one.extensions["timeout"]["read"] for one in server.asked] == [10, 3]


def test_attempts_are_counted() -> None:
    busy = _fault(503, "temporarily_unavailable", retryable=True)
    server = Server(busy, busy, busy)
    with pytest.raises(TemporarilyUnavailableError):
        server.collection().answer({"query": "x"})
    assert len(server.asked) == 3
    assert len(server.pauses) == 2
    assert 0 < server.pauses[0] < 1.6


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(502, html="<h1>Bad gateway heliotrope</h1>"),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.Response(503, text="busy"),
        httpx.Response(504, json=[]),
    ],
)
def test_what_stands_before_the_service_is_a_transport_error(answer: Any) -> None:  # AC92
    server = Server(answer, answer, answer)
    with pytest.raises(TransportError) as caught:
        server.collection().answer({"query": "x"})
    assert caught.value.retryable
    assert "heliotrope" not in str(caught.value)
    assert len(server.asked) == 3


def test_a_redirect_or_a_page_is_no_answer() -> None:
    server = Server(httpx.Response(302, headers={"location": "https://evil.example"}))
    with pytest.raises(TransportError):
        server.collection().answer({"query": "x"})
    for odd in (
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"answer": 5}),
    ):
        with pytest.raises(ProtocolError):
            Server(odd).collection().answer({"query": "x"})


def test_bodies_go_out_as_plain_utf8_within_their_limit() -> None:  # AC93
    server = Server(httpx.Response(200, json=EXAMPLE))
    turns = [{"role": "user", "content": "\U0001f600" * 32_000}] * 32
    server.collection().answer({"query": "x", "history": turns})
    assert 4_000_000 < len(server.asked[0].content) < 4_200_000
    many = ["\U0001f600" * 64] * 4096
    with pytest.raises(RequestTooLargeError):
        Server().collection().answer({
            "query": "x", "history": turns,
            "principals": [f"{n:04d}{one[:63]}" for n, one in enumerate(many)],
            "query_image": {"data": "A" * 1_500_000, "media_type": "image/png"},
        })  # fmt: skip


def _nested(levels: int) -> Any:
    clause: Any = {"field": "path", "op": "eq", "value": "/a"}
    for _ in range(levels):
        clause = {"not": clause}
    return clause


@pytest.mark.parametrize(
    "asked",
    [
        {"query": ""},
        {"query": "x", "top_k": 3},
        {"query": "x", "effort": "low"},
        {"query": "x", "filter": {"value": "\ud800"}},
        {"query": "x", "filter": {"value": float("nan")}},  # and no null in its place
        {"query": "x", "filter": {"value": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}},
        {"query": "x", "filter": _nested(5_000)},
    ],
)
def test_a_bad_request_is_refused_before_it_is_sent(asked: Any) -> None:  # AC93
    server = Server()
    with pytest.raises(InvalidRequestError):
        server.collection().answer(asked)
    assert server.asked == []


def test_a_newer_server_may_say_more() -> None:  # AC95
    newer = {
        **EXAMPLE, "effort": "extreme", "confidence": 0.5, "found": False, "trace": "x",
        "sources": [{**SOURCE, "span": {"file_id": "f", "unit": "slides"}, "matches": []}],
    }  # fmt: skip
    result = Server(httpx.Response(200, json=newer)).collection().answer({"query": "x"})
    assert (result.effort, result.sources[0].span.unit) == ("extreme", "slides")
    assert result.model_extra == {"confidence": 0.5}
    assert (result.found, result.trace) == (True, None)


def test_a_marker_without_a_source_is_said() -> None:  # AC96
    broken = {**EXAMPLE, "sources": []}
    with pytest.warns(UnlistedSourceWarning, match="SRC:0001"):
        Server(httpx.Response(200, json=broken)).collection().answer({"query": "x"})
    with pytest.raises(ProtocolError):
        Server(httpx.Response(200, json=broken)).collection(strict=True).answer({"query": "x"})


def test_only_answer_is_asked_of_a_foreign_server() -> None:
    server = Server()
    with pytest.raises(BadSettingError, match="capabilities"):
        server.collection().search({"query": "x"})
    with pytest.raises(BadSettingError):
        server.collection().read_spans({"spans": [SOURCE["span"]]})
    assert server.asked == []


@pytest.mark.parametrize(
    "base_url",
    [
        "ftp://x", "x", "", "https://", "https://h:port", "https://h/?a=b", "https://h/#a",
    ],
)  # fmt: skip
def test_a_base_url_is_a_plain_address(base_url: str) -> None:
    with pytest.raises(BadSettingError, match="base URL"):
        EngineClient(base_url, "k")


def test_a_key_is_one_that_a_header_takes() -> None:
    for key in ("", "heliotrope\n", "helio trope", "h\u00e9liotrope"):
        with pytest.raises(BadSettingError) as caught:
            EngineClient("https://h", key)
        assert "trope" not in str(caught.value)
    with pytest.raises(BadSettingError) as caught:
        EngineClient("https://user:heliotrope@h", "k")
    assert "heliotrope" not in str(caught.value)


def test_limits_and_capabilities_that_are_none_are_refused() -> None:
    more: Any
    for more in ({"attempts": 0}, {"max_seconds": 0}, {"capabilities": ["serach"]}):
        with pytest.raises(BadSettingError):
            EngineClient("https://h", "k", **more)


def test_no_copy_and_no_text_of_a_client_holds_its_key() -> None:  # AC94 SEC56
    client = EngineClient("https://engine.example.com", "heliotrope")
    collection = client.collection("a", "b")
    assert "heliotrope" not in repr(client) + repr(collection) + repr(vars(client))
    packed = pickle.dumps(collection)
    assert b"heliotrope" not in packed
    unkeyed: RemoteCollection = pickle.loads(packed)  # noqa: S301 - our own bytes
    with pytest.raises(AuthError, match="with_key"):
        unkeyed.answer({"query": "x"})
    assert unkeyed.client.with_key("other").base_url == client.base_url


def test_a_copy_in_the_same_process_has_the_key() -> None:  # graphs copy what they are made of
    server = Server(httpx.Response(200, json=EXAMPLE))
    copied = copy.deepcopy(server.collection())
    assert copied.answer({"query": "x"}).answer
    assert server.asked[0].headers["authorization"] == "Bearer secret-key"


def test_names_are_quoted() -> None:
    server = Server(_fault(404, "not_found"))
    collection = server.collection().client.collection("a/b", "c?d")
    with pytest.raises(NotFoundError):
        collection.answer({"query": "x"})
    assert server.asked[0].url.raw_path == b"/v1/namespaces/a%2Fb/collections/c%3Fd:answer"


@pytest.fixture
def remote(served: World) -> Iterator[RemoteCollection]:
    with EngineClient(
        served.url, served.keys["K"], capabilities=("answer", "search", "read_spans")
    ) as client:
        yield client.collection("acme", "docs")


def test_the_service_and_the_library_answer_alike(
    served: World, remote: RemoteCollection
) -> None:  # AC87
    served.model.write = lambda request: cite(request, 1, 0)
    there, here = (
        remote.answer({"query": "harbour"}),
        served.collection("docs").answer({"query": "harbour"}),
    )
    assert (there.answer, there.sources, there.found) == (here.answer, here.sources, True)
    spans = [one.span.wire() for one in there.sources]
    assert (
        remote.read_spans({"spans": spans}).parts
        == served.collection("docs").read_spans({"spans": spans}).parts
    )
    assert (
        remote.search({"query": "harbour"}).results
        == served.collection("docs").search({"query": "harbour"}).results
    )


def test_partial_answers_say_so_on_this_side_too(served: World, remote: RemoteCollection) -> None:
    served.model.write = lambda request: f"It did [chunk 17]. {cite(request, 1)}"
    result = remote.answer({"query": "harbour"})
    assert result.partial
    assert "cited_unknown" in result.partial_reasons


@pytest.mark.anyio
async def test_certificates_are_read_once(
    remote: RemoteCollection, monkeypatch: pytest.MonkeyPatch
) -> None:  # reading them holds the event loop for longer than the request takes
    await remote.aanswer({"query": "x"})
    monkeypatch.setattr(ssl, "create_default_context", None)  # whoever calls it fails
    await remote.aanswer({"query": "x"})


def test_a_partial_search_says_so_on_this_side_too() -> None:
    headers = {"x-answer-partial": "embedder"}
    server = Server(httpx.Response(200, json={"request_id": "r"}, headers=headers))
    collection = server.collection(capabilities=["search"])
    assert collection.search({"query": "x"}).partial_reasons == ["embedder"]
