"""What a reading query engine answers with: LlamaIndex's responses, and what they rest on."""

from dataclasses import dataclass, field
from typing import Any, Self

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)

from harness_core.answer import Answer, Evidence
from harness_core.calls.governor import Refusal
from harness_core.calls.trace import Trace
from harness_integrations.llama_index.nodes import Citation

KEY = "harness"
"""The one name that a reading adds to a response's metadata."""


class _Read:
    """What every response of a reading has beside LlamaIndex's own fields."""

    answer: Answer | None
    citations: list[Citation]

    @property
    def partial(self) -> bool:
        """Whether anything degraded; look here first."""
        return self.answer is not None and self.answer.partial

    @property
    def chunks_used(self) -> list[int]:
        """The chunks, numbered from 1 in the order of the source nodes, that contributed."""
        return [] if self.answer is None else self.answer.chunks_used

    @property
    def evidence(self) -> list[Evidence]:
        """What the answer rests on."""
        return [] if self.answer is None else self.answer.evidence

    @property
    def trace(self) -> Trace | None:
        """The trace the reading belongs to; gone from a copy that was pickled."""
        return None if self.answer is None else self.answer.trace

    @property
    def refusals(self) -> list[Refusal]:
        """The requests of the whole run that were not sent."""
        return [] if self.trace is None else self.trace.refusals

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self.answer is not None:  # a trace has locks and files; its run_id stays in the metadata
            state["answer"] = self.answer.model_copy(update={"trace": None})
        return state

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin


@dataclass
class ReaderResponse(_Read, Response):
    """A ``Response`` with the reading behind it, and ``citations`` as places in nodes."""

    answer: Answer | None = field(default=None, compare=False, repr=False)
    citations: list[Citation] = field(default_factory=list)


@dataclass
class ReaderPydanticResponse(_Read, PydanticResponse):
    """A ``PydanticResponse`` with the reading behind it."""

    answer: Answer | None = field(default=None, compare=False, repr=False)
    citations: list[Citation] = field(default_factory=list)


@dataclass
class ReaderStreamingResponse(_Read, StreamingResponse):
    """A ``StreamingResponse``; the reading is there after the last piece."""

    answer: Answer | None = field(default=None, compare=False, repr=False)
    citations: list[Citation] = field(default_factory=list)

    def __str__(self) -> str:
        if self.response_txt is None and self.answer is not None:  # read by hand
            self.response_txt = self.answer.wording()
        return super().__str__()


@dataclass
class AsyncReaderStreamingResponse(_Read, AsyncStreamingResponse):
    """The async twin of ``ReaderStreamingResponse``; read it through ``async_response_gen()``."""

    answer: Answer | None = field(default=None, compare=False, repr=False)
    citations: list[Citation] = field(default_factory=list)


Completed = (
    ReaderResponse | ReaderPydanticResponse | ReaderStreamingResponse | AsyncReaderStreamingResponse
)


def complete(response: Completed, answer: Answer, citations: list[Citation]) -> None:
    """Put a reading on its response: a few plain values under one name of the metadata."""
    response.answer = answer
    response.citations = citations
    metadata = response.metadata if response.metadata is not None else {}
    metadata[KEY] = summary(answer)
    response.metadata = metadata


def summary(answer: Answer) -> dict[str, Any]:
    """A reading in a few JSON scalars: this may become a node's metadata, and so prompt text."""
    totals = answer.totals()
    return {
        "reader": answer.reader,
        "found": answer.found,
        "partial": answer.partial,
        "calls": totals.calls,
        "usd": totals.usd,
        "run_id": None if answer.trace is None else answer.trace.run_id,
    }
