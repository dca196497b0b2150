"""One request of a user's own: what is asked, sent, charged and recorded."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.calls import keys, run
from harness_core.calls.api import acall, acall_json, call, call_json
from harness_core.calls.cache import ResponseCache
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.clients.callable import CallableClient
from harness_core.clients.mock import MockClient
from harness_core.errors import (
    BadSettingError,
    BadSettingWarning,
    EffortUnknownWarning,
    OverrunWarning,
)
from harness_core.messages import Message, Reply, Request, Usage, parse_json
from harness_core.pipeline import ingest, read, segment

HELLO = "What was revenue?"


def failing(_messages: Any, _params: Any) -> str:
    raise RuntimeError("no such thing")


def test_a_handler_that_raises_is_a_failed_reply_and_its_prompt_is_charged() -> None:  # core 21
    trace = Trace()
    reply = call(CallableClient(failing, model="priced"), HELLO, max_output=50, trace=trace)
    assert (reply.ok, reply.text, reply.error) == (False, "", "RuntimeError: no such thing")
    (step,) = trace.steps
    assert step.tokens.output == 0
    assert step.tokens.input == step.params["prompt_tokens"]
    assert trace.ledger.spent == step.params["prompt_tokens"] * 3 * 10**6 > 0
    assert trace.errors == [
        {"step": "1", "label": "call", "error": "RuntimeError: no such thing", "recovered": False}
    ]


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_blank_reply_is_a_failure(blank: str) -> None:  # core 22
    reply = call(MockClient(lambda _m: blank), HELLO)
    assert (reply.ok, reply.text, reply.finish_reason) == (False, "", "empty")


def test_two_strings_are_one_text() -> None:  # core 23
    assert call(MockClient(lambda _m: ["one", "two"]), HELLO).text == "one\ntwo"


def test_a_reply_is_priced_as_the_model_asked_for_and_its_reported_usage_is_kept() -> None:
    """core 24, 25"""

    def reported(_messages: Any, _params: Any) -> Reply:
        usage = Usage(input=1_000_000, output=100_000)
        return Reply(ok=True, text="x", usage=usage, served_model="priced-2026-01-01")

    trace = Trace()
    with pytest.warns(OverrunWarning, match="more than the"):
        call(CallableClient(reported, model="priced"), HELLO, max_output=10, trace=trace)
    assert trace.spent_usd == 4.5
    (step,) = trace.steps
    assert (step.model, step.served_model) == ("priced", "priced-2026-01-01")
    assert step.tokens.provenance == "reported"


def test_a_prompt_larger_than_the_window_is_not_sent() -> None:  # core 26
    client, trace = MockClient(), Trace()
    reply = call(client, "word " * 200, model="tiny", trace=trace)
    assert not reply.ok
    assert "context window" in (reply.error or "")
    (step,) = trace.steps
    assert (step.seconds, step.attempts, trace.calls, trace.ledger.tokens) == (0.0, 0, 1, 0)
    assert client.calls() == []


@pytest.mark.parametrize("odd", ["lots", float("nan"), [1, 2]])
def test_an_unreadable_cap_warns_and_takes_the_models_limit(odd: Any) -> None:  # core 27
    client, trace = MockClient(), Trace()
    with pytest.warns(BadSettingWarning, match="max_output"):
        call(client, HELLO, max_output=odd, trace=trace)
    assert client.calls()[0].params["max_output"] == 16_384
    assert trace.steps[0].params_sent["max_output"] == 16_384


@pytest.mark.parametrize(
    ("asked", "told", "sent"),
    [("200", 200, 200), (200.7, 200, 200), (10**9, 16_384, 16_384), (None, None, 16_384)],
)  # core 28
def test_a_handler_is_told_the_cap_asked_for(asked: Any, told: int | None, sent: int) -> None:
    client, trace = MockClient(), Trace()
    call(client, HELLO, max_output=asked, trace=trace)
    assert client.calls()[0].params["max_output"] == told
    assert trace.steps[0].params_sent["max_output"] == sent


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("thinker", 90, 2048),  # core 29
        ("small-thinker", 90, 1000),  # core 31
        ("thinker", 3000, 3000),  # core 32
        ("priced", 90, 90),
    ],
)
def test_a_small_cap_of_a_reasoning_model_goes_out_raised(
    model: str, asked: int, sent: int
) -> None:
    client, trace = MockClient(), Trace()
    call(client, HELLO, model=model, max_output=asked, trace=trace)
    (step,) = trace.steps
    assert (step.params["max_output"], step.params_sent["max_output"]) == (asked, sent)
    assert client.calls()[0].params["max_output"] == asked


def test_a_reasoning_model_takes_effort_and_no_temperature_and_another_the_reverse() -> None:
    """core 34"""
    client, trace = MockClient(), Trace()
    for model in ("thinker", "priced"):
        call(client, HELLO, model=model, temperature=0.7, effort="low", trace=trace)
    sent = [(s.params_sent["temperature"], s.params_sent["effort"]) for s in trace.steps]
    assert sent == [(None, "low"), (0.7, None)]
    assert [s.params["temperature"] for s in trace.steps] == [0.7, 0.7]
    with pytest.warns(EffortUnknownWarning):
        call(client, HELLO, model="thinker", effort="heroic")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        *[(one, "length") for one in ("MAX_TOKENS", "max_tokens", "context_window", "incomplete")],
        *[(one, one) for one in ("stop", "end_turn", "completed", "content_filter")],
    ],
)  # core 41
def test_finish_reasons_of_cut_off_replies_are_one(said: str, kept: str) -> None:
    trace = Trace()
    client = MockClient(lambda _m: Reply(ok=True, text="x", finish_reason=said))
    assert call(client, HELLO, trace=trace).finish_reason == kept
    assert trace.steps[0].finish_reason == kept


def test_a_lone_surrogate_in_a_reply_becomes_valid_text() -> None:  # core 45
    trace = Trace()
    assert call(MockClient(lambda _m: "a\ud800b"), HELLO, trace=trace).text == "a\ufffdb"
    assert trace.export()


def test_a_step_says_how_long_it_took(monkeypatch: pytest.MonkeyPatch) -> None:  # core 46
    clock = itertools.count(step=0.3)
    monkeypatch.setattr(run, "perf_counter", lambda: next(clock))
    trace = Trace()
    call(MockClient(), HELLO, trace=trace)
    assert trace.steps[0].seconds >= 0.25


# --- body fields ----------------------------------------------------------------------------------


class WithBody(MockClient):
    extra_body: Mapping[str, Any] = {"max_tokens": 70}


def test_a_body_field_that_caps_is_read_as_the_cap() -> None:
    trace = Trace()
    call(MockClient(), HELLO, extra_body={"max_completion_tokens": 50, "n": 3}, trace=trace)
    call(WithBody(), HELLO, trace=trace)
    call(MockClient(), HELLO, extra_body={"model": "priced", "seed": 1}, trace=trace)
    sent = [step.params_sent for step in trace.steps]
    assert [s["max_output"] for s in sent] == [50, 70, 4096]
    assert sent[2]["model"] == "priced"
    assert (sent[0]["extra_body_hash"] or "")[:4] != (sent[2]["extra_body_hash"] or "")[:4]


@pytest.mark.parametrize(
    ("client", "more"),
    [
        (MockClient(), {"max_output": 10, "extra_body": {"max_tokens": 20}}),
        (MockClient(), {"extra_body": {"max_tokens": 20, "max_completion_tokens": 30}}),
        (WithBody(), {"extra_body": {"max_tokens": 20}}),
        (MockClient(), {"model": "priced", "extra_body": {"model": "other"}}),
        (MockClient(), {"extra_body": {"n": "many"}}),
    ],
)
def test_two_values_for_one_setting_are_an_error(client: MockClient, more: Any) -> None:
    with pytest.raises(BadSettingError):
        call(client, HELLO, **more)
    assert client.calls() == []


# --- keys -----------------------------------------------------------------------------------------


def key_of(client: Any, **more: Any) -> str:
    request = Request(messages=(Message("user", more.pop("text", HELLO)),), **more)
    return keys.cache_key(keys.message_bytes(request), request, client, {"model": "m"})


def test_what_a_message_carries_beside_its_text_is_recorded_and_part_of_the_key() -> None:
    trace = Trace()
    for more in (None, {"name": "ann"}, {"name": "bob"}):
        call(MockClient(), Message("user", HELLO, more), trace=trace)
    assert [step.prompt[0].as_json() for step in trace.steps] == [
        {"role": "user", "content": HELLO},
        {"role": "user", "content": HELLO, "more": {"name": "ann"}},
        {"role": "user", "content": HELLO, "more": {"name": "bob"}},
    ]
    assert len({step.replay_key for step in trace.steps}) == 3


def test_headers_are_no_part_of_a_key_and_line_ends_are_folded() -> None:  # core 20, 70
    from harness_core.clients.openai import OpenAIClient

    one = OpenAIClient(model="gpt-4o", api_key="k1", headers={"x-team": "a"})
    other = OpenAIClient(model="gpt-4o", api_key="k2", headers={"x-team": "b"})
    assert key_of(one) == key_of(other)
    assert key_of(one, text="a\r\nb\rc") == key_of(one, text="a\nb\nc")


def test_schemas_that_differ_in_a_deep_name_have_other_keys() -> None:
    def nested(name: str) -> dict[str, Any]:
        return {"properties": {"a": {"properties": {"b": {"properties": {name: {}}}}}}}

    assert keys.schema_hash(nested("c")) != keys.schema_hash(nested("d"))
    assert keys.schema_hash({"a": 1, "b": 2}) == keys.schema_hash({"b": 2, "a": 1})


# --- structured replies ---------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"value": {"type": "number"}},
    "required": ["value"],
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("/etc/hostname", None),  # core 47
        ("http://127.0.0.1/x.json", None),
        ('```json\n{"value": 1}\n```', {"value": 1}),  # core 48
        ('  {"value": 1}\n', {"value": 1}),
        *[(text, None) for text in ("7", '"text"', "true", "[1, 2, 3]", "[]", "{}")],  # core 49
    ],
)
def test_a_structured_reply_is_an_object_or_nothing(text: str, value: Any) -> None:
    client = MockClient(lambda _m: text)
    found = call_json(client, HELLO, SCHEMA)
    assert (found.ok, found.value, found.reply.ok) == (value is not None, value, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ('{"value": 2, "more": 1}', {"value": 2, "more": 1}),
        *[(text, None) for text in ("[]", '{"result": {"value": 1}}', '[{"value": 1}]')],
    ],
)  # core 50
def test_an_empty_object_counts_where_the_schema_is_given(text: str, value: Any) -> None:
    assert parse_json(text, schema=SCHEMA) == value


@pytest.mark.anyio
async def test_the_async_twins_do_the_same() -> None:
    trace = Trace()
    assert (await acall(MockClient(lambda _m: "x"), HELLO, trace=trace)).text == "x"
    found = await acall_json(MockClient(lambda _m: '{"value": 1}'), HELLO, SCHEMA, trace=trace)
    assert found.value == {"value": 1}
    assert [s.step for s in trace.steps] == ["1", "2"]


def test_text_is_heard_as_it_comes() -> None:
    heard: list[str] = []
    call(MockClient(lambda _m: "It rose."), HELLO, on_text=heard.append)
    assert heard == ["It rose."]


@pytest.mark.anyio
async def test_a_reply_that_needed_no_sending_is_heard_too(
    cache: ResponseCache, tmp_path: Path
) -> None:
    """From the cache, from a recording, and from the run that is resumed."""
    path = tmp_path / "run.jsonl"
    client = MockClient(lambda _m: "It rose.").with_cache(cache)
    heard: list[str] = []
    trace = Trace(path=path)
    call(client, HELLO, trace=trace)
    trace.close()
    call(client, HELLO, on_text=heard.append)
    await acall(client, HELLO, on_text=heard.append)
    call(ReplayClient(path), HELLO, on_text=heard.append)
    await acall(ReplayClient(path), HELLO, on_text=heard.append)
    call(ReplayClient(path, strict=False), "Never asked.", on_text=heard.append)
    again = Trace(path=path, resume=True)
    call(MockClient(lambda _m: "Other."), HELLO, trace=again, on_text=heard.append)
    again.close()
    assert heard == ["It rose."] * 5


def test_a_reader_is_heard_from_a_recording() -> None:
    trace = Trace()
    heard: list[str] = []
    chunks = segment(ingest("Revenue rose to 45.2 million."), "paragraph")
    said = read(chunks, HELLO, MockClient(lambda _m: "It rose."), "stuff", trace=trace)
    read(chunks, HELLO, ReplayClient(trace), "stuff", on_text=heard.append)
    assert "".join(heard) == said.answer == "It rose."


def test_what_is_no_client_is_an_error() -> None:
    with pytest.raises(BadSettingError, match="client"):
        call("gpt-4o", HELLO)  # type: ignore[arg-type]  # that is the point
