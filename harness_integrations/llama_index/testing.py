"""Recorded runs as test doubles: no key, no network, no spend, and the limits still in force."""

import json
import re
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from harness_integrations.shared.extras import needs

with needs("llama-index", "llama_index"):
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        CompletionResponse,
        LLMMetadata,
        MessageRole,
        TextBlock,
    )
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.llms import LLM
    from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection

    from harness_integrations.llama_index.asking import asked_of, model_name, own_settings
    from harness_integrations.llama_index.errors import raise_failed
    from harness_integrations.llama_index.governed import (
        NOTE,
        GovernedLLM,
        govern_llm,
        tokenizer_name,
    )
    from harness_integrations.llama_index.messages import as_chat, as_completion, tool_calls_of
    from harness_integrations.llama_index.sending import CODEC

from pydantic import PrivateAttr

from harness_core.calls.exchange import exchange
from harness_core.calls.governor import Governor
from harness_core.calls.recording import Recording
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.errors import ReplayMissError
from harness_core.flows import sync, tasks
from harness_core.flows.types import Drive
from harness_core.messages import Outcome, Reply
from harness_core.models.registry import model_info
from harness_integrations.shared.recorded import RecordedClient

R = TypeVar("R", ChatResponse, CompletionResponse)
Source = Trace | Recording | str | Path


class ReplayLLM(FunctionCallingLLM):
    """Answers from a recorded trace: chat, completion, tool calls, streams, structured output.

    A request is found by what it asks (messages, tools, model, cap, temperature, ...), whichever
    method asks it; folders in ``file_path`` headers, node ids and generated tool-call ids do not
    count. What the recording does not hold raises ``ReplayMissError``, one request too many
    ``ReplayExhaustedError``; no part of LlamaIndex swallows either. Equal requests are answered in
    recorded order. Metadata (a context window decides how prompts are packed) and settings are the
    recorded LLM's, or those of ``like``. ``chunks="whole"`` streams a text in one piece. The limits
    are the recording's, unless ``trace`` or ``governor`` names others.

    Raises:
        SourceNotFoundError, ReplayUnreadableError, ReplayEmptyError: see there.
    """

    chunks: Literal["words", "whole"] = "words"
    _client: RecordedClient = PrivateAttr()
    _trace: Trace = PrivateAttr()
    _metadata: LLMMetadata = PrivateAttr()
    _defaults: dict[str, Any] = PrivateAttr()
    _model: str = PrivateAttr()
    _recorded: dict[str, Any] = PrivateAttr()

    def __init__(
        self,
        trace_or_path: Source,
        *,
        like: LLM | None = None,
        on_exhausted: Literal["error", "flag"] = "error",
        chunks: Literal["words", "whole"] = "words",
        trace: Trace | None = None,
        governor: Governor | None = None,
        callback_manager: CallbackManager | None = None,
        **fields: Any,
    ) -> None:
        client = RecordedClient(trace_or_path, CODEC, on_exhausted=on_exhausted, fill=like is None)
        manager = {} if callback_manager is None else {"callback_manager": callback_manager}
        super().__init__(chunks=chunks, **manager, **fields)
        source = client.recording.trace
        recorded = source.recorded_limits or source.governor.limits().as_json()
        limits = Governor(**recorded) if governor is None else governor
        self._client = client
        self._trace = trace or Trace(limits)
        self._model = client.model if like is None else model_name(like)
        self._recorded = _recorded_llm(source)
        self._metadata = (
            like.metadata if like is not None else _metadata(self._recorded, client.model)
        )
        self._defaults = own_settings(like) if like is not None else dict(
            self._recorded.get("settings") or {}
        )  # fmt: skip

    @classmethod
    def from_trace(cls, path: Source, **settings: Any) -> "ReplayLLM":
        """A replay of a trace; takes the keywords of the class."""
        return cls(path, **settings)

    @classmethod
    def class_name(cls) -> str:
        return "ReplayLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return self._metadata

    @property
    def model(self) -> str:
        """The recorded model, or that of ``like``."""
        return self._model

    @property
    def replay(self) -> RecordedClient:
        """What answers a reader that is given this LLM."""
        return self._client

    @property
    def trace(self) -> Trace:
        """The trace of the replay itself."""
        return self._trace

    def missed(self) -> list[dict[str, Any]]:
        """What was asked for and not recorded: label, model and message of each."""
        return self._client.missed()

    def stats(self) -> dict[str, int]:
        """recorded, distinct, hits, repeats, misses (counts of replies)."""
        return self._client.stats()

    def unused(self) -> list[str]:
        """The recorded replies that were never asked for, by the end of their prompts."""
        return self._client.unused()

    def assert_all_used(self) -> None:
        """Every recorded reply was asked for.

        Raises:
            AssertionError: some were not; the message shows what they answer.
        """
        self._client.assert_all_used()

    # --- asking: decorated, since this is the LLM that fires the events -------------------------

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return as_chat(self._answered(messages, kwargs))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return as_completion(self._answered(prompt, kwargs))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return as_chat(await self._aanswered(messages, kwargs))

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return as_completion(await self._aanswered(prompt, kwargs))

    @llm_chat_callback()
    def stream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> Generator[ChatResponse, None, None]:
        return _pieces(self._chat_pieces(self._answered(messages, kwargs)))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse, None, None]:
        return _pieces(self._completion_pieces(self._answered(prompt, kwargs)))

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[ChatResponse, None]:
        return _apieces(self._chat_pieces(await self._aanswered(messages, kwargs)))

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> AsyncGenerator[CompletionResponse, None]:
        return _apieces(self._completion_pieces(await self._aanswered(prompt, kwargs)))

    # --- tools, in OpenAI's form ----------------------------------------------------------------

    def _prepare_chat_with_tools(  # noqa: PLR0917 - LlamaIndex's own signature
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        messages = list(chat_history or ())
        if user_msg is not None:
            said = user_msg
            if isinstance(said, str):
                said = ChatMessage(role=MessageRole.USER, content=said)
            messages.append(said)
        formed = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
        choice = tool_choice or ("required" if tool_required else "auto")
        return {
            "messages": messages,
            "tools": formed or None,
            "tool_choice": choice if formed else None,
            **kwargs,
        }

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        found = [
            ToolSelection(
                tool_id=call or "",
                tool_name=name,
                tool_kwargs=arguments if isinstance(arguments, dict) else {},
            )
            for call, name, arguments in tool_calls_of(response.message)
        ]
        if not found and error_on_no_tool_call:
            raise ValueError("the recorded reply calls no tool")  # as LlamaIndex's own LLMs do
        return found

    # --- the call path --------------------------------------------------------------------------

    def _answered(self, given: Sequence[ChatMessage] | str, kwargs: dict[str, Any]) -> Reply:
        with self._hinting():
            return self._reply(sync.run(self._exchange(given, kwargs)))

    async def _aanswered(self, given: Sequence[ChatMessage] | str, kwargs: dict[str, Any]) -> Reply:
        with self._hinting():
            return self._reply(await tasks.arun(self._exchange(given, kwargs)))

    def _exchange(
        self, given: Sequence[ChatMessage] | str, kwargs: dict[str, Any]
    ) -> Drive[Outcome]:
        label = "complete" if isinstance(given, str) else "chat"
        request = asked_of(self, given, kwargs, label=label, defaults=self._defaults)
        return exchange(request, Run(self._client, self._trace))

    def _reply(self, outcome: Outcome) -> Reply:
        if not isinstance(outcome, Reply):
            raise TypeError(f"an LLM's request was answered with {type(outcome).__name__}")
        raise_failed(outcome, self._trace)
        return outcome

    @contextmanager
    def _hinting(self) -> Iterator[None]:
        """Say with a miss what makes LlamaIndex pack its prompts in another way here."""
        try:
            yield
        except ReplayMissError as miss:
            hints = self._hints()
            if not hints:
                raise
            raise ReplayMissError(f"{miss}. {'. '.join(hints)}") from None

    def _hints(self) -> list[str]:
        recorded, mine = self._recorded, self._metadata
        hints: list[str] = []
        window = recorded.get("context_window")
        if window not in (None, mine.context_window):
            hints.append(
                f"It was recorded with a context window of {window} tokens, here it is "
                f"{mine.context_window}: LlamaIndex packs its prompts by it"
            )
        if (tokenizer := recorded.get("tokenizer")) not in (None, tokenizer_name()):
            hints.append(
                f"It was recorded with LlamaIndex's tokenizer {tokenizer}, here it is "
                f"{tokenizer_name()}: set the same with set_global_tokenizer"
            )
        return hints

    # --- pieces ---------------------------------------------------------------------------------

    def _words(self, text: str) -> list[str]:
        found = re.findall(r"\S+\s*|\s+", text) if self.chunks == "words" else [text]
        return found or [""]  # a stream without any piece breaks LlamaIndex's own events

    def _chat_pieces(self, reply: Reply) -> Iterator[ChatResponse]:
        whole = as_chat(reply)
        calls = [_in_openai_form(*call) for call in tool_calls_of(whole.message)]
        said, words = "", self._words(whole.message.content or "")
        for word in words[:-1]:
            said += word
            message = ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text=said)])
            yield ChatResponse(message=message, delta=word)
        more = {**whole.message.additional_kwargs, **({"tool_calls": calls} if calls else {})}
        message = ChatMessage(
            role=MessageRole.ASSISTANT, blocks=whole.message.blocks, additional_kwargs=more
        )
        yield whole.model_copy(update={"message": message, "delta": words[-1]})

    def _completion_pieces(self, reply: Reply) -> Iterator[CompletionResponse]:
        whole, said = as_completion(reply), ""
        words = self._words(whole.text)
        for word in words[:-1]:
            said += word
            yield CompletionResponse(text=said, delta=word)
        yield whole.model_copy(update={"delta": words[-1]})


@contextmanager
def record(llm: LLM, path: str | Path, **limits: Any) -> Iterator[GovernedLLM]:
    """``llm``, its requests written to ``path``; ``limits`` are a ``Governor``'s.

    Raises:
        TraceError: the file exists: a recording is never overwritten, nor added to unasked.
    """
    trace = Trace(Governor(**limits), path=path)
    try:
        yield govern_llm(llm, trace=trace, allow_uncapped=True)
    finally:
        trace.close()


def _pieces(source: Iterator[R]) -> Generator[R, None, None]:
    yield from source


async def _apieces(source: Iterator[R]) -> AsyncGenerator[R, None]:
    for piece in source:
        yield piece


def _in_openai_form(call: str | None, name: str, arguments: Any) -> dict[str, Any]:
    told = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call, "type": "function", "function": {"name": name, "arguments": told}}


def _recorded_llm(trace: Trace) -> dict[str, Any]:
    """What the trace says of the LLM it was recorded with."""
    return next((dict(step.detail or {}) for step in trace.steps if step.label == NOTE), {})


def _metadata(recorded: dict[str, Any], model: str) -> LLMMetadata:
    """The recorded LLM's metadata; for a trace of another framework those of its model."""
    if not recorded:
        return LLMMetadata(
            context_window=model_info(model).context_window,
            num_output=-1,
            is_chat_model=True,
            is_function_calling_model=True,
            model_name=model,
        )
    names = ("context_window", "num_output", "is_chat_model", "is_function_calling_model")
    return LLMMetadata(
        model_name=model,
        system_role=MessageRole(recorded.get("system_role", "system")),
        **{name: recorded[name] for name in names if name in recorded},
    )


__all__ = ["ReplayLLM", "record"]
