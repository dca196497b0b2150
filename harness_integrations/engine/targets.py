"""What the frameworks' adapters ask: a collection of the library or of a service, in one form."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias

from anyio.to_thread import run_sync

from harness_core.collections import Collection
from harness_core.collections.contract import (
    AnswerResult,
    Hit,
    ReadSpansResult,
    SearchResult,
    Source,
    Span,
)
from harness_core.errors import BadSettingError
from harness_integrations.engine.client import Capability, RemoteCollection

SPANS_AT_ONCE: Final = 100


class Target(Protocol):
    """A collection that can be asked, sync and async."""

    def can(self, capability: Capability) -> bool: ...
    def answer(self, request: Mapping[str, Any]) -> AnswerResult: ...
    async def aanswer(self, request: Mapping[str, Any]) -> AnswerResult: ...
    def search(self, request: Mapping[str, Any]) -> SearchResult: ...
    async def asearch(self, request: Mapping[str, Any]) -> SearchResult: ...
    def read_spans(self, request: Mapping[str, Any]) -> ReadSpansResult: ...
    async def aread_spans(self, request: Mapping[str, Any]) -> ReadSpansResult: ...


class EmbeddedCollection:
    """A collection of the library: what has no async form there runs in a thread."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.answer: Callable[..., AnswerResult] = collection.answer
        self.aanswer = collection.aanswer
        self.search = collection.search
        self.read_spans = collection.read_spans

    def __repr__(self) -> str:
        return f"EmbeddedCollection({self._collection.name!r})"

    def can(self, capability: Capability) -> bool:
        """The library can do all of it."""
        return True

    async def asearch(self, request: Mapping[str, Any]) -> SearchResult:
        """The async twin of ``search``."""
        return await run_sync(partial(self.search, request))

    async def aread_spans(self, request: Mapping[str, Any]) -> ReadSpansResult:
        """The async twin of ``read_spans``."""
        return await run_sync(partial(self.read_spans, request))


def target_of(collection: Any) -> Target:
    """The collection as the adapters ask it.

    Raises:
        BadSettingError: it is neither a collection of the library nor one of an ``EngineClient``.
    """
    if isinstance(collection, Collection):
        return EmbeddedCollection(collection)
    if isinstance(collection, (RemoteCollection, EmbeddedCollection)):
        return collection
    raise BadSettingError(
        "a collection is Collections(path).namespace(n).collection(c) or "
        f"EngineClient(url, key).collection(n, c), not {type(collection).__name__}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that was found, with its text; ``ref`` and ``cited`` where an answer listed it."""

    span: Span
    path: str
    content_type: str
    score: float
    text: str
    ref: str | None = None
    cited: bool | None = None

    @property
    def id(self) -> str:
        """The same for the same place: file_id:unit:start-end."""
        span = self.span
        within = "" if span.start is None else f":{span.start}-{span.end}"
        return f"{span.file_id}:{span.unit}{within}"

    def metadata(self) -> dict[str, Any]:
        """Everything but the text, as plain values."""
        told = {
            "ref": self.ref, "path": self.path, "content_type": self.content_type,
            "span": self.span.wire(), "file_id": self.span.file_id, "score": self.score,
            "cited": self.cited,
        }  # fmt: skip
        return {name: value for name, value in told.items() if value is not None}


Step: TypeAlias = tuple[Literal["answer", "search", "read_spans"], dict[str, Any]]
Finding: TypeAlias = Generator[Step, Any, list[Place]]


def finding(
    target: Target, query: str, *, limit: int, allow_empty_text: bool, **asked: Any
) -> Finding:
    """The steps that find places for a question, of those the target is known to take.

    Raises:
        BadSettingError: the texts cannot be had, and empty ones are not allowed.
    """
    known = {name: value for name, value in asked.items() if value is not None}
    if target.can("search"):
        known.pop("effort", None)
        given = {"query": query, "limit": limit, "include_text": True, **known}
        searched: SearchResult = yield "search", given
        return [_hit(one) for one in searched.results]
    check_texts(target, allow_empty_text=allow_empty_text)
    answered: AnswerResult = yield "answer", {"query": query, "sources": "all", **known}
    return (yield from placed(target, answered.sources[:limit], known.get("principals")))


def check_texts(target: Target, *, allow_empty_text: bool) -> None:
    """Raise where the service gives places without their texts and that is not allowed."""
    if not target.can("read_spans") and not allow_empty_text:
        raise BadSettingError(
            "the service lists sources without their text; say capabilities=['answer', "
            "'read_spans'] if it reads spans, or allow_empty_text=True"
        )


def placed(target: Target, sources: Sequence[Source], principals: Sequence[str] | None) -> Finding:
    """The steps that read the texts of sources; empty texts where they cannot be read."""
    texts: list[str] = []
    if target.can("read_spans"):
        for first in range(0, len(sources), SPANS_AT_ONCE):
            spans = [_asked(one.span) for one in sources[first : first + SPANS_AT_ONCE]]
            given: dict[str, Any] = {"spans": spans}
            if principals is not None:
                given["principals"] = principals
            read: ReadSpansResult = yield "read_spans", given
            texts += [part.text or "" for part in read.parts]
    texts += [""] * (len(sources) - len(texts))
    return [
        Place(
            span=one.span, path=one.path, content_type=one.content_type, score=one.score,
            text=text, ref=one.ref, cited=one.cited,
        )
        for one, text in zip(sources, texts, strict=True)
    ]  # fmt: skip


def run(target: Target, steps: Finding) -> list[Place]:
    """Take the steps."""
    told: Any = None
    while True:
        try:
            verb, request = steps.send(told)
        except StopIteration as done:
            found: list[Place] = done.value
            return found
        told = getattr(target, verb)(request)


async def arun(target: Target, steps: Finding) -> list[Place]:
    """Take the steps, awaiting."""
    told: Any = None
    while True:
        try:
            verb, request = steps.send(told)
        except StopIteration as done:
            found: list[Place] = done.value
            return found
        told = await getattr(target, f"a{verb}")(request)


def _hit(one: Hit) -> Place:
    return Place(
        span=one.span, path=one.path, content_type=one.content_type, score=one.score,
        text=one.text or "",
    )  # fmt: skip


def _asked(span: Span) -> dict[str, Any]:
    """A span as it may be asked: without the members that a newer server added."""
    known: Any = dict.fromkeys(("file_id", "unit", "start", "end"), True)
    known["pages"] = {"start", "end"}
    return span.model_dump(mode="json", exclude_none=True, include=known)
