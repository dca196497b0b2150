"""One read: the checks before it, the reader, and what is added to its answer afterwards."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from harness_core.answer import Answer
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.config import setting
from harness_core.documents.decoding import decode
from harness_core.documents.types import Chunks
from harness_core.errors import (
    BadQuestionError,
    BadSettingError,
    CallCapWarning,
    HarnessWarning,
    warn,
)
from harness_core.flows.ask import relayed
from harness_core.flows.types import Flow
from harness_core.messages import Asked, Outcome, clean_text
from harness_core.ranking.embedders import Fallback, Vectors, embed_texts
from harness_core.reading.answers import check_row
from harness_core.reading.job import Job
from harness_core.reading.preflight import preflight
from harness_core.reading.registry import checked_answer, find_reader
from harness_core.reading.spec import ReadSpec

T = TypeVar("T")

_NOTE_OF: Mapping[str, str] = {
    "calls": "call_cap_reached",
    "cost": "cost_cap_reached",
    "tokens": "token_cap_reached",
    "output": "output_cap_reached",
    "model": "model_not_allowed",
    "unpriced": "unpriced_model",
    "ledger_busy": "ledger_busy",
}


def checked_question(question: Any) -> str:
    """The question as valid text.

    Raises:
        BadQuestionError: it is no text, or blank.
    """
    if isinstance(question, bytes):
        question = decode(question)
    if not isinstance(question, str) or not question.strip():
        raise BadQuestionError(f"the question is a non-blank text, not {question!r}")
    return clean_text(question)


def make_job(chunks: Chunks, question: str, spec: ReadSpec, client: Client, trace: Trace) -> Job:
    """The job of a read: the spec's model, or the client's where it names none."""
    if not isinstance(chunks, Chunks):
        raise BadSettingError(
            f"chunks are Chunks, as segment() gives them, not {type(chunks).__name__}"
        )
    allow = client.vectors_may_be_used if isinstance(client, ReplayClient) else None
    return Job(
        chunks=chunks,
        question=question,
        spec=spec,
        settings=spec.given(),
        model=spec.model or client.model,
        notebook=trace,
        trace=trace,
        reader=spec.reader,
        embed=partial(embedding, client=client, trace=trace, allow=allow),
        foresee=partial(_foresee, trace),
    )


def read_flow(
    chunks: Chunks,
    question: str,
    client: Client,
    spec: ReadSpec,
    trace: Trace,
    *,
    heard: list[HarnessWarning],
    first: int | None = None,
) -> Flow[Answer]:
    """Read chunks: pre-flight, the reader, then stops, warnings, pages and quotations noted.

    ``heard`` collects what is warned about while this runs; ``first`` is the first step of the run
    (none: this read's own).

    Raises:
        CallCapError, CostCapError, UnpricedModelError: the read cannot be finished.
        BadReaderError: the reader returned something that is no answer.
    """
    reader = find_reader(spec.reader)
    job = make_job(chunks, checked_question(question), spec, client, trace)
    warned, refused = len(heard), list[Outcome]()
    if first is None:
        first = _first_step(trace)
    preflight(job, reader, client, trace)
    found = yield from _watched(reader.reader.read(job), refused)
    answer = checked_answer(spec.reader, found)
    _note_stop(answer, refused, trace)
    if chunks.unread_pages:
        _degrade(answer, unread_pages=list(chunks.unread_pages))
    if spec.verify:
        verify(answer, chunks, trace)
    if answer.premise_checked:
        trace.note("read.premise", contradicted=answer.premise is not None, premise=answer.premise)
    answer.warnings = [
        *chunks.warnings,
        *((type(one).__name__, str(one)) for one in heard[warned:]),
    ]
    answer.signature = reader.signature
    if answer.trace is trace:
        answer.trace_steps = (first, trace.issued) if trace.issued >= first else None
    return answer


def verify(answer: Answer, chunks: Chunks | None, trace: Trace | None = None) -> None:
    """Check every quotation of an answer against its chunk, and write the verdicts onto it."""
    sources: dict[int | None, str] = {chunk.chunk_id: chunk.quoted for chunk in chunks or ()}
    answer.evidence = [check_row(row, sources.get(row.chunk_id)) for row in answer.evidence]
    missing = sum(row.verified is False for row in answer.evidence)
    if missing:
        _degrade(answer, unverified_evidence=missing)
    if trace is not None:
        checked = sum(row.verified is not None for row in answer.evidence)
        trace.note("read.verify", rows=len(answer.evidence), checked=checked, not_found=missing)


def _watched(flow: Flow[T], refused: list[Outcome]) -> Flow[T]:
    """``flow``, keeping which of its own requests were refused: a trace may hold other runs'."""

    def keep(_: tuple[Asked, ...], outcomes: list[Outcome]) -> Flow[list[Outcome]]:
        refused.extend(one for one in outcomes if one.refused)
        yield from ()
        return outcomes

    return relayed(flow, keep)


def _note_stop(answer: Answer, refused: Sequence[Outcome], trace: Trace) -> None:
    """Say which limits kept requests from being sent; the last one names the stop."""
    if not refused:
        return
    limits = trace.governor.limits().as_json()
    values: Mapping[str, Any] = {
        "calls": limits["max_calls"],
        "cost": limits["max_cost_usd"],
        "tokens": limits["max_tokens_total"],
        "output": limits["max_output_tokens"],
        "ledger_busy": setting("wait_seconds"),
    }
    for one in refused:
        reason = one.reason or ""
        _degrade(answer, **{_NOTE_OF[reason]: values.get(reason, one.model)})
    answer.notes.setdefault("stop_reason", refused[-1].reason)


def _degrade(answer: Answer, **notes: Any) -> None:
    answer.partial = True
    answer.notes |= {name: value for name, value in notes.items() if value is not None}


def _first_step(trace: Trace) -> int:
    """A read's record begins with the trace unless an earlier read is in it."""
    earlier = any(step.label == "preflight" for step in trace.steps)
    return trace.issued + 1 if earlier else 1


def embedding(
    texts: Sequence[str],
    *,
    client: Client,
    trace: Trace,
    allow: Callable[[str], bool] | None,
    embedder: str | None = None,
    fallback: Fallback = "lexical",
) -> Flow[Vectors]:
    """Vectors of texts; requests that a fallback replaced are marked as recovered.

    What this process remembers is left aside where a trace keeps vectors or a recording gives them:
    the trace must hold all of them.
    """

    def record(label: str, detail: Mapping[str, Any]) -> None:
        trace.note(label, **detail)

    asked_again = trace.record_embeddings or isinstance(client, ReplayClient)
    vectors = yield from embed_texts(
        texts, client, embedder=embedder, fallback=fallback, record=record, allow=allow,
        use_cache=False if asked_again else None,
    )  # fmt: skip
    if vectors.fallback:
        for number in vectors.failed_steps:
            trace.amend(number, recovered=True)
    return vectors


def _foresee(trace: Trace, requests: int) -> None:
    most = trace.governor.limits().max_calls
    made = trace.calls - trace.to_take_over()[0]
    if most is not None and made + requests > most:
        left = max(most - made, 0)
        warn(CallCapWarning(
            f"{requests} requests are due and the cap of {most} leaves {left}; the rest is not sent"
        ))  # fmt: skip
