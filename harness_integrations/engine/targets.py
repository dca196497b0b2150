"""What the frameworks' adapters ask: a collection of the library or of a service, in one form."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

from anyio.to_thread import run_sync

from harness_core.collections import Collection
from harness_core.collections.contract import (
    AnswerResult,
    Hit,
    ReadSpansResult,
    SearchResult,
    Source,
    Span,
    SpanPart,
    Unit,
)
from harness_core.errors import BadSettingError
from harness_integrations.engine.client import Capability, RemoteCollection
from harness_integrations.engine.faults import MissingTextError, ProtocolError

SPANS_AT_ONCE: Final = 100
MOST: Final = 100


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
        return _id(self.span)

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
        BadSettingError: ``limit`` is not 1 to 100; the texts cannot be had, and empty ones are not
            allowed.
        MissingTextError: a text did not come, and empty ones are not allowed.
    """
    if not 1 <= limit <= MOST:
        raise BadSettingError(f"a retriever gives 1 to {MOST} places, not {limit}")
    known = {name: value for name, value in asked.items() if value is not None}
    if target.can("search"):
        known.pop("effort", None)
        given = {"query": query, "limit": limit, "include_text": True, **known}
        searched: SearchResult = yield "search", given
        places = [_place(one, one.text) for one in searched.results]
        return _with_texts(places, {}, allow_empty_text=allow_empty_text)
    check_texts(target, allow_empty_text=allow_empty_text)
    answered: AnswerResult = yield "answer", {"query": query, "sources": "all", **known}
    return (
        yield from placed(
            target, answered.sources[:limit], known.get("principals"),
            allow_empty_text=allow_empty_text,
        )
    )  # fmt: skip


def check_texts(target: Target, *, allow_empty_text: bool) -> None:
    """Raise where the service gives places without their texts and that is not allowed."""
    if not target.can("read_spans") and not allow_empty_text:
        raise BadSettingError(
            "the service lists sources without their text; say capabilities=['answer', "
            "'read_spans'] if it reads spans, or allow_empty_text=True"
        )


def placed(
    target: Target,
    sources: Sequence[Source],
    principals: Sequence[str] | None,
    *,
    allow_empty_text: bool,
) -> Finding:
    """The steps that read the texts of sources.

    Raises:
        MissingTextError: a text did not come, and empty ones are not allowed.
        ProtocolError: not every span was answered.
    """
    read: dict[str, SpanPart] = {}
    readable = [one.span for one in sources if one.span.unit in get_args(Unit)]
    for first in range(0, len(readable) if target.can("read_spans") else 0, SPANS_AT_ONCE):
        spans = readable[first : first + SPANS_AT_ONCE]
        given: dict[str, Any] = {"spans": [_asked(one) for one in spans]}
        if principals is not None:
            given["principals"] = principals
        result: ReadSpansResult = yield "read_spans", given
        if len(result.parts) != len(spans):
            raise ProtocolError(f"{len(spans)} spans were asked for, {len(result.parts)} came back")
        read |= {_id(span): part for span, part in zip(spans, result.parts, strict=True)}
    texts = {id_: part.text for id_, part in read.items()}
    places = [_place(one, texts.get(_id(one.span))) for one in sources]
    errors = {id_: part.error for id_, part in read.items() if part.error}
    return _with_texts(places, errors, allow_empty_text=allow_empty_text)


def _with_texts(
    places: list[Place], errors: Mapping[str, str], *, allow_empty_text: bool
) -> list[Place]:
    missing = [errors.get(one.id, "no text") for one in places if not one.text]
    if missing and not allow_empty_text:
        raise MissingTextError(missing)
    return places


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


def _place(one: Hit | Source, text: str | None) -> Place:
    return Place(
        span=one.span, path=one.path, content_type=one.content_type, score=one.score,
        text=text or "", ref=one.ref if isinstance(one, Source) else None,
        cited=one.cited if isinstance(one, Source) else None,
    )  # fmt: skip


def _id(span: Span) -> str:
    within = "" if span.start is None else f":{span.start}-{span.end}"
    return f"{span.file_id}:{span.unit}{within}"


def _asked(span: Span) -> dict[str, Any]:
    """A span as it may be asked: without the members that a newer server added."""
    known: Any = dict.fromkeys(("file_id", "unit", "start", "end"), True)
    known["pages"] = {"start", "end"}
    return span.model_dump(mode="json", exclude_none=True, include=known)
