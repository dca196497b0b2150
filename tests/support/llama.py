"""LlamaIndex objects for tests: real OpenAI classes against the local server, scripted LLMs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.embeddings.openai import (  # type: ignore[import-untyped]  # it ships no types
    OpenAIEmbedding,
)
from llama_index.llms.openai import OpenAI, OpenAIResponses
from llama_index.llms.openai_like import (  # type: ignore[import-untyped]  # it ships no types
    OpenAILike,
)

from tests.support.openai_server import OpenAIServer

KINDS = ["openai", "responses", "like"]
SHIP = "The Dunlin carries 61 passengers. She was built in 1961."
HARBOUR = "The harbour opened in 1880 and was widened in 1912."
ANSWER = "She carries 61 passengers."


class Forwarding(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Opens a connection for each request and closes it: no test leaves one to another's loop."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._sent(request, request.read())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        return await asyncio.to_thread(self._sent, request, body)

    def _sent(self, request: httpx.Request, body: bytes) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        with httpx.Client() as client:
            got = client.request(request.method, request.url, content=body, headers=headers)
        kept = {"Content-Type": got.headers["Content-Type"]}
        return httpx.Response(got.status_code, headers=kept, content=got.content)


def _connected(server: OpenAIServer) -> dict[str, Any]:
    return {
        "api_key": "sk-secret",
        "api_base": server.url,
        "http_client": httpx.Client(transport=Forwarding()),
        "async_http_client": httpx.AsyncClient(transport=Forwarding()),
    }


def embedding(server: OpenAIServer, **settings: Any) -> OpenAIEmbedding:
    return OpenAIEmbedding(model="text-embedding-3-small", **_connected(server), **settings)


def openai(server: OpenAIServer, kind: str = "openai", **settings: Any) -> Any:
    known: dict[str, Any] = {"model": "gpt-4o-mini", **_connected(server)}
    if kind == "like":
        more = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 128_000}
        return OpenAILike(**{**known, **more, **settings})
    if kind == "responses":
        if "max_tokens" in settings:
            settings["max_output_tokens"] = settings.pop("max_tokens")
        return OpenAIResponses(**{**known, **settings})
    return OpenAI(**{**known, **settings})


def user(text: str = "hello there") -> list[ChatMessage]:
    return [ChatMessage(role="user", content=text)]


def nodes(*texts: str) -> list[NodeWithScore]:
    """Nodes n1, n2, ... of one document, each knowing its place in it."""
    found, at = [], 0
    for number, text in enumerate(texts or (SHIP, HARBOUR), 1):
        node = TextNode(
            id_=f"n{number}", text=text, start_char_idx=at, end_char_idx=at + len(text),
            metadata={"file_path": f"/somewhere/deep/{number}.txt"},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")},
        )  # fmt: skip
        found.append(NodeWithScore(node=node, score=1.0 / number))
        at += len(text) + 2
    return found


def reading_reply(messages: Sequence[dict[str, Any]]) -> str:
    """What a model would say to the core's readers: passages copied, scores, an answer."""
    rules, asked = str(messages[0].get("content")), str(messages[-1].get("content"))
    if "Copy out" in rules:
        return "The Dunlin carries 61 passengers." if "Dunlin" in asked else "NONE"
    if "Rate how useful" in rules:
        return '{"score": 9}' if "Dunlin" in asked else '{"score": 1}'
    return ANSWER


class Script(CustomLLM):
    """A text LLM that answers by a function of the prompt; ``prompts`` are what it was asked."""

    reply: Callable[[str], str] = lambda prompt: ANSWER
    prompts: list[str] = []  # noqa: RUF012 - a field, copied for each
    max_tokens: int | None = 100
    window: int = 4000

    @classmethod
    def class_name(cls) -> str:
        return "Script"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self.window, num_output=self.max_tokens or -1)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.reply(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        self.prompts.append(prompt)
        said = ""
        for word in self.reply(prompt).split(" "):
            piece = word if not said else f" {word}"
            said += piece
            yield CompletionResponse(text=said, delta=piece)


class Uncapped(Script):
    """An LLM whose class knows no output cap."""

    max_tokens: None = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self.window, num_output=-1)
