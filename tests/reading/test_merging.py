"""The merge tree: how many requests, what is cut, what happens when a merge fails."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness_core import Governor, MockClient, ReadSpec, Trace, new_chunks, read, register_model
from harness_core.calls.api import run_flow
from harness_core.messages import Reply
from harness_core.models.tokenizers import count_tokens
from harness_core.reading.flow import make_job
from harness_core.reading.merging import Merged, merge
from harness_core.reading.worst import merge_calls, summary_levels
from tests.support.reading import QUESTION, labels, saying, the_chunks

FINDING = "The finding says that the quay was rebuilt in stone. "


@pytest.fixture(autouse=True)
def _models() -> None:
    register_model("tree-3000", context_window=3000, max_output=1000, input_usd=0, output_usd=0)
    register_model("tree-900", context_window=900, max_output=300, input_usd=0, output_usd=0)


def merged(
    pieces: list[str],
    client: MockClient,
    spec: ReadSpec,
    trace: Trace | None = None,
    width: int = 1,
) -> Merged:
    run = trace or Trace()
    job = make_job(the_chunks(1), QUESTION, spec, client, run)
    return run_flow(merge(job, pieces, "reduce"), client, run, width=width)


def failing(*numbers: int, said: str = "All merged.") -> MockClient:
    """A mock whose requests of those numbers, from 1, fail."""
    count = 0

    def answer(messages: Any) -> str:
        nonlocal count
        count += 1
        if count in numbers:
            raise RuntimeError("not now")
        return said

    return MockClient(answer)


def test_findings_that_cannot_be_merged_come_back_bounded() -> None:  # readers 51
    client = saying(other=RuntimeError("gone"))
    pieces = [FINDING * 20_000, "One.", "Two."]
    found = merged(pieces, client, ReadSpec("map_reduce"))
    assert found.levels <= 3
    assert found.truncated > 0
    assert count_tokens(found.text) < 4600  # three times the answer's cap, and the mark


def test_one_finding_is_returned_as_it_is() -> None:  # readers 52, 49
    client = saying()
    found = merged(["Only this.", "  "], client, ReadSpec("map_reduce"))
    assert (found.text, found.ok, found.failed, found.truncated_calls) == ("Only this.", True, 0, 0)
    assert client.calls() == []


def test_no_finding_is_no_answer() -> None:
    found = merged(["", " "], saying(), ReadSpec("map_reduce"))
    assert (found.text, found.ok, found.levels) == ("NOT_IN_DOCUMENT", False, 0)


def test_a_refused_merge_gives_the_findings_bounded() -> None:  # readers 53
    trace = Trace(Governor(max_calls=0))
    spec = ReadSpec("map_reduce", max_answer_tokens=300)
    found = merged([FINDING * 200] * 5, saying(), spec, trace)
    assert not found.ok
    assert count_tokens(found.text) <= 3 * 300 + 50
    assert found.failed == 0
    assert "call cap" in (found.error or "")


def test_every_merge_prompt_leaves_room_for_its_answer() -> None:  # readers 54
    client = saying(other="Merged.")
    spec = ReadSpec("map_reduce", model="tree-3000", max_answer_tokens=300)
    trace = Trace()
    found = merged([f"word{n}" for n in range(300)], client, spec, trace)
    assert found.ok
    assert trace.errors == []
    assert found.levels >= 2
    for call in client.calls():
        assert sum(count_tokens(m.content) for m in call.messages) + 300 <= 3000


def test_a_failed_merge_below_the_top_is_counted_and_survived() -> None:  # readers 55
    spec = ReadSpec("map_reduce", model="tree-900", max_answer_tokens=200)
    found = merged([FINDING * 10] * 6, failing(1), spec)
    assert (found.ok, found.failed) == (True, 1)
    assert found.levels >= 2


def test_a_failed_last_merge_is_no_answer() -> None:  # readers 55
    found = merged(["One.", "Two."], saying(other=RuntimeError("gone")), ReadSpec("map_reduce"))
    assert (found.ok, found.failed) == (False, 1)
    assert "One." in found.text
    assert "Two." in found.text


def test_cut_merges_are_counted_at_every_level() -> None:  # readers 49
    spec = ReadSpec("map_reduce", model="tree-900", max_answer_tokens=200)
    last_only = 0

    def cutting(below: bool) -> MockClient:
        def answer(messages: Any, params: Mapping[str, Any]) -> Reply:
            reply = Reply(ok=True, text="Merged.")
            is_below = ".level" in params["label"]
            return replace(reply, finish_reason="length") if is_below is below else reply

        return MockClient(answer)

    found = merged([FINDING * 10] * 6, cutting(below=True), spec)
    assert found.ok
    assert found.truncated_calls >= 2
    last_only = merged([FINDING * 10] * 6, cutting(below=False), spec).truncated_calls
    assert last_only == 1


def test_merging_that_makes_no_progress_ends() -> None:
    spec = ReadSpec("map_reduce", model="tree-900", max_answer_tokens=290)
    bulky = saying(other=FINDING * 25)
    found = merged([FINDING * 25] * 6, bulky, spec)
    assert not found.ok
    assert found.levels <= 7
    assert "progress" in (found.error or "") or "levels" in (found.error or "")


def test_map_reduce_reports_a_merge_that_failed_below_the_top() -> None:  # readers 56
    chunks = new_chunks([f"Part {n} is about quays." for n in range(1, 11)])
    spec = ReadSpec("map_reduce", model="tree-900", max_answer_tokens=200)

    def reading(fail: bool) -> MockClient:
        seen: list[str] = []

        def answer(messages: Any, params: Mapping[str, Any]) -> str:
            seen.append(params["label"])
            if fail and seen.count("reduce.level1") == 1 and seen[-1] == "reduce.level1":
                raise RuntimeError("not now")
            return FINDING * 9 if params["label"] == "map.answer" else "Merged."

        return MockClient(answer)

    broken = reading(True)
    answer = read(chunks, QUESTION, broken, spec)
    assert "reduce.level1" in labels(broken)
    assert answer.notes["merge_ok"]
    assert (answer.notes["failed_calls"], answer.notes["merge_failures"]) == (1, 1)
    assert answer.partial
    whole = read(chunks, QUESTION, reading(False), spec)
    assert (whole.partial, whole.notes["merge_failures"]) == (False, 0)


@pytest.mark.parametrize(
    ("sizes", "calls"),
    [((64, 400, 400, 3000, 28), 12), ((1, 400, 400, 3000, 28), 0), ((4, 10, 10, 1000, 28), 1)],
)
def test_the_largest_merge_tree_is_known_from_sizes(
    sizes: tuple[int, int, int, int, int], calls: int
) -> None:
    assert merge_calls(*sizes) == calls


@pytest.mark.parametrize(("levels", "calls"), [(5, 125), (2, 97)])
def test_the_requests_of_summaries_are_known_from_sizes(levels: int, calls: int) -> None:
    assert summary_levels(64, 400, 3000, 2, levels) == calls


@pytest.mark.parametrize("pieces", [2, 5, 10, 40])
def test_a_merge_tree_is_never_larger_than_foreseen(pieces: int) -> None:  # readers 57
    # a room of about 390 tokens, findings and answers of at most 100
    client = saying(other="stone quay " * 32)
    spec = ReadSpec("map_reduce", model="tree-900", max_answer_tokens=100, max_chunk_tokens=100)
    job = make_job(the_chunks(1), QUESTION, spec, client, Trace())
    from harness_core.reading.worst import merge_tree

    foreseen = merge_tree(job, pieces, 100, 100)
    merged(["stone quay " * 32] * pieces, client, spec)
    assert len(client.calls()) <= foreseen
    assert merge_calls(10, 100, 100, 1000, 28) > 1


def test_a_parallel_tree_is_the_sequential_one() -> None:  # readers 58
    spec = ReadSpec("map_reduce", model="tree-900", max_answer_tokens=200)
    chunks = new_chunks([f"Part {n} is about quays." for n in range(1, 11)])
    asked = []
    for width in (1, 8):
        client = saying(map_answer=FINDING * 9, other="Merged.")
        read(chunks, QUESTION, client, spec.having(max_concurrency=width))
        asked.append(sorted(labels(client)))
    assert asked[0] == asked[1]
    assert asked[0].count("reduce.level1") >= 2


def test_a_cut_leaves_a_step_that_says_how_much() -> None:
    trace = Trace()
    spec = ReadSpec("map_reduce", model="tree-900", max_answer_tokens=200)
    found = merged([FINDING * 200, "Two."], saying(), spec, trace)
    assert found.truncated == 1
    (step,) = [step for step in trace.steps if step.label == "truncate"]
    detail = step.detail or {}
    assert detail["where"] == "reduce.input"
    assert detail["tokens_kept"] <= detail["limit"]
    assert detail["tokens_before"] - detail["tokens_kept"] == detail["tokens_dropped"]
