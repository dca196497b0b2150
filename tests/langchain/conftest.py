"""LangChain's own clients know asyncio alone, so its async tests run there."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from langchain_openai import ChatOpenAI

from tests.support.tool_server import ToolServer


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server() -> Iterator[ToolServer]:
    with ToolServer() as running:
        yield running


@pytest.fixture
def chat(server: ToolServer) -> Callable[..., ChatOpenAI]:
    """Makes a ``ChatOpenAI`` that asks the loopback server."""

    def make(**settings: Any) -> ChatOpenAI:
        known = {
            "model": "gpt-4o-mini", "api_key": "test-key", "base_url": server.url, "max_tokens": 50,
        }  # fmt: skip
        return ChatOpenAI(**{**known, **settings})

    return make


@pytest.fixture
async def achat(server: ToolServer) -> AsyncIterator[Callable[..., ChatOpenAI]]:
    """The same with a connection of its own: the package's shared one outlives its event loop."""
    async with httpx.AsyncClient() as http:

        def make(**settings: Any) -> ChatOpenAI:
            known = {
                "model": "gpt-4o-mini", "api_key": "test-key", "base_url": server.url,
                "max_tokens": 50, "http_async_client": http,
            }  # fmt: skip
            return ChatOpenAI(**{**known, **settings})

        yield make
