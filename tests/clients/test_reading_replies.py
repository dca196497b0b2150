"""What providers send, read as replies."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.clients.wire.embeddings import read_embeddings
from harness_core.clients.wire.replies import read_reply
from harness_core.messages import Usage


def chat(message: Any, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], **more}


def response(*parts: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"status": status, "output": [{"type": "message", "content": list(parts)}], **more}


def said(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"output_text": " whole \n"}, "whole"),
        ({"output_text": ["a", "b"]}, "ab"),
        (response(said("one\n"), said("two")), "one\ntwo"),
        ({"output": [{"type": "reasoning", "content": [said("x")]},
                     {"content": [said("kept")]}]}, "kept"),
        (chat("plain"), "plain"),
        (chat({"content": "text"}), "text"),
        (chat({"content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "so"}]}),
         "so"),  # core 42
        (chat({"content": "lone \ud800 one"}), "lone \ufffd one"),  # core 45
    ],
)  # fmt: skip
def test_text_is_found_where_either_api_puts_it(body: dict[str, Any], text: str) -> None:
    reply = read_reply(body, model="m", status=200)
    assert (reply.ok, reply.text, reply.error) == (True, text, None)


@pytest.mark.parametrize(
    ("body", "finish", "error"),
    [
        (chat({"content": [{"type": "thinking", "text": "hm"}]}), "stop", "empty"),  # core 42
        (chat({"content": ""}, "length"), "length", "length"),
        (chat({}), "stop", "empty"),  # core 44
        ({}, None, "empty"),
        ({"choices": []}, None, "empty"),
        (response(status="in_progress"), "in_progress", "in_progress"),
        (chat({"refusal": "No, I will not.", "content": None}), "refusal", "No, I"),  # core 43
        (response({"type": "refusal", "refusal": "No."}), "refusal", "No."),
        ({"error": {"message": "overloaded"}}, None, "overloaded"),
        ({"error": "plain words"}, None, "plain words"),
    ],
)
def test_what_is_no_answer_is_a_failure(
    body: dict[str, Any], finish: str | None, error: str
) -> None:
    reply = read_reply(body, status=200)
    assert (reply.ok, reply.text, reply.finish_reason) == (False, "", finish)
    assert error in str(reply.error)


def test_a_long_refusal_is_quoted_in_part() -> None:
    reply = read_reply(chat({"refusal": "no " * 500}))
    assert len(str(reply.error)) < 250


@pytest.mark.parametrize("body", [None, [], "text", 7, chat({"content": "x"}, usage=3)["choices"]])
def test_a_body_of_another_shape_is_a_failure_that_says_so(body: Any) -> None:  # core 38
    reply = read_reply(body, status=200)
    assert not reply.ok
    assert "could not read" in str(reply.error)


@pytest.mark.parametrize(
    ("more", "finish"),
    [
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "length"),  # core 39
        ({"incomplete_details": None}, "length"),
        ({}, "length"),
        ({"incomplete_details": {"reason": "content_filter"}}, "content_filter"),  # core 40
    ],
)
def test_an_incomplete_response_keeps_its_text(more: dict[str, Any], finish: str) -> None:
    reply = read_reply(response(said("as far as"), status="incomplete", **more))
    assert (reply.ok, reply.text, reply.finish_reason) == (True, "as far as", finish)
    assert reply.cut == (finish == "length")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [(r, "length") for r in ("MAX_TOKENS", "max_tokens", "context_window", "incomplete", "length")]
    + [(r, r) for r in ("stop", "end_turn", "completed")],
)
def test_cut_offs_have_one_spelling(reason: str, finish: str) -> None:  # core 41
    assert read_reply(chat("x", reason)).finish_reason == finish


def test_counts_and_names_are_kept() -> None:
    usage = {
        "input_tokens": 11, "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 2},
    }  # fmt: skip
    reply = read_reply(response(said("x"), usage=usage, model="m-1", id="r-1"), model="m")
    assert reply.usage == Usage(input=11, output=7, cached_input=3, reasoning=2)
    assert (reply.model, reply.served_model, reply.response_id) == ("m", "m-1", "r-1")
    usage = {"prompt_tokens": 0, "completion_tokens": 4}
    reply = read_reply(chat("x", usage=usage, system_fingerprint="f"))
    assert (reply.usage, reply.fingerprint) == (Usage(input=0, output=4), "f")


@pytest.mark.parametrize("count", [None, "12", -1, float("nan"), float("inf"), True, [1]])
def test_a_count_that_cannot_be_true_is_unknown(count: Any) -> None:
    reply = read_reply(chat("x", usage={"prompt_tokens": count, "completion_tokens": 4}))
    assert reply.usage == Usage(input=None, output=4)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["output", "choices", "message", "content", "type", "text", "refusal",
                         "usage", "error", "status", "output_text", "input_tokens"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(json_values)
def test_no_body_raises(body: Any) -> None:
    reply = read_reply(body)
    assert reply.ok == bool(reply.text)
    assert read_embeddings(body, 2).ok is False


# --- embeddings ---------------------------------------------------------------------------------


def rows(*vectors: Any, **more: Any) -> dict[str, Any]:
    data = [{"index": place, "embedding": row} for place, row in enumerate(vectors)]
    return {"data": data, "usage": {"prompt_tokens": 5}, **more}


def test_vectors_are_matched_by_index_and_have_length_one() -> None:  # core 143
    body = rows([3.0, 4.0], [0.0, 2.0])
    body["data"].reverse()
    found = read_embeddings(body, 2, model="e")
    assert found.vectors is not None
    assert found.vectors.tolist() == [[0.6, 0.8], [0.0, 1.0]]
    assert found.usage.input == 5


def test_vectors_without_an_index_are_taken_in_order() -> None:
    body = {"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]}
    found = read_embeddings(body, 2)
    assert found.vectors is not None
    assert found.vectors.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "no list"),
        (rows([1.0]), "2 vectors"),
        ({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}, "indexes"),
        ({"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}, "indexes"),
        ({"data": [{"index": 0, "embedding": [1]}, {"embedding": [1]}]}, "indexes"),
        (rows([1.0], None), "missing"),
        (rows([1.0], []), "missing"),
        (rows([1.0], ["x"]), "numbers"),
        (rows([1.0], [None]), "number"),
        (rows([1.0], [float("nan")]), "finite"),
        (rows([1.0], [0.0]), "zeros"),
        (rows([1.0], [1.0, 2.0]), "length"),
        ({"error": {"message": "no such model"}}, "no such model"),
    ],
)
def test_unusable_vectors_are_a_failure_that_keeps_its_tokens(body: Any, said: str) -> None:
    # core 143
    found = read_embeddings(body, 2, model="e")
    assert (found.ok, found.vectors) == (False, None)
    assert said in str(found.error)
    assert found.usage.input == (5 if "usage" in body else None)
