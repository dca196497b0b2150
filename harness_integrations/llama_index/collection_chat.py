"""A conversation with a collection, kept on the caller's memory."""

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Final

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, trace_method
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.memory import BaseMemory

from harness_core.collections.contract import HISTORY_TURNS, Turn
from harness_integrations.llama_index.collections import CollectionQueryEngine

_ROLES: Final = {MessageRole.USER: "user", MessageRole.ASSISTANT: "assistant"}


class CollectionChatEngine(BaseChatEngine):
    """Asks a ``CollectionQueryEngine`` with the conversation so far, which ``memory`` keeps.

    The newest 32 texts of user and assistant are sent; what else the memory holds (system and tool
    messages) is not. A question that fails is not remembered. An answer streams as one piece.

    Raises:
        BadSettingError, MissingTextError, CollectionFault: as the engine.
    """

    def __init__(self, engine: CollectionQueryEngine, memory: BaseMemory) -> None:
        self._engine = engine
        self._memory = memory
        self.callback_manager: CallbackManager = engine.callback_manager

    @property
    def chat_history(self) -> list[ChatMessage]:
        """The conversation so far."""
        return self._memory.get_all()

    def reset(self) -> None:
        """Forget the conversation."""
        self._memory.reset()

    @trace_method("chat")
    def chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> AgentChatResponse:
        """Answer; ``chat_history`` replaces what was said before."""
        return _whole(self._said(message, chat_history))

    @trace_method("chat")
    async def achat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> AgentChatResponse:
        """The async twin of ``chat``."""
        return _whole(await self._asaid(message, chat_history))

    @trace_method("chat")
    def stream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """The answer of ``chat``, as a stream of one piece."""
        return _stream(self._said(message, chat_history))

    @trace_method("chat")
    async def astream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """The async twin of ``stream_chat``."""
        return _stream(await self._asaid(message, chat_history))

    def _said(self, message: str, chat_history: list[ChatMessage] | None) -> Response:
        if chat_history is not None:
            self._memory.set(chat_history)
        response = self._engine.ask(message, _turns(self._memory.get(message)))
        self._memory.put_messages(_exchange(message, response))
        return response

    async def _asaid(self, message: str, chat_history: list[ChatMessage] | None) -> Response:
        if chat_history is not None:
            await self._memory.aset(chat_history)
        response = await self._engine.aask(message, _turns(await self._memory.aget(message)))
        await self._memory.aput_messages(_exchange(message, response))
        return response


def _turns(messages: Sequence[ChatMessage]) -> list[Turn]:
    said = [one for one in messages if one.role in _ROLES and one.content]
    return [
        Turn.parse({"role": _ROLES[one.role], "content": one.content})
        for one in said[-HISTORY_TURNS:]
    ]


def _exchange(message: str, response: Response) -> list[ChatMessage]:
    return [
        ChatMessage(role=MessageRole.USER, content=message),
        ChatMessage(role=MessageRole.ASSISTANT, content=str(response)),
    ]


def _whole(response: Response) -> AgentChatResponse:
    return AgentChatResponse(
        response=str(response), source_nodes=response.source_nodes, metadata=response.metadata
    )


def _stream(response: Response) -> StreamingAgentChatResponse:
    said = ChatMessage(role=MessageRole.ASSISTANT, content=str(response))
    piece = ChatResponse(message=said, delta=str(response))
    return StreamingAgentChatResponse(
        response=str(response),
        chat_stream=_pieces(piece),
        achat_stream=_apieces(piece),
        source_nodes=response.source_nodes,
        is_writing_to_memory=False,
    )


def _pieces(piece: ChatResponse) -> Generator[ChatResponse, None, None]:
    yield piece


async def _apieces(piece: ChatResponse) -> AsyncGenerator[ChatResponse, None]:
    yield piece
