"""Keys and headers: what is sent, what is refused, and what is never shown."""

import string

import pytest

from harness_core.clients.openai import OpenAIClient
from harness_core.clients.wire.credentials import (
    checked_headers,
    redacted,
    resolve_key,
    sent_headers,
)
from harness_core.config import override
from harness_core.errors import AuthError, BadKeyError, BadSettingError, HeaderError
from harness_core.messages import Message, Reply, Request, Texts
from tests.support.openai_server import OpenAIServer, Seen

KEY = "sk-secret-0123456789"
ASK = Request(messages=(Message("user", "Is it there?"),), max_output=50)


def sent(server: OpenAIServer, **given: object) -> Seen:
    client = OpenAIClient("gpt-4o", base_url=server.url, **given)  # type: ignore[arg-type]  # as a table gives them
    assert client.send(ASK).ok
    return server.requests[-1]


def test_blanks_around_a_key_are_dropped() -> None:  # core 1
    with OpenAIServer() as server:
        assert sent(server, api_key=f"  {KEY}\r\n").headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", [None, "", "  \n"])  # core 2, core 4
def test_no_key_and_no_header_sends_nothing(key: str | None) -> None:
    with OpenAIServer() as server:
        client = OpenAIClient(api_key=key, base_url=server.url)
        for call in (
            client.check,
            lambda: client.send(ASK),
            lambda: client.embed(Texts(texts=("a",))),  # core 8
        ):
            with pytest.raises(AuthError, match="OPENAI_API_KEY"):
                call()
    assert server.requests == []


@pytest.mark.anyio
async def test_no_key_stops_the_async_calls_too() -> None:
    client = OpenAIClient(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(AuthError):
        await client.asend(ASK)
    with pytest.raises(AuthError):
        await client.aembed(Texts(texts=("a",)))


@pytest.mark.parametrize("key", [f"{KEY}\r\nX: 1", f"{KEY}\x00", f"{KEY}\u00e9"])
def test_a_key_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:  # core 3
    with OpenAIServer() as server:
        client = OpenAIClient(api_key=key, base_url=server.url)
        with pytest.raises(BadKeyError) as caught:
            client.send(ASK)
    assert isinstance(caught.value, AuthError)
    assert server.requests == []
    assert KEY not in str(caught.value) + repr(client)
    assert "key=refused" in repr(client)


def test_the_key_is_looked_up_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        client = OpenAIClient("gpt-4o", base_url=server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "first-key")
        client.send(ASK)
        monkeypatch.setenv("OPENAI_API_KEY", "second-key")
        client.send(ASK)
        monkeypatch.setenv("OPENAI_API_KEY", "")
        with pytest.raises(AuthError):
            client.send(ASK)
    assert [one.headers["authorization"] for one in server.requests] == [
        "Bearer first-key",
        "Bearer second-key",
    ]


def test_the_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "environment")
    assert resolve_key(" argument ") == "argument"
    assert resolve_key(" ") == "environment"


def test_the_address_is_an_argument_a_setting_or_the_environments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    official = "https://api.openai.com/v1"
    assert OpenAIClient().base_url == official
    monkeypatch.setenv("OPENAI_BASE_URL", " http://127.0.0.1:9/v1/ ")
    client = OpenAIClient()
    assert client.base_url == "http://127.0.0.1:9/v1"
    assert OpenAIClient(base_url=official).base_url == official
    with override(api_base="http://127.0.0.1:8/v1"):
        assert client.base_url == "http://127.0.0.1:8/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@127.0.0.1/v1")
    with pytest.raises(BadSettingError, match="holds credentials"):
        OpenAIClient()


def test_a_header_makes_the_key_optional() -> None:  # core 9
    with OpenAIServer() as server:
        headers = sent(server, headers={"api-key": "abc"}).headers
    assert headers["api-key"] == "abc"
    assert "authorization" not in headers


@pytest.mark.parametrize("name", ["authorization", "Authorization", "AUTHORIZATION"])
def test_the_callers_authorization_is_the_only_one(name: str) -> None:  # core 10
    with OpenAIServer() as server:
        headers = sent(server, api_key=KEY, headers={name: "Basic abc"}).headers
    assert headers["authorization"] == "Basic abc"


def test_a_suppressed_authorization_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # core 11
    with OpenAIServer() as server:
        headers = sent(server, headers={"Authorization": None}).headers
    assert "authorization" not in headers


def test_a_named_content_type_wins() -> None:
    with OpenAIServer() as server:
        headers = sent(server, api_key=KEY, headers={"content-type": "application/x-json"}).headers
    assert headers["content-type"] == "application/x-json"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"x-empty": ""}, "environment variable"),  # core 12
        ({"x-blank": "   "}, "environment variable"),
        ({"x-tab": "se\tcret"}, "'x-tab'"),  # core 13
        ({"x-line": "se\ncret"}, "'x-line'"),
        ({"x-accent": "s\u00e9cret"}, "'x-accent'"),
        ({"x y": "1"}, "legal"),  # core 15
        ({"x:y": "1"}, "legal"),
        ({"": "1"}, "needs a name"),
        ({"x-many": ["a", "b"]}, "single value"),
        ([("x", "1")], "maps names"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_at_once(headers: object, said: str) -> None:
    with pytest.raises(HeaderError, match=said) as caught:
        OpenAIClient(headers=headers)  # type: ignore[arg-type]  # wrong on purpose
    assert "cret" not in str(caught.value)


def test_names_differing_in_case_are_one_header_the_last() -> None:  # core 14
    assert checked_headers({"X-One": "a", "x-one": "b"}) == {"x-one": "b"}


def test_every_token_character_and_number_is_accepted() -> None:  # core 15
    name = "!#$%&'*+-.^_`|~" + string.digits + string.ascii_letters
    assert checked_headers({name: 5}) == {name: "5"}


def test_a_bad_set_from_the_settings_is_blamed_on_the_setting() -> None:  # core 16
    with override(api_headers={"x y": "1"}), pytest.raises(HeaderError, match="api_headers"):
        OpenAIClient().check()


def test_an_empty_header_set_inherits_none() -> None:  # core 17
    with override(api_headers={"api-key": "inherited"}), OpenAIServer() as server:
        assert "api-key" not in sent(server, api_key=KEY, headers={}).headers
        assert sent(server, api_key=KEY).headers["api-key"] == "inherited"


def test_a_printed_client_shows_names_and_no_secret() -> None:  # core 18, core 19
    client = OpenAIClient(api_key=KEY, headers={"x-team": "hidden-value", "api-key": "hidden-too"})
    shown = f"{client!r} {client}"
    assert "['api-key', 'x-team']" in shown
    assert "key=set" in shown
    assert "hidden" not in shown
    assert KEY not in shown


def test_embeddings_go_out_under_the_same_headers() -> None:
    with OpenAIServer() as server:
        client = OpenAIClient("gpt-4o", KEY, server.url, headers={"x-team": "a"})
        client.send(ASK)
        client.embed(Texts(texts=("a",)))
    text, vectors = server.requests
    for name in ("authorization", "x-team"):
        assert text.headers[name] == vectors.headers[name]


def test_a_secret_that_a_server_repeats_is_not_passed_on() -> None:
    with OpenAIServer() as server:
        server.queue(status=401, body={"error": {"message": f"unknown key {KEY}"}})
        reply = OpenAIClient("gpt-4o", KEY, server.url).send(ASK)
    assert isinstance(reply, Reply)
    assert reply.status == 401
    assert KEY not in str(reply.error)
    assert redacted("key 12345678", sent_headers(None, {"x": "12345678"})) == "key [secret]"


def test_a_redirect_is_not_followed() -> None:
    with OpenAIServer() as server, OpenAIServer() as other:
        server.queue(status=307, headers={"Location": f"{other.url}/responses"})
        reply = OpenAIClient("gpt-4o", KEY, server.url).send(ASK)
    assert (reply.ok, reply.status) == (False, 307)
    assert other.requests == []


def test_credentials_in_the_address_are_refused() -> None:
    with pytest.raises(BadSettingError, match="base_url"):
        OpenAIClient(base_url="https://user:pass@example.org/v1")
