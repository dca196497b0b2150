"""Exceptions of any provider are read alike; absent frameworks and hidden retries are named."""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from harness_core import MissingDepError, Usage
from harness_integrations.shared.extras import needs
from harness_integrations.shared.failures import cut_reply, failed_reply, status_of
from harness_integrations.shared.finishes import read_finish
from harness_integrations.shared.retries import quiet_client, without_retries


def fault(**facts: Any) -> Exception:
    error = RuntimeError("said")
    for name, value in facts.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (fault(response=SimpleNamespace(status_code=429)), 429),
        (fault(response={"ResponseMetadata": {"HTTPStatusCode": 400}}), 400),
        (fault(status_code=503), 503),
        (fault(code=404), 404),
        (fault(code="rate_limit"), 0),
        (fault(), 0),
    ],
)
def test_the_status_behind_an_exception_is_found(error: Exception, status: int) -> None:
    assert status_of(error) == status
    reply = failed_reply(error, label="map")
    assert (reply.ok, reply.status, reply.cause, reply.label) == (False, status, error, "map")
    assert reply.retryable is (status == 429 or status >= 500)
    assert reply.error == "RuntimeError: said"


def test_json_that_was_cut_off_is_in_the_exception_of_openai_s_parser() -> None:
    import openai
    from openai.types.chat import ChatCompletion

    def error(content: str | None) -> Exception:
        choice = {
            "index": 0, "finish_reason": "length",
            "message": {"role": "assistant", "content": content},
        }  # fmt: skip
        usage = {"prompt_tokens": 9, "completion_tokens": 16, "total_tokens": 25}
        completion = ChatCompletion.model_validate({
            "id": "1", "choices": [choice], "created": 1, "model": "served", "usage": usage,
            "object": "chat.completion",
        })  # fmt: skip
        return openai.LengthFinishReasonError(completion=completion)

    reply = cut_reply(error(' {"name": "A'))
    assert reply is not None
    assert (reply.ok, reply.cut, reply.text) == (True, True, '{"name": "A')
    assert (reply.usage.input, reply.usage.output, reply.served_model) == (9, 16, "served")
    assert cut_reply(error(" ")) is cut_reply(error(None)) is cut_reply(fault()) is None
    failed = failed_reply(error(None))
    assert (failed.ok, failed.finish_reason, failed.usage.output) == (False, "length", 16)
    assert failed_reply(error(None), usage=Usage(output=3)).usage.output == 3


def test_a_request_that_found_nobody_never_left() -> None:
    class ConnectError(Exception):
        pass

    error = RuntimeError("Connection error.")
    error.__cause__ = ConnectError()
    assert failed_reply(error).sent is False
    assert failed_reply(RuntimeError("read timed out")).sent is True
    assert failed_reply(fault(is_retryable=True)).retryable is True


def test_the_word_a_framework_settled_on_wins() -> None:
    assert (
        read_finish({"finish_reason": "stop", "normalized_finish_reason": "tool_call"})
        == "tool_call"
    )
    assert read_finish({"finish_reason": SimpleNamespace(name="MAX_TOKENS")}) == "length"
    assert read_finish({"status": "completed"}) == "completed"


def test_a_missing_package_names_its_extra() -> None:
    said = r"harness-integrations\[langchain\]"
    with pytest.raises(MissingDepError, match=said), needs("langchain", "no_such_package"):
        import no_such_package.inner  # type: ignore[import-not-found]
    with pytest.raises(ModuleNotFoundError) as caught, needs("langchain", "langchain_core"):
        import no_such_package  # noqa: F401 - another package's fault
    assert not isinstance(caught.value, MissingDepError)


class Sdk:
    def __init__(self, max_retries: int = 2) -> None:
        self.max_retries = max_retries

    def with_options(self, *, max_retries: int) -> "Sdk":
        return Sdk(max_retries)


class Resource:
    def __init__(self, client: Sdk) -> None:
        self._client = client


class Model(BaseModel):
    max_retries: int | None = None
    stream_usage: bool | None = None
    root: Any = None
    chat: Any = None


def test_retries_of_a_providers_client_are_switched_off_in_a_copy() -> None:
    given = Model(root=Sdk(), chat=Resource(Sdk(6)))
    twin = without_retries(given, stream_usage=True, other=1)
    assert (twin.max_retries, twin.stream_usage) == (0, True)
    assert (twin.root.max_retries, twin.chat._client.max_retries) == (0, 0)
    assert (given.root.max_retries, given.chat._client.max_retries) == (2, 6)
    assert without_retries(Model(stream_usage=False), stream_usage=True).stream_usage is False
    assert quiet_client("x") == "x"
