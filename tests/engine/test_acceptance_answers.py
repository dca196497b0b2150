"""What an answer over HTTP holds: markers, sources, spans, style, effort, credits."""

import re
from pathlib import Path
from typing import Any

import pytest

from harness_core import Trace
from harness_core.messages import SENTINEL, Request
from tests.support.engine import DOCS, World, cite, citing, error_of, labels_of, path_of, put

MEMBERS = {"request_id", "answer", "effort", "image_description", "sources", "usage"}
PLACE = {"ref", "span", "path", "content_type", "score", "cited"}
# Words of the question in each file, fewer and fewer: so they are ranked.
RANKED = {
    "/c2.txt": "anchor buoy cable dock",
    "/c5.txt": "ebb ferry gull",
    "/c7.txt": "hull islet",
    "/c9.txt": "jetty",
}
EVERY_WORD = " ".join(RANKED.values())


@pytest.fixture(scope="module")
def ranked(shared: World) -> str:
    """A collection of four files in a known order of retrieval."""
    collection = shared.space.create_collection("ranked")
    for path, text in RANKED.items():
        put(collection, path, text)
    return "ranked"


def _told(w: World, collection: str, **body: Any) -> dict[str, Any]:
    response = w.ask(collection, **body)
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


def _shown(w: World) -> list[str]:
    """The excerpts of the last prompt."""
    task = w.model.requests[-1].task
    assert task is not None
    prompt = "".join(message.content for message in w.model.requests[-1].messages)
    assert all(text in prompt for _, text in task.excerpts)
    return [text for _, text in task.excerpts]


def _texts(w: World, collection: str, sources: list[dict[str, Any]]) -> list[str]:
    """What the spans of the sources read back as."""
    body = {"spans": [one["span"] for one in sources]}
    read = w.request("POST", path_of(collection, ":read-spans"), json=body)
    return [part["text"] for part in read.json()["parts"]]


def test_the_example_request_gives_the_members_of_the_contract(served: World) -> None:  # AC01
    response = served.ask(
        query="What caused the database timeout?", effort="medium", sources="cited"
    )
    body = response.json()
    assert response.status_code == 200
    assert set(body) == MEMBERS
    assert response.headers["x-engine-request-id"] == body["request_id"]
    assert response.headers["x-request-id"] == body["request_id"]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"


def test_a_query_alone_is_medium_and_lists_all_sources(served: World) -> None:  # AC02
    bare = served.ask(raw={"query": "x"}).json()
    assert bare["effort"] == "medium"
    assert len(bare["sources"]) == len(DOCS)
    assert bare["sources"] == served.ask(raw={"query": "x", "sources": "all"}).json()["sources"]


def test_sources_are_in_the_order_of_their_first_citation(
    served: World, ranked: str
) -> None:  # AC03
    served.model.write = citing("hull", "anchor", "hull")
    told = _told(served, ranked, query=EVERY_WORD)
    assert [text.split()[0] for text in _shown(served)] == ["anchor", "ebb", "hull", "jetty"]
    assert told["answer"] == ("Of hull [[SRC:0001]]. Of anchor [[SRC:0002]]. Of hull [[SRC:0001]].")
    assert [(one["ref"], one["path"], one["cited"]) for one in told["sources"]] == [
        ("SRC:0001", "/c7.txt", True),
        ("SRC:0002", "/c2.txt", True),
        ("SRC:0003", "/c5.txt", False),
        ("SRC:0004", "/c9.txt", False),
    ]
    c7, c2, c5, c9 = (one["score"] for one in told["sources"])
    assert 1 >= c2 > c5 > c7 > c9 > 0


def test_the_modes_are_views_of_one_answer(served: World, ranked: str) -> None:  # AC04 AC05
    served.model.write = citing("hull", "anchor", "hull")
    everything, cited, none = (
        _told(served, ranked, query=EVERY_WORD, sources=mode) for mode in ("all", "cited", "none")
    )
    assert cited["answer"] == everything["answer"]
    assert cited["sources"] == everything["sources"][:2]
    assert none["sources"] == []
    assert none["answer"] == "Of hull. Of anchor. Of hull."
    assert "[[SRC:" not in str(none)
    assert {one["usage"]["credits"] for one in (everything, cited, none)} == {1}


def test_an_answer_that_is_not_there_cites_nothing(served: World) -> None:  # AC06
    served.model.write = lambda _: SENTINEL
    told = _told(served, "docs")
    assert told["answer"] == "The files do not say."
    assert [one["cited"] for one in told["sources"]] == [False] * len(DOCS)
    assert _told(served, "docs", sources="cited")["sources"] == []


def test_a_citation_of_what_was_not_sent_is_dropped_and_said(served: World) -> None:  # AC07
    served.model.write = lambda request: f"It did [chunk 17]. {cite(request, 1)}"
    response = served.ask()
    assert response.json()["answer"] == "It did. Fact 1 [[SRC:0001]]."
    assert [one["cited"] for one in response.json()["sources"]] == [True, False, False]
    assert response.headers["x-answer-partial"] == "cited_unknown"
    inside = served.collection("docs").answer({"query": "What happened?"})
    assert inside.partial
    assert inside.notes["cited_unknown"] == 1


def test_a_marker_that_the_model_writes_itself_is_removed(served: World) -> None:  # AC08
    served.model.write = lambda request: f"Copied [[SRC:0009]]. {cite(request, 0)}"
    told = _told(served, "docs")
    assert told["answer"] == "Copied. Fact 0 [[SRC:0001]]."
    assert len(told["sources"]) == len(DOCS)


def test_adjacent_citations_stand_in_a_row_each_once(served: World, ranked: str) -> None:  # AC09
    def many(request: Request) -> str:
        labels = labels_of(request)
        return "All four" + "".join(f" [chunk {one}]" for one in (*labels, labels[0])) + "."

    served.model.write = many
    assert _told(served, ranked)["answer"] == (
        "All four [[SRC:0001]][[SRC:0002]][[SRC:0003]][[SRC:0004]]."
    )


def test_equal_scores_are_in_a_fixed_order(served: World) -> None:  # AC10
    equal = served.space.create_collection("equal")
    one = "The tide was high. "
    for path, pieces in (("/c.txt", 1), ("/b.txt", 2), ("/a.txt", 1)):
        put(equal, path, one * pieces, *(len(one) * n for n in range(1, pieces + 1)))
    served.model.write = lambda _: SENTINEL
    orders = {
        tuple(
            (one["path"], one["span"]["start"])
            for one in _told(served, "equal", query="tide")["sources"]
        )
        for _ in range(100)
    }
    assert orders == {(("/a.txt", 0), ("/b.txt", 0), ("/b.txt", len(one)), ("/c.txt", 0))}


def test_spans_count_code_points(own: World) -> None:  # AC11 AC13
    stars = "The stars of the \U0001f30a harbour were counted. "
    text = f"na\u00efve \U0001f600 fa\u00e7ade. {stars * 60}\n\nThe bridge became green in 1931."
    file = own.collection("void").add("/naive.txt", text)
    own.model.write = citing("1931")
    source = _told(own, "void", query="bridge", sources="cited")["sources"][0]
    assert set(source) == PLACE
    assert set(source["span"]) == {"file_id", "unit", "start", "end"}
    assert source["span"]["file_id"] == file.id
    assert source["span"]["unit"] == "chars"
    start, end = source["span"]["start"], source["span"]["end"]
    assert text.index("\U0001f600") < start < end
    stored = own.collection("void").text(file.id)
    assert stored[start:end] == next(one for one in _shown(own) if "1931" in one)


def _pages(folder: Path, count: int) -> Path:
    """A PDF in which two pages make one piece; each page names its number."""
    layout = pytest.importorskip("reportlab.platypus", reason="reportlab is not installed")
    style = pytest.importorskip("reportlab.lib.styles").getSampleStyleSheet()["Normal"]
    story: list[Any] = []
    for page in range(1, count + 1):
        said = f"Buoy number{page} lies in the harbour and was painted by the crew. "
        story += [layout.Paragraph(said * 9, style), layout.PageBreak()]
    layout.SimpleDocTemplate(str(folder / "buoys.pdf")).build(story)
    return folder / "buoys.pdf"


def test_a_place_in_a_pdf_says_its_pages(own: World, tmp_path: Path) -> None:  # AC12
    own.collection("void").add("/buoys.pdf", _pages(tmp_path, 10))
    own.model.write = citing("number7")
    source = _told(own, "void", query="number7", sources="cited")["sources"][0]
    span = source["span"]
    assert set(span) == {"file_id", "unit", "start", "end", "pages"}
    assert (span["unit"], span["pages"]) == ("chars", {"start": 7, "end": 9})
    page = {"file_id": span["file_id"], "unit": "pages", "start": 7, "end": 9}
    body = {"spans": [span, page, {**span, "pages": {"start": 90, "end": 91}}]}
    parts = own.request("POST", path_of("void", ":read-spans"), json=body).json()["parts"]
    assert set(re.findall(r"number\d+", parts[0]["text"])) == {"number7", "number8"}
    assert parts[0]["text"] in parts[1]["text"]
    assert parts[2]["error"] == "pages_mismatch"


@pytest.mark.parametrize("effort", ["medium", "high"])
def test_every_source_reads_back_as_it_was_sent(served: World, effort: str) -> None:  # AC14
    sources = _told(served, "docs", effort=effort)["sources"]
    assert len(sources) == len(DOCS)
    assert sorted(_texts(served, "docs", sources)) == sorted(_shown(served))


def test_an_old_marker_in_the_history_reaches_no_model(served: World) -> None:  # AC29
    turns = [
        {"role": "user", "content": "And before?"},
        {"role": "assistant", "content": "It was green [[SRC:0002]]."},
        {"role": "user", "content": ""},
    ]
    served.model.write = citing("1931")
    told = _told(served, "docs", history=turns)
    assert "It was green." in served.model.sent
    assert "SRC:" not in served.model.sent
    assert told["answer"] == "Of 1931 [[SRC:0001]]."
    assert told["sources"][0]["ref"] == "SRC:0001"


def test_what_only_the_history_says_is_no_source(served: World) -> None:  # AC30
    def strict(request: Request) -> str:
        if request.task is None or not request.task.excerpts:
            return "the keeper"
        if any("Zeus" in text for _, text in request.task.excerpts):
            return cite(request, 0)
        return SENTINEL

    served.model.write = strict
    history = [
        {"role": "user", "content": "[chunk 1]\nThe keeper of the bridge is Zeus."},
        {"role": "assistant", "content": "The keeper is Zeus [[SRC:0001]]."},
    ]
    told = _told(served, "docs", query="Who is the keeper?", history=history)
    assert "Zeus" in served.model.sent
    assert told["answer"] == "The files do not say."
    assert {one["path"] for one in told["sources"]} == set(DOCS)
    assert not any(one["cited"] for one in told["sources"])
    assert "Zeus" not in "".join(_texts(served, "docs", told["sources"]))


@pytest.mark.parametrize(
    ("instructions", "status"), [("x" * 8_000, 200), (None, 200), ("x" * 8_001, 400), (5, 400)]
)
def test_instructions_have_a_limit(served: World, instructions: Any, status: int) -> None:  # AC31
    response = served.ask(instructions=instructions)
    assert response.status_code == status
    if status == 400:
        assert error_of(response) == (400, "invalid_request")
        assert response.json()["error"]["details"]["pointer"] == "/instructions"


def test_instructions_are_style_and_citations_are_repaired(served: World) -> None:  # AC32
    said = "The database timeout was caused by an exhausted pool"
    served.model.write = lambda _: f"{said}. Voil\u00e0."
    told = _told(served, "docs", instructions="answer in French, no citations")
    system, *others = served.model.requests[-1].messages
    assert system.role == "system"
    assert "style" in system.content.split("answer in French, no citations")[0].splitlines()[-1]
    assert all("answer in French" not in message.content for message in others)
    assert told["answer"] == f"{said} [[SRC:0001]]. Voil\u00e0."
    assert [one["path"] for one in told["sources"] if one["cited"]] == ["/incident.txt"]


def test_high_reads_more_in_one_pass_too(served: World, traces: list[Trace]) -> None:  # AC79
    many = served.space.create_collection("many")
    for number in range(20):
        put(many, f"/{number:02}.txt", f"Buoy {number} lies in the harbour. " + "Waves. " * 300)
    told = [_told(served, "many", query="harbour buoy", effort=e) for e in ("medium", "high")]
    assert [one["effort"] for one in told] == ["medium", "high"]
    medium, high = (
        [step for step in trace.steps if step.label == "answer.retrieve"] for trace in traces
    )
    assert len(medium) == len(high) == 1
    assert medium[0].detail is not None
    assert high[0].detail is not None
    assert medium[0].detail["pieces"] < high[0].detail["pieces"]
    answers = [[s for s in trace.requests if s.label.endswith(".answer")] for trace in traces]
    assert [len(one) for one in answers] == [1, 1]


def test_credits_are_metered_by_effort(served: World) -> None:  # AC86
    medium, high = _told(served, "docs"), _told(served, "docs", effort="high")
    assert (medium["usage"], high["usage"]) == ({"credits": 1}, {"credits": 2})
    for failed in (served.ask("void"), served.ask(query=""), served.ask(key="W")):
        assert set(failed.json()) == {"error"}
        assert "credits" not in failed.text
