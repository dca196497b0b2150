"""Collections in LangChain: an answer as a runnable, the places it rests on as a retriever."""

# ruff: noqa: A002 - ``input`` is LangChain's name

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.base import RunnableSerializable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness_core.collections.contract import AnswerResult
from harness_core.errors import BadSettingError
from harness_integrations.engine.targets import (
    Finding,
    Place,
    Target,
    arun,
    finding,
    run,
    target_of,
)
from harness_integrations.langchain.collection_filters import collection_filter
from harness_integrations.langchain.collection_messages import (
    CollectionInput,
    answer_message,
    asked,
)
from harness_integrations.langchain.tools import Question

_OWN: Final = ("effort", "sources", "filter", "principals", "instructions")
_NOW: Final = ("effort", "filter", "principals")


class AnswerCollection(RunnableSerializable[CollectionInput, AnswerResult]):
    """Answers from a collection, of the library or of a service, with its sources.

    Takes a question, a mapping of the request's members, or messages (the last human one is the
    question, with its image; earlier ones the history, a system message the instructions).
    ``effort``, ``sources``, ``filter``, ``principals`` and ``instructions`` hold unless the call
    says otherwise: in its input, then by a keyword of ``invoke`` or ``bind``, then ``effort``,
    ``filter`` and ``principals`` by ``config["configurable"]``. A filter is a clause of the
    contract, a ``FilterDirective``, or a dict as ``{"team": "db"}``. Principals in the input are
    refused unless ``allow_input_principals``: who asks is not for a prompt to say.

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
        return collection_filter(given)

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

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """A tool for an agent, which fills in the question alone.

        Its content is the answer with the paths that it cites, its artifact the ``AnswerResult``.
        Who asks is set on this object or by the ``config["configurable"]`` of the agent's call.

        Raises:
            BadSettingError: other arguments are asked for.
        """
        if args_schema is not None or arg_types is not None:
            raise BadSettingError("a model fills in the question of this tool and nothing else")
        return StructuredTool.from_function(
            func=self._use,
            coroutine=self._ause,
            name=name or "ask_collection",
            description=description or _USE,
            args_schema=Question,
            response_format="content_and_artifact",
        )

    def _use(self, question: str, config: RunnableConfig) -> tuple[str, AnswerResult]:
        return _told(self.invoke(question, config))

    async def _ause(self, question: str, config: RunnableConfig) -> tuple[str, AnswerResult]:
        return _told(await self.ainvoke(question, config))

    def invoke(
        self, input: CollectionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerResult:
        """Answer."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(
        self, input: CollectionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerResult:
        """The async twin of ``invoke``."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def _invoke(
        self, given: CollectionInput, run_manager: Any, config: RunnableConfig, **now: Any
    ) -> AnswerResult:
        target: Target = self.collection
        return target.answer(self._request(given, config, now))

    async def _ainvoke(
        self, given: CollectionInput, run_manager: Any, config: RunnableConfig, **now: Any
    ) -> AnswerResult:
        target: Target = self.collection
        return await target.aanswer(self._request(given, config, now))

    def _request(
        self, given: CollectionInput, config: RunnableConfig, now: Mapping[str, Any]
    ) -> dict[str, Any]:
        said = asked(given)
        if "principals" in said and not self.allow_input_principals:
            raise BadSettingError(
                "principals come from AnswerCollection(principals=...) or "
                "config['configurable'], not from the input"
            )
        own = {name: getattr(self, name) for name in _OWN}
        told = own | said | _keywords(now, _OWN) | _configured(config)
        return {name: value for name, value in told.items() if value is not None}


_USE: Final = "Answers a question from a collection of files, and names the files it rests on."


def _told(result: AnswerResult) -> tuple[str, AnswerResult]:
    cited = [f"[[{one.ref}]] {one.path}" for one in result.sources if one.cited]
    lines = [result.answer, *cited]
    if result.partial:
        lines.append(f"(Not everything was read: {', '.join(result.partial_reasons)})")
    return "\n".join(lines), result


def _keywords(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Keywords of a call, a filter among them as the contract has it."""
    if unknown := set(given) - set(known):
        raise BadSettingError(f"a call sets {', '.join(known)}, not {', '.join(sorted(unknown))}")
    told = dict(given)
    return told | ({"filter": collection_filter(told["filter"])} if "filter" in told else {})


def _configured(config: RunnableConfig) -> dict[str, Any]:
    now = config.get("configurable") or {}
    return _keywords({name: now[name] for name in _NOW if name in now}, _NOW)


class CollectionRetriever(BaseRetriever):
    """The places of a collection that fit a question, with their text.

    A collection of the library and a service that is known to search are searched, best first; any
    other service is asked for an answer whose sources are given in their order, with their text
    where it reads spans. ``allow_empty_text`` permits documents without text. ``k``, ``effort``,
    ``filter`` and ``principals`` hold unless a keyword of ``invoke`` says otherwise, or, but for
    ``k``, ``config["configurable"]``.

    Raises:
        BadSettingError: the texts cannot be had, ``k`` is not 1 to 100, or an unknown keyword.
        MissingTextError: a text did not come.
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
        return collection_filter(given)

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Find."""
        return super().invoke(input, config, **kwargs | _configured(ensure_config(config)))

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """The async twin of ``invoke``."""
        now = _configured(ensure_config(config))
        return await super().ainvoke(input, config, **kwargs | now)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **now: Any
    ) -> list[Document]:
        return [_document(one) for one in run(self.collection, self._steps(query, now))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **now: Any
    ) -> list[Document]:
        return [_document(one) for one in await arun(self.collection, self._steps(query, now))]

    def _steps(self, query: str, now: Mapping[str, Any]) -> Finding:
        own = {"k": self.k, **{name: getattr(self, name) for name in _NOW}}
        told = own | _keywords(now, own)
        limit = told.pop("k")
        return finding(
            self.collection, query, limit=limit, allow_empty_text=self.allow_empty_text, **told
        )


def _document(place: Place) -> Document:
    return Document(id=place.id, page_content=place.text, metadata=place.metadata())
