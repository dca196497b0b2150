"""Small documents, and a driver of segmentations that needs no call path."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from harness_core.client import Client
from harness_core.documents.types import Block, Chunks, Document, Page
from harness_core.flows.types import Flow, Pause, Work
from harness_core.messages import Reply, Request
from harness_core.segmenting import SegmentSpec, segment_flow

T = TypeVar("T")
Row = str | tuple[str, Page | None] | tuple[str, Page | None, str | None]


def document(*rows: Row, label: str = "notes.txt", **stats: Any) -> Document:
    """A document of blocks given as text, (text, page) or (text, page, section)."""
    full = [((row,) if isinstance(row, str) else row) for row in rows]
    padded = [(*row, None, None)[:3] for row in full]
    return Document(
        blocks=tuple(
            Block(text=text, block_id=number, page=page, section=section)
            for number, (text, page, section) in enumerate(padded, 1)
        ),
        source=f"/files/{label}",
        label=label,
        stats=stats,
    )


def serve(flow: Flow[T], answer: Callable[[Request], Reply] | None = None) -> T:
    """Run a flow here; ``answer`` replies to its requests."""
    outcome: Any = None
    while True:
        try:
            todo = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(todo, Work):
            outcome = todo.function()
        else:
            assert answer is not None, "a request nobody expected"
            assert not isinstance(todo, Pause)
            outcome = [answer(one) for one in todo if isinstance(one, Request)]


def cut(
    given: Document,
    spec: SegmentSpec | Mapping[str, Any] | str | None = None,
    client: Client | None = None,
    *,
    answer: Callable[[Request], Reply] | None = None,
    **more: Any,
) -> Chunks:
    """The chunks of a document."""
    return serve(segment_flow(given, spec, client, **more), answer)


def texts(chunks: Sequence[Any]) -> list[str]:
    """What each chunk says."""
    return [chunk.text for chunk in chunks]
