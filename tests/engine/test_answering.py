"""What an answer over HTTP holds: markers, sources, spans, headers."""

import re
from pathlib import Path

import pytest

from harness_core import example_document, register_model
from harness_core.messages import SENTINEL
from tests.support.engine import DOCS, World, cite, labels_of, path_of


def test_the_example_request_gives_the_members_of_the_contract(served: World) -> None:  # AC01
    response = served.ask(
        query="What caused the database timeout?", effort="medium", sources="cited"
    )
    body = response.json()
    assert response.status_code == 200
    assert {"request_id", "answer", "effort", "sources", "usage"} <= set(body)
    assert response.headers["x-engine-request-id"] == body["request_id"]
    assert response.headers["x-request-id"] == body["request_id"]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"


def test_a_query_alone_is_medium_and_lists_all_sources(served: World) -> None:  # AC02
    body = served.ask(raw={"query": "x"}).json()
    assert body["effort"] == "medium"
    assert len(body["sources"]) == len(DOCS)


def _cited(served: World, mode: str) -> dict[str, object]:
    served.model.write = lambda request: cite(request, 2, 0, 2)
    body: dict[str, object] = served.ask(sources=mode).json()
    return body


def test_sources_are_in_the_order_of_their_first_citation(served: World) -> None:  # AC03
    body = served.model
    body.write = lambda request: cite(request, 2, 0, 2)
    told = served.ask().json()
    assert re.findall(r"\[\[SRC:(\d+)\]\]", told["answer"]) == ["0001", "0002", "0001"]
    assert [one["ref"] for one in told["sources"]] == ["SRC:0001", "SRC:0002", "SRC:0003"]
    assert [one["cited"] for one in told["sources"]] == [True, True, False]


def test_the_modes_are_views_of_one_answer(served: World) -> None:  # AC04 AC05
    everything, cited, none = (_cited(served, mode) for mode in ("all", "cited", "none"))
    assert cited["answer"] == everything["answer"]
    assert cited["sources"] == everything["sources"][:2]  # type: ignore[index]  # JSON
    assert none["sources"] == []
    assert none["answer"] == re.sub(r" ?\[\[SRC:\d+\]\]", "", str(everything["answer"]))
    assert "  " not in str(none["answer"])


def test_an_answer_that_is_not_there_cites_nothing(served: World) -> None:  # AC06
    served.model.write = lambda request: SENTINEL
    told = served.ask().json()
    assert SENTINEL not in told["answer"]
    assert told["answer"]
    assert [one["cited"] for one in told["sources"]] == [False] * len(DOCS)
    assert served.ask(sources="cited").json()["sources"] == []


def test_a_citation_of_what_was_not_sent_is_dropped_and_said(served: World) -> None:  # AC07
    served.model.write = lambda request: f"It did [chunk 17]. {cite(request, 1)}"
    response = served.ask()
    assert re.findall(r"SRC:\d+", response.json()["answer"]) == ["SRC:0001"]
    assert "cited_unknown" in response.headers["x-answer-partial"]


def test_a_marker_that_the_model_writes_itself_is_removed(served: World) -> None:  # AC08
    served.model.write = lambda request: f"Copied [[SRC:0009]]. {cite(request, 0)}"
    assert "0009" not in served.ask().text


def test_adjacent_citations_stand_in_a_row_each_once(served: World) -> None:  # AC09
    def many(request: object) -> str:
        labels = labels_of(request)  # type: ignore[arg-type]  # a Request
        return "Both" + "".join(f" [chunk {one}]" for one in (*labels[:3], labels[0])) + "."

    served.model.write = many
    assert served.ask().json()["answer"] == "Both [[SRC:0001]][[SRC:0002]][[SRC:0003]]."


def test_spans_count_code_points(served: World) -> None:  # AC11 AC13 AC14
    told = served.ask(query="painted bridge").json()
    source = next(one for one in told["sources"] if one["path"] == "/naive.txt")
    assert set(source) == {"ref", "span", "path", "content_type", "score", "cited"}
    span = source["span"]
    assert set(span) == {"file_id", "unit", "start", "end"}
    text = DOCS["/naive.txt"][span["start"] : span["end"]]
    read = served.request("POST", path_of("docs", ":read-spans"), json={"spans": [span]}).json()
    assert read["parts"][0]["text"] == text
    assert text in "".join(m.content for m in served.model.requests[-1].messages)


def test_every_source_reads_back_as_it_was_sent(served: World) -> None:  # AC14
    spans = [one["span"] for one in served.ask().json()["sources"]]
    read = served.request("POST", path_of("docs", ":read-spans"), json={"spans": spans}).json()
    request = served.model.requests[-1]
    assert request.task is not None
    shown = {text for _, text in request.task.excerpts}
    assert {part["text"] for part in read["parts"]} == shown


def test_ids_name_what_names_name(served: World) -> None:  # AC20
    by_id = served.request(
        "POST",
        path_of(served.collection("docs").id, namespace=served.space.id),
        json={"query": "x"},
    )
    by_name = served.ask(query="x")
    assert by_id.json()["answer"] == by_name.json()["answer"]
    assert by_id.json()["sources"] == by_name.json()["sources"]


def test_an_old_marker_in_the_history_reaches_no_model(served: World) -> None:  # AC29
    turns = [
        {"role": "user", "content": "And before?"},
        {"role": "assistant", "content": "It was green [[SRC:0002]]."},
        {"role": "user", "content": ""},
    ]
    served.model.write = lambda r: cite(r, 1) if r.task and r.task.excerpts else "harbour bridge"
    told = served.ask(history=turns).json()
    assert "SRC:" not in served.model.sent
    assert "[[SRC:0001]]" in told["answer"]


def test_instructions_reach_the_model_and_markers_stay(served: World) -> None:  # AC31 AC32
    served.model.write = lambda request: (
        "The database timeout was caused by an exhausted connection pool."
    )
    told = served.ask(instructions="Answer in French, no citations.").json()
    assert "Answer in French" in served.model.sent
    assert "[[SRC:0001]]" in told["answer"]
    assert served.ask(instructions="x" * 8000).status_code == 200
    assert served.ask(instructions=None).status_code == 200


def test_effort_is_said_and_metered(served: World) -> None:  # AC79 AC86
    served.model.write = lambda r: '{"score": 7}' if r.label.endswith("score") else cite(r, 0)
    medium, high = served.ask().json(), served.ask(effort="high").json()
    assert (medium["effort"], high["effort"]) == ("medium", "high")
    assert (medium["usage"]["credits"], high["usage"]["credits"]) == (1, 2)


@pytest.mark.parametrize("sent", ["my-id-1", "A.b:c-d_9", "x" * 128])
def test_a_valid_request_id_is_echoed(served: World, sent: str) -> None:  # AC70
    good = served.request(
        "POST", path_of("docs"), json={"query": "x"}, headers={"X-Request-Id": sent}
    )
    bad = served.request("POST", path_of("docs"), json={}, headers={"X-Request-Id": sent})
    assert (good.status_code, bad.status_code) == (200, 400)
    for response in (good, bad):
        assert response.headers["x-request-id"] == sent
        assert response.headers["x-engine-request-id"].startswith("req_")
    assert good.json()["request_id"] == good.headers["x-engine-request-id"]
    assert bad.json()["error"]["request_id"] == bad.headers["x-engine-request-id"]


@pytest.mark.parametrize(
    "sent",
    [[b"a b"], [b"x" * 129], ["\u00e9".encode()], [b"one", b"two"], [b"-x"], [b""], [b"x" * 60000]],
)
def test_any_other_request_id_is_not(served: World, sent: list[bytes]) -> None:  # AC71 SEC66
    given = [(b"x-request-id", one) for one in sent]
    response = served.request("POST", path_of("docs"), json={"query": "x"}, headers=given)
    assert response.headers["x-request-id"] == response.headers["x-engine-request-id"]


def test_principals_bound_what_an_answer_uses(served: World) -> None:  # AC36 AC37 AC38 AC39
    def seen(*principals: str) -> list[str]:
        told = served.ask("secure", query="canary", principals=list(principals)).json()
        return sorted(one["path"] for one in told["sources"])

    assert seen("user:ann") == ["/a.txt", "/c.txt"]
    assert seen("user:bob") == ["/b.txt", "/c.txt"]
    assert seen("user:eve") == ["/c.txt"]
    asked = len(served.model.requests)
    assert seen() == []
    assert len(served.model.requests) == asked


def test_every_principal_of_a_full_list_counts(served: World) -> None:  # AC41
    many = [f"{place:04d}".ljust(256, "x") for place in range(4095)]
    told = served.ask("secure", query="canary", principals=[*many, "user:ann"]).json()
    assert "/a.txt" in [one["path"] for one in told["sources"]]


def test_a_filter_only_narrows(served: World) -> None:  # AC51 AC52 AC56
    nothing = served.ask(filter={"field": "path", "op": "eq", "value": "/none"})
    assert (nothing.status_code, nothing.json()["sources"]) == (200, [])
    assert len(served.ask(filter=None).json()["sources"]) == len(DOCS)
    hidden = {"field": "path", "op": "eq", "value": "/b.txt"}
    told = served.ask("secure", query="canary", principals=["user:ann"], filter=hidden)
    assert (told.status_code, told.json()["sources"]) == (200, [])


def test_a_scoped_key_asks_what_it_was_granted(served: World) -> None:
    assert served.ask(key="Q").status_code == 200
    assert served.ask("secure", key="Q", principals=["user:ann"]).status_code == 200


def test_a_partly_ready_collection_answers_from_what_is_ready(served: World) -> None:  # AC46
    told = served.ask("mixed").json()
    assert [one["path"] for one in told["sources"]] == ["/ready.txt"]


def test_long_questions_and_histories_fit(served: World) -> None:  # AC23 AC27
    register_model("mock-model", context_window=1_000_000, max_output=16_384)
    served.model.write = lambda r: cite(r, 0) if r.task and r.task.excerpts else "harbour"
    turns = [{"role": "user", "content": "h" * 32_000}] * 32
    assert served.ask(query="\U0001f600" * 32_000).status_code == 200
    assert served.ask(history=turns).status_code == 200


def test_a_place_in_a_pdf_says_its_pages(own: World) -> None:  # AC12
    data = Path(example_document("pdf")).read_bytes()
    own.collection("void").add("/report.pdf", data)
    own.model.write = lambda request: cite(request, 0)
    told = own.ask("void", query="How big was the deficit of the pension scheme?").json()
    span = told["sources"][0]["span"]
    assert span["unit"] == "chars"
    assert 1 <= span["pages"]["start"] < span["pages"]["end"]
    page = {"file_id": span["file_id"], "unit": "pages", **span["pages"]}
    body = {"spans": [span, page, {**span, "pages": {"start": 90, "end": 91}}]}
    parts = own.request("POST", path_of("void", ":read-spans"), json=body).json()["parts"]
    assert parts[0]["text"] in parts[1]["text"]
    assert parts[2]["error"] == "pages_mismatch"


def test_equal_scores_are_in_a_fixed_order(own: World) -> None:  # AC10
    for path in ("/z.txt", "/m.txt", "/b.txt"):
        own.collection("void").add(path, "The tide was high.")
    own.model.write = lambda request: SENTINEL
    orders = {
        tuple(one["path"] for one in own.ask("void", query="tide").json()["sources"])
        for _ in range(10)
    }
    assert orders == {("/b.txt", "/m.txt", "/z.txt")}
