"""``check_reader`` passes readers that keep their promises and names the promise that is broken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from harness_core import Answer, Job, check_reader, list_readers, new_answer, register_reader
from harness_core.errors import UnknownMethodError
from harness_core.flows.ask import ask, ask_all
from harness_core.flows.types import Flow
from harness_core.messages import Message, Request
from harness_core.reading.answers import verbatim
from harness_core.reading.registry import reader_names
from harness_core.reading.verdicts import concluded

CHECKS = (
    "registered", "answer", "trace", "stages", "chunks_used", "evidence", "failures", "replies",
    "limits", "no_chunks", "window", "parallel",
)  # fmt: skip
NEEDS: dict[str, dict[str, Any]] = {
    "screen": {"include": ("it is about revenue",)},
    "extract": {"fields": {"revenue": "the revenue"}},
}


def broken(reader: Any, spec: Any = None) -> dict[str, str]:
    """The promises that a reader breaks, and what is said of them."""
    rows = check_reader(reader, spec)
    assert [row["check"] for row in rows] == list(CHECKS)
    assert all(row["detail"] == "" for row in rows if row["ok"])
    return {row["check"]: row["detail"] for row in rows if not row["ok"]}


@pytest.mark.parametrize("name", [row["name"] for row in list_readers()])
def test_every_built_in_reader_passes(name: str) -> None:
    assert broken(name, NEEDS.get(name)) == {}


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """Read the first chunk alone."""

    signature: ClassVar[str] = "first|1|none"
    stages: ClassVar[tuple[str, ...]] = ("first.answer",)

    def read(self, job: Job, /) -> Flow[Answer]:
        """Ask once, about the first chunk that fits."""
        fitted = job.fit(job.chunks[:1])
        if not fitted.chunks:
            return job.nothing("there is no chunk to read")
        reply = yield from ask(job.answering(fitted.chunks, "first.answer"))
        return concluded(job, reply, used=fitted.ids, evidence=verbatim(fitted.chunks))


def test_a_registered_reader_that_keeps_its_promises_passes() -> None:
    register_reader("first", First)
    assert broken("first") == broken(First) == broken(First()) == {}


def test_one_that_is_not_registered_is_told_so_and_checked_all_the_same() -> None:
    known = reader_names()
    assert list(broken(First)) == ["registered"]
    assert reader_names() == known


def test_a_name_nobody_registered_is_an_error() -> None:
    with pytest.raises(UnknownMethodError):
        check_reader("no_such_reader")


def test_a_shared_signature_is_named() -> None:
    register_reader("once", First())
    register_reader("twice", First())
    assert "once" in broken("twice")["registered"]


def reading(job: Job) -> Flow[Answer]:
    """Ask once about everything, without a look at the room there is."""
    reply = yield from ask(job.answering(job.chunks, "mine.answer"))
    return concluded(job, reply, used=[chunk.chunk_id for chunk in job.chunks])


def changed(**changes: Any) -> Callable[[Job], Flow[Answer]]:
    def reader(job: Job) -> Flow[Answer]:
        answer = yield from reading(job)
        return answer.model_copy(update=changes)

    return reader


def checked(reader: Callable[[Job], Flow[Answer]]) -> dict[str, str]:
    register_reader("mine", reader, signature="mine|1|none", stages=["mine.answer"])
    return broken("mine")


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        ("answer", {"reader": "another"}),
        ("answer", {"question": "Another one?"}),
        ("answer", {"answer": ""}),
        ("trace", {"trace": None}),
        ("chunks_used", {"chunks_used": [1, 99]}),
        ("chunks_used", {"chunks_used": [1, 1]}),
        ("failures", {"answer": "Revenue was 1 million.", "partial": True}),
        ("failures", {"partial": False}),
        ("replies", {"partial": False}),
        ("replies", {"partial": True}),
        ("limits", {"partial": False}),
        ("window", {}),
    ],
)
def test_a_broken_promise_is_named(check: str, changes: dict[str, Any]) -> None:
    detail = checked(changed(**changes))[check]
    assert "Error" not in detail, "the reader ran, and what it gave was looked at"


def test_evidence_about_a_chunk_that_was_never_given_is_named() -> None:
    def reader(job: Job) -> Flow[Answer]:
        answer = yield from reading(job)
        strange = verbatim(job.chunks[:1])[0].model_copy(update={"chunk_id": 99})
        return answer.model_copy(update={"evidence": [strange]})

    assert "99" in checked(reader)["evidence"]


def test_a_request_under_a_label_that_was_not_declared_is_named() -> None:
    def reader(job: Job) -> Flow[Answer]:
        reply = yield from ask(job.answering(job.chunks, "yours.answer"))
        return concluded(job, reply, used=())

    assert "yours.answer" in checked(reader)["stages"]


def test_what_is_no_answer_is_named() -> None:
    def reader(job: Job) -> Flow[Any]:
        reply = yield from ask(job.answering(job.chunks, "mine.answer"))
        return reply.text

    assert "BadReaderError" in checked(reader)["answer"]


def test_an_accident_over_no_chunks_is_named() -> None:
    def reader(job: Job) -> Flow[Answer]:
        _first = job.chunks[0]
        return (yield from reading(job))

    assert "IndexError" in checked(reader)["no_chunks"]


def test_an_answer_that_hangs_on_how_many_requests_fly_is_named() -> None:
    def reader(job: Job) -> Flow[Answer]:
        request = Request(messages=(Message("user", "Which?"),), label="mine.answer", max_output=50)
        yield from ask_all([request])
        return new_answer(f"{job.spec.max_concurrency}", "mine", job.question, (), job.trace)

    assert "in flight" in checked(reader)["parallel"]
