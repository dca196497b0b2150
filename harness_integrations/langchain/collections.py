"""Collections in LangChain: an answer as a runnable, the places it rests on as a retriever."""

# ruff: noqa: A002 - ``input`` is LangChain's name

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableSerializable
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    StructuredQuery,
    Visitor,
)
from pydantic import ConfigDict, Field, field_validator

from harness_core.collections.contract import AnswerRequest, AnswerResult
from harness_core.errors import BadSettingError
from harness_integrations.engine.fields import compared, joined
from harness_integrations.engine.targets import Place, Target, arun, finding, run, target_of

_MARKER = re.compile(r" ?\[\[(SRC:[0-9]{4,})\]\]")
_OPS: Final[Mapping[Comparator, str]] = {
    Comparator.EQ: "eq", Comparator.NE: "neq", Comparator.GT: "gt", Comparator.GTE: "gte",
    Comparator.LT: "lt", Comparator.LTE: "lte", Comparator.IN: "in", Comparator.NIN: "nin",
}  # fmt: skip
_ROLES: Final = {"human": "user", "ai": "assistant"}
_OWN: Final[tuple[str, ...]] = ("effort", "sources", "filter", "principals", "instructions")
_NOW: Final[tuple[str, ...]] = ("effort", "filter", "principals")


class CollectionTranslator(Visitor):
    """Structured queries as filters of the contract, for ``SelfQueryRetriever`` too.

    A bare attribute is a metadata key; ``file.path`` and its like are the built-in fields.

    Raises:
        BadSettingError: ``contain``, or ``like`` with anything but one ``%`` at its end.
    """

    allowed_comparators = (*_OPS, Comparator.LIKE)

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """``and``, ``or``, ``not``."""
        return joined(operation.operator.value, [one.accept(self) for one in operation.arguments])

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """One comparison."""
        key, value = comparison.attribute, comparison.value
        if comparison.comparator is Comparator.LIKE:
            return compared(key, "prefix", _prefix(value))
        if comparison.comparator not in _OPS:
            raise BadSettingError(f"a collection cannot filter by {comparison.comparator.value!r}")
        return compared(key, _OPS[comparison.comparator], value)

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """The query, and the filter as a keyword of the retriever."""
        if structured_query.filter is None:
            return structured_query.query, {}
        return structured_query.query, {"filter": structured_query.filter.accept(self)}


def _prefix(pattern: Any) -> str:
    if not isinstance(pattern, str) or not re.fullmatch(r"[^%_\\]*%", pattern):
        raise BadSettingError("a collection matches beginnings alone: like 'text%'")
    return pattern[:-1]


def _filter(given: Any) -> Any:
    if isinstance(given, FilterDirective):
        return given.accept(CollectionTranslator())
    return given


class AnswerCollection(RunnableSerializable[Any, AnswerResult]):
    """Answers from a collection, of the library or of a service, with its sources.

    Takes a question, a mapping of the request's members, or messages (the last human one is the
    question, earlier ones the history, a system message the instructions). ``effort``, ``sources``,
    ``filter``, ``principals`` and ``instructions`` hold unless the call says otherwise;
    ``config["configurable"]`` may set ``principals``, ``filter`` and ``effort``. Principals in the
    input are refused unless ``allow_input_principals``: who asks is not for a prompt to say.

    Raises:
        BadSettingError: an input that is no question, or that sets principals.
        CollectionFault: what the collection answers instead; ``retryable`` says if asking again can
            help.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    collection: Any = Field(exclude=True, repr=False)
    effort: Literal["medium", "high"] | None = None
    sources: Literal["all", "cited", "none"] | None = None
    filter: Any = None
    principals: list[str] | None = Field(default=None, repr=False)
    instructions: str | None = None
    allow_input_principals: bool = False

    def __init__(self, collection: Any, **fields: Any) -> None:
        super().__init__(**{**fields, "collection": target_of(collection)})

    @field_validator("filter")
    @classmethod
    def _translated(cls, given: Any) -> Any:
        return _filter(given)

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """A collection is a connection; it is not written down."""
        return False

    @property
    def InputType(self) -> Any:  # noqa: N802 - LangChain's name
        """A question, a mapping, or messages."""
        return str | dict[str, Any] | list[BaseMessage]

    @property
    def OutputType(self) -> type[AnswerResult]:  # noqa: N802 - LangChain's name
        """The answer with its sources."""
        return AnswerResult

    def as_message(self) -> Runnable[Any, AIMessage]:
        """The same, giving an ``AIMessage`` whose text carries citations."""
        return self | RunnableLambda(answer_message)

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerResult:
        """Answer."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerResult:
        """The async twin of ``invoke``."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def _invoke(self, given: Any, run_manager: Any, config: RunnableConfig) -> AnswerResult:
        target: Target = self.collection
        return target.answer(self._request(given, config))

    async def _ainvoke(self, given: Any, run_manager: Any, config: RunnableConfig) -> AnswerResult:
        target: Target = self.collection
        return await target.aanswer(self._request(given, config))

    def _request(self, given: Any, config: RunnableConfig) -> dict[str, Any]:
        asked = _asked(given)
        if "principals" in asked and not self.allow_input_principals:
            raise BadSettingError(
                "principals come from AnswerCollection(principals=...) or "
                "config['configurable'], not from the input"
            )
        own = {name: getattr(self, name) for name in _OWN}
        now = config.get("configurable") or {}
        set_now = {name: _filter(now[name]) for name in _NOW if name in now}
        asked = {**own, **asked, **set_now}
        return {name: value for name, value in asked.items() if value is not None}


def _asked(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return {"query": given}
    if isinstance(given, Mapping):
        asked = {str(name): value for name, value in given.items()}
        unknown = set(asked) - set(AnswerRequest.model_fields)
        if unknown:
            raise BadSettingError(f"a question has no {', '.join(sorted(unknown))}")
        return asked | ({"filter": _filter(asked["filter"])} if "filter" in asked else {})
    messages = given.to_messages() if isinstance(given, PromptValue) else given
    if not isinstance(messages, Sequence) or not all(isinstance(m, BaseMessage) for m in messages):
        raise BadSettingError("ask with a question, a mapping, or messages")
    return _of_messages(messages)


def _of_messages(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    system = [_text(one) for one in messages if one.type == "system"]
    turns = [one for one in messages if one.type != "system"]
    if not turns or turns[-1].type != "human":
        raise BadSettingError("the last message is the question: a human one")
    history = [{"role": _role(one), "content": _text(one)} for one in turns[:-1]]
    asked: dict[str, Any] = {"query": _text(turns[-1])}
    if history:
        asked["history"] = history
    if system:
        asked["instructions"] = "\n\n".join(system)
    return asked


def _role(message: BaseMessage) -> str:
    if message.type not in _ROLES or getattr(message, "tool_calls", None):
        raise BadSettingError(f"a {message.type} message or a tool call has no place in a history")
    return _ROLES[message.type]


def _text(message: BaseMessage) -> str:
    blocks = message.content_blocks
    if any(block["type"] != "text" for block in blocks):
        raise BadSettingError("a message to a collection is text alone")
    return str(message.text)


def answer_message(result: AnswerResult) -> AIMessage:
    """An answer as a message: markers become citations of the text before them."""
    text, begin, end = "", 0, 0
    citations: list[dict[str, Any]] = []
    by_ref = {one.ref: one for one in result.sources}
    for found in _MARKER.finditer(result.answer):
        before = result.answer[end : found.start()]
        begin = len(text) if before.strip() else begin
        text, end = text + before, found.end()
        source = by_ref.get(found[1])
        if source is not None:
            citations.append({
                "type": "citation", "start_index": begin, "end_index": len(text),
                "title": source.path,
                "extras": {"ref": source.ref, "span": source.span.wire(), "score": source.score},
            })  # fmt: skip
    block: dict[str, Any] = {
        "type": "text", "text": text + result.answer[end:], "annotations": citations
    }  # fmt: skip
    return AIMessage(
        content=[block],
        response_metadata={
            "request_id": result.request_id,
            "effort": result.effort,
            "credits": result.usage.credits,
        },
    )


class CollectionRetriever(BaseRetriever):
    """The places of a collection that fit a question, with their text, best first.

    A collection of the library and a service that is known to search are searched; any other
    service is asked for an answer whose sources are given, with their text where it reads spans.
    ``allow_empty_text`` permits documents without text where it does not.

    Raises:
        BadSettingError: the texts cannot be had.
        CollectionFault: what the collection answers instead.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    collection: Any = Field(exclude=True, repr=False)
    k: int = Field(default=10, ge=1, le=100)
    effort: Literal["medium", "high"] | None = None
    filter: Any = None
    principals: list[str] | None = Field(default=None, repr=False)
    allow_empty_text: bool = False

    def __init__(self, collection: Any, **fields: Any) -> None:
        super().__init__(**{**fields, "collection": target_of(collection)})

    @field_validator("filter")
    @classmethod
    def _translated(cls, given: Any) -> Any:
        return _filter(given)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **more: Any
    ) -> list[Document]:
        return [_document(one) for one in run(self.collection, self._steps(query, more))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **more: Any
    ) -> list[Document]:
        return [_document(one) for one in await arun(self.collection, self._steps(query, more))]

    def _steps(self, query: str, more: Mapping[str, Any]) -> Any:
        return finding(
            self.collection, query, limit=self.k, allow_empty_text=self.allow_empty_text,
            effort=self.effort, principals=self.principals,
            filter=_filter(more.get("filter", self.filter)),
        )  # fmt: skip


def _document(place: Place) -> Document:
    return Document(id=place.id, page_content=place.text, metadata=place.metadata())
