"""The passages that cited sources rest on: when asked for, word for word."""

import json
import re
from typing import Any

import pytest

from harness_core import MockClient
from harness_core.collections import EFFORTS, SKIM, Collection, Collections
from harness_core.collections.contract import Source, Span
from harness_core.collections.matches import HIGHLIGHT_CHARS, with_matches
from harness_core.collections.retrieval import Found
from harness_core.collections.store import Passage, Piece
from tests.collections.conftest import Model, excerpts_of
from tests.collections.meanings import beside

TEXT = (
    "Pumps are old 😀. The alpha pump was repaired in March by Ann. "
    "Nobody knows why. " + "Trees grow. " * 40
)
ASK = {"query": "Who repaired the pump?"}


def answering(text: str, quotation: str = "NONE") -> MockClient:
    """A model that cites every excerpt after ``text``, and copies ``quotation`` out of each."""

    def write(messages: list[dict[str, Any]], params: dict[str, Any]) -> str:
        prompt = "\n".join(message["content"] for message in messages)
        if params["label"] == "skim.extract":
            return quotation
        labels = [label for label, _ in excerpts_of(prompt.replace("evidence-", "excerpts-"))]
        return f"{text} {''.join(f'[chunk {label}]' for label in labels)}."

    return MockClient(write, concurrent=True)


@pytest.fixture
def noted(engine: Collections) -> Collection:
    target = engine.namespace("acme").create_collection("noted")
    target.add("/note.txt", TEXT)
    return target


def asked(engine: Collections, client: MockClient, **more: Any) -> Any:
    view = beside(engine, client=client, efforts={**EFFORTS, "high": SKIM})
    effort = more.pop("effort", "medium")
    return view.namespace("acme").collection("noted").answer({**ASK, "effort": effort}, **more)


def test_a_cited_source_names_the_passage_that_says_it(
    engine: Collections, noted: Collection
) -> None:
    result = asked(engine, answering("Ann repaired the alpha pump"), matches=True)
    (source,) = result.wire()["sources"]
    (match,) = source["matches"]
    said = "The alpha pump was repaired in March by Ann."
    start = TEXT.index(said)
    assert match["text"] == said
    assert match["span"] == {
        "file_id": source["span"]["file_id"], "unit": "chars", "start": start,
        "end": start + len(said),
    }  # fmt: skip
    assert noted.read_spans({"spans": [match["span"]]}).parts[0].text == said
    (first, last) = match["highlight"]["match_ranges"][0]
    assert match["highlight"]["text"][first:last] == said
    assert len(match["highlight"]["text"]) == HIGHLIGHT_CHARS
    assert set(match) == {"span", "text", "highlight"}
    json.dumps(result.wire())


def test_matches_are_off_unless_asked_for(engine: Collections, noted: Collection) -> None:
    result = asked(engine, answering("Ann repaired the alpha pump"))
    assert "matches" not in result.wire()["sources"][0]


def test_what_is_not_cited_or_not_there_has_no_match(
    engine: Collections, noted: Collection
) -> None:
    unlike = asked(engine, answering("Zzz"), matches=True)
    assert unlike.sources[0].cited
    assert unlike.sources[0].matches is None
    silent = asked(engine, MockClient(lambda _: "NOT_IN_DOCUMENT"), matches=True)
    assert silent.sources[0].matches is None


def test_skimming_takes_the_quotation_that_was_checked(
    engine: Collections, noted: Collection
) -> None:
    client = answering("Repaired", "Nobody knows why.")
    result = asked(engine, client, matches=True, effort="high")
    assert result.sources[0].matches[0].text == "Nobody knows why."
    assert [call.label for call in client.calls()] == ["skim.extract", "skim.answer"]
    assert not result.partial


def test_what_was_copied_from_a_source_that_is_not_cited_is_no_match(
    engine: Collections, noted: Collection
) -> None:
    noted.add("/other.txt", "The alpha pump, again.")

    def write(messages: list[dict[str, Any]], params: dict[str, Any]) -> str:
        if params["label"] == "skim.extract":
            return "The alpha pump"
        label = re.findall(r"\[chunk (\d{12})", "".join(one["content"] for one in messages))[0]
        return f"Repaired [chunk {label}]."

    result = asked(engine, MockClient(write, concurrent=True), matches=True, effort="high")
    assert [bool(source.matches) for source in result.sources] == [True, False]


def test_a_wrong_quotation_loses_its_marker_and_keeps_its_sentence(
    engine: Collections, noted: Collection
) -> None:
    client = answering("Bob repaired the alpha pump", "The alpha pump was sold by Bob in June.")
    result = asked(engine, client, matches=True, effort="high")
    assert result.answer == "Bob repaired the alpha pump."
    assert not any(source.cited for source in result.sources)
    assert result.partial_reasons == ["unverified"]


def test_skimming_reads_at_most_24_pieces(engine: Collections, model: Model) -> None:
    made = engine.namespace("acme").create_collection("many")
    for number in range(30):
        made.add(f"/{number}.txt", f"The pump {number} was repaired. " + "Trees grow. " * 100)
    client = answering("Repaired", "The pump")
    view = beside(engine, client=client, efforts={"high": SKIM}).namespace("acme")
    view.collection("many").answer({"query": "pump repaired", "effort": "high"})
    assert [call.label for call in client.calls()].count("skim.extract") == 24


@pytest.mark.parametrize(
    ("text", "start", "stop"), [("short", 0, 5), ("x" * 900, 0, 900), ("a. " * 200, 300, 302)]
)
def test_a_highlight_is_some_300_characters_around(text: str, start: int, stop: int) -> None:
    span = Span(file_id="f", unit="chars", start=1000, end=1000 + len(text))
    source = Source(ref="SRC:0001", span=span, path="/a", content_type="t", score=1, cited=True)
    piece = Piece(start=1000, stop=1000 + len(text))
    passage = Passage(
        chunk=1, file_id="f", path="/a", content_type="t", text=text, piece=piece
    )  # fmt: skip
    quotation = text[start:stop]
    (found,) = with_matches(
        "So [[SRC:0001]].", [source], {"SRC:0001": Found(passage=passage, score=1)},
        {"SRC:0001": [quotation]},
    )  # fmt: skip
    assert found.matches is not None
    highlight = found.matches[0].highlight
    assert highlight is not None
    assert len(highlight.text) <= HIGHLIGHT_CHARS
    ((first, last),) = highlight.match_ranges
    assert highlight.text[first:last] == quotation[:HIGHLIGHT_CHARS]
