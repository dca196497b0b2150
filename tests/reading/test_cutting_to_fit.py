"""Texts cut to fit a request."""

from harness_core.calls.trace import Trace
from harness_core.reading.flow import make_job
from harness_core.reading.job import Cut
from harness_core.reading.spec import ReadSpec
from tests.support.reading import QUESTION, chunks_of, client_of, notes_of

WORDS = " ".join(f"word{number}" for number in range(100))


def test_a_text_that_fits_is_left_alone_and_nothing_is_recorded() -> None:
    trace = Trace()
    job = make_job(chunks_of("a"), QUESTION, ReadSpec(), client_of(), trace)
    assert job.cut(WORDS, 10_000, "here") == Cut(WORDS, 0)
    assert trace.steps == []


def test_a_cut_says_what_it_cost_and_is_recorded_with_its_place() -> None:
    trace = Trace()
    job = make_job(chunks_of("a"), QUESTION, ReadSpec(), client_of(), trace)
    cut = job.cut(WORDS, 50, "here", chunk_id=7)
    (note,) = notes_of(trace, "truncate")
    assert WORDS.startswith(cut.text.removesuffix(" ... [cut]"))
    assert note == {
        "where": "here", "limit": 50, "chunk_id": 7, "tokens_dropped": cut.dropped,
        "tokens_kept": note["tokens_kept"], "tokens_before": note["tokens_kept"] + cut.dropped,
    }  # fmt: skip
    assert note["tokens_kept"] <= 50
