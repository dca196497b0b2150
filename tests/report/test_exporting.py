"""A trace as CSV and as OTLP JSON."""

import csv
import io
import json
from typing import Any

from harness_core import Governor, MockClient, Reply, Trace, Usage, call, embed
from harness_core.report import otlp_json, requests_csv

SECRET = "What did the board say of Mr. Smith?"


def run(*, limit: int = 3) -> Trace:
    def say(_messages: Any) -> Reply:
        usage = Usage(input=10, output=20, reasoning=5, cached_input=4)
        return Reply(ok=True, text="=1+1", usage=usage, finish_reason="max_tokens",
                     served_model="priced-2026", response_id="r-1")  # fmt: skip

    trace = Trace(Governor(max_calls=limit), system="desk")
    trace.note("ingest", source="secret-name.pdf")
    call(MockClient(say), SECRET, trace=trace, model="priced", max_output=20, label="map.answer")
    failing = MockClient(lambda _m: Reply(ok=False, error=f"bad: {SECRET}", status=429))
    call(failing, SECRET, trace=trace, model="priced")
    embed(MockClient(), [SECRET], trace=trace)
    call(failing, SECRET, trace=trace, model="priced")
    return trace


def spans(trace: Trace, *, content: bool = False) -> list[dict[str, Any]]:
    (resource,) = otlp_json(trace, content=content)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert scope["schemaUrl"].endswith("/1.37.0")
    found: list[dict[str, Any]] = scope["spans"]
    return found


def plain(listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in listed}


def test_csv_has_a_row_per_request_and_no_formula() -> None:
    trace = run()
    rows = list(csv.DictReader(io.StringIO(requests_csv(trace))))
    assert [row["step"] for row in rows] == ["2", "3", "4"]
    assert rows[0]["reply"] == "'=1+1"
    assert rows[0]["stage"] == "map.answer"
    assert sum(float(row["usd"] or 0) for row in rows) == trace.cost()[1]["usd"]


def test_a_request_is_a_client_span_by_the_conventions() -> None:
    trace = run()
    root, _, request, *_ = spans(trace)
    told = plain(request["attributes"])
    assert (request["name"], request["kind"]) == ("chat priced", 3)
    assert request["parentSpanId"] == root["spanId"]
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mock",
        "gen_ai.request.model": "priced",
        "gen_ai.request.max_tokens": "20",
        "gen_ai.response.model": "priced-2026",
        "gen_ai.response.id": "r-1",
        "gen_ai.usage.input_tokens": "10",
        "gen_ai.usage.output_tokens": "20",
        "harness.label": "map.answer",
        "harness.cost_usd": trace.spent_usd,
        "harness.usage.reasoning_tokens": "5",
    }
    assert {name: told[name] for name in expected} == expected
    assert told["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "length"}]}
    assert [event["name"] for event in request["events"]] == ["harness.governor.admitted"]


def test_failures_embeddings_and_refusals_are_told() -> None:
    root, local, _, failed, embedding, *_ = spans(run())
    assert (local["name"], local["kind"]) == ("ingest", 1)
    assert failed["status"] == {"code": 2}
    assert plain(failed["attributes"])["error.type"] == "429"
    assert embedding["name"].startswith("embeddings ")
    (event,) = root["events"]
    assert event["name"] == "harness.governor.refused"
    assert plain(event["attributes"])["harness.refusal.reason"] == "calls"
    assert plain(root["attributes"])["harness.stop_reason"] == "calls"


def test_content_is_left_out_unless_asked_for() -> None:
    trace = run()
    bare, full = (json.dumps(otlp_json(trace, content=content)) for content in (False, True))
    for said in (SECRET, "1+1", "secret-name"):
        assert said not in bare
        assert said in full
    request = plain(spans(trace, content=True)[2]["attributes"])
    assert json.loads(request["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": SECRET}]}
    ]


def test_ids_are_the_same_each_time_and_of_the_right_length() -> None:
    trace = run()
    first, second = spans(trace), spans(trace)
    assert first == second
    assert {len(span["traceId"]) for span in first} == {32}
    assert len({span["spanId"] for span in first}) == len(first)


def test_a_request_made_inside_another_is_its_child() -> None:
    trace = Trace()

    def say(_messages: Any) -> str:
        if trace.issued == 1 and not trace.steps:
            call(MockClient(lambda _m: "inner"), "inner?", trace=trace)
        return "outer"

    call(MockClient(say), "outer?", trace=trace)
    by_number = {plain(span["attributes"]).get("harness.step"): span for span in spans(trace)}
    assert by_number["1.1"]["parentSpanId"] == by_number["1"]["spanId"]


def test_a_recording_without_times_stands_where_its_run_does() -> None:
    trace = run()
    for step in trace.steps:
        step.started_utc = step.ended_utc = ""
    root, *others = spans(trace)
    assert {span["startTimeUnixNano"] for span in others} == {root["startTimeUnixNano"]}
    assert root["startTimeUnixNano"] != "0"
