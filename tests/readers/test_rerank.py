"""Scoring candidates one by one, and answering from the best."""

from dataclasses import replace
from typing import Any

import pytest

from harness_core.answer import Answer
from harness_core.clients.mock import MockClient
from harness_core.config import override
from harness_core.documents.types import Chunks
from harness_core.errors import (
    EmbedFallbackWarning,
    RerankDegradedWarning,
    RerankPrefilterWarning,
)
from harness_core.messages import SENTINEL, Reply
from harness_core.pipeline import estimate, read
from harness_core.readers.rerank import read_score
from tests.support.reading import (
    asked,
    chunks_of,
    client_of,
    cut_off,
    labels,
    notes_of,
    prompt,
    window,
)

QUESTION = "What did the harvest yield?"
TEXTS = (
    "The harvest was poor, said Alma.",
    "The harvest yield was nine tons, said Berta.",
    "The harvest begins in June, said Carla.",
    "A yield of eight tons of the harvest is normal, said Dora.",
)
CHUNKS = chunks_of(*TEXTS)
SCORES = {"Alma": 7, "Berta": 9, "Carla": 5, "Dora": 8}


def score(text: str) -> dict[str, Any]:
    return {"score": next(v for k, v in SCORES.items() if k in text), "reason": "r"}


def scored(client: MockClient, chunks: Chunks = CHUNKS, **more: Any) -> Answer:
    return read(chunks, QUESTION, client, {"reader": "rerank", **more})


@pytest.mark.parametrize(
    ("order", "used"),
    [("relevance", [2, 4, 1, 3]), ("document", [1, 2, 3, 4]), ("edges", [2, 1, 3, 4])],
)
def test_the_best_scores_answer_in_the_order_asked_for(order: str, used: list[int]) -> None:
    # readers 84, 72
    client = client_of({"rerank.score": score})
    answer = scored(client, context_order=order)
    assert (answer.chunks_used, answer.partial) == (used, False)
    shown = prompt(asked(client, "rerank.answer")[0])
    places = [shown.index(f"[chunk {number}]") for number in used]
    assert places == sorted(places)
    assert {row.chunk_id: row.score for row in answer.evidence} == {1: 7, 2: 9, 3: 5, 4: 8}
    assert {row.kind for row in answer.evidence} == {"verbatim"}


def test_notes_and_the_step_say_what_was_chosen() -> None:
    # readers 31 (m + 1 requests)
    client = client_of({"rerank.score": score})
    answer = scored(client, top_k=2)
    assert labels(client) == ["rerank.score"] * 4 + ["rerank.answer"]
    assert answer.notes == {
        "chunks": 4, "candidates": 4, "used": 2, "dropped_chunks": 0, "scoring_failures": 0,
        "unscorable": 0, "truncated_calls": 0, "prefilter": "bm25", "degraded_to_bm25": False,
    }  # fmt: skip
    assert notes_of(answer.trace, "rerank.select") == [{
        "candidates": 4, "kept": 2, "prefilter": "bm25", "degraded_to_bm25": False,
        "context_order": "relevance", "scores": [9, 8, 7, 5],
    }]  # fmt: skip


def test_a_scoring_request_shows_the_bare_text_and_goes_to_the_cheaper_model() -> None:
    client = client_of({"rerank.score": score})
    scored(client, skim_model=window(5000), cite=True)
    one = asked(client, "rerank.score")[0]
    assert one.messages[1].content == f"Question: {QUESTION}"
    assert "[chunk" not in one.messages[2].content
    assert "harvest" in one.messages[2].content
    assert (one.params["model"], one.params["max_output"]) == (window(5000), 200)
    assert one.params["schema_name"] == "relevance"
    assert asked(client, "rerank.answer")[0].params["model"] == "mock-model"


@pytest.mark.parametrize(("least", "found"), [(4, True), (8, True), (9, False)])
def test_a_threshold_that_nothing_reaches_is_a_whole_negative(least: float, found: bool) -> None:
    # readers 85
    client = client_of({"rerank.score": {"score": 8, "reason": ""}})
    answer = scored(client, rerank_min_score=least)
    assert (answer.found, answer.partial) == (found, False)
    if not found:
        assert answer.answer == SENTINEL
        assert answer.chunks_used == []
        assert answer.evidence == []
        assert answer.notes["reason"] == "no candidate scored 9 or more"
        assert "rerank.answer" not in labels(client)


def test_only_candidates_are_scored() -> None:
    client = client_of({"rerank.score": score})
    scored(client, rerank_candidates=2)
    assert "Berta" in prompt(client.calls()[0])
    assert "Dora" in prompt(client.calls()[1])
    assert labels(client) == ["rerank.score"] * 2 + ["rerank.answer"]


WORDLESS = chunks_of(*(f"Paragraph {n} tells of mill number {n}." for n in range(1, 21)))


def test_similarity_picks_the_candidates_where_words_cannot() -> None:
    # readers 86
    def near(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "13" in t or "?" in t else [0.1, 1.0 + len(t)] for t in texts]

    client = MockClient(lambda _m, p: '{"score": 9}' if "score" in p["label"] else "Yes.", near)
    with pytest.warns(RerankPrefilterWarning, match="similarity"):
        answer = read(WORDLESS, "Wo?", client, {"reader": "rerank", "rerank_candidates": 4})
    assert (answer.notes["prefilter"], answer.partial) == ("embedding", False)
    assert 13 in answer.chunks_used


def test_an_evenly_spread_sample_stands_in_where_nothing_can_rank() -> None:
    # readers 87
    client = client_of({"rerank.score": {"score": 0, "reason": ""}})
    spec = {"reader": "rerank", "rerank_candidates": 4}
    with override(embedder="lexical"), pytest.warns(RerankPrefilterWarning, match="spread"):
        answer = read(WORDLESS, "Wo?", client, spec)
    numbers = [prompt(call).split("Paragraph ")[1].split()[0] for call in client.calls()]
    assert numbers == ["3", "8", "13", "18"]
    assert (answer.answer, answer.partial) == (SENTINEL, True)
    assert answer.notes["prefilter"] == "spread"


def test_embeddings_that_fail_rank_nothing() -> None:
    def broken(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("down")

    client = MockClient(lambda _m, p: '{"score": 9}' if "score" in p["label"] else "Yes.", broken)
    spec = {"reader": "rerank", "rerank_candidates": 4}
    with pytest.warns(EmbedFallbackWarning), pytest.warns(RerankPrefilterWarning, match="spread"):
        answer = read(WORDLESS, "Wo?", client, spec)
    assert (answer.found, answer.partial, answer.chunks_used) == (True, True, [3, 8, 13, 18])
    assert "an evenly spread sample" in " ".join(answer.reasons())


def test_vectors_that_are_all_alike_rank_nothing() -> None:
    client = MockClient(lambda _m, p: '{"score": 9}', lambda texts: [[1.0, 0.0] for _ in texts])
    with pytest.warns(RerankPrefilterWarning, match="spread"):
        answer = read(WORDLESS, "Wo?", client, {"reader": "rerank", "rerank_candidates": 4})
    assert answer.partial
    assert answer.notes["prefilter"] == "spread"


@pytest.mark.parametrize(("question", "most"), [("Which mill?", 4), ("Wo?", 20), ("Wo?", 50)])
def test_words_or_room_for_every_chunk_need_no_vectors(question: str, most: int) -> None:
    # readers 88
    client = client_of({"rerank.score": {"score": 9, "reason": ""}})
    answer = read(WORDLESS, question, client, {"reader": "rerank", "rerank_candidates": most})
    assert (answer.notes["prefilter"], answer.warnings, client.embeds()) == ("bm25", [], [])


BULKY = chunks_of(*(f"Harvest {n}. " + "The barn was full of it. " * 30 for n in range(6)))


def test_chosen_chunks_that_do_not_fit_are_dropped_and_counted() -> None:
    # readers 89
    client = client_of({"rerank.score": {"score": 9, "reason": ""}})
    answer = scored(client, BULKY, model=window(1450), max_answer_tokens=300)
    assert len(answer.chunks_used) == 3
    assert answer.partial
    assert answer.notes["dropped_chunks"] == 3
    assert "3 chunk(s) did not fit" in answer.reasons()


def test_nothing_is_asked_when_no_chosen_chunk_fits() -> None:
    # readers 90
    client = client_of({"rerank.score": {"score": 9, "reason": ""}})
    small = window(400, max_output=60)
    answer = scored(client, BULKY, model=small, skim_model="mock-model")
    assert set(labels(client)) == {"rerank.score"}
    assert (answer.answer, answer.partial) == (SENTINEL, True)
    assert (answer.notes["used"], answer.notes["dropped_chunks"]) == (0, 6)


def test_word_matching_decides_when_no_candidate_is_scored() -> None:
    # readers 91
    client = client_of({"rerank.score": RuntimeError("no schema here")})
    with pytest.warns(RerankDegradedWarning, match="structured output"):
        answer = scored(client)
    assert answer.found
    assert answer.partial
    assert answer.chunks_used[0] in (2, 4)
    assert answer.notes["scoring_failures"] == 4
    assert answer.notes["degraded_to_bm25"]
    said = answer.reasons()
    assert "relevance fell back to word matching" in said
    assert "fell back to a simpler method" not in said


def test_chunks_that_are_ranked_keep_their_order_when_none_is_scored() -> None:
    ranked = replace(CHUNKS, extra={"ranked": True})
    client = client_of({"rerank.score": RuntimeError("no schema here")})
    with pytest.warns(RerankDegradedWarning):
        answer = scored(client, ranked)
    assert answer.chunks_used == [1, 2, 3, 4]
    with pytest.warns(RerankDegradedWarning):
        assert scored(client, ranked, rerank_candidates=2).chunks_used == [1, 2]
    assert answer.notes["prefilter"] == "given"


def test_what_was_not_judged_is_left_out_and_makes_it_partial() -> None:
    replies: list[Any] = [{"score": 9}, "not JSON", {"score": 11}, {"score": 4}]
    client = client_of({"rerank.score": replies})
    answer = scored(client)
    assert len(answer.chunks_used) == 2
    assert answer.partial
    assert (answer.notes["scoring_failures"], answer.notes["unscorable"]) == (1, 1)


def test_an_answer_beside_scores_that_are_no_numbers_says_so() -> None:
    client = client_of(
        {"rerank.score": [{"score": 9}, {"score": "high"}, {"score": 8}, {"score": 2}]}
    )
    answer = scored(client)
    assert answer.partial
    assert answer.reasons() == ["1 candidate(s) were not judged"]


def test_a_degraded_scoring_counts_what_became_of_each_candidate() -> None:
    client = client_of(
        {"rerank.score": ["prose", {"score": None}, {"score": -1}, {"score": [1, 2]}]}
    )
    with pytest.warns(RerankDegradedWarning, match=r"1 request\(s\) failed, 3 gave no number"):
        answer = scored(client)
    assert (answer.notes["scoring_failures"], answer.notes["unscorable"]) == (1, 3)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ('{"score": 7}', ("scored", 7)),
        ('{"score": "7"}', ("scored", 7)),
        ('{"score": [7]}', ("scored", 7)),
        ('```json\n{"score": 0}\n```', ("scored", 0)),
        ('{"score": 10.5}', ("unscorable", 0)),
        ('{"score": true}', ("unscorable", 0)),
        ('{"score": NaN}', ("unscorable", 0)),
        ('{"scores": 7}', ("unscorable", 0)),
        ("7", ("failed", 0)),
        ("[7]", ("failed", 0)),
        ("{}", ("failed", 0)),
    ],
)
def test_a_score_is_one_number_from_0_to_10(reply: str, outcome: tuple[str, float]) -> None:
    assert read_score(Reply(ok=True, text=reply)) == outcome


def test_a_score_that_was_not_sent_is_capped_and_not_failed() -> None:
    assert read_score(Reply(ok=False, refused=True, reason="calls")) == ("capped", 0)


def test_a_cut_off_answer_is_used_and_counted() -> None:
    # readers 44
    client = client_of({"rerank.score": score, "rerank.answer": cut_off("Nine t")})
    answer = scored(client)
    assert (answer.answer, answer.partial, answer.notes["truncated_calls"]) == ("Nine t", True, 1)


class Posting(MockClient):
    """A mock that counts as a provider, so that its embeddings are requests."""

    provider = True


@pytest.mark.parametrize(("question", "embeds"), [("Wo?", 1), ("Which mill?", 0)])
def test_embeddings_are_counted_ahead_only_where_words_cannot_choose(
    question: str, embeds: int
) -> None:
    # readers 175
    found = estimate(WORDLESS, question, "rerank", client=Posting(), rerank_candidates=4)
    assert (found.embed_calls, found.calls) == (embeds, embeds + 5)
