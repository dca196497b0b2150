"""What changed between two traces."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_core import Governor, MockClient, Reply, Trace, call
from harness_core.report import TraceDiff, diff_traces

Asked = tuple[str, str]  # label, prompt
ASKED = [("map.answer", f"Part {n}: revenue was {n}.5 million. What was revenue?") for n in "1234"]


def run(asked: Sequence[Asked] = ASKED, *, reply: str = "fine", **more: Any) -> Trace:
    trace = more.pop("trace", None) or Trace()
    client = MockClient(lambda _m: reply)
    for label, prompt in asked:
        call(client, prompt, label=label, trace=trace, model="priced", max_output=20, **more)
    return trace


def changes(diff: TraceDiff) -> list[tuple[str, str, list[str]]]:
    return [
        (one.before.step, one.after.step, [d.name for d in one.differences]) for one in diff.changed
    ]


def test_two_recordings_of_one_run_differ_in_nothing(tmp_path: Path) -> None:
    one = run(trace=Trace(path=tmp_path / "a.jsonl"))
    other = run(trace=Trace(path=tmp_path / "b.jsonl"))
    diff = diff_traces(Trace.load(tmp_path / "a.jsonl"), Trace.load(tmp_path / "b.jsonl"))
    assert not diff
    assert (str(diff), diff.same) == ("", 4)
    assert not diff_traces(one, other)


def test_the_order_of_requests_is_no_change() -> None:
    assert not diff_traces(run(), run(ASKED[::-1]))


def test_requests_that_resemble_nothing_are_added_and_dropped() -> None:
    diff = diff_traces(run(ASKED[:3]), run([*ASKED[1:3], ("reduce", "Merge them.")]))
    assert [step.step for step in diff.dropped] == ["1"]
    assert [step.label for step in diff.added] == ["reduce"]
    assert diff.same == 2
    assert "+ 3 reduce (priced): Merge them." in str(diff)


def test_a_changed_prompt_is_paired_with_its_nearest_and_shown_where_it_differs() -> None:
    longer = [("map.answer", "Something else, much longer than all the rest: " + "x " * 90)]
    changed = [(label, prompt.replace("4.5", "4.75")) for label, prompt in ASKED]
    diff = diff_traces(run(), run([*longer, *changed]))
    assert changes(diff) == [("4", "5", ["message 1 (user)"])]
    assert [step.step for step in diff.added] == ["1"]
    assert "4.5 million" in str(diff)
    assert "4.75 million" in str(diff)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"model": "other"}, "model"),
        ({"max_output": 30}, "output cap"),
        ({"temperature": 0.5}, "temperature"),
        ({"schema": {"type": "object", "properties": {"a": {}}}}, "schema"),
    ],
)
@pytest.mark.filterwarnings("ignore::harness_core.errors.UnknownModelWarning")
def test_a_changed_setting_is_named(more: dict[str, Any], named: str) -> None:
    client, a, b = MockClient(lambda _m: "fine"), Trace(), Trace()
    asked: dict[str, Any] = {"model": "priced", "max_output": 20}
    call(client, "What?", trace=a, **asked)
    call(client, "What?", trace=b, **{**asked, **more})
    ((_, _, names),) = changes(diff_traces(a, b))
    assert named in names
    assert not any(name.startswith("message") for name in names)


def test_a_changed_reply_to_the_same_request_is_a_change_with_its_cost() -> None:
    diff = diff_traces(run(ASKED[:1]), run(ASKED[:1], reply="a much longer answer"))
    assert changes(diff) == [("1", "1", ["reply", "usd"])]
    first, second = diff.usd
    assert first is not None
    assert second is not None
    assert first < second


def test_a_failure_is_a_change() -> None:
    trace = Trace()
    failing = MockClient(lambda _m: Reply(ok=False, error="busy", status=503))
    call(failing, ASKED[0][1], label="map.answer", trace=trace, model="priced", max_output=20)
    ((_, _, names),) = changes(diff_traces(run(ASKED[:1]), trace))
    assert {"ok", "error", "reply"} <= set(names)


def test_refusals_are_compared_too() -> None:
    diff = diff_traces(run(), run(trace=Trace(Governor(max_calls=3))))
    assert [one.reason for one in diff.refusals_added] == ["calls"]
    assert [step.step for step in diff.dropped] == ["4"]
    back = diff_traces(run(trace=Trace(Governor(max_calls=3))), run())
    assert [one.reason for one in back.refusals_dropped] == ["calls"]


def test_many_changed_requests_are_paired_in_order_and_quickly() -> None:
    asked = [("map.answer", f"Part {n} of the old text") for n in range(101)]
    changed = [(label, prompt.replace("old", "new")) for label, prompt in asked]
    diff = diff_traces(run(asked), run(changed))
    assert [(one.before.step, one.after.step) for one in diff.changed] == [
        (str(n), str(n)) for n in range(1, 102)
    ]


def test_the_latency_of_both_is_told_where_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    run(ASKED[:1], reply="a much longer answer", trace=Trace(path=path)).close()
    path.write_text(re.sub(r'"seconds": ?[\d.e-]+', '"seconds": 2.5', path.read_text()))
    diff = diff_traces(run(ASKED[:1]), Trace.load(path))
    assert diff.seconds[1] == 2.5
    assert f"{diff.seconds[0]:.3f} s -> 2.500 s" in str(diff)
