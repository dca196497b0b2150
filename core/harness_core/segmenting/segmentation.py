"""Cutting one document: the segmenter, the cap, the warnings, the step in the trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from harness_core.client import Client
from harness_core.documents.types import Chunks, Document
from harness_core.errors import (
    EmptyChunksError,
    HarnessWarning,
    SegmentFallbackWarning,
    recording_warnings,
    warn,
)
from harness_core.flows.types import Flow, Work
from harness_core.segmenting.chunks import capped, new_chunks
from harness_core.segmenting.job import Embed, Record, SegmentJob, no_effort, no_record
from harness_core.segmenting.registry import Segmenter, find_segmenter
from harness_core.segmenting.spec import SegmentSpec

T = TypeVar("T")


def segment_flow(
    document: Document,
    spec: SegmentSpec | Mapping[str, Any] | str | None = None,
    client: Client | None = None,
    *,
    model: str | None = None,
    effort: Callable[[str], str | None] = no_effort,
    embed: "Embed | None" = None,
    record: Record = no_record,
) -> Flow[Chunks]:
    """Chunks of a document, none over the cap, with what was warned about on the way.

    ``effort`` gives the effort of a stage label, ``embed`` vectors for texts; ``record`` writes
    local steps (the last one is ``segment``).

    Raises:
        UnknownMethodError: no such segmenter.
        EmptyChunksError: nothing was left to read.
        CapUnenforceableError: the tokenizer counts one character above the cap.
    """
    read = SegmentSpec.of(spec)
    row = find_segmenter(read.method)
    job = SegmentJob(
        document=document,
        spec=read,
        client=client,
        model=model,
        effort=effort,
        record=record,
        embed=embed,
    )
    heard: list[HarnessWarning] = []
    found = yield from _listening(_found(row, job), heard)
    if row.needs_client and client is None and not _fell_back(heard):
        said = SegmentFallbackWarning(
            f"segmenter {row.name!r} needs a client and had none; it did what it can without"
        )
        warn(said)
        heard.append(said)
    chunks: Chunks = yield Work(lambda: capped(_as_chunks(found, row, read), read.max_tokens))
    if not len(chunks):
        raise EmptyChunksError(f"{document.label}: {read.method} left no text to read")
    record("segment", {**chunks.stats(), "settings": read.changed()})
    return replace(
        chunks,
        warnings=(*document.warnings, *((type(one).__name__, str(one)) for one in heard)),
        unread_pages=document.unread_pages,
        source=document.source,
    )


def _found(row: Segmenter, job: SegmentJob) -> Flow[object]:
    if row.asks:
        return (yield from row.segment(job))
    return (yield Work(lambda: row.segment(job.document, job.spec)))


def _fell_back(heard: Sequence[HarnessWarning]) -> bool:
    return any(isinstance(one, SegmentFallbackWarning) for one in heard)


def _as_chunks(found: object, row: Segmenter, spec: SegmentSpec) -> Chunks:
    if isinstance(found, Chunks):
        return found if found.spec is not None else replace(found, spec=spec)
    if isinstance(found, (list, tuple)) and all(isinstance(one, str) for one in found):
        return new_chunks(found, row.name, spec)
    raise TypeError(
        f"segmenter {row.name!r} gives Chunks or a list of texts, not {type(found).__name__}"
    )


def _listening(flow: Flow[T], heard: list[HarnessWarning]) -> Flow[T]:
    """``flow``, adding to ``heard`` what it warns about; nobody else's flow is listened to."""
    resume: Callable[[Any], Any] = flow.send
    answer: Any = None
    while True:
        with recording_warnings() as said:
            try:
                todo = resume(answer)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]  # a generator's value is its T
            finally:
                heard += said
        if isinstance(todo, Work):
            todo = Work(_heard(todo.function, heard))
        try:
            resume, answer = flow.send, (yield todo)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the flow
            resume, answer = flow.throw, error


def _heard(function: Callable[[], T], heard: list[HarnessWarning]) -> Callable[[], T]:
    def listening() -> T:
        with recording_warnings() as said:
            try:
                return function()
            finally:
                heard.extend(said)

    return listening
