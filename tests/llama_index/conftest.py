import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.llms import MockLLM

from harness_core.models import register_model, unregister_model
from tests.support.llama import openai
from tests.support.openai_server import OpenAIServer

PRICED: dict[str, Any] = {
    "context_window": 16_000,
    "max_output": 2000,
    "input_usd": 1.0,
    "output_usd": 2.0,
}


_THEIRS = (
    # llama-index-core's workflows list every attribute of an agent, pydantic's old ones included
    "ignore:The `__fields__` attribute is deprecated",
    "ignore:The `__fields_set__` attribute is deprecated",
    "ignore:Accessing the 'model_",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """LlamaIndex's own known warnings are no errors here."""
    for item in items:
        if "llama_index" in item.path.parts:
            for theirs in _THEIRS:
                item.add_marker(pytest.mark.filterwarnings(theirs))


@pytest.fixture
def anyio_backend() -> str:
    """LlamaIndex's clients know asyncio alone."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_loop_is_left_open() -> None:
    """Without this LlamaIndex's ``asyncio_run`` makes a loop and leaves it unclosed."""
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def _fakes_have_a_price() -> Iterator[None]:
    names = ("MockLLM", "MockEmbedding", "Script", "Uncapped")
    for name in names:
        register_model(name, **PRICED)
    yield
    for name in names:
        unregister_model(name)


@pytest.fixture(autouse=True)
def _untouched_settings() -> Iterator[None]:
    """LlamaIndex's process-wide settings and dispatcher are as they were after each test."""
    from llama_index.core import Settings
    from llama_index_instrumentation import get_dispatcher

    root = get_dispatcher()
    known = {name: vars(Settings)[name] for name in vars(Settings)}
    handlers, spans = list(root.event_handlers), list(root.span_handlers)
    yield
    for name, value in known.items():
        setattr(Settings, name, value)
    root.event_handlers[:], root.span_handlers[:] = handlers, spans


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def llm(server: OpenAIServer) -> Any:
    return openai(server)


@pytest.fixture
def mock() -> MockLLM:
    return MockLLM(max_tokens=5)
