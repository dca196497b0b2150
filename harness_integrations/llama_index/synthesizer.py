"""``ReaderSynthesizer``: a governed reader wherever LlamaIndex takes a response synthesizer."""

from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import signature
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryType
from pydantic import BaseModel, ValidationError

from harness_core.answer import Answer
from harness_core.calls.api import acall_json, call_json
from harness_core.calls.cache import ResponseCache
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.errors import RequestRefused
from harness_core.messages import JsonReply
from harness_core.reading.spec import ReadSpec
from harness_integrations.llama_index.errors import OutputInvalidError, raise_failed
from harness_integrations.llama_index.nodes import Handed, hand_over, hand_over_texts
from harness_integrations.llama_index.reading import OnLimit, Reading, client_of
from harness_integrations.llama_index.responses import (
    AsyncReaderStreamingResponse,
    ReaderPydanticResponse,
    ReaderResponse,
    ReaderStreamingResponse,
    complete,
)
from harness_integrations.shared.settings import closed_schema

FORM = "synthesize.form"
_FORM = (
    "Put what the answer says into the form that is asked for. Add nothing that it does not say."
)


@dataclass(slots=True)
class _Scope:
    """One call of ``synthesize``: the nodes, and what became of them."""

    nodes: Sequence[NodeWithScore]
    handed: Handed | None = None
    answer: Answer | None = None
    response: Any = None


_scope: ContextVar[_Scope | None] = ContextVar("reader_scope", default=None)


class ReaderSynthesizer(BaseSynthesizer):
    """Reads the nodes of a query with one of the core's readers, through ``llm``, within limits.

    ``reader`` is a reader's name; ``spec`` holds its settings. ``llm`` is a LlamaIndex LLM (none:
    ``Settings.llm``), governed or not, or a core client. The budget is that of ``trace``, of a
    governed ``llm``, of the ``governed_run`` around, or of ``governor``; with none of these each
    question has a fresh trace. A limit that is reached ends in a partial answer, with
    ``on_limit="error"`` in ``RequestRefused``. With ``output_cls`` the answer is put into that form
    by one more request. The prompt ``instructions`` goes with answering and merging.

    ``index.as_query_engine(response_synthesizer=..., llm=...)`` needs the second ``llm`` as well:
    LlamaIndex resolves ``Settings.llm`` otherwise, and asks for an OpenAI key, unused as it is.

    Raises:
        BadSettingError: two different budgets, or an unknown setting.
        OutputCapUnenforceable: the output of ``llm`` cannot be capped.
    """

    def __init__(
        self,
        reader: str | None = None,
        llm: Any = None,
        *,
        spec: Any = None,
        trace: Trace | None = None,
        governor: Governor | None = None,
        response_cache: ResponseCache | None = None,
        embed_model: BaseEmbedding | None = None,
        streaming: bool = False,
        output_cls: type[BaseModel] | None = None,
        empty_response: str | None = None,
        on_limit: OnLimit = "partial",
        metadata_mode: MetadataMode = MetadataMode.LLM,
        allow_uncapped: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if llm is None:
            from llama_index.core import Settings

            llm = Settings.llm
        placeholder = llm if isinstance(llm, LLM) else MockLLM()
        super().__init__(
            llm=placeholder,
            callback_manager=callback_manager,
            **_unused_helpers(),
            streaming=streaming,
            output_cls=output_cls,
            empty_response=empty_response,
        )
        chosen = ReadSpec.of(spec)
        self._metadata_mode = metadata_mode
        self.reading = Reading(
            client=client_of(
                llm, embeddings=embed_model, response_cache=response_cache,
                allow_uncapped=allow_uncapped,
            ),
            spec=chosen if reader is None else chosen.having(reader=reader),
            own_trace=trace,
            governor=governor,
            on_limit=on_limit,
            prompts={"instructions": PromptTemplate(chosen.instructions or "")},
        )  # fmt: skip

    @classmethod
    def from_defaults(
        cls, reader: str = "map_reduce", llm: Any = None, **settings: Any
    ) -> "ReaderSynthesizer":
        """A synthesizer; takes the keywords of the class."""
        return cls(reader, llm, **settings)

    # --- prompts --------------------------------------------------------------------------------

    def _get_prompts(self) -> PromptDictType:
        return dict(self.reading.prompts)

    def _update_prompts(self, prompts: PromptDictType) -> None:
        if "instructions" in prompts:
            self.reading.prompts["instructions"] = prompts["instructions"]

    # --- synthesis ------------------------------------------------------------------------------

    def synthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        with _entered(nodes):
            return super().synthesize(query, nodes, additional_source_nodes, **response_kwargs)

    async def asynthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        with _entered(nodes):
            return await super().asynthesize(
                query, nodes, additional_source_nodes, **response_kwargs
            )

    def get_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> Any:
        """The answer: text, a generator of text when streaming, or an ``output_cls``."""
        handed, scope = self._handed(text_chunks)
        if self._streaming and self._output_cls is None:
            return self._stream(query_str, handed, scope)
        answer = self.reading.read(query_str, handed.chunks)
        scope.answer = answer
        if self._output_cls is None:
            return answer.wording()
        asked = _form_of(answer, self._output_cls, self.reading.spec)
        form = call_json(self.reading.client, trace=answer.trace, **asked)
        return self._formed(form, answer)

    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any
    ) -> Any:
        """The async twin of ``get_response``."""
        handed, scope = self._handed(text_chunks)
        if self._streaming and self._output_cls is None:
            return self._astream(query_str, handed, scope)
        answer = await self.reading.aread(query_str, handed.chunks)
        scope.answer = answer
        if self._output_cls is None:
            return answer.wording()
        asked = _form_of(answer, self._output_cls, self.reading.spec)
        form = await acall_json(self.reading.client, trace=answer.trace, **asked)
        return self._formed(form, answer)

    def hand_over(self, nodes: Sequence[NodeWithScore]) -> Handed:
        """Nodes as the chunks of a read."""
        reading = self.reading
        return hand_over(
            nodes, reading.spec, reading.client.model, metadata_mode=self._metadata_mode
        )

    def _handed(self, text_chunks: Sequence[str]) -> tuple[Handed, _Scope]:
        scope = _scope.get()
        model = self.reading.client.model
        if scope is None or scope.handed is not None or len(scope.nodes) != len(text_chunks):
            scope = _Scope(())  # called directly, with plain texts
            scope.handed = hand_over_texts(text_chunks, self.reading.spec, model)
        else:
            scope.handed = self.hand_over(scope.nodes)
        return scope.handed, scope

    def _stream(self, question: str, handed: Handed, scope: _Scope) -> Generator[str, None, None]:
        yield from self.reading.stream(question, handed.chunks, lambda one: _noted(scope, one))

    async def _astream(
        self, question: str, handed: Handed, scope: _Scope
    ) -> AsyncGenerator[str, None]:
        source = self.reading.astream(question, handed.chunks, lambda one: _noted(scope, one))
        try:
            async for piece in source:
                yield piece
        finally:
            await source.aclose()

    def _formed(self, form: JsonReply, answer: Answer) -> BaseModel:
        """A reply as ``output_cls``.

        Raises:
            OutputInvalidError: it does not fit. RequestRefused: it was not sent.
        """
        kind = self._output_cls
        if kind is None:
            raise TypeError("no output_cls was given")
        try:
            raise_failed(form.reply, answer.trace)
            return kind.model_validate(form.value if form.value is not None else form.reply.text)
        except RequestRefused:
            raise
        except (ValidationError, TypeError) as error:
            raise OutputInvalidError(
                f"the reply does not fit {kind.__name__}: {form.reply.text[:200]!r}"
            ) from error

    def _prepare_response_output(
        self, response_str: Any, source_nodes: list[NodeWithScore]
    ) -> RESPONSE_TYPE:
        known: dict[str, Any] = {
            "source_nodes": source_nodes,
            "metadata": self._get_metadata_for_response([one.node for one in source_nodes]),
        }
        response: Any
        if isinstance(response_str, Generator):
            response = ReaderStreamingResponse(response_str, **known)
        elif isinstance(response_str, AsyncGenerator):
            response = AsyncReaderStreamingResponse(response_str, **known)
        elif isinstance(response_str, BaseModel):
            response = ReaderPydanticResponse(response_str, **known)
        else:
            response = ReaderResponse(str(response_str), **known)
        scope = _scope.get()
        if scope is not None:
            scope.response = response
            if scope.answer is not None:
                _noted(scope, scope.answer)
        finished: RESPONSE_TYPE = response
        return finished


def _unused_helpers() -> dict[str, Any]:
    """Prompt helpers, which readers do without; given, so that no tokenizer is loaded for them."""
    helpers: dict[str, Any] = {"prompt_helper": PromptHelper(tokenizer=str.split)}
    if "chat_prompt_helper" in signature(BaseSynthesizer.__init__).parameters:  # not before 0.14.21
        from llama_index.core.indices.prompt_helper import ChatPromptHelper

        helpers["chat_prompt_helper"] = ChatPromptHelper(tokenizer=str.split)
    return helpers


@contextmanager
def _entered(nodes: Sequence[NodeWithScore]) -> Iterator[None]:
    before = _scope.get()
    _scope.set(_Scope(nodes))
    try:
        yield
    finally:
        _scope.set(before)


def _noted(scope: _Scope, answer: Answer) -> None:
    """Put an answer on the response of its scope, once both are there."""
    scope.answer = answer
    if scope.response is not None:
        citations = [] if scope.handed is None else scope.handed.citations(answer)
        complete(scope.response, answer, citations)


def _form_of(answer: Answer, kind: type[BaseModel], spec: ReadSpec) -> dict[str, Any]:
    asked = f"Question: {answer.question}\n\nAnswer: {answer.wording()}"
    return {
        "messages": [{"role": "system", "content": _FORM}, {"role": "user", "content": asked}],
        "schema": closed_schema(kind.model_json_schema()),
        "schema_name": kind.__name__,
        "max_output": spec.max_answer_tokens,
        "temperature": spec.temperature,
        "label": FORM,
    }
