"""A chat model under limits: the same model to LangChain, every request of it on the call path."""

# ruff: noqa: SLF001 - a wrapper hands on what LangChain keeps private

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Any, Self, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field, PrivateAttr, model_validator

from harness_core import __version__
from harness_core.calls.ambient import trace_for
from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import exchange
from harness_core.calls.governor import Governor
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.errors import BadSettingError, RequestRefused
from harness_core.flows import sync, tasks
from harness_core.flows.streaming import astream, stream
from harness_core.flows.types import Drive
from harness_core.messages import Outcome, Reply
from harness_integrations.langchain.asking import asked_of, model_name
from harness_integrations.langchain.embeddings import GovernedEmbeddings
from harness_integrations.langchain.errors import GovernedRefusal, as_model_error, raise_failed
from harness_integrations.langchain.reaching import Governed, Reach
from harness_integrations.langchain.replies import chunks_of, joined, result_of
from harness_integrations.langchain.sending import BoundClient
from harness_integrations.langchain.walking import rebound
from harness_integrations.shared.governing import governed_trace, need_asyncio

T = TypeVar("T")

MARK = "harness_trace"
"""Metadata name under which a governed model's runs say which trace records them."""

TAKEN_OVER = (
    "cache", "rate_limiter", "disable_streaming", "output_version", "profile", "callbacks", "tags",
    "metadata", "custom_get_token_ids",
)  # fmt: skip


class GovernedChatModel(BaseChatModel, Governed):
    """``bound`` under limits: each request is checked before it leaves, priced and recorded.

    A request belongs to ``trace``, else to the ``governed_run`` around it, else to the trace that
    all objects of ``governor`` share. ``response_cache`` answers repeats, streams too. It calls the
    wrapped model's ``_generate``, ``_agenerate``, ``_stream`` and ``_astream``, so LangChain's own
    cache, rate limiter and callbacks work as before, each once. Retries inside the provider's
    client are off.

    Raises:
        TypeError: at the first request, when no limits were named; ``bound`` is no chat model.
        GovernedRefusal: a limit kept a request from being sent. It stays on ``trace.raised``.
    """

    bound: BaseChatModel
    own_trace: Trace | None = Field(default=None, exclude=True, repr=False)
    governor: Governor | None = Field(default=None, exclude=True, repr=False)
    response_cache: ResponseCache | None = Field(default=None, exclude=True, repr=False)
    _client: BaseClient | None = PrivateAttr(default=None)

    def __init__(
        self,
        bound: BaseChatModel,
        *,
        trace: Trace | None = None,
        governor: Governor | None = None,
        response_cache: ResponseCache | None = None,
        **fields: Any,
    ) -> None:
        if not isinstance(bound, BaseChatModel):
            raise TypeError(
                f"bound is a chat model, not {type(bound).__name__}; use govern() for a runnable"
            )
        own = {k: v for k, v in fields.items() if k in type(self).model_fields}
        changed = {
            k: v for k, v in fields.items() if k not in own and k in type(bound).model_fields
        }
        inner = rebuilt(bound, changed) if changed and type(self) is GovernedChatModel else bound
        taken = {name: getattr(inner, name) for name in TAKEN_OVER}
        own.setdefault("own_trace", trace)
        mine = {"bound": inner, "governor": governor, "response_cache": response_cache}
        super().__init__(**{**taken, **mine, **own})
        trace_for(self.own_trace, self.governor)  # what does not go together is said here

    @model_validator(mode="after")
    def _say_harness_version(self) -> Self:
        self._add_version("harness-integrations", __version__)
        return self

    # --- what it is -----------------------------------------------------------------------------

    @property
    def trace(self) -> Trace:
        """The trace a request made here and now belongs to.

        Raises:
            TypeError: no limits were named.
        """
        return governed_trace(type(self).__name__, self.own_trace, self.governor)

    @property
    def model_name(self) -> str:
        """The id of the wrapped model."""
        return model_name(self.bound)

    @property
    def model(self) -> str:
        """The id of the wrapped model."""
        return model_name(self.bound)

    @property
    def client(self) -> BaseClient:
        """What sends for this model."""
        client = self._client
        if client is None or client.cache is not self.response_cache:
            client = self._client = BoundClient(self.bound, self.response_cache)
        return client

    @property
    def replay(self) -> BaseClient | None:
        """What answers in place of a provider; None for a model that sends."""
        return None

    @property
    def _llm_type(self) -> str:
        return self.bound._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return dict(self.bound._identifying_params)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        params: dict[str, Any] = dict(self.bound._get_ls_params(stop=stop, **kwargs))
        found = trace_for(self.own_trace, self.governor)
        return params if found is None else {**params, MARK: found.run_id}

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        return self.bound._get_invocation_params(stop=stop, **kwargs)

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        return self.bound._get_llm_string(stop=stop, **kwargs)

    def _combine_llm_outputs(self, _llm_outputs: list[dict[str, Any] | None], /) -> dict[str, Any]:
        return self.bound._combine_llm_outputs(_llm_outputs)

    def _should_stream(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        return self.bound._should_stream(async_api=async_api, run_manager=run_manager, **kwargs)

    def get_token_ids(self, text: str) -> list[int]:
        """The wrapped model's token ids of a text."""
        return self.bound.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        """The wrapped model's count of a text."""
        return self.bound.get_num_tokens(text)

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """The wrapped model's count of messages."""
        return self.bound.get_num_tokens_from_messages(messages, tools)

    # --- what is built from it ------------------------------------------------------------------

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The wrapped model's way of taking tools, around this model."""
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        return rebound(self.bound.bind_tools(tools, **chosen, **kwargs), self.bound, self)

    def with_structured_output(
        self, schema: Any, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """The wrapped model's way of giving structured output, around this model."""
        built = self.bound.with_structured_output(schema, **kwargs)
        return rebound(built, self.bound, self)

    def with_fallbacks(self, fallbacks: Sequence[Runnable[Any, Any]], **kwargs: Any) -> Any:
        """Fallbacks under the same limits: one that was not would be asked after a refusal."""
        same = [self._likewise(one) for one in fallbacks]
        return super().with_fallbacks(same, **kwargs)

    def configurable_fields(self, **kwargs: Any) -> Any:
        """The wrapped model's fields, and this model's own, configurable at run time."""
        from langchain_core.runnables.configurable import RunnableConfigurableFields

        known = {*type(self).model_fields, *type(self.bound).model_fields}
        if unknown := set(kwargs) - known:
            raise BadSettingError(f"no such fields: {', '.join(sorted(unknown))}")
        return RunnableConfigurableFields(default=self, fields=kwargs)

    def configurable_alternatives(self, which: Any, **kwargs: Any) -> Any:
        """Alternatives under the same limits."""
        same: dict[str, Any] = {
            name: self._likewise(one) if isinstance(one, Runnable) else one
            for name, one in kwargs.items()
        }
        return super().configurable_alternatives(which, **same)

    def _likewise(self, runnable: T) -> T:
        """Another runnable under this model's budget."""
        given = {"trace": self.own_trace, "governor": self.governor}
        reach = Reach(given, model=GovernedChatModel, embeddings=GovernedEmbeddings)
        return reach.govern(runnable)

    # --- what it does ---------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        try:
            outcome = sync.run(self._exchange(messages, stop, run_manager, kwargs))
        except Exception as error:
            raise self._model_error(error) from error
        return self._result(outcome)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        need_asyncio(type(self).__name__)
        try:
            outcome = await tasks.arun(self._exchange(messages, stop, run_manager, kwargs))
        except Exception as error:
            raise self._model_error(error) from error
        return self._result(outcome)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        flow = self._exchange(messages, stop, None, kwargs, streamed=True)
        with closing(stream(flow, joined)) as pieces:
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    reply: Reply = end.value
                    break
                except Exception as error:
                    raise self._model_error(error) from error
                if isinstance(piece, ChatGenerationChunk):
                    yield piece
        yield from self._rest(reply)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        need_asyncio(type(self).__name__)
        flow = self._exchange(messages, stop, None, kwargs, streamed=True)
        reply: Reply | None = None
        async with aclosing(astream(flow, joined)) as pieces:
            while True:
                try:
                    piece = await anext(pieces, None)
                except Exception as error:
                    raise self._model_error(error) from error
                if piece is None:
                    break
                if isinstance(piece, ChatGenerationChunk):
                    yield piece
                elif isinstance(piece, Reply):
                    reply = piece
        for chunk in self._rest(reply):
            yield chunk

    def _exchange(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: Any,
        kwargs: dict[str, Any],
        *,
        streamed: bool = False,
    ) -> Drive[Outcome]:
        request = asked_of(
            self.bound, messages, stop, kwargs, run_manager=run_manager, label=self.name or "chat"
        )
        return exchange(request, Run(self.client, self.trace), streamed=streamed)

    def _result(self, outcome: Outcome) -> ChatResult:
        if not isinstance(outcome, Reply):
            raise TypeError(f"a chat request was answered with {type(outcome).__name__}")
        self._raise_failed(outcome)
        return result_of(outcome)

    def _rest(self, reply: Reply | None) -> Iterator[ChatGenerationChunk]:
        """What a stream still owes: a reply that came whole, or its failure."""
        if reply is None:
            return
        self._raise_failed(reply)
        if reply.cached:
            yield from self._pieces(result_of(reply))

    def _pieces(self, result: ChatResult) -> Iterator[ChatGenerationChunk]:
        """The chunks of a stream whose reply was there whole."""
        return chunks_of(result)

    def _raise_failed(self, reply: Reply) -> None:
        try:
            raise_failed(reply)
        except GovernedRefusal as refusal:
            self.trace.raised.append(refusal)
            raise

    def _model_error(self, error: Exception) -> BaseException:
        """An error that stops the run, as LangChain's; a refusal stays on the trace either way."""
        found = as_model_error(error)
        if isinstance(found, RequestRefused) and error not in self.trace.raised:
            self.trace.raised.append(found)
        return found


def rebuilt(model: BaseChatModel, changes: dict[str, Any]) -> BaseChatModel:
    """A chat model made anew with some fields changed, as LangChain's configurable fields do it."""
    known = {k: v for k, v in vars(model).items() if k in type(model).model_fields}
    return type(model)(**{**known, **changes})
