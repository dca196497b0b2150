"""An LLM under limits: a wrapper, so that no way of asking passes it by.

Its methods are not decorated: the LLM inside fires LlamaIndex's events, once per request, under its
own name. What providers' classes override to reach their SDK directly (``structured_predict``) is
inherited here from ``LLM``, and ends in a governed ``chat``.
"""

import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from importlib.metadata import version
from typing import Any, TypeVar
from weakref import WeakSet

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
)
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import Field, PrivateAttr, SerializeAsAny

from harness_core.calls.ambient import trace_for
from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import exchange
from harness_core.calls.governor import Governor
from harness_core.calls.prepare import prepare
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.errors import BadSettingError, RequestRefused
from harness_core.flows import sync, tasks
from harness_core.flows.streaming import astream, stream
from harness_core.flows.types import Drive
from harness_core.messages import Outcome, Reply, Request
from harness_core.models import current_tokenizer
from harness_integrations.llama_index.asking import asked_of, own_settings
from harness_integrations.llama_index.bound import BudgetBound
from harness_integrations.llama_index.errors import raise_failed, told
from harness_integrations.llama_index.messages import as_chat, as_completion
from harness_integrations.llama_index.replies import joined
from harness_integrations.llama_index.sending import LLMClient
from harness_integrations.shared.failures import Broken
from harness_integrations.shared.governing import governed_trace

R = TypeVar("R", ChatResponse, CompletionResponse)
NOTE = "llama_index.llm"
"""Label of the step that says which LLM a trace's requests went to."""


class GovernedLLM(BudgetBound, FunctionCallingLLM):
    """``llm`` under limits: every request is checked before it is sent, priced and recorded.

    The budget is that of ``trace``, else of the ``governed_run`` around the call, else the one
    that all wrappers given this ``governor`` share. ``response_cache`` answers repeats. Retries in
    the provider's client are off. A refusal raises at the call, a stream's too, and nothing is
    sent. Structured output goes through tool calls or a prompt, not through a provider's own way
    around ``chat``. ``allow_uncapped`` accepts an LLM whose output cannot be capped.

    Raises:
        OutputCapUnenforceable: the output of ``llm`` cannot be capped.
        TypeError: at the first request, when no limits were named.
        RequestRefused: a limit kept a request from being sent.
    """

    llm: SerializeAsAny[LLM] = Field(exclude=True, repr=False)
    allow_uncapped: bool = False
    _client: Any = PrivateAttr()
    _own_trace: Trace | None = PrivateAttr()
    _governor: Governor | None = PrivateAttr()
    _response_cache: ResponseCache | None = PrivateAttr()
    _known: Any = PrivateAttr()
    _lock: Any = PrivateAttr()

    def __init__(
        self,
        llm: LLM,
        *,
        trace: Trace | None = None,
        governor: Governor | None = None,
        response_cache: ResponseCache | None = None,
        allow_uncapped: bool = False,
    ) -> None:
        trace_for(trace, governor)
        if isinstance(llm, GovernedLLM):
            raise BadSettingError("this LLM is governed already; govern_llm() leaves it as it is")
        client = LLMClient(llm, cache=response_cache, allow_uncapped=allow_uncapped)
        super().__init__(
            llm=llm,
            allow_uncapped=allow_uncapped,
            callback_manager=llm.callback_manager,
            system_prompt=llm.system_prompt,
            messages_to_prompt=llm.messages_to_prompt,
            completion_to_prompt=llm.completion_to_prompt,
            output_parser=llm.output_parser,
            pydantic_program_mode=llm.pydantic_program_mode,
        )
        self._client = client
        self._own_trace, self._governor = trace, governor
        self._response_cache = response_cache
        self._known, self._lock = WeakSet(), threading.Lock()

    @classmethod
    def class_name(cls) -> str:
        return "GovernedLLM"

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "callback_manager" and "llm" in self.__dict__:
            self.llm.callback_manager = value  # the one that fires; synthesizers assign ours
            self._client.llm.callback_manager = value

    @property
    def trace(self) -> Trace:
        """The trace a request made here and now belongs to.

        Raises:
            TypeError: no limits were named.
        """
        return governed_trace("GovernedLLM", self._own_trace, self._governor)

    @property
    def response_cache(self) -> ResponseCache | None:
        """Where repeats are answered from."""
        return self._response_cache

    @property
    def model(self) -> str:
        """The id of the model inside."""
        return str(self._client.model)

    @property
    def metadata(self) -> LLMMetadata:
        return self.llm.metadata

    def to_payload(self) -> dict[str, Any]:
        """The metadata of the LLM inside, which hold no credential."""
        return {"class_name": self.class_name(), **self.metadata.model_dump(), "governed": True}

    # --- asking ---------------------------------------------------------------------------------

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return as_chat(self._answered(messages, kwargs))

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return as_completion(self._answered(prompt, _formatted(kwargs, formatted)))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return as_chat(await self._aanswered(messages, kwargs))

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return as_completion(await self._aanswered(prompt, _formatted(kwargs, formatted)))

    def stream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> Generator[ChatResponse, None, None]:
        return self._pieces(*self._foreseen(messages, kwargs), as_chat)

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse, None, None]:
        foreseen = self._foreseen(prompt, _formatted(kwargs, formatted))
        return self._pieces(*foreseen, as_completion)

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[ChatResponse, None]:
        return self._apieces(*self._foreseen(messages, kwargs), as_chat)

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> AsyncGenerator[CompletionResponse, None]:
        foreseen = self._foreseen(prompt, _formatted(kwargs, formatted))
        return self._apieces(*foreseen, as_completion)

    # --- tools: as the LLM inside has them ------------------------------------------------------

    def _prepare_chat_with_tools(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._with_tools._prepare_chat_with_tools_compat(*args, **kwargs)  # noqa: SLF001 - its own seam for wrappers

    def _validate_chat_with_tools_response(
        self, response: ChatResponse, *args: Any, **kwargs: Any
    ) -> ChatResponse:
        inner = self._with_tools
        return inner._validate_chat_with_tools_response(response, *args, **kwargs)  # noqa: SLF001

    def _prepare_chat_with_tools_compat(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._prepare_chat_with_tools(*args, **kwargs)

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return self._with_tools.get_tool_calls_from_response(
            response, error_on_no_tool_call=error_on_no_tool_call, **kwargs
        )

    @property
    def _with_tools(self) -> FunctionCallingLLM:
        if not isinstance(self.llm, FunctionCallingLLM):
            raise TypeError(f"{self.llm.class_name()} calls no tools")
        return self.llm

    # --- the call path --------------------------------------------------------------------------

    def _answered(self, given: Sequence[ChatMessage] | str, kwargs: dict[str, Any]) -> Reply:
        request, run = self._asked(given, kwargs)
        with _telling(run.trace):
            return _succeeded(sync.run(exchange(request, run)), run.trace)

    async def _aanswered(self, given: Sequence[ChatMessage] | str, kwargs: dict[str, Any]) -> Reply:
        request, run = self._asked(given, kwargs)
        with _telling(run.trace):
            return _succeeded(await tasks.arun(exchange(request, run)), run.trace)

    def _asked(
        self, given: Sequence[ChatMessage] | str, kwargs: dict[str, Any]
    ) -> tuple[Request, Run]:
        trace = self.trace
        with self._lock:
            if trace not in self._known:
                self._known.add(trace)
                introduce(self.llm, trace)
        label = "complete" if isinstance(given, str) else "chat"
        return asked_of(self.llm, given, kwargs, label=label), Run(self._client, trace)

    def _foreseen(
        self, given: Sequence[ChatMessage] | str, kwargs: dict[str, Any]
    ) -> tuple[Drive[Outcome], Trace]:
        """The exchange of a stream, looked at for a refusal; nothing is held yet."""
        request, run = self._asked(given, kwargs)
        limits, ledger = run.limits(), run.trace.ledger
        call = prepare(request, self._client, limits)
        refusal = ledger.permit(call.demand, limits)
        if refusal is None and self._response_cache is None:
            refusal = ledger.hopeless(call.demand, limits)
        if refusal is not None:
            with _telling(run.trace):
                _succeeded(run.refuse(call, refusal), run.trace)
        return exchange(request, run, streamed=True), run.trace

    def _pieces(
        self, flow: Drive[Outcome], trace: Trace, whole: Callable[[Reply], R]
    ) -> Generator[R, None, None]:
        with _telling(trace), closing(stream(flow, joined)) as pieces:
            said = False
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    reply: Reply = end.value
                    break
                if not isinstance(piece, Broken):
                    said = True
                    yield piece
            _succeeded(reply, trace)
            if not said:
                yield _as_piece(reply, whole)

    async def _apieces(
        self, flow: Drive[Outcome], trace: Trace, whole: Callable[[Reply], R]
    ) -> AsyncGenerator[R, None]:
        with _telling(trace):
            async with aclosing(astream(flow, joined)) as pieces:
                said = False
                async for piece in pieces:
                    if isinstance(piece, Reply):
                        _succeeded(piece, trace)
                        if not said:
                            yield _as_piece(piece, whole)
                    elif not isinstance(piece, Broken):
                        said = True
                        yield piece


def govern_llm(
    llm: LLM | str,
    *,
    trace: Trace | None = None,
    governor: Governor | None = None,
    response_cache: ResponseCache | None = None,
    allow_uncapped: bool = False,
) -> GovernedLLM:
    """``llm`` governed; one that is governed already is returned as it is.

    ``llm`` may be the name by which LlamaIndex resolves one (``"default"``, ``"local:..."``).

    Raises:
        BadSettingError: it is governed by another trace than ``trace``.
        OutputCapUnenforceable: its output cannot be capped.
    """
    if isinstance(llm, str):
        from llama_index.core.llms.utils import resolve_llm

        llm = resolve_llm(llm)
    if isinstance(llm, GovernedLLM):
        same_trace(llm, trace_for(trace, governor))
        return llm
    return GovernedLLM(
        llm, trace=trace, governor=governor, response_cache=response_cache,
        allow_uncapped=allow_uncapped,
    )  # fmt: skip


def same_trace(llm: GovernedLLM, trace: Trace | None) -> None:
    """Raise where a governed LLM is to be used under another budget than its own.

    Raises:
        BadSettingError: it has a trace, and ``trace`` is another one.
    """
    if trace is not None and trace is not llm.trace:
        raise BadSettingError(
            "this LLM is governed already, by another trace; leave trace= and governor= out"
        )


def introduce(llm: LLM, trace: Trace) -> None:
    """Record which LLM a trace's requests go to: a replay packs its prompts by these."""
    metadata = llm.metadata
    trace.note(
        NOTE,
        class_name=llm.class_name(),
        model=metadata.model_name,
        context_window=metadata.context_window,
        num_output=metadata.num_output,
        is_chat_model=bool(metadata.is_chat_model),
        is_function_calling_model=bool(metadata.is_function_calling_model),
        system_role=str(metadata.system_role.value),
        settings=own_settings(llm),
        tokenizer=tokenizer_name(),
        core=version("llama-index-core"),
        counted_by=current_tokenizer(),
    )


def tokenizer_name() -> str:
    """The name of LlamaIndex's global tokenizer, by which it packs prompts."""
    import llama_index.core

    found = llama_index.core.global_tokenizer
    if found is None:  # not needed so far; then it is this one
        return "cl100k_base"
    function = getattr(found, "func", found)
    owner = getattr(function, "__self__", None)
    return str(getattr(owner, "name", None) or getattr(function, "__qualname__", "custom"))


@contextmanager
def _telling(trace: Trace) -> Iterator[None]:
    """Say a refusal that the call path itself raises, under ``on_refusal="raise"``."""
    try:
        yield
    except RequestRefused as refusal:
        if trace.governor.on_refusal == "raise":
            told(refusal, trace)
        raise


def _succeeded(outcome: Outcome, trace: Trace) -> Reply:
    if not isinstance(outcome, Reply):
        raise TypeError(f"an LLM's request was answered with {type(outcome).__name__}")
    raise_failed(outcome, trace)
    return outcome


def _as_piece(reply: Reply, whole: Callable[[Reply], R]) -> R:
    """A reply that came whole, as the one piece of a stream."""
    return whole(reply).model_copy(update={"delta": reply.text})


def _formatted(kwargs: dict[str, Any], formatted: bool) -> dict[str, Any]:
    return {**kwargs, "formatted": True} if formatted else kwargs
