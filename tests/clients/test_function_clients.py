"""Clients that call a function: what it is given, what it may return, what a mock remembers."""

import contextvars
import threading
from typing import Any

import pytest

from harness_core.client import Client
from harness_core.clients.callable import CallableClient
from harness_core.clients.mock import MockClient
from harness_core.errors import AuthError, BadSettingError
from harness_core.flows.types import Inside, inside
from harness_core.messages import Embeddings, Message, Reply, Request, Texts, Usage

ASK = Request(messages=(Message("system", "Rules"), Message("user", "Hi")), label="stuff.answer")


def ask(**more: Any) -> Request:
    return Request(**{"messages": ASK.messages, "label": "stuff.answer", **more})


def answered(result: Any, **more: Any) -> Reply:
    return CallableClient(lambda _: result).send(ask(**more))


class Params(dict[str, Any]):
    """What a handler was told last."""

    def __call__(self, messages: list[dict[str, Any]], params: dict[str, Any]) -> str:
        self.update(messages=messages, params=params)
        return "ok"


# --- what a handler is given --------------------------------------------------------------------


def test_a_handler_is_given_plain_messages_and_what_was_asked() -> None:
    seen = Params()
    schema = {"type": "object"}
    CallableClient(seen, model="m").send(
        ask(max_output=90, temperature=0.5, schema=schema, schema_name="r", draw_index=2)
    )
    assert seen["messages"] == [
        {"role": "system", "content": "Rules"}, {"role": "user", "content": "Hi"},
    ]  # fmt: skip
    assert seen["params"] == {
        "model": "m", "max_output": 90, "temperature": 0.5, "schema": schema, "schema_name": "r",
        "label": "stuff.answer", "draw_index": 2,
    }  # fmt: skip


def test_effort_is_told_only_when_there_is_one() -> None:
    seen = Params()
    CallableClient(seen).send(ask(effort="low", model="other"))
    assert (seen["params"]["effort"], seen["params"]["model"]) == ("low", "other")


def test_a_handler_sees_the_cap_that_was_asked_for() -> None:  # core 29
    seen = Params()
    payload = {"max_output_asked": 90, "prompt_tokens": 12}
    CallableClient(seen).send(ask(max_output=2048, payload=payload))
    assert (seen["params"]["max_output"], seen["params"]["prompt_tokens"]) == (90, 12)


@pytest.mark.parametrize("fn", ["text", None, 3])
def test_what_is_no_function_is_refused(fn: Any) -> None:
    with pytest.raises(BadSettingError, match="fn"):
        CallableClient(fn)
    with pytest.raises(BadSettingError, match="embed"):
        CallableClient(lambda _: "x", embed="text")  # type: ignore[arg-type]  # wrong on purpose


# --- what it returns ----------------------------------------------------------------------------


def test_text_is_a_reply() -> None:
    reply = answered("fine")
    assert (reply.ok, reply.text, reply.model, reply.label) == (
        True, "fine", "backend-model", "stuff.answer",
    )  # fmt: skip
    assert reply.usage == Usage()


@pytest.mark.parametrize("blank", ["", " \n ", [], Reply(ok=True), {"text": " "}])
def test_blank_text_is_a_failure(blank: Any) -> None:  # core 22
    reply = answered(blank)
    assert (reply.ok, reply.text, reply.finish_reason) == (False, "", "empty")
    assert reply.error == "empty completion"
    assert (reply.usage.input, reply.usage.output) == (None, 0)


def test_several_texts_are_one() -> None:  # core 23
    assert answered(["one", "two"]).text == "one\ntwo"


def test_a_handler_that_raises_fails_its_request() -> None:  # core 21
    trouble = RuntimeError("no line")

    def fn(_: Any) -> str:
        raise trouble

    reply = CallableClient(fn).send(ASK)
    assert (reply.ok, reply.text, reply.error) == (False, "", "RuntimeError: no line")
    assert reply.cause is trouble
    assert (reply.sent, reply.usage.input, reply.usage.output) == (True, None, 0)


def test_what_must_stop_the_run_is_not_swallowed() -> None:
    def fn(_: Any) -> str:
        raise AuthError("no key")

    with pytest.raises(AuthError):
        CallableClient(fn).send(ASK)


def test_a_reply_without_a_model_gets_the_one_asked_for() -> None:  # core 24
    assert answered(Reply(ok=True, text="x")).model == "backend-model"
    assert answered(Reply(ok=True, text="x"), model="m-2").model == "m-2"
    assert answered(Reply(ok=True, text="x", model="own")).model == "own"


def test_reported_counts_are_kept() -> None:  # core 25
    usage = Usage(input=10**6, output=10**5)
    assert answered(Reply(ok=True, text="x", usage=usage)).usage == usage


@pytest.mark.parametrize("count", [-1, float("nan"), "12", True])
def test_a_count_that_cannot_be_true_is_unknown(count: Any) -> None:
    reply = answered({"text": "x", "usage": {"input": count, "output": 0}})
    assert (reply.usage.input, reply.usage.output) == (None, 0)


def test_a_reply_is_made_regular() -> None:
    reply = answered(Reply(ok=True, text="a\ud800", finish_reason="MAX_TOKENS"))
    assert (reply.text, reply.finish_reason, reply.cut) == ("a\ufffd", "length", True)
    assert answered(Reply.failed("broke", text="left over", status=500)).text == ""


def test_a_mapping_is_a_reply_or_the_json_asked_for() -> None:
    failed = answered({"error": "broke", "status": 500})
    assert (failed.ok, failed.error, failed.status) == (False, "broke", 500)
    assert answered({"score": 8, "reason": "x"}).text == '{"score": 8, "reason": "x"}'
    schema = {"properties": {"text": {"type": "string"}}}
    assert answered({"text": "x"}, schema=schema).text == '{"text": "x"}'


@pytest.mark.parametrize("odd", [None, 7, object(), ["a", 1]])
def test_anything_else_is_a_failure_that_names_it(odd: Any) -> None:
    reply = answered(odd)
    assert not reply.ok
    assert type(odd).__name__ in str(reply.error)


def test_the_whole_text_is_shown_once_and_a_failure_never() -> None:
    shown: list[str] = []
    CallableClient(lambda _: "all of it").send(ASK, on_text=shown.append)
    CallableClient(lambda _: "").send(ASK, on_text=shown.append)
    assert shown == ["all of it"]


# --- async functions ----------------------------------------------------------------------------


async def later(_: Any) -> str:
    return "later"


def begun(messages: Any) -> Any:
    return later(messages)


class Later:
    async def __call__(self, messages: Any, params: Any) -> str:
        return "later"


@pytest.mark.anyio
@pytest.mark.parametrize("fn", [later, Later(), begun, lambda _: "later"])
async def test_functions_of_both_kinds_can_be_awaited(fn: Any) -> None:
    assert (await CallableClient(fn).asend(ASK)).text == "later"


@pytest.mark.parametrize("fn", [later, Later(), begun])
def test_an_async_function_is_refused_where_nothing_awaits(fn: Any) -> None:
    with pytest.raises(BadSettingError, match="async"):
        CallableClient(fn).send(ASK)


@pytest.mark.anyio
async def test_what_an_awaited_function_raises_fails_its_request() -> None:
    async def fn(_: Any) -> str:
        raise ValueError("late")

    assert (await CallableClient(fn).asend(ASK)).error == "ValueError: late"


@pytest.mark.anyio
async def test_a_plain_function_runs_beside_the_loop_in_the_callers_context() -> None:
    mark = contextvars.ContextVar("mark", default="none")
    mark.set("here")
    client = CallableClient(lambda _: f"{mark.get()} {threading.current_thread().name}")
    reply = await client.asend(ASK)
    assert reply.text.startswith("here ")
    assert threading.main_thread().name not in reply.text


# --- vectors ------------------------------------------------------------------------------------


def test_without_an_embedding_function_nothing_is_embedded() -> None:
    client = CallableClient(lambda _: "x")
    assert client.can_embed is False
    found = client.embed(Texts(texts=("a",)))
    assert (found.ok, found.sent) == (False, False)


@pytest.mark.anyio
async def test_vectors_have_length_one() -> None:
    client = CallableClient(lambda _: "x", embed=lambda texts: [[3.0, 4.0]] * len(texts))
    for found in (client.embed(Texts(texts=("a", "b"))), await client.aembed(Texts(texts=("a",)))):
        assert isinstance(found, Embeddings)
        assert found.vectors is not None
        assert found.vectors[0].tolist() == [0.6, 0.8]
        assert found.model == "backend-embed"


@pytest.mark.parametrize("rows", [[[1.0]], [["x"], ["y"]], [[], []], [[1.0], [1.0, 2.0]], None, 3])
def test_unusable_vectors_are_a_failure(rows: Any) -> None:
    client = CallableClient(lambda _: "x", embed=lambda _texts, _params: rows)
    found = client.embed(Texts(texts=("a", "b")))
    assert (found.ok, found.vectors) == (False, None)
    assert "unusable" in str(found.error)


# --- what a client is ---------------------------------------------------------------------------


def test_identities_differ_unless_one_is_given() -> None:
    one, two = CallableClient(lambda _: "x"), CallableClient(lambda _: "x")
    assert one.identity != two.identity
    assert CallableClient(lambda _: "x", id="mine").identity == "mine"
    assert (one.unpriced_ok, one.provider, one.in_order) == (False, False, False)
    assert isinstance(one, Client)


def test_a_mock_is_a_client_that_costs_nothing() -> None:
    from harness_core.models.registry import model_info

    mock = MockClient()
    assert isinstance(mock, Client)
    assert (mock.model, mock.embedding_model, mock.api) == ("mock-model", "mock-embed", "mock")
    assert (mock.base_url, mock.unpriced_ok, mock.in_order) == ("mock://", True, True)
    assert MockClient(concurrent=True).in_order is False
    info = model_info("mock-model")
    assert (info.context_window, info.max_output, info.input_usd) == (128_000, 16_384, 0)
    assert model_info("mock-embed").dimensions == 64


def test_a_mock_answers_a_fixed_text_and_embeds_by_code_point() -> None:
    mock = MockClient()
    assert mock.send(ASK).text == mock.send(ask(label="x")).text != ""
    found = mock.embed(Texts(texts=("ab", "\u0141")))
    assert found.vectors is not None
    assert found.vectors.shape == (2, 64)
    assert found.vectors[0, [ord("a") % 64, ord("b") % 64]].tolist() == pytest.approx(
        [0.5**0.5] * 2
    )
    assert found.vectors[1, 0x141 % 64] == 1.0


def test_a_mock_remembers_what_it_was_asked() -> None:
    mock = MockClient(lambda _m, params: "" if params["label"] == "b" else "fine")
    mock.send(ask(label="a"))
    mock.send(ask(label="b"))
    mock.embed(Texts(texts=("t",), label="embed.request"))
    calls = mock.calls()
    assert [(one.label, one.reply.ok) for one in calls] == [("a", True), ("b", False)]
    assert calls[0].messages == ASK.messages
    assert calls[0].params["model"] == "mock-model"
    assert [(one.texts, one.model) for one in mock.embeds()] == [(("t",), "mock-embed")]
    mock.reset()
    assert (mock.calls(), mock.embeds()) == ([], [])


def test_calls_are_listed_in_request_order_run_by_run() -> None:
    mock = MockClient(lambda _: "x", concurrent=True)

    def sent(trace: object, issue: int, label: str) -> None:
        def run() -> None:
            inside.set(Inside(trace, str(issue), issue))
            mock.send(ask(label=label))

        contextvars.copy_context().run(run)

    first, second = object(), object()
    for trace, issue, label in (
        (first, 2, "a2"), (first, 1, "a1"), (second, 2, "b2"), (second, 1, "b1"), (first, 3, "a3"),
    ):  # fmt: skip
        sent(trace, issue, label)
    mock.send(ask(label="alone"))
    assert [one.label for one in mock.calls()] == ["a1", "a2", "a3", "b1", "b2", "alone"]


def test_a_mock_loses_no_call_of_many_threads() -> None:
    mock = MockClient(concurrent=True)
    threads = [
        threading.Thread(target=lambda: [mock.send(ASK) for _ in range(20)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(mock.calls()) == 160
