"""The trace: one account of everything, in memory and on disk."""

import json
import os
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness_core.calls.api import call
from harness_core.calls.cache import ResponseCache
from harness_core.calls.exchange import exchange, governed
from harness_core.calls.governor import Governor
from harness_core.calls.run import Run
from harness_core.calls.steps import Step
from harness_core.calls.trace import Trace
from harness_core.clients.callable import CallableClient
from harness_core.clients.mock import MockClient
from harness_core.config import override
from harness_core.errors import AuthError, TraceError
from harness_core.flows import sync
from harness_core.flows.ask import ask_vectors
from harness_core.messages import Message, Reply, Request, Texts, Usage

HELLO = "What was revenue?"


def sized(read: int | None, written: int | None, *, ok: bool = True) -> MockClient:
    usage = Usage(input=read, output=written)
    return MockClient(lambda _m: Reply(ok=ok, text="x", usage=usage, error=None if ok else "no"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- what it adds up to ---------------------------------------------------------------------------


def test_a_cached_step_costs_nothing_and_is_not_paid(cache: ResponseCache) -> None:  # core 98
    client, trace = MockClient().with_cache(cache), Trace()
    for _ in range(2):
        call(client, HELLO, model="priced", trace=trace)
    (row,) = trace.cost()
    assert (row["calls"], row["paid_calls"]) == (2, 1)
    assert trace.rows()[1]["usd"] == 0
    assert sum(r["usd"] for r in trace.rows()) == row["usd"] == trace.spent_usd > 0


def test_a_model_without_a_price_is_unknown_even_when_only_cached(cache: ResponseCache) -> None:
    """core 99"""
    client = MockClient().with_cache(cache)
    call(client, HELLO, model="no-price")
    trace = Trace()
    assert call(client, HELLO, model="no-price", trace=trace).cached
    assert trace.cost()[0]["usd"] is None
    assert trace.summary()["usd"] is None


def test_a_failed_request_that_sent_nothing_costs_nothing_and_one_that_did_is_unknown() -> None:
    """core 99, 100"""
    for read, usd in ((0, 0), (5, None)):
        trace = Trace()
        call(sized(read, 0, ok=False), HELLO, model="no-price", trace=trace)
        assert trace.cost()[0]["usd"] == usd
        assert len(trace.errors) == 1


def test_absorbed_runs_keep_their_labels_and_their_errors_shift() -> None:  # core 101, 102
    parent = Trace()
    call(MockClient(), HELLO, trace=parent)
    for _ in range(2):
        child = Trace(meta={"source": "a.pdf", "recipe": "fast", "recipes": ["x"]})
        call(MockClient(), HELLO, trace=child)
        call(sized(3, 0, ok=False), HELLO, trace=child)
        parent.absorb(child)
        assert [step.step for step in child.steps] == ["1", "2"]
    assert [(r["step"], r["document"], r["recipe"]) for r in parent.rows()] == [
        ("1", None, None), *[(str(n), "a.pdf", "fast") for n in (2, 3, 4, 5)],
    ]  # fmt: skip
    assert [e["step"] for e in parent.errors] == ["3", "5"]
    assert parent.calls == 5
    bare = Trace(meta={"recipes": ["x"]})
    call(MockClient(), HELLO, trace=bare)
    parent.absorb(bare)
    assert parent.rows()[-1]["recipe"] is None


def test_an_absorbed_stop_is_the_parents_and_its_spending_is_added() -> None:  # core 89
    parent, child = Trace(), Trace(Governor(max_calls=1))
    call(MockClient(lambda _m: "x"), HELLO, model="priced", trace=child)
    call(MockClient(), HELLO, trace=child)
    parent.absorb(child)
    assert (parent.budget_stop, parent.stop_reason) == (True, "calls")
    assert parent.spent_usd == child.spent_usd > 0
    assert len(parent.refusals) == 1
    with pytest.raises(TraceError):
        parent.absorb(parent)


def test_each_run_on_a_shared_trace_labels_its_own_steps() -> None:  # core 103
    trace = Trace()
    trace.note("before")
    for source in ("a.pdf", "b.pdf"):
        first = trace.issued + 1
        call(MockClient(), HELLO, trace=trace)
        trace.stamp(first, source=source, recipe="fast")
    assert [(s.source, s.recipe) for s in trace.steps] == [
        (None, None), ("a.pdf", "fast"), ("b.pdf", "fast"),
    ]  # fmt: skip


def test_numbers_survive_the_round_trip(tmp_path: Path) -> None:  # core 104
    numbers = [1234567890123456, 12345678901234.56, 3e-05, 0.84321, 0.1, 2**53 - 1]
    trace = Trace()
    trace.note("numbers", values=numbers, text="1234567890123456.10")
    loaded = Trace.load(trace.save(tmp_path / "deep" / "run.json"))
    assert loaded.steps[0].detail == {"values": numbers, "text": "1234567890123456.10"}


def test_an_empty_trace_has_its_tables() -> None:  # core 106
    trace = Trace()
    assert (trace.rows(), trace.cost(), trace.errors) == ([], [], [])
    assert trace.summary()["calls"] == 0
    assert "0 steps" in str(trace)


def test_a_trace_prints_its_calls_its_embeddings_and_what_recovered() -> None:  # core 108
    trace = Trace(owner="finance team")
    call(MockClient(lambda _m: "x"), HELLO, model="priced", trace=trace)
    failing = MockClient(embed=lambda _t: (_ for _ in ()).throw(OSError("down")))
    sync.run(governed(ask_vectors([Texts(texts=("a",))]), Run(failing, trace)))
    trace.amend("2", recovered=True)
    said = str(trace)
    for part in ("1 model call", "1 embeddings request", "1 recovered", "finance team", "down"):
        assert part in said
    assert trace.errors[0]["recovered"] is True


def test_a_step_holds_what_was_asked_and_what_went_out() -> None:
    trace = Trace()
    schema = {"type": "object"}
    call(
        MockClient(lambda _m: '{"a": 1}'), HELLO, model="thinker", max_output=90, schema=schema,
        schema_name="found", effort="low", draw_index=2, extra_body={"seed": 1}, trace=trace,
    )  # fmt: skip
    (step,) = trace.export()["steps"]
    assert step["params_sent"] == {
        "model": "thinker",
        "api": "mock",
        "base_url": "mock://",
        "max_output": 2048,
        "temperature": None,
        "effort": "low",
        "schema_name": "found",
        "schema_hash": step["params"]["schema_hash"],
        "extra_body_hash": step["params_sent"]["extra_body_hash"],
    }
    assert len(step["params_sent"]["extra_body_hash"]) == 64
    assert step["params"]["max_output"] == 90
    assert step["params"]["draw_index"] == 2
    assert step["started_utc"].endswith("Z")
    assert "schema" not in step["params"]
    assert step["tokens"]["provenance"] == "estimated"


def test_identifiers_differ_even_in_one_millisecond() -> None:
    assert len({Trace().run_id for _ in range(50)}) == 50


def test_who_runs_follows_the_setting_where_it_is_not_said() -> None:
    with override(actor={"owner": "finance", "run_by": "ana"}):
        actor = Trace(run_by="bo").actor
    assert actor == {
        "system": None, "owner": "finance", "run_by": "bo", "purpose": None, "approved_by": None,
    }  # fmt: skip


def test_an_auth_error_is_a_free_step_and_stops() -> None:
    class Locked(MockClient):
        def send(self, request: Request, /, *, on_text: Any = None) -> Reply:
            raise AuthError("no key")

    trace = Trace()
    with pytest.raises(AuthError):
        call(Locked(), HELLO, model="priced", trace=trace)
    assert (trace.calls, trace.spent_usd, trace.ledger.tokens) == (1, 0, 0)
    assert trace.steps[0].error == "AuthError: no key"


def test_no_secret_is_in_a_trace() -> None:
    class Secretive(MockClient):
        base_url = "https://ana:swordfish@host.example/v1?key=swordfish"
        extra_body: Mapping[str, Any] = {"password": "swordfish"}

    with override(api_headers={"x-key": "swordfish"}, api_base="https://a:swordfish@h.example"):
        trace = Trace()
        call(Secretive(), HELLO, extra_body={"token": "swordfish"}, trace=trace)
        data = orjson.dumps(trace.export())
    assert b"swordfish" not in data
    assert b"x-key" in data
    assert trace.steps[0].params_sent["base_url"] == "https://host.example/v1"


# --- on disk --------------------------------------------------------------------------------------


def test_a_journal_has_the_intent_before_the_send_and_the_step_after(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    seen: list[list[str]] = []

    def looking(_messages: Any) -> str:
        seen.append([next(iter(line)) for line in lines(path)])
        return "x"

    client = MockClient(looking)
    trace = Trace(path=path)
    call(client, HELLO, model="priced", max_output=10, trace=trace)
    trace.close()
    assert seen == [["trace", "intent"]]
    head, intent, step = lines(path)
    assert intent["intent"] == step["step"] == "1"
    assert intent["bound_usd"] == step["bound_usd"] >= step["budget_usd"]
    assert head["limits"]["max_calls"] == 400


def test_an_existing_path_is_an_error_and_a_folder_too(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Trace(path=path).close()
    with pytest.raises(TraceError, match="resume=True"):
        Trace(path=path)
    with pytest.raises(TraceError):
        Trace(path=tmp_path, resume=True)
    with pytest.raises(TraceError):
        Trace().save("")


@pytest.mark.parametrize("form", ["lines", "document", "text", "mapping"])
def test_a_trace_is_read_from_every_form_it_has(form: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    trace = Trace(path=path, record_embeddings=True)
    client = CallableClient(
        lambda _m: "Umsatz über Plan 📈",
        model="priced",
        embed=lambda texts: [[3.0, 4.0]],
        embedding_model="other",
    )
    call(client, HELLO, max_output=50, trace=trace)
    sync.run(governed(ask_vectors([Texts(texts=("a",))]), Run(client, trace)))
    trace.note("local", n=1)
    assert not call(client, HELLO, max_output=10**9, model="priced",
                    trace=governed_by(trace, max_cost_usd=0)).ok  # fmt: skip
    trace.close()
    sources: dict[str, Callable[[], Any]] = {
        "lines": lambda: path,
        "document": lambda: trace.save(tmp_path / "run.json"),
        "text": lambda: orjson.dumps(trace.export()).decode(),
        "mapping": lambda: orjson.loads(orjson.dumps(trace.export())),
    }
    loaded = Trace.load(sources[form]())
    assert [s.as_json() for s in loaded.steps] == [s.as_json() for s in trace.steps]
    assert loaded.refusals == trace.refusals
    for name in ("run_id", "calls", "spent_usd", "stop_reason", "budget_stop", "tokens_out"):
        assert getattr(loaded, name) == getattr(trace, name), name


def governed_by(trace: Trace, **limits: Any) -> Trace:
    trace.governor = Governor(**limits)
    return trace


def test_an_answer_that_carries_its_trace_is_read_even_on_one_line(tmp_path: Path) -> None:
    trace = Trace()
    call(MockClient(), HELLO, trace=trace)
    path = tmp_path / "answer.json"
    path.write_bytes(orjson.dumps({"answer": "x", "trace": trace.export()}))
    assert Trace.load(path).calls == 1


@pytest.mark.parametrize(
    "text", ["not json", "7", "[]", "{}", '{"steps": {"a": 1}}', '{"steps": [{"step": "x"}]}']
)
def test_what_is_no_trace_is_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(TraceError):
        Trace.load(path)
    with pytest.raises(TraceError):
        Trace.load(tmp_path / "missing.json")


def test_a_torn_last_line_is_skipped_and_a_broken_one_inside_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    trace = Trace(path=path)
    for n in range(3):
        call(MockClient(), f"{HELLO} {n}", trace=trace)
    trace.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    loaded = Trace.load(path)
    assert (len(loaded.steps), loaded.incomplete, loaded.calls) == (2, True, 3)
    path.write_bytes(whole.replace(b'{"intent":"2"', b'{"intent":"2'))
    with pytest.raises(TraceError, match="no JSON"):
        Trace.load(path)


def test_nothing_follows_a_line_that_was_only_partly_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace(path=tmp_path / "run.jsonl")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:20]))
    with pytest.raises(TraceError, match="part of a line"):
        trace.note("one")
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(TraceError):
        trace.note("two")
    assert [step.label for step in trace.steps] == ["one", "two"]
    assert Trace.load(tmp_path / "run.jsonl").steps == []


def test_only_the_newest_steps_stay_in_memory_and_every_total_is_still_right(
    tmp_path: Path,
) -> None:
    full, lean = Trace(), Trace(path=tmp_path / "run.jsonl", keep=3)
    for trace in (full, lean):
        for n in range(10):
            call(MockClient(lambda _m: "x"), f"{HELLO} {n}", model="priced", trace=trace)
        trace.amend("2", recovered=True)
        trace.stamp(1, source="a.pdf", recipe=None)
    assert len(lean._steps) == 3
    drop = ("elapsed_s", "run_id")
    assert {k: v for k, v in lean.summary().items() if k not in drop} == {
        k: v for k, v in full.summary().items() if k not in drop
    }
    assert lean.cost() == full.cost()
    assert [s.step for s in lean.steps] == [s.step for s in full.steps]
    assert lean.steps[1].recovered
    assert {s.source for s in lean.steps} == {"a.pdf"}


def test_saving_and_loading_take_memory_in_proportion_to_the_steps(tmp_path: Path) -> None:
    prompt = (Message("user", "x" * 200),)

    def work(steps: int, name: str) -> tuple[int, int, int]:
        trace = Trace(path=tmp_path / f"{name}.jsonl")
        for n in range(1, steps + 1):
            trace.keep(Step(step=str(n), label="map", prompt=prompt, response="y", replay_key="k"))
        trace.close()
        tracemalloc.start()
        document = trace.save(tmp_path / f"{name}.json")
        saving = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        peaks = []
        for path in (document, tmp_path / f"{name}.jsonl"):
            tracemalloc.start()
            assert len(Trace.load(path).steps) == steps
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return saving, peaks[0], peaks[1]

    small, large = work(1000, "small"), work(10_000, "large")
    for name, one, ten in zip(("save", "document", "lines"), small, large, strict=True):
        assert ten < 13 * one, name
    assert large[2] < large[1], "a file of lines is read line by line"


def test_reading_a_step_takes_a_number_of_calls_that_does_not_grow(tmp_path: Path) -> None:
    def calls(steps: int) -> int:
        trace = Trace(path=tmp_path / f"{steps}.jsonl")
        for n in range(1, steps + 1):
            trace.keep(Step(step=str(n), label="map", response="y", replay_key=str(n)))
            trace.note("local", n=n) if n % 10 == 0 else None
        trace.close()
        count = 0

        def counting(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal count
            count += event == "call"

        resumed = Trace(path=tmp_path / f"{steps}.jsonl", resume=True)
        sys.setprofile(counting)
        try:
            resumed = Trace.load(tmp_path / f"{steps}.jsonl")
            resumed.export()
        finally:
            sys.setprofile(None)
        return count

    assert calls(2000) < 11 * calls(200)


# --- resuming -------------------------------------------------------------------------------------


def asked(client: Any, trace: Trace, *texts: str) -> list[Reply]:
    return [call(client, text, model="priced", max_output=20, trace=trace) for text in texts]


def test_a_resumed_run_takes_its_finished_requests_over_without_a_second_count(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.jsonl"
    first = Trace(path=path)
    first.note("ingest", pages=3)
    before = asked(MockClient(lambda _m: "x"), first, "a", "b", "b")
    first.close()
    size = path.stat().st_size
    client, second = MockClient(lambda _m: "new"), Trace(path=path, resume=True)
    assert second.note("ingest", pages=3).step == "1"
    after = asked(client, second, "b", "a", "b")
    assert [r.text for r in after] == ["x", "x", "x"]
    assert sorted(r.step or "" for r in after) == sorted(r.step or "" for r in before)
    assert client.calls() == []
    assert (second.calls, second.spent_usd) == (first.calls, first.spent_usd)
    assert path.stat().st_size == size
    (more,) = asked(client, second, "b")
    assert (more.text, more.step) == ("new", "5")
    second.note("ingest", pages=3)
    second.close()
    assert [s.step for s in Trace.load(path).steps] == [str(n) for n in range(1, 7)]


def test_a_failed_request_and_vectors_that_were_not_kept_are_asked_for_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.jsonl"
    first = Trace(path=path)
    call(sized(3, 0, ok=False), HELLO, trace=first)
    sync.run(governed(ask_vectors([Texts(texts=("a",))]), Run(MockClient(), first)))
    first.close()
    second = Trace(path=path, resume=True)
    assert call(MockClient(lambda _m: "x"), HELLO, trace=second).text == "x"
    (found,) = sync.run(governed(ask_vectors([Texts(texts=("a",))]), Run(MockClient(), second)))
    assert found.vectors is not None
    assert second.calls == 4


def test_recorded_vectors_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for resume in (False, True):
        trace = Trace(path=path, resume=resume, record_embeddings=True)
        client = MockClient()
        (found,) = sync.run(governed(ask_vectors([Texts(texts=("a",))]), Run(client, trace)))
        trace.close()
        assert found.vectors is not None
        assert found.vectors.shape == (1, 64)
        assert len(client.embeds()) == (not resume)


def test_a_refusal_of_the_killed_run_is_forgotten_when_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = Trace(Governor(max_calls=1), path=path)
    assert [r.ok for r in asked(MockClient(), first, "a", "b")] == [True, False]
    first.close()
    second = Trace(Governor(max_calls=5), path=path, resume=True)
    assert all(r.ok for r in asked(MockClient(), second, "a", "b"))
    second.close()
    loaded = Trace.load(path)
    assert (loaded.refusals, loaded.budget_stop, loaded.calls) == ([], False, 2)
    assert loaded.recorded_limits is not None
    assert loaded.recorded_limits["max_calls"] == 5
    assert loaded.run_id == first.run_id


KILLED = """
import os, sys
from harness_core.calls.exchange import governed
from harness_core.calls.governor import Governor
from harness_core.calls.run import Run
from harness_core.calls.trace import Trace
from harness_core.flows import sync
from tests.support.programs import Kind, Program, ProgramClient, known_models, reading

class Dying(ProgramClient):
    def send(self, request, /, *, on_text=None):
        if sum(self.arrived.values()) == 2:
            os.kill(os.getpid(), 9)
        return super().send(request)

program = Program(kinds=tuple(Kind(5 + n, "cheap", 10) for n in range(5)), batches=((0,1,2,3,4),))
with known_models():
    trace = Trace(path=sys.argv[1])
    trace.note("ingest", pages=3)
    sync.run(governed(reading(program), Run(Dying(program), trace)))
"""


def test_the_limit_holds_across_a_killed_process(tmp_path: Path) -> None:
    from tests.support.programs import Kind, Program, ProgramClient, known_models, reading

    path, root = tmp_path / "run.jsonl", Path(__file__).parents[2]
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(path)]
    env = {"PYTHONPATH": f"{root / 'core'}:{root}"}
    assert subprocess.run(command, cwd=root, env=env, check=False).returncode == -9
    with path.open("ab") as file:
        file.write(b'{"step":"5","lab')  # torn
    kinds = tuple(Kind(5 + n, "cheap", 10) for n in range(5))
    program = Program(kinds=kinds, batches=((0, 1, 2, 3, 4),))
    paid = sum(kind.price(*kind.usage) or 0 for kind in kinds)
    lost = kinds[2].price(kinds[2].bound_in, 10) or 0
    with known_models():
        trace = Trace(path=path, resume=True)
        assert (trace.lost_holds, trace.calls, trace.incomplete) == (1, 3, True)
        assert trace.ledger.spent == lost + sum(k.price(*k.usage) or 0 for k in kinds[:2])
        client = ProgramClient(program)
        sync.run(governed(reading(program), Run(client, trace)), width=3)
    trace.close()
    assert sorted(client.arrived) == [2, 3, 4]
    assert trace.ledger.spent == lost + paid
    assert [s.step for s in trace.steps] == ["1", "2", "3", "5", "6", "7"]
    for loaded in (Trace.load(path), Trace.load(orjson.loads(orjson.dumps(trace.export())))):
        assert loaded.ledger.spent == trace.ledger.spent
        assert loaded.incomplete


def test_the_number_of_a_request_that_never_left_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    trace, client = Trace(path=path), MockClient()
    flow = exchange(Request(messages=(Message("user", HELLO),)), Run(client, trace))
    next(flow)
    assert trace.ledger.held == 1
    flow.close()
    assert (trace.ledger.held, trace.calls, trace.issued, client.calls()) == (0, 0, 0, [])
    call(client, HELLO, trace=trace)
    trace.close()
    assert [next(iter(line)) for line in lines(path)] == [
        "trace",
        "intent",
        "void",
        "intent",
        "step",
    ]
    assert not Trace.load(path).incomplete


def test_a_trace_shows_its_totals_in_a_notebook() -> None:
    trace = Trace()
    call(MockClient(), HELLO, trace=trace, label="a<b")
    assert "a&lt;b 1" in trace._repr_html_()
