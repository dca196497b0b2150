"""What flows are to a type checker. Checked, never run."""

from typing import assert_type

from harness_core.calls.api import acall, arun_flow, call, run_flow
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, Client
from harness_core.flows.ask import ask, ask_all, ask_vectors, together
from harness_core.flows.types import Flow
from harness_core.messages import Embeddings, Reply, Request, Texts


def reader(request: Request, texts: Texts) -> Flow[str]:
    assert_type((yield from ask(request)), Reply)
    assert_type((yield from ask_all([request])), list[Reply])
    assert_type((yield from ask_vectors([texts])), list[Embeddings])
    assert_type((yield from together([length(request), length(request)])), list[int])
    return (yield from ask(request)).text


def length(request: Request) -> Flow[int]:
    return len((yield from ask(request)).text)


def drivers(request: Request, texts: Texts, client: BaseClient, trace: Trace) -> None:
    as_client: Client = client
    assert_type(run_flow(reader(request, texts), as_client, trace), str)
    assert_type(run_flow(length(request), client, trace, width=4), int)
    assert_type(call(client, "hello"), Reply)


async def async_drivers(request: Request, texts: Texts, client: BaseClient, trace: Trace) -> None:
    assert_type(await arun_flow(reader(request, texts), client, trace), str)
    assert_type(await acall(client, "hello"), Reply)
