"""What the efforts promise beyond one request: neighbours, parts of a question, going on."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness_core import Governor, MockClient, ReplayClient, Reply, Trace, register_model
from harness_core.collections import EFFORTS, HIGH, MEDIUM, Budgets, Collection, Collections, Limits
from harness_core.collections.history import is_compound, search_lines
from tests.collections.conftest import Model, cites_all, excerpts_of
from tests.collections.meanings import beside, embedder

ASK = {"query": "Which pump was repaired?"}
FILLER = "Trees grow in the long garden. " * 30


def section(number: int, text: str) -> str:
    return f"Section {number}. {text} {FILLER}"


@pytest.fixture
def small(engine: Collections) -> Collections:
    """The same store, with files cut into small pieces."""
    return beside(engine, limits=Limits(piece_tokens=250))


@pytest.fixture
def book(small: Collections) -> Collection:
    """One file of forty sections, the twentieth about a pump, among others about nothing."""
    target = small.namespace("acme").create_collection("book")
    about = {20: "The pump was repaired by Ann.", 30: "The valve was closed by Bob."}
    text = "\n\n".join(section(n, about.get(n, "Nothing happened.")) for n in range(40))
    target.add("/book.txt", text)
    target.add("/other.txt", "\n\n".join(section(n, "Quiet.") for n in range(40)))
    return target


def sections(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"Section (\d+)\.", text)]


def stored(target: Collection, source: Any) -> str:
    return target.text(source.span.file_id)[source.span.start : source.span.end]


def test_high_reads_the_neighbours_of_a_piece_and_says_so(book: Collection) -> None:
    medium, high = book.answer(ASK), book.answer({**ASK, "effort": "high"})
    assert sections(stored(book, medium.sources[0])) == [20]
    assert sections(stored(book, high.sources[0])) == [19, 20, 21]
    read = book.read_spans({"spans": [high.sources[0].span.wire()]}).parts[0]
    assert read.text == stored(book, high.sources[0])


def test_neighbours_that_meet_are_one_source(book: Collection, model: Model) -> None:
    book.add("/twice.txt", "\n\n".join(
        section(n, "The pump, the pump." if n in (10, 12) else "Idle.") for n in range(40)
    ))  # fmt: skip
    result = book.answer({**ASK, "effort": "high"})
    mine = [stored(book, source) for source in result.sources if source.path == "/twice.txt"]
    assert [9, 10, 11, 12, 13] in [sections(text) for text in mine]


def test_neighbours_count_among_the_pieces_of_a_file(book: Collection, model: Model) -> None:
    book.add("/bad.txt", "\n\n".join(section(n, "pump repaired " * 9) for n in range(60)))  # SEC26
    result = book.answer({**ASK, "effort": "high"})
    mine = [stored(book, source) for source in result.sources if source.path == "/bad.txt"]
    assert len(sections(" ".join(mine))) == HIGH.per_file
    assert "/book.txt" in {source.path for source in result.sources}


def test_neighbours_keep_their_pages(engine: Collections) -> None:
    from harness_core.collections.retrieval import _over
    from harness_core.collections.store import Piece

    pieces = [
        Piece(start=0, stop=9, first_page=1, last_page=1, section="A"),
        Piece(start=11, stop=19, first_page=1, last_page=2, section="B"),
        Piece(start=21, stop=29),
    ]
    joined = Piece(start=0, stop=29, first_page=1, last_page=2, section="B")
    assert _over(pieces, pieces[1]) == joined


# --- lines to search by ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "compound"),
    [
        ("Which pump was repaired?", False),
        ("Who repaired the pump? When?", True),
        ("the pump; the valve", True),
        ("Who repaired the alpha pump and who closed the valve?", True),
        ("Wer hat die Pumpe repariert und wer hat das Ventil geschlossen?", True),
        ("pump and valve", False),
        ("?" * 30_000, True),
    ],
)
def test_a_compound_question_is_told_by_its_look(query: str, compound: bool) -> None:
    assert is_compound(query) is compound


def rewriting(reply: str) -> tuple[MockClient, list[str]]:
    """A model that writes these lines, and the prompts it was given to do so."""
    asked: list[str] = []

    def write(messages: list[dict[str, Any]], params: dict[str, Any]) -> str:
        prompt = "\n".join(message["content"] for message in messages)
        if params["label"] == "answer.rewrite":
            asked.append(prompt)
            return reply
        if params["label"] == "rerank.score":
            return '{"score": 8, "reason": "so"}'
        return cites_all(excerpts_of(prompt), prompt)

    return MockClient(write, concurrent=True), asked


PARTS = {"query": "What was done to it by Ann? And what was done by Bob?", "effort": "high"}


def test_the_parts_of_a_question_are_searched_for(small: Collections, book: Collection) -> None:
    client, asked = rewriting("what was done\npump Ann\nvalve Bob\nmore than two")
    target = beside(small, client=client).namespace("acme").collection("book")
    result = target.answer(PARTS)
    found = " ".join(stored(book, source) for source in result.sources)
    assert {20, 30} <= set(sections(found))
    assert len(asked) == 1
    assert "at most 3" in asked[0]
    assert result.sources[0].score <= 1
    (note,) = [step.detail for step in result.trace.steps if step.label == "answer.retrieve"]
    assert note is not None
    assert note["lines"] == 3


def test_a_question_alone_is_its_own_first_line() -> None:
    assert search_lines("q?", "a\n\n b  c \nd", None, 2) == ("q?", "b c", "d")
    assert search_lines("q?", "a\nb\nc\nd", "user: x", 2) == ("a", "b", "c")
    assert search_lines("q?", "a\nb", "user: x") == ("a b",)
    assert search_lines("q?", None, None, 2) == ("q?",)
    assert search_lines("q?", "x" * 999, "user: x", 1) == ("x" * 512,)


def test_medium_writes_no_lines_without_history(small: Collections, book: Collection) -> None:
    client, asked = rewriting("never")
    target = beside(small, client=client).namespace("acme").collection("book")
    target.answer({**PARTS, "effort": "medium"})
    assert asked == []
    history = [{"role": "user", "content": "Of pumps."}]
    target.answer({**PARTS, "effort": "medium", "history": history})
    assert len(asked) == 1
    assert "one line" in asked[0]


def test_a_rewriting_that_fails_leaves_the_question_and_says_so(
    small: Collections, book: Collection
) -> None:
    def write(_messages: list[dict[str, Any]], params: dict[str, Any]) -> Any:
        if params["label"] == "answer.rewrite":
            return Reply.failed("no", status=500)
        return '{"score": 8, "reason": ""}' if "score" in params["label"] else "Repaired."

    target = beside(small, client=MockClient(write, concurrent=True)).namespace("acme")
    with pytest.warns(UserWarning, match="the question itself"):
        result = target.collection("book").answer({**PARTS, "query": "The pump? The valve?"})
    assert result.partial_reasons == ["rewrite"]
    assert result.found


# --- an answer that stops at its cap --------------------------------------------------------------


def cut_once(*pieces: str) -> Callable[[list[dict[str, Any]], dict[str, Any]], Any]:
    """A model whose answer comes in pieces, each but the last cut at the cap."""
    left = list(pieces)

    def write(_messages: list[dict[str, Any]], params: dict[str, Any]) -> Any:
        if params["label"] == "rerank.score":
            return '{"score": 8, "reason": ""}'
        text = left.pop(0)
        return Reply(ok=True, text=text, finish_reason="length" if left else "stop")

    return write


def asked(engine: Collections, client: MockClient, **settings: Any) -> Any:
    target = beside(engine, client=client, **settings).namespace("acme").collection("docs")
    return target.answer({**ASK, "effort": "high"})


def test_an_answer_cut_at_its_cap_goes_on_once(engine: Collections, docs: Collection) -> None:
    client = MockClient(cut_once("The alpha pump was repa", "repaired in March by Ann."))
    result = asked(engine, client)
    assert "The alpha pump was repaired in March by Ann" in result.answer
    assert not result.partial
    last = client.calls()[-1]
    assert last.label == "answer.continue"
    assert [message.role for message in last.messages[-2:]] == ["assistant", "user"]
    assert last.messages[-2].content == "The alpha pump was"
    replayed = beside(engine, client=ReplayClient(result.trace)).namespace("acme")
    again = replayed.collection("docs").answer({**ASK, "effort": "high"})
    assert again.answer == result.answer


def test_an_answer_still_cut_is_truncated(engine: Collections, docs: Collection) -> None:
    client = MockClient(cut_once("The pump", " was repaired", " never asked"))
    result = asked(engine, client)
    assert result.answer.startswith("The was repaired")
    assert result.partial_reasons == ["truncated"]


def test_nothing_goes_on_without_time_or_at_medium(engine: Collections, docs: Collection) -> None:
    late = MockClient(cut_once("The pump", "never asked"))

    def clock() -> float:
        return 41.0 if any(call.label == "rerank.answer" for call in late.calls()) else 0.0

    result = asked(engine, late, budgets=Budgets(clock=clock))
    assert result.partial_reasons == ["truncated"]
    assert late.calls()[-1].label == "rerank.answer"
    medium = MockClient(cut_once("The pump", "never asked"))
    target = beside(engine, client=medium).namespace("acme").collection("docs")
    assert target.answer(ASK).partial_reasons == ["truncated"]
    assert len(medium.calls()) == 1


@pytest.mark.parametrize(
    ("first", "rest", "whole"),
    [
        ("One two", "two three", "One two three"),
        ("One two.\n\n", "Three", "One two.\n\nThree"),
        ("数据库连接", "池已耗尽", "数据库连接池已耗尽"),
        ("Cited [chunk 12", "123456789012].", "Cited [chunk 123456789012]."),
        ("x" * 50, "y", "x" * 50 + "y"),
    ],
)
def test_what_goes_on_begins_at_a_whole_word(first: str, rest: str, whole: str) -> None:
    from harness_core.collections.continuing import _without_last_word

    said, gap = _without_last_word(first)
    assert said + gap + rest == whole


def test_a_refused_continuation_leaves_what_was_said(engine: Collections, docs: Collection) -> None:
    client = MockClient(cut_once("The pump was", "never asked"))
    target = beside(engine, client=client).namespace("acme").collection("docs")
    result = target.answer({**ASK, "effort": "high"}, trace=Trace(Governor(max_calls=4)))
    assert result.answer.startswith("The pump was")
    assert "truncated" in result.partial_reasons


# --- the rest of the table ------------------------------------------------------------------------


def test_reasoning_is_asked_for_by_stage(engine: Collections, docs: Collection) -> None:
    register_model("thinker", context_window=100_000, max_output=8_000, reasoning=True)
    client = MockClient(cut_once("Repaired."), concurrent=True)
    client.model = "thinker"
    asked(engine, client)
    efforts = {call.label: call.params.get("effort") for call in client.calls()}
    assert efforts == {"rerank.score": "low", "rerank.answer": "medium"}
    plain = MockClient(cut_once("Repaired."))
    plain.model = "thinker"
    beside(engine, client=plain).namespace("acme").collection("docs").answer(ASK)
    assert plain.calls()[0].params["effort"] == "low"


class Plain(MockClient):
    """A client that takes no effort, and says so when asked for one."""

    def takes_effort(self, effort: str) -> bool:
        return False

    def adapted(self, request: Any) -> Any:
        assert request.effort is None
        return request


def test_an_effort_is_not_asked_of_clients_that_take_none(
    engine: Collections, docs: Collection
) -> None:
    assert not asked(engine, Plain(cut_once("Repaired."))).partial


def test_pieces_that_repeat_each_other_make_room(small: Collections) -> None:
    made = beside(small, embedder=embedder()).namespace("acme").create_collection("same")
    for number in range(20):
        made.add(f"/same-{number:02}.txt", f"The pump {number} is blue.")
    made.add("/zz.txt", "The alpha pump is red.")
    relevance = {"medium": replace(MEDIUM, mmr=1.0, whole_pieces=0)}
    diverse = {"medium": replace(MEDIUM, mmr=0.3, whole_pieces=0)}

    def found(efforts: Any) -> list[str]:
        view = beside(small, embedder=embedder(), efforts=efforts).namespace("acme")
        return [one.path for one in view.collection("same").answer({"query": "pump"}).sources]

    assert "/zz.txt" in found(diverse)
    assert "/zz.txt" not in found(relevance)
    assert len(found(diverse)) == MEDIUM.used
    small.namespace("acme").collection("same").add("/bare.txt", "The pump without a vector.")
    assert "/zz.txt" not in found(diverse)


def test_the_input_is_bounded_in_tokens(engine: Collections, docs: Collection) -> None:
    efforts = {"medium": replace(MEDIUM, input_tokens=15)}
    target = beside(engine, efforts=efforts).namespace("acme").collection("docs")
    assert len(target.answer(ASK).sources) == 1
    tiny = {"medium": replace(MEDIUM, input_tokens=1)}
    view = beside(engine, efforts=tiny).namespace("acme").collection("docs")
    assert len(view.answer(ASK).sources) == 1


def test_the_plans_are_those_that_are_documented() -> None:
    medium, high = EFFORTS["medium"], EFFORTS["high"]
    assert (medium.candidates, medium.taken, medium.used) == (30, 8, 8)
    assert (high.candidates, high.taken, high.used) == (30, 12, 8)
    assert (medium.per_file, high.per_file) == (4, 6)
    assert (medium.mmr, high.mmr) == (0.8, 0.7)
    assert (medium.input_tokens, high.input_tokens) == (8_000, 24_000)
    assert (medium.answer_tokens, high.answer_tokens) == (900, 1_500)
    assert (medium.max_cost_usd, high.max_cost_usd) == (0.05, 0.30)
