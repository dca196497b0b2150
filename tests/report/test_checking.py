"""Whether a trace file is whole and adds up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core import (
    ExtractiveClient,
    Governor,
    MockClient,
    Trace,
    TraceError,
    answer_document,
    call,
    example_document,
)
from harness_core.report import check_trace

Lines = list[dict[str, Any]]


def recorded(path: Path, count: int = 3) -> Path:
    trace = Trace(Governor(max_calls=count), path=path)
    for n in range(count + 1):
        call(MockClient(lambda _m: "fine"), f"What {n}?", trace=trace, model="priced")
    trace.note("done")
    trace.close()
    return path


def rewritten(path: Path, change: Callable[[Lines], Any]) -> Path:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def of_step(lines: Lines, number: str) -> dict[str, Any]:
    return next(line for line in lines if line.get("step") == number)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return recorded(tmp_path / "run.jsonl")


def test_a_whole_trace_has_no_fault_in_either_form(file: Path, tmp_path: Path) -> None:
    assert check_trace(file) == []
    saved = Trace.load(file).save(tmp_path / "run.json")
    assert check_trace(saved) == []


def test_an_answer_that_carries_a_window_of_a_shared_trace_has_no_fault(tmp_path: Path) -> None:
    trace = Trace()
    for question in ("How big was the deficit?", "Who is the chair?"):
        answer = answer_document(
            example_document("md"), question, "fast", client=ExtractiveClient(), trace=trace
        )
    (tmp_path / "answer.json").write_text(answer.to_json())
    assert check_trace(tmp_path / "answer.json") == []


def test_unknown_fields_are_fine(file: Path) -> None:
    def add(lines: Lines) -> None:
        for line in lines:
            line["of_a_later_version"] = {"x": 1}

    assert check_trace(rewritten(file, add)) == []


def test_a_run_folded_in_has_no_notes_of_its_own_and_no_fault(tmp_path: Path) -> None:
    parent, child = Trace(path=tmp_path / "run.jsonl"), Trace()
    call(MockClient(), "One?", trace=parent)
    call(MockClient(), "Two?", trace=child)
    parent.absorb(child)
    call(MockClient(), "Three?", trace=parent)
    assert check_trace(tmp_path / "run.jsonl") == []
    assert len(Trace.load(tmp_path / "run.jsonl").steps) == 3


def test_a_torn_last_line_is_named(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    assert check_trace(file)[0] == "line 9 is torn: the run was killed while it wrote"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines.remove(of_step(lines, "2")), "step 2 (call) was sent and its reply"),
        (lambda lines: lines[:] and lines.pop(3), "step 2 has a reply and no note"),
        (lambda lines: lines.append(of_step(lines, "1")), "step 1 stands there 2 times"),
        (lambda lines: of_step(lines, "4").update(step="10"), "steps 4 to 9 are missing"),
        (lambda lines: of_step(lines, "1").update(tokens={"input": -1}), "negative count"),
        (lambda lines: of_step(lines, "1").update(ended_utc="1999"), "ended before it started"),
        (lambda lines: of_step(lines, "1").update(tokens=7), "entry 1"),
        (lambda lines: of_step(lines, "1").update(replay_key=""), "cannot be replayed"),
        (lambda lines: lines.pop(0), "no head of a trace"),
    ],
)
def test_each_fault_of_a_file_is_named(
    file: Path, change: Callable[[Lines], Any], said: str
) -> None:
    assert any(said in problem for problem in check_trace(rewritten(file, change)))


def test_a_line_that_is_no_json_is_named_and_the_rest_is_still_checked(file: Path) -> None:
    whole = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*whole[:2], "no json\n", *whole[3:]]))
    assert check_trace(file)[0] == "line 3 is no JSON object: b'no json\\n'"


def test_a_huge_number_is_one_gap_and_takes_no_time(file: Path) -> None:
    rewritten(file, lambda lines: of_step(lines, "4").update(step=str(10**15)))
    assert check_trace(file) == [f"steps 4 to {10**15 - 1} are missing"]


@pytest.mark.parametrize(
    ("name", "value"), [("calls", 7), ("tokens_in", 1), ("usd", 0.5), ("spent_usd", 3.0)]
)
def test_a_sum_that_does_not_add_up_is_named(
    file: Path, tmp_path: Path, name: str, value: float
) -> None:
    document = json.loads(Trace.load(file).save(tmp_path / "run.json").read_text())
    place = document if name in document else document["summary"]
    place[name] = value
    (tmp_path / "run.json").write_text(json.dumps(document))
    (problem,) = check_trace(tmp_path / "run.json")
    assert problem.startswith(f"{name} is {value}")


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        check_trace(tmp_path / "none.jsonl")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**9) | st.floats(-1, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)  # fmt: skip
_NAMES = st.sampled_from([
    "trace", "step", "intent", "void", "amend", "absorb", "after", "steps", "refusal", "tokens",
    "prompt", "summary", "lost", "refusals", "started_utc", "ended_utc", "budget_usd", "attempts",
])  # fmt: skip


@given(place=st.integers(0, 8), changed=st.tuples(_NAMES, _VALUES), whole=st.booleans())
def test_whatever_a_file_holds_it_is_told_and_never_raised(
    file: Path, tmp_path: Path, place: int, changed: tuple[str, Any], whole: bool
) -> None:
    broken, (name, value) = tmp_path / "broken.json", changed
    if whole:
        document = json.loads(Trace.load(file).save(broken).read_text())
        target = document if place else document["steps"][0]
        target[name] = value
        broken.write_text(json.dumps(document))
    else:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines[place % len(lines)][name] = value
        broken.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert all(isinstance(problem, str) for problem in check_trace(broken))
