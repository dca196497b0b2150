"""A chat model without a provider: it answers by a function and counts what it is asked."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import anyio
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr


def echo(messages: Sequence[BaseMessage]) -> str:
    return "echo: " + str(messages[-1].text)[:40]


class CaplessChat(BaseChatModel):
    """``reply`` makes the text; ``usage`` is reported, None reports none; ``fails`` raises."""

    model: str = "gpt-4o-mini"
    max_retries: int | None = None
    temperature: float | None = None
    n: int | None = None
    reply: Callable[[Sequence[BaseMessage]], str] = Field(default=echo, exclude=True)
    usage: tuple[int, int] | None = (10, 5)
    metadata_of_reply: dict[str, Any] = Field(default_factory=dict)
    fails: Any = Field(default=None, exclude=True)
    pause: float = 0.0
    _asked: list[dict[str, Any]] = PrivateAttr(default_factory=list)
    _most: list[int] = PrivateAttr(default_factory=lambda: [0, 0])
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The keywords of every request so far."""
        return self._asked

    @property
    def most_at_once(self) -> int:
        return self._most[1]

    @property
    def _llm_type(self) -> str:
        return "fake-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model, "temperature": self.temperature}

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _enter(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> str:
        with self._lock:
            self._asked.append({"messages": messages, **kwargs})
            self._most[0] += 1
            self._most[1] = max(self._most)
        if self.fails is not None:
            raise self.fails
        return self.reply(messages)

    def _leave(self) -> None:
        with self._lock:
            self._most[0] -= 1

    def _message(self, text: str) -> AIMessage:
        usage = self.usage
        return AIMessage(
            content=text,
            response_metadata={"model_name": self.model, **self.metadata_of_reply},
            usage_metadata=None
            if usage is None
            else {"input_tokens": usage[0], "output_tokens": usage[1], "total_tokens": sum(usage)},
        )

    def _result(self, text: str) -> ChatResult:
        rows = [ChatGeneration(message=self._message(text)) for _ in range(self.n or 1)]
        return ChatResult(generations=rows)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        try:
            text = self._enter(messages, {"stop": stop, **kwargs})
            if self.pause:
                threading.Event().wait(self.pause)
            return self._result(text)
        finally:
            self._leave()

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        try:
            text = self._enter(messages, {"stop": stop, **kwargs})
            await anyio.sleep(self.pause)
            return self._result(text)
        finally:
            self._leave()


class FakeChat(CaplessChat):
    """The same with an output cap, as most have it."""

    max_tokens: int | None = 50

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {**super()._identifying_params, "max_tokens": self.max_tokens}


class StreamingChat(FakeChat):
    """The same, a word at a time; usage comes with the last chunk."""

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        try:
            yield from self._chunks(self._enter(messages, {"stop": stop, **kwargs}))
        finally:
            self._leave()

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        try:
            for chunk in self._chunks(self._enter(messages, {"stop": stop, **kwargs})):
                await anyio.sleep(self.pause)
                yield chunk
        finally:
            self._leave()

    def _chunks(self, text: str) -> Iterator[ChatGenerationChunk]:
        for word in text.split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
        last = self._message("")
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                usage_metadata=last.usage_metadata,
                response_metadata=last.response_metadata,
            )
        )
