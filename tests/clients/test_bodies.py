"""A request as the body of one API or the other."""

from typing import Any

import pytest

from harness_core.clients.wire.bodies import chat_body, merged, responses_body
from harness_core.messages import Message, Request

BOTH = (Message("system", "Be brief."), Message("developer", "Be kind."), Message("user", "Hi"))
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}}


def ask(**more: Any) -> Request:
    return Request(**{"messages": BOTH, "max_output": 90, **more})


def test_system_messages_are_instructions_of_a_response() -> None:  # core 35
    assert responses_body(ask(), "gpt-4o", {}) == {
        "model": "gpt-4o",
        "instructions": "Be brief.\n\nBe kind.",
        "input": [{"role": "user", "content": "Hi"}],
        "max_output_tokens": 90,
    }


def test_a_chat_holds_every_message_in_order() -> None:  # core 35, core 32
    body = chat_body(ask(temperature=0.5), "gpt-4o", {})
    assert [one["role"] for one in body["messages"]] == ["system", "developer", "user"]
    assert body["max_tokens"] == 90
    assert body["temperature"] == 0.5


def test_a_reasoning_model_takes_its_cap_in_another_field() -> None:  # core 30
    body = chat_body(ask(max_output=2048), "gpt-5.6-terra", {})
    assert body["max_completion_tokens"] == 2048
    assert "max_tokens" not in body


def test_no_temperature_means_none_is_sent() -> None:  # core 34
    assert "temperature" not in chat_body(ask(), "gpt-5.6-terra", {})
    assert "temperature" not in responses_body(ask(), "gpt-5.6-terra", {})


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5.6-terra"])
@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_a_cap_field_named_by_the_caller_is_the_only_one(model: str, field: str) -> None:  # core 33
    body = chat_body(ask(extra_body={field: 90}), model, {})
    caps = {name: value for name, value in body.items() if name.startswith("max_")}
    assert caps == {field: 90}


def test_what_was_bound_is_what_goes_out() -> None:
    extra = {"model": "other", "max_tokens": 5}
    body = chat_body(ask(max_output=2048), "gpt-4o", extra)
    assert (body["model"], body["max_tokens"]) == ("gpt-4o", 2048)
    body = chat_body(ask(), "gpt-4o", {"max_tokens": None})
    assert body["max_tokens"] == 90


def test_schema_effort_stop_and_choices_of_a_chat() -> None:
    body = chat_body(ask(schema=SCHEMA, schema_name="relevance", effort="low", stop=("END",), n=2),
                     "gpt-5.6-terra", {"reasoning_effort": "high"})  # fmt: skip
    form = {"name": "relevance", "strict": True, "schema": SCHEMA}
    assert body["response_format"] == {"type": "json_schema", "json_schema": form}
    assert body["reasoning_effort"] == "low"
    assert (body["stop"], body["n"]) == (["END"], 2)


def test_schema_and_effort_of_a_response() -> None:
    extra = {"reasoning": {"effort": "high", "summary": "auto"}, "text": {"verbosity": "low"}}
    body = responses_body(ask(schema=SCHEMA, schema_name="r", effort="low"), "gpt-5.6-terra", extra)
    form = {"type": "json_schema", "name": "r", "strict": True, "schema": SCHEMA}
    assert body["text"] == {"format": form, "verbosity": "low"}
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}


def test_extra_fields_are_merged_deeply_and_a_null_removes() -> None:
    assert merged(
        {"a": {"b": 1, "c": 2}, "d": 3, "e": 4},
        {"a": {"b": None, "x": {"y": 5}}, "d": None, "f": [1]},
    ) == {"a": {"c": 2, "x": {"y": 5}}, "e": 4, "f": [1]}


def test_the_requests_own_fields_go_over_the_clients() -> None:
    body = chat_body(ask(extra_body={"seed": 2, "user": None}), "gpt-4o", {"seed": 1, "user": "x"})
    assert body["seed"] == 2
    assert "user" not in body


def test_what_a_message_carries_beside_its_text_is_kept() -> None:
    asked = ask(messages=(Message("user", "Hi", {"name": "ann"}),))
    assert chat_body(asked, "gpt-4o", {})["messages"] == [
        {"role": "user", "content": "Hi", "name": "ann"}
    ]
