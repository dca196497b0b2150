"""What a reader under test is run on: a few chunks, a mock that says one thing, a probe of both."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from harness_core.answer import Answer
from harness_core.calls.api import run_flow
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.clients.mock import MockClient
from harness_core.documents.types import Chunk, Chunks
from harness_core.messages import SENTINEL
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.flow import make_job, read_flow
from harness_core.reading.prompts import NONE
from harness_core.reading.registry import checked_answer, find_reader
from harness_core.reading.spec import ReadSpec

QUESTION = "What was the revenue of the Maple unit in 2024?"
_UNITS = ("Alder", "Birch", "Cedar", "Hazel", "Maple", "Rowan")


class Seen(NamedTuple):
    """One read: its answer, its trace, and the mock it asked."""

    answer: Answer
    trace: Trace
    client: MockClient


@dataclass
class Probe:
    """A reader under test, and what its plain read came to."""

    name: str
    spec: ReadSpec
    registered: bool

    @cached_property
    def plain(self) -> Seen:
        """A read without any trouble, one request at a time."""
        return self.read(max_concurrency=1)

    def read(
        self,
        said: str | Exception = "Revenue of the Maple unit was 45.2 million dollars in 2024.",
        *,
        chunks: Chunks | None = None,
        max_calls: int | None = None,
        concurrent: bool = False,
        **settings: Any,
    ) -> Seen:
        """A read in which every request is answered with ``said``, or with a form that holds it."""
        client = MockClient(_saying(said), concurrent=concurrent)
        governor = Governor(
            max_calls=max_calls, max_cost_usd=None, max_tokens_total=None, max_output_tokens=None,
            allowed_models=None,
        )  # fmt: skip
        trace, spec = Trace(governor), self.spec.having(**settings)
        text = chunks_of_length() if chunks is None else chunks
        if max_calls is None:
            flow = read_flow(text, QUESTION, client, spec, trace, heard=[])
        else:  # past the pre-flight, which would refuse it
            job = make_job(text, QUESTION, spec, client, trace)
            flow = find_reader(self.name).reader.read(job)
        answer = run_flow(flow, client, trace, width=spec.max_concurrency)
        return Seen(checked_answer(self.name, answer), trace, client)


def chunks_of_length(sentences: int = 1) -> Chunks:
    """Six chunks under three headings; ``sentences`` long, each with a figure of its own."""
    more = "Its costs were stable. " * sentences
    texts = [
        f"Revenue of the {unit} unit was {number}.2 million dollars in 2024. {more}"
        for number, unit in enumerate(_UNITS, 41)
    ]
    sections = ("Sales", "Sales", "Costs", "Costs", "Outlook", "Outlook")
    return Chunks(
        chunks=tuple(
            Chunk(chunk_id=number, text=text, tokens=count_tokens(text), section=section)
            for number, (text, section) in enumerate(zip(texts, sections, strict=True), 1)
        )
    )


def ids() -> set[int]:
    """The ids of those chunks."""
    return set(range(1, len(_UNITS) + 1))


def _saying(said: str | Exception) -> Callable[[Any, Mapping[str, Any]], str]:
    def reply(messages: Any, params: Mapping[str, Any]) -> str:
        if isinstance(said, Exception):
            raise said
        if said == SENTINEL and f"exactly {NONE}" in messages[0]["content"]:
            return NONE  # what that request calls it
        form = params["schema"]
        return json.dumps(_filled(form, said)) if form is not None and said else said

    return reply


def _filled(form: Mapping[str, Any], said: str) -> Any:
    """The least that a JSON schema asks for; ``said`` where it asks for text."""
    kind = form.get("type", "string")
    if form.get("enum"):
        return form["enum"][0]
    if "null" in kind:
        return None
    if kind == "object":
        return {name: _filled(one, said) for name, one in form.get("properties", {}).items()}
    if kind == "array":
        return [_filled(form.get("items", {}), said)]
    number = form.get("maximum", form.get("minimum", 1))
    return {"boolean": True, "integer": number, "number": number}.get(kind, said)
