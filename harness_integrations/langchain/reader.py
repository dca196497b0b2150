"""``DocumentReader``: a governed reader of documents as a LangChain runnable."""

# ruff: noqa: A002 - ``input`` is LangChain's name

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any, Literal, NamedTuple, NotRequired, Self

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate, format_document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableSerializable
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.utils import AddableDict
from pydantic import ConfigDict, Field, PrivateAttr
from typing_extensions import TypedDict

from harness_core.answer import Answer
from harness_core.asked import width_of
from harness_core.calls.ambient import trace_for
from harness_core.calls.cache import ResponseCache
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, OnText
from harness_core.documents.types import Chunks
from harness_core.errors import (
    BadSettingError,
    ReplayExhaustedError,
    ReplayMissError,
    RequestRefused,
)
from harness_core.messages import SENTINEL
from harness_core.pipeline import aread, read
from harness_core.reading.answers import new_answer
from harness_core.reading.flow import checked_question
from harness_core.reading.spec import ReadSpec
from harness_integrations.langchain.client import LangChainClient
from harness_integrations.langchain.errors import GovernedRefusal, as_model_error
from harness_integrations.langchain.gates import Gates
from harness_integrations.langchain.inputs import as_chunks, as_documents, as_state, read_input
from harness_integrations.langchain.models import MARK
from harness_integrations.langchain.outputs import ReaderOutput, full_output
from harness_integrations.shared.governing import need_asyncio
from harness_integrations.shared.stopped import UNAFFORDABLE, refusal_of, unaffordable
from harness_integrations.shared.streaming import atext_stream, text_stream

Piece = str | dict[str, Any]
_STOPPING = (RequestRefused, ReplayMissError, ReplayExhaustedError)


class ReaderInput(TypedDict):
    """What a reader takes; the usual other names of both are understood as well."""

    question: str
    context: NotRequired[list[Document] | str]


class _Task(NamedTuple):
    """One read, ready to go: nothing is sent before it."""

    question: str
    chunks: Chunks
    client: BaseClient
    spec: ReadSpec
    trace: Trace


class DocumentReader(RunnableSerializable[Any, Any]):
    """Reads documents with one of the core's readers through ``llm``, within limits.

    Takes a mapping with a question and documents under any of the usual names (see
    ``question_key``, ``documents_key``), and gives the answer as ``str``, or with
    ``output="full"`` a mapping of plain values (``ReaderOutput``). A limit that is reached ends in
    a partial answer, with ``on_limit="error"`` in ``GovernedRefusal``. ``spec`` holds the
    reader's settings; ``max_concurrency`` bounds the requests in flight of this reader, together
    with ``config["max_concurrency"]``.

    The budget is that of ``trace``, of a governed ``llm``, of the ``governed_run`` around it, or of
    ``governor``; with none of these each call has a fresh trace under the settings' limits.

    Raises:
        BadSettingError: an input without question or documents, or two different budgets.
        GovernedRefusal: a limit was reached under ``on_limit="error"``.
    """

    # a mistyped limit must not be a limit that is silently not there
    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    llm: Runnable[Any, Any]
    reader: str = "map_reduce"
    spec: Any = None
    output: Literal["answer", "full"] = "answer"
    on_limit: Literal["partial", "error"] = "partial"
    question_key: str | None = None
    documents_key: str | None = None
    document_prompt: Any = None
    embeddings: Any = None
    max_concurrency: int | None = None
    trace: Trace | None = Field(default=None, exclude=True, repr=False)
    governor: Governor | None = Field(default=None, exclude=True, repr=False)
    response_cache: ResponseCache | None = Field(default=None, exclude=True, repr=False)
    _gates: Gates = PrivateAttr(default_factory=Gates)
    _client: LangChainClient | None = PrivateAttr(default=None)
    _made_of: tuple[Any, ...] = PrivateAttr(default=())

    def __init__(self, llm: Any, reader: str | None = None, **fields: Any) -> None:
        spec = fields.get("spec")
        named = reader if reader is not None else _reader_of(spec)
        super().__init__(**{**fields, "llm": llm, "reader": named})
        self._trace()  # two budgets are said here, before anything is sent

    # --- what it is -----------------------------------------------------------------------------

    @property
    def InputType(self) -> Any:  # noqa: N802 - LangChain's name
        """A mapping with a question and documents."""
        return ReaderInput

    @property
    def OutputType(self) -> Any:  # noqa: N802 - LangChain's name
        """Text, or a mapping of plain values."""
        return str if self.output == "answer" else ReaderOutput

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Readers are configuration; budgets and caches are left out."""
        return False

    def governed_by(self, **given: Any) -> Self:
        """The reader under a budget, unless it has one."""
        if self.trace is not None or self.governor is not None or self._sender().governed:
            return self
        known = {name: value for name, value in given.items() if value is not None}
        return self.model_copy(update=known)

    # --- running it -----------------------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Read and answer."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The async twin of ``invoke``; cancelling it sends nothing further."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """The answer as it is written; with ``output="full"`` mappings that add up to the whole."""
        return self.transform(iter([input]), config, **kwargs)

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """The async twin of ``stream``."""

        async def one() -> AsyncIterator[Any]:
            yield input

        async for piece in self.atransform(one(), config, **kwargs):
            yield piece

    def transform(
        self,
        input: Iterator[Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Read once the whole input is there."""
        yield from self._transform_stream_with_config(input, self._transform, config, **kwargs)

    async def atransform(
        self,
        input: AsyncIterator[Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """The async twin of ``transform``."""
        async for piece in self._atransform_stream_with_config(
            input, self._atransform, config, **kwargs
        ):
            yield piece

    def as_node(
        self,
        question: str = "question",
        documents: str = "documents",
        answer: str = "answer",
        full: str | None = None,
    ) -> Runnable[Any, dict[str, Any]]:
        """A LangGraph node: reads two names of the state, returns the part of it that changed.

        ``full`` is the name under which the whole output goes into the state, none without.
        """
        inner = self.model_copy(update={"output": "full"})

        def part(output: dict[str, Any]) -> dict[str, Any]:
            return {answer: output["answer"]} | ({} if full is None else {full: dict(output)})

        def given(state: Any) -> dict[str, Any]:
            known = as_state(state)
            return {"question": known.get(question), "documents": known.get(documents)}

        def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
            return part(inner.invoke(given(state), config))

        async def anode(state: Any, config: RunnableConfig) -> dict[str, Any]:
            return part(await inner.ainvoke(given(state), config))

        return RunnableLambda(node, anode, name=self.get_name())

    # --- how ------------------------------------------------------------------------------------

    def _invoke(self, given: Any, run_manager: Any, config: RunnableConfig) -> Any:
        task = self._task(given, config)
        return self._output(self._read(task), task.chunks)

    async def _ainvoke(self, given: Any, run_manager: Any, config: RunnableConfig) -> Any:
        need_asyncio("DocumentReader")
        task = self._task(given, config)
        return self._output(await self._aread(task), task.chunks)

    def _transform(
        self, given: Iterator[Any], run_manager: Any, config: RunnableConfig
    ) -> Iterator[Any]:
        task = self._task(_summed(given), config)
        output = _Output(task.chunks)
        source = text_stream(
            lambda say: self._read(task, say), output.ended, whole=task.spec.premise
        )
        with closing(source) as pieces:
            for piece in pieces:
                yield self._piece(piece)
        if self.output == "full":
            yield output.beside_the_text()

    async def _atransform(
        self, given: AsyncIterator[Any], run_manager: Any, config: RunnableConfig
    ) -> AsyncIterator[Any]:
        need_asyncio("DocumentReader")
        task = self._task(_summed([one async for one in given]), config)
        output = _Output(task.chunks)
        source = atext_stream(
            lambda say: self._aread(task, say), output.ended, whole=task.spec.premise
        )
        async with aclosing(source) as pieces:
            async for piece in pieces:
                yield self._piece(piece)
        if self.output == "full":
            yield output.beside_the_text()

    def _task(self, given: Any, config: RunnableConfig) -> _Task:
        question, documents = read_input(given, self.question_key, self.documents_key)
        trace = self._trace() or Trace(meta={"reader": self.reader})
        spec = self._spec(config)
        marked = merge_configs(config, {"metadata": {MARK: trace.run_id}})
        gate = self._gates[width_of(spec)]
        client = self._sender().within(marked, gate)
        listed = as_documents(documents)
        chunks = as_chunks(listed, spec, client.model, shown=self._shown(listed))
        return _Task(checked_question(question), chunks, client, spec, trace)

    def _read(self, task: _Task, on_text: OnText | None = None) -> Answer:
        if not task.chunks:
            return _nothing_given(task, self.reader)
        try:
            answer = read(
                task.chunks,
                task.question,
                task.client,
                task.spec,
                trace=task.trace,
                on_text=on_text,
            )
        except UNAFFORDABLE as error:
            answer = unaffordable(error, task.question, self.reader, task.trace)
        except _STOPPING as error:
            raise as_model_error(error) from error
        return self._within_limits(answer, task)

    async def _aread(self, task: _Task, on_text: OnText | None = None) -> Answer:
        if not task.chunks:
            return _nothing_given(task, self.reader)
        try:
            answer = await aread(
                task.chunks,
                task.question,
                task.client,
                task.spec,
                trace=task.trace,
                on_text=on_text,
            )
        except UNAFFORDABLE as error:
            answer = unaffordable(error, task.question, self.reader, task.trace)
        except _STOPPING as error:
            raise as_model_error(error) from error
        return self._within_limits(answer, task)

    def _within_limits(self, answer: Answer, task: _Task) -> Answer:
        """The answer, or under ``on_limit="error"`` the refusal that cut it short."""
        refusal = refusal_of(answer, task.trace, task.client.model)
        if self.on_limit == "partial" or refusal is None:
            return answer
        told = GovernedRefusal(*refusal.args)
        task.trace.raised.append(told)
        raise told

    def _trace(self) -> Trace | None:
        """The budget of a read made here and now; None for a fresh one per call."""
        governed = self._sender().governed
        if governed is None or (governed.own_trace is None and governed.governor is None):
            return trace_for(self.trace, self.governor)
        same_trace = self.trace in (None, governed.own_trace)
        same_governor = self.governor in (None, governed.governor)
        if not (same_trace and same_governor):
            raise BadSettingError(
                "the llm is governed already; leave trace= and governor= out, or give the same ones"
            )
        return trace_for(governed.own_trace, governed.governor)

    def _sender(self) -> LangChainClient:
        made_of = (self.llm, self.embeddings, self.response_cache)
        if self._client is None or any(
            a is not b for a, b in zip(self._made_of, made_of, strict=True)
        ):
            client = LangChainClient(self.llm, embeddings=self.embeddings)
            if self.response_cache is not None:
                client = client.with_cache(self.response_cache)
            self._client, self._made_of = client, made_of
        return self._client

    def _spec(self, config: RunnableConfig) -> ReadSpec:
        spec = ReadSpec.of(self.spec).having(reader=self.reader)
        bounds = [width_of(spec), self.max_concurrency, config.get("max_concurrency")]
        width = max(1, min(bound for bound in bounds if bound is not None))
        return (
            spec if width == width_of(spec) else spec.having(max_concurrency=width, parallel=None)
        )

    def _shown(self, documents: Sequence[Document]) -> list[str] | None:
        if not isinstance(self.document_prompt, BasePromptTemplate):
            return None
        return [format_document(one, self.document_prompt) for one in documents]

    def _output(self, answer: Answer, chunks: Chunks) -> Any:
        full = full_output(answer, chunks)
        return full["answer"] if self.output == "answer" else full

    def _piece(self, text: str) -> Piece:
        return text if self.output == "answer" else AddableDict({"answer": text})


class _Output:
    """The full output of a stream's read, once there is one."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._full: Mapping[str, Any] = {}

    def ended(self, answer: Answer) -> str:
        """Keep it; its text, which the stream completes."""
        self._full = full_output(answer, self._chunks)
        return answer.answer

    def beside_the_text(self) -> AddableDict:
        """All of it but the text, which was streamed."""
        return AddableDict({k: v for k, v in self._full.items() if k != "answer"})


def _summed(given: Any) -> Any:
    """The whole of an input that came in pieces which add up."""
    total: Any = None
    for piece in given:
        total = piece if total is None else total + piece
    return total


def _reader_of(spec: Any) -> str:
    return "map_reduce" if spec is None else ReadSpec.of(spec).reader


def _nothing_given(task: _Task, reader: str) -> Answer:
    return new_answer(
        SENTINEL, reader, task.question, (), task.trace, partial=True,
        notes={"reason": "there are no documents to read"},
    ).model_copy(update={"trace_steps": None, "trace": None})  # fmt: skip
