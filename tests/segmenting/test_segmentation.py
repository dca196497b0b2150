import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness_core.client import BaseClient
from harness_core.documents.types import Chunks, Document
from harness_core.errors import (
    BadSettingError,
    CapUnenforceableError,
    EmptyChunksError,
    SegmentFallbackWarning,
    UnknownMethodError,
    recording_warnings,
    warn,
)
from harness_core.flows.ask import ask
from harness_core.flows.types import Flow, Work
from harness_core.messages import Message, Reply, Request
from harness_core.models import set_tokenizer
from harness_core.segmenting import (
    SegmentJob,
    SegmentSpec,
    new_chunks,
    register_segmenter,
    segment_flow,
)
from tests.support.segmenting import cut, document, serve, texts


def _lines(given: Document, _spec: SegmentSpec) -> list[str]:
    return given.text.splitlines()


def test_a_plain_function_may_give_texts() -> None:
    register_segmenter("lines", _lines)
    chunks = cut(document("a\n\n\nb\nc"), "lines")
    assert texts(chunks) == ["a", "b", "c"]
    assert chunks.method == "lines"
    assert [chunk.chunk_id for chunk in chunks] == [1, 2, 3]


def test_a_plain_function_may_give_chunks_and_sees_extra_settings() -> None:
    def every(given: Document, spec: SegmentSpec) -> Chunks:
        stride = (spec.model_extra or {})["stride"]
        parts = [given.text[at : at + stride] for at in range(0, len(given.text), stride)]
        return new_chunks(parts, "every", page=list(range(len(parts))), extra={"stride": stride})

    register_segmenter("every", every)
    chunks = cut(document("abcdef"), {"method": "every", "stride": 4})
    assert texts(chunks) == ["abcd", "ef"]
    assert [chunk.page for chunk in chunks] == [0, 1]
    assert chunks.extra == {"stride": 4}
    assert chunks.spec == SegmentSpec(method="every", stride=4)


def test_a_generator_function_asks_a_model() -> None:
    def titled(job: SegmentJob) -> Flow[list[str]]:
        reply = yield from ask(Request(messages=(Message("user", job.document.text),)))
        return [f"{reply.text}: {job.document.text}"]

    class Titled:
        def __call__(self, job: SegmentJob) -> Flow[list[str]]:
            return (yield from titled(job))

    for segmenter in (titled, Titled()):
        register_segmenter("titled", segmenter)
        chunks = cut(document("abc"), "titled", answer=lambda _request: Reply(ok=True, text="T"))
        assert texts(chunks) == ["T: abc"]


def test_anything_else_a_segmenter_gives_is_a_bug_of_its_own() -> None:
    register_segmenter("broken", lambda _document, _spec: 5)
    with pytest.raises(TypeError, match="'broken'"):
        cut(document("abc"), "broken")


def test_a_fallback_without_a_client_is_said_once() -> None:  # S27
    def outspoken(given: Document, _spec: SegmentSpec) -> list[str]:
        warn(SegmentFallbackWarning("my own words"))
        return [given.text]

    register_segmenter("outspoken", outspoken, needs_client=True)
    register_segmenter("silent", lambda given, _spec: [given.text], needs_client=True)
    for name, said in (("outspoken", "my own words"), ("silent", "needs a client")):
        with pytest.warns(SegmentFallbackWarning, match=said) as heard:
            chunks = cut(document("abc"), name)
        assert len(heard) == 1
        assert [name for name, _ in chunks.warnings] == ["SegmentFallbackWarning"]
        assert cut_in_silence(name) == ()


def cut_in_silence(name: str) -> tuple[tuple[str, str], ...]:
    """Warnings of a run that has a client, without the segmenter's own."""
    with pytest.warns(SegmentFallbackWarning) if name == "outspoken" else recording_warnings():
        found = cut(document("abc"), name, BaseClient()).warnings
    return tuple(one for one in found if one[1] != "my own words")


def test_warnings_of_work_done_in_another_thread_are_kept() -> None:
    def speaks(job: SegmentJob) -> Flow[list[str]]:
        yield Work(lambda: warn(SegmentFallbackWarning("from afar")))
        return [job.document.text]

    register_segmenter("speaks", speaks)
    flow = segment_flow(document("abc"), "speaks")
    todo = next(flow)
    done: list[Any] = []

    def elsewhere() -> None:
        assert isinstance(todo, Work)
        done.append(todo.function())

    with pytest.warns(SegmentFallbackWarning, match="from afar"):
        in_a_thread(elsewhere)
    work = flow.send(done[0])
    assert isinstance(work, Work)
    with pytest.raises(StopIteration) as end:
        flow.send(work.function())
    assert end.value.value.warnings == (("SegmentFallbackWarning", "from afar"),)


def in_a_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_segmentations_side_by_side_do_not_hear_each_other() -> None:
    def asking(job: SegmentJob) -> Flow[list[str]]:
        warn(SegmentFallbackWarning(job.document.label))
        yield from ask(Request(messages=(Message("user", "x"),)))
        return [job.document.text]

    register_segmenter("asking", asking)
    one = segment_flow(document("one", label="1"), "asking")
    two = segment_flow(document("two", label="2"), "asking")
    for flow in (one, two):
        with pytest.warns(SegmentFallbackWarning):
            next(flow)
    found = []
    for flow in (one, two):
        work = flow.send([Reply(ok=True)])
        assert isinstance(work, Work)
        with pytest.raises(StopIteration) as end:
            flow.send(work.function())
        found.append(end.value.value.warnings)
    assert found == [
        (("SegmentFallbackWarning", "1"),),
        (("SegmentFallbackWarning", "2"),),
    ]


def test_what_stops_a_run_reaches_the_segmenter_where_it_waits() -> None:
    stopped: list[str] = []

    def careful(job: SegmentJob) -> Flow[list[str]]:
        try:
            yield from ask(Request(messages=(Message("user", "x"),)))
        except RuntimeError:
            stopped.append("error")
            raise
        except GeneratorExit:
            stopped.append("closed")
            raise
        return []

    register_segmenter("careful", careful)
    flow = segment_flow(document("one"), "careful")
    next(flow)
    with pytest.raises(RuntimeError, match="stop"):
        flow.throw(RuntimeError("stop"))
    flow = segment_flow(document("one"), "careful")
    next(flow)
    flow.close()
    assert stopped == ["error", "closed"]


def test_a_chunk_over_the_cap_is_split_whoever_made_it() -> None:
    def whole(given: Document, spec: SegmentSpec) -> Chunks:
        made = new_chunks(
            ["short", given.text], "whole", spec, page=3, section="S", block_id=9,
            source_text="the source", metadata={"id": "x"},
        )  # fmt: skip
        return replace(made, extra={"own": 1})

    register_segmenter("whole", whole)
    chunks = cut(document("One two three. " * 40), {"method": "whole", "max_tokens": 40})
    assert len(chunks) > 3
    assert all(chunk.tokens <= 40 for chunk in chunks)
    assert chunks.extra == {"own": 1, "cap_enforced": 1}
    assert [chunk.chunk_id for chunk in chunks] == list(range(1, len(chunks) + 1))
    for chunk in chunks:
        assert (chunk.page, chunk.section, chunk.block_id) == (3, "S", 9)
        assert chunk.source_text == "the source"
        assert chunk.metadata == {"id": "x"}


@pytest.mark.parametrize("method", ["paragraph", "sentence", "fixed", "recursive", "page"])
def test_a_cap_below_one_character_is_an_error(method: str) -> None:  # S4
    set_tokenizer("huge", lambda text: 50 * len(text))
    try:
        with pytest.raises(CapUnenforceableError, match="50 tokens"):
            cut(document(("abc", 1)), {"method": method, "max_tokens": 32})
    finally:
        set_tokenizer("heuristic")


def test_nothing_to_read_is_an_error() -> None:
    register_segmenter("nothing", lambda _document, _spec: ["", "  "])
    with pytest.raises(EmptyChunksError, match=r"notes\.txt"):
        cut(document("abc"), "nothing")


def test_an_unknown_method_is_an_error_before_anything_is_done() -> None:
    with pytest.raises(UnknownMethodError):
        next(segment_flow(document("abc"), "paragraf"))


def test_the_local_step_says_how_it_was_cut() -> None:
    steps: list[tuple[str, Mapping[str, Any]]] = []

    def record(label: str, detail: Mapping[str, Any]) -> None:
        steps.append((label, detail))

    spec = {"method": "fixed", "max_tokens": 40}
    chunks = cut(document("word " * 300), spec, record=record)
    assert steps == [("segment", {**chunks.stats(), "settings": spec})]
    assert steps[0][1].keys() >= {
        "method", "n", "total_tokens", "min", "median", "mean", "max", "over_cap",
    }  # fmt: skip


def test_the_documents_warnings_and_unread_pages_go_with_the_chunks() -> None:
    given = replace(
        document("abc", unread_pages=(4, 5)), warnings=(("OcrUnavailableWarning", "x"),)
    )
    chunks = cut(given)
    assert chunks.warnings == (("OcrUnavailableWarning", "x"),)
    assert chunks.unread_pages == (4, 5)
    assert chunks.source == "/files/notes.txt"


@pytest.mark.usefixtures("by_words")
def test_statistics_of_an_even_number_of_chunks_have_a_fractional_median() -> None:  # S29
    chunks = new_chunks(["a b c", "d", " ", "e f", "g h i j"], spec=SegmentSpec())
    assert chunks.stats() == {
        "method": "given",
        "n": 4,
        "total_tokens": 10,
        "min": 1,
        "median": 2.5,
        "mean": 2.5,
        "max": 4,
        "over_cap": 0,
    }


def test_what_is_given_for_chunks_is_one_value_or_one_per_text() -> None:
    chunks = new_chunks(["a", "", "b"], page=[1, 2, 3], section="S", metadata=[{}, {}, {"id": 1}])
    assert [(one.page, one.section, one.metadata) for one in chunks] == [
        (1, "S", {}),
        (3, "S", {"id": 1}),
    ]
    assert texts(new_chunks("alone")) == ["alone"]
    with pytest.raises(BadSettingError, match="page"):
        new_chunks(["a", "b"], page=[1])


def test_a_flow_that_asks_nothing_needs_no_driver() -> None:
    assert len(serve(segment_flow(document("One.")))) == 1
