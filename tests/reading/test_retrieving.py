"""Retrieve: which chunks it picks, in which order they are shown, what it tells."""

from typing import Any

import pytest

from harness_core import (
    Chunks,
    ExtractiveClient,
    MockClient,
    ReadSpec,
    ReplayClient,
    Trace,
    new_chunks,
    override,
    read,
    register_embedder,
    register_model,
)
from harness_core.clients.callable import CallableClient
from harness_core.errors import (
    EmbedFallbackWarning,
    NoEmbeddingsWarning,
    ReplayNoEmbeddingsWarning,
)
from tests.support.reading import QUESTION, prompt_of, saying

TEXTS = [
    "Mitochondria make energy for the cell, and a cell has many of them.",
    "The cafeteria serves soup on Monday and fish on Friday at noon.",
    "Revenue was 45.2 million dollars in 2025, up from 41 million.",
    "Parking is behind the building, and there is room for forty cars.",
    "Revenue was 45.2 million dollars in 2025, up from 41 million in 2024.",
    "Revenue was 45.1 million dollars in 2025, up from 41 million.",
    "Costs were 38 million dollars in 2025, of which wages were half.",
]


@pytest.fixture
def chunks() -> Chunks:
    return new_chunks(TEXTS)


def used(chunks: Chunks, **settings: Any) -> Any:
    with override(embedder="lexical"):
        return read(chunks, QUESTION, saying(), ReadSpec("retrieve", **settings))


def test_the_chunk_with_the_question_s_words_is_picked() -> None:  # readers 68
    answer = used(new_chunks(TEXTS[:4]), top_k=1)
    assert answer.chunks_used == [3]
    assert [row.text for row in answer.evidence] == [TEXTS[2]]
    assert 0 < answer.evidence[0].score <= 1


def test_spelling_the_defaults_out_changes_nothing(chunks: Chunks) -> None:  # readers 69
    plain = used(chunks)
    spelled = used(chunks, mmr=1, context_order="relevance", top_k=6)
    assert plain.chunks_used == spelled.chunks_used
    assert (plain.notes["mmr"], plain.notes["context_order"]) == (1, "relevance")


def test_diversity_picks_another_set_that_begins_alike(chunks: Chunks) -> None:  # readers 70
    plain, varied = used(chunks, top_k=3), used(chunks, top_k=3, mmr=0.3)
    assert len(plain.chunks_used) == len(varied.chunks_used) == 3
    assert plain.chunks_used[0] == varied.chunks_used[0]
    assert set(plain.chunks_used) != set(varied.chunks_used)
    assert varied.notes["mmr"] == 0.3


def test_the_order_shown_is_not_the_set_chosen(chunks: Chunks) -> None:  # readers 71
    by = {
        order: used(chunks, top_k=4, context_order=order)
        for order in ("relevance", "document", "edges")
    }
    sets = {frozenset(answer.chunks_used) for answer in by.values()}
    assert len(sets) == 1
    assert by["document"].chunks_used == sorted(by["document"].chunks_used)
    assert by["edges"].chunks_used != by["relevance"].chunks_used
    assert by["edges"].notes["context_order"] == "edges"


@pytest.mark.parametrize("order", ["relevance", "document", "edges"])
def test_the_prompt_shows_the_chunks_in_the_order_told(
    chunks: Chunks, order: Any
) -> None:  # readers 72
    client = saying()
    answer = read(chunks, QUESTION, client, ReadSpec("retrieve", top_k=4, context_order=order))
    text = prompt_of(client, 0)
    places = [text.index(f"[chunk {number}]\n") for number in answer.chunks_used]
    assert places == sorted(places)
    assert [row.chunk_id for row in answer.evidence] == answer.chunks_used


def test_when_no_chunk_is_similar_enough_the_best_is_taken(chunks: Chunks) -> None:  # readers 73
    assert len(used(chunks, min_score=99).chunks_used) == 1
    assert len(used(chunks, top_k=3).chunks_used) == 3


def test_the_ranking_is_a_step_of_the_trace(chunks: Chunks) -> None:
    answer = used(chunks, top_k=3)
    (step,) = [step for step in answer.trace.steps if step.label == "retrieve.rank"]
    detail = step.detail or {}
    assert (detail["k"], detail["kept"], detail["embedding_source"]) == (3, 3, "lexical")
    assert len(detail["top_scores"]) == 5
    assert detail["top_scores"] == sorted(detail["top_scores"], reverse=True)


def test_chunks_that_do_not_fit_are_dropped_whole() -> None:
    register_model("narrow-1", context_window=900, max_output=200, input_usd=0, output_usd=0)
    texts = [f"Revenue of unit {n} was {n} million. " * 15 for n in range(1, 7)]
    client = saying()
    answer = read(
        new_chunks(texts),
        QUESTION,
        client,
        ReadSpec("retrieve", model="narrow-1", max_answer_tokens=100),
    )
    dropped = answer.notes["dropped_chunks"]
    assert 0 < dropped < 6
    assert answer.notes["used"] == len(answer.chunks_used) == 6 - dropped
    assert answer.partial


def test_choosing_lexical_vectors_is_no_fallback(chunks: Chunks) -> None:
    answer = used(chunks)
    assert (answer.notes["embedding_source"], answer.notes["embedding_fallback"]) == (
        "lexical", False,
    )  # fmt: skip
    assert not answer.partial


def test_a_client_may_prefer_lexical_vectors(chunks: Chunks) -> None:
    answer = read(chunks, QUESTION, ExtractiveClient(), "retrieve")
    assert (answer.notes["embedding_source"], answer.partial, answer.warnings) == (
        "lexical", False, [],
    )  # fmt: skip
    assert answer.evidence[0].text in TEXTS
    again = read(chunks, QUESTION, ReplayClient(answer.trace), "retrieve")
    assert (again.chunks_used, again.warnings) == (answer.chunks_used, [])


def test_a_client_that_cannot_embed_makes_the_answer_partial(chunks: Chunks) -> None:
    register_model("mute-1", context_window=8000, max_output=500, input_usd=0, output_usd=0)
    client = CallableClient(lambda messages: "Revenue was 45.2 million.", model="mute-1")
    with pytest.warns(NoEmbeddingsWarning):
        answer = read(chunks, QUESTION, client, "retrieve")
    assert answer.partial
    assert "embeddings fell back to word matching" in answer.reasons()


def test_a_failed_embedding_request_is_recovered_and_told(chunks: Chunks) -> None:
    def broken(texts: list[str]) -> Any:
        raise RuntimeError("no vectors today")

    with pytest.warns(EmbedFallbackWarning):
        answer = read(chunks, QUESTION, MockClient(embed=broken), "retrieve")
    assert answer.partial
    assert [error["recovered"] for error in answer.trace.errors] == [True]
    assert answer.totals().recovered == 1


def test_a_recording_that_holds_vectors_ranks_by_them(chunks: Chunks) -> None:
    trace = Trace(record_embeddings=True)
    first = read(chunks, QUESTION, MockClient(), "retrieve", trace=trace)
    again = read(chunks, QUESTION, ReplayClient(trace), "retrieve")
    assert (again.answer, again.chunks_used) == (first.answer, first.chunks_used)
    assert (again.notes["embedding_source"], again.partial, again.warnings) == ("api", False, [])
    assert again.totals().embed_calls == first.totals().embed_calls == 1


def test_vectors_this_process_remembers_are_recorded_too(chunks: Chunks) -> None:
    client = MockClient()
    read(chunks, QUESTION, client, "retrieve")
    trace = Trace(record_embeddings=True)
    first = read(chunks, QUESTION, client, "retrieve", trace=trace)
    again = read(chunks, QUESTION, ReplayClient(trace), "retrieve")
    assert again.chunks_used == first.chunks_used


@pytest.mark.parametrize("embedder", [None, "lexical"])
def test_a_recording_without_vectors_is_not_ranked_by_others(
    chunks: Chunks, embedder: str | None
) -> None:
    first = read(chunks, QUESTION, MockClient(), ReadSpec("retrieve", top_k=7))
    spec = ReadSpec("retrieve", top_k=7, context_order="document")
    first = read(chunks, QUESTION, MockClient(), spec)
    with override(embedder=embedder), pytest.warns(ReplayNoEmbeddingsWarning):
        again = read(chunks, QUESTION, ReplayClient(first.trace), spec)
    assert again.partial


def test_an_embedder_that_is_not_deterministic_is_not_used_in_a_replay(chunks: Chunks) -> None:
    def lengths(texts: list[str], params: Any) -> Any:
        return [[float(len(text)), 1.0] for text in texts]

    register_embedder("lengths", lengths)
    register_embedder("sure-lengths", lengths, deterministic=True)
    for name, exact in (("lengths", False), ("sure-lengths", True)):
        with override(embedder=name):
            spec = ReadSpec("retrieve", top_k=7, context_order="document")
            first = read(chunks, QUESTION, MockClient(), spec)
            if exact:
                again = read(chunks, QUESTION, ReplayClient(first.trace), spec)
                assert again.notes["embedding_source"] == name
            else:
                with pytest.warns(ReplayNoEmbeddingsWarning):
                    read(chunks, QUESTION, ReplayClient(first.trace), spec)
