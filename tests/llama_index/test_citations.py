"""Quotations as places in nodes, and what retrieves, ranks and checks by them."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.response.schema import Response
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler

from harness_core import Governor, RequestRefused, Trace
from harness_integrations.llama_index import (
    QuoteError,
    QuoteVerifierPostprocessor,
    ReaderRerank,
    ReaderResponse,
    ReaderRetriever,
    ReaderSynthesizer,
    verify_response_citations,
)
from harness_integrations.llama_index.nodes import places_of
from tests.support.llama import ANSWER, HARBOUR, SHIP, nodes, openai, reading_reply
from tests.support.openai_server import OpenAIServer

QUESTION = "How many passengers can the Dunlin carry?"
QUOTE = "The Dunlin carries 61 passengers"


@pytest.fixture
def reading() -> Iterator[OpenAIServer]:
    with OpenAIServer(reading_reply) as server:
        yield server


def test_every_quotation_stands_where_it_says(reading: OpenAIServer) -> None:  # 46
    given_nodes = nodes(HARBOUR, SHIP)
    response = ReaderSynthesizer("skim", openai(reading)).synthesize(QUESTION, given_nodes)
    assert isinstance(response, ReaderResponse)
    [citation] = response.citations
    own = given_nodes[1].node.get_content(MetadataMode.NONE)
    assert own[citation.start : citation.end] == citation.text == QUOTE
    assert (citation.node_id, citation.verified, citation.source) == ("n2", True, 1)
    document = f"{HARBOUR}\n\n{SHIP}"
    assert citation.document_id == "doc"
    assert citation.document_start is not None
    assert document[citation.document_start : citation.document_end] == QUOTE


def test_a_quotation_is_never_of_the_metadata(reading: OpenAIServer) -> None:  # 46
    node = TextNode(id_="m", text="Nothing here.", metadata={"title": QUOTE})
    reading.queue(text=QUOTE)
    response = ReaderSynthesizer("skim", openai(reading)).synthesize(
        QUESTION, [NodeWithScore(node=node)]
    )
    assert isinstance(response, ReaderResponse)
    assert response.citations == []
    assert response.partial


def test_a_node_without_a_place_gives_none(reading: OpenAIServer) -> None:  # 46
    bare = [NodeWithScore(node=TextNode(id_="b", text=SHIP))]
    response = ReaderSynthesizer("skim", openai(reading)).synthesize(QUESTION, bare)
    assert isinstance(response, ReaderResponse)
    assert [one.document_start for one in response.citations] == [None]


@given(
    st.lists(st.sampled_from(["ship", "“quay”", "don't", "61", "wide-open", "É"]), min_size=1),
    st.data(),
)
def test_places_are_found_over_line_ends_and_kinds_of_mark(
    words: list[str], data: st.DataObject
) -> None:
    gaps = data.draw(st.lists(st.sampled_from([" ", "\n", "\r\n", "  "]), min_size=len(words)))
    text = "Before. " + "".join(w + g for w, g in zip(words, gaps, strict=False)) + "After."
    quotation = " ".join(words).replace("“", '"').replace("”", '"')
    for start, end in places_of(quotation, text):
        assert text[start:end].split()


def test_elisions_and_lists_are_found_piece_by_piece() -> None:
    text = "The Dunlin, built in 1961, carries 61 passengers."
    spans = list(places_of("The Dunlin ... carries 61 passengers", text))
    assert [text[a:b] for a, b in spans] == ["The Dunlin", "carries 61 passengers"]


def test_the_retriever_gives_nodes_with_their_passages(reading: OpenAIServer) -> None:
    given_nodes = nodes()
    retriever = ReaderRetriever("skim", openai(reading), nodes=[one.node for one in given_nodes])
    [found] = retriever.retrieve(QUESTION)
    assert found.node.node_id == "n1"
    assert found.node.metadata["quote"] == QUOTE
    start, end = found.node.metadata["quote_start"], found.node.metadata["quote_end"]
    assert SHIP[start:end] == QUOTE
    assert QUOTE not in found.node.get_metadata_str(MetadataMode.LLM)
    assert "quote" not in given_nodes[0].node.metadata


@pytest.mark.anyio
async def test_the_retriever_awaits_and_ids_are_unique(reading: OpenAIServer) -> None:
    twice = [nodes()[0].node, nodes()[0].node]
    found = await ReaderRetriever("skim", openai(reading), nodes=twice).aretrieve(QUESTION)
    assert [one.node.node_id for one in found] == ["n1"]
    assert ReaderRetriever("skim", openai(reading), nodes=[]).retrieve(QUESTION) == []


class _Heard(BaseEventHandler):
    events: list[object] = []  # noqa: RUF012 - a field, copied for each

    @classmethod
    def class_name(cls) -> str:
        return "Heard"

    def handle(self, event: object, **kwargs: object) -> None:
        self.events.append(event)


@pytest.mark.anyio
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_rerank_puts_the_useful_node_first(reading: OpenAIServer, asynchronous: bool) -> None:
    heard = _Heard(events=[])
    get_dispatcher().add_event_handler(heard)
    rerank = ReaderRerank(openai(reading), top_n=1)
    given_nodes = nodes(HARBOUR, SHIP)
    bundle = QueryBundle(QUESTION)
    kept = (
        await rerank.apostprocess_nodes(given_nodes, bundle)
        if asynchronous
        else rerank.postprocess_nodes(given_nodes, bundle)
    )
    assert [(one.node.node_id, one.score) for one in kept] == [("n2", 9.0)]
    assert kept[0].node is given_nodes[1].node
    [start] = [one for one in heard.events if isinstance(one, ReRankStartEvent)]
    assert (start.top_n, start.model_name) == (1, "gpt-4o-mini")
    assert sum(isinstance(one, ReRankEndEvent) for one in heard.events) == 1


def test_rerank_raises_what_is_refused(reading: OpenAIServer) -> None:
    trace = Trace(Governor(max_calls=0))
    rerank = ReaderRerank(openai(reading), trace=trace)
    with pytest.raises(RequestRefused):
        rerank.postprocess_nodes(nodes(), QueryBundle(QUESTION))
    assert reading.requests == []
    assert trace.raised


def _quoting(*quotes: str) -> list[NodeWithScore]:
    found = nodes(*[SHIP] * len(quotes))
    for one, quote in zip(found, quotes, strict=True):
        one.node.metadata["quote"] = quote
    return found


@pytest.mark.anyio
async def test_the_verifier_marks_drops_or_raises() -> None:  # 47
    given_nodes = _quoting("She sank in 1970", QUOTE, "the dunlin carries  61")
    before = [one.node.metadata.copy() for one in given_nodes]
    marked = await QuoteVerifierPostprocessor(mode="mark").apostprocess_nodes(given_nodes)
    assert [one.node.metadata["quote_verified"] for one in marked] == [False, True, True]
    assert [one.score for one in marked] == [one.score for one in given_nodes]
    assert [one.node.node_id for one in marked] == ["n1", "n2", "n3"]
    assert marked[2].node.metadata["quote_start"] == 0
    kept = QuoteVerifierPostprocessor().postprocess_nodes(given_nodes)
    assert [one.node.node_id for one in kept] == ["n2", "n3"]
    with pytest.raises(QuoteError, match="n1"):
        QuoteVerifierPostprocessor(mode="raise").postprocess_nodes(given_nodes)
    assert [one.node.metadata for one in given_nodes] == before
    assert QuoteVerifierPostprocessor().postprocess_nodes(nodes()) == nodes()


def test_a_responses_citations_are_checked() -> None:
    text = f'It says "{QUOTE}" [1], and "she sank in the year 1970" [2, 7].'
    response = Response(text, source_nodes=nodes())
    checks = verify_response_citations(response)
    assert [(one.marker, one.ok) for one in checks if one.marker] == [
        (1, True),
        (2, True),
        (7, False),
    ]
    said = {one.quotation: one for one in checks if one.quotation}
    assert said[QUOTE].ok
    assert (said[QUOTE].node_id, said[QUOTE].start) == ("n1", 0)
    assert not said["she sank in the year 1970"].ok
    with pytest.raises(QuoteError, match="2 citation"):
        verify_response_citations(response, raise_on_failure=True)


def test_a_readings_citations_are_checked_too(reading: OpenAIServer) -> None:
    response = ReaderSynthesizer("skim", openai(reading)).synthesize(QUESTION, nodes())
    checks = verify_response_citations(response, raise_on_failure=True)
    assert [(one.quotation, one.ok) for one in checks] == [(QUOTE, True)]
    assert str(response) == ANSWER
