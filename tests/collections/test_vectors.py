"""Places found by meaning: embedded when added, embedded when asked, fused with their words."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core import (
    AuthError,
    BadSettingError,
    EmbedFallbackWarning,
    ExtractiveClient,
    Governor,
    MockClient,
    ReplayClient,
    ReplayMissError,
    Trace,
    flush_caches,
    governed_run,
    override,
)
from harness_core.collections import Budgets, Collection, Collections, Limits
from harness_core.collections.filters import compile_filter
from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import FileSet, Ranked
from tests.collections.conformance import EVERYTHING, added, embedded, made
from tests.collections.conftest import ANN, Model, opened
from tests.collections.meanings import beside, embedder, meant

MOTOR = {"query": "Which motor?"}


def paths(result: Any) -> list[str]:
    return [one.path for one in getattr(result, "sources", None) or result.results]


@pytest.fixture
def known(engine: Collections) -> Collection:
    """Many files, of which one is about a pump; its words are not those of the question."""
    return filled(beside(engine, embedder=embedder()))


def filled(engine: Collections) -> Collection:
    target = engine.namespace("acme").create_collection("known")
    for number in range(30):
        target.add(f"/{number:02}.txt", f"Report {number} on the garden. " + "Trees grow. " * 120)
    target.add("/pump.txt", "The alpha pump was repaired in March.")
    return target


def test_a_place_is_found_by_what_it_means(known: Collection) -> None:
    assert paths(known.search(MOTOR))[0] == "/pump.txt"
    result = known.answer(MOTOR)
    assert paths(result)[0] == "/pump.txt"
    assert (result.partial_reasons, result.warnings) == ([], [])


def test_without_an_embedder_nothing_is_embedded(
    engine: Collections, docs: Collection, known: Collection
) -> None:
    plain = engine.namespace("acme").collection("known")
    assert paths(plain.search(MOTOR)) == []
    assert [step.label for step in docs.answer(MOTOR).trace.requests] == ["stuff.answer"]
    assert docs.answer(MOTOR).trace.governor.limits().max_calls == 3


def test_the_question_is_embedded_in_its_trace_and_counted(known: Collection) -> None:
    trace = known.answer(MOTOR).trace
    assert [step.label for step in trace.requests] == ["embed.request", "stuff.answer"]
    assert trace.embed_tokens > 0
    assert trace.calls == 2
    search = Trace()
    known.search({"query": "another motor"}, trace=search)
    assert [step.label for step in search.requests] == ["embed.request"]


def test_first_in_every_ranking_is_one_and_scores_fall(known: Collection) -> None:
    scores = [hit.score for hit in known.search({"query": "pump", "limit": 20}).results]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    by_meaning = known.search({"query": "motor", "limit": 2}).results
    assert [hit.score for hit in by_meaning] == [0.5, round(61 / 62 / 2, 6)]


def test_vectors_never_reach_past_what_is_visible(engine: Collections) -> None:
    one = beside(engine, embedder=embedder()).namespace("acme")
    secure = one.create_collection("vectors", access_control="enforced")
    secure.add("/hidden.txt", "The motor is hidden.", principals=["other"])
    secure.add("/seen.txt", "The lawn is seen.", principals=[ANN])
    asked = {"query": "pump", "principals": [ANN]}
    before = secure.search(asked)
    assert paths(before) == ["/seen.txt"]
    secure.add("/more.txt", "motor " * 50, principals=["other"])
    after = secure.search(asked)
    assert [hit.wire() for hit in after.results] == [hit.wire() for hit in before.results]  # SEC38
    assert paths(secure.search({**asked, "principals": []})) == []


def test_a_fallen_embedder_leaves_words_and_says_so(
    engine: Collections, known: Collection, model: Model
) -> None:
    def broken(_texts: list[str]) -> object:
        raise OSError("provider words")

    target = beside(engine, embedder=embedder(broken)).namespace("acme").collection("known")
    with pytest.warns(EmbedFallbackWarning, match="nothing is ranked"):
        result = target.answer({"query": "the pump"})
    assert paths(result)[0] == "/pump.txt"
    assert (result.partial, result.partial_reasons) == (True, ["embedder"])
    assert result.warnings[0][0] == "EmbedFallbackWarning"
    assert "provider words" not in str(result.wire())
    with pytest.warns(EmbedFallbackWarning):
        hits = target.search({"query": "pump"})
    assert (paths(hits), hits.partial_reasons) == (["/pump.txt"], ["embedder"])


class Keyless(MockClient):
    def embed(self, request: Any, /) -> Any:
        raise AuthError("no key")


def test_an_embedder_without_a_key_is_a_fallen_one(
    engine: Collections, known: Collection, model: Model
) -> None:
    target = beside(engine, embedder=Keyless()).namespace("acme").collection("known")
    with pytest.warns(EmbedFallbackWarning):
        assert target.answer({"query": "the pump"}).partial_reasons == ["embedder"]
    with pytest.warns(EmbedFallbackWarning):
        assert target.add("/new.txt", "A motor.").status == "ready"


def test_an_embedder_that_takes_too_long_is_given_up(
    engine: Collections, known: Collection
) -> None:
    never = threading.Event()
    slow = embedder(lambda texts: never.wait(5) or meant(texts))
    budgets = Budgets(answer=3, soft=0.1, call=0.2, margin=0.02)
    target = beside(engine, embedder=slow, budgets=budgets).namespace("acme").collection("known")
    try:
        with pytest.warns(EmbedFallbackWarning):
            result = target.answer({"query": "the pump"})
    finally:
        never.set()
    assert {"embedder", "deadline"} == set(result.partial_reasons)


def test_the_embedder_of_readers_is_not_that_of_questions(known: Collection) -> None:
    with override(embedder="lexical"):
        assert paths(known.search(MOTOR))[0] == "/pump.txt"


@pytest.mark.anyio
async def test_asking_awaited_embeds_alike(known: Collection) -> None:
    one = await known.aanswer(MOTOR, request_id="req_1")
    assert one.wire() == known.answer(MOTOR, request_id="req_1").wire()


def test_a_limit_of_calls_covers_the_embedding(known: Collection) -> None:
    history = [{"role": "user", "content": "Of motors."}]
    result = known.answer({**MOTOR, "history": history})
    assert result.trace.calls == result.trace.governor.limits().max_calls - 1 == 3
    with pytest.warns(EmbedFallbackWarning):
        search = known.search({"query": "one more"}, trace=Trace(Governor(max_calls=0)))
    assert search.partial_reasons == ["embedder"]


def test_ungraded_candidates_stay_in_the_order_of_the_ranking(
    engine: Collections, known: Collection
) -> None:
    failing = MockClient(
        lambda messages, params: "no grade" if "score" in params["label"] else "Repaired.",
        concurrent=True,
    )
    view = beside(engine, client=failing, embedder=embedder()).namespace("acme").collection("known")
    with pytest.warns(UserWarning, match="no candidate was scored"):
        result = view.answer({**MOTOR, "effort": "high"})
    assert paths(result)[0] == "/pump.txt"
    assert "rerank" in result.partial_reasons


# --- adding ---------------------------------------------------------------------------------------


def held(target: Collection, model: str = "mock-embed") -> list[str]:
    """The paths of the files that lack vectors of a model."""
    with target._engine.store.snapshot(target.id) as snapshot:
        files = [snapshot.file(one) for one in snapshot.unembedded(model, "", 99)]
    return sorted(one.path for one in files if one is not None)


def test_files_are_embedded_in_batches_when_they_are_added(engine: Collections) -> None:
    sizes: list[int] = []

    def counting(texts: list[str]) -> list[list[float]]:
        sizes.append(len(texts))
        return meant(texts)

    target = beside(engine, embedder=embedder(counting), limits=Limits(piece_tokens=40))
    docs = target.namespace("acme").create_collection("long")
    with governed_run() as trace:
        docs.add("/long.txt", "\n\n".join(f"Part {n}: " + "the pump. " * 20 for n in range(150)))
    assert sum(sizes) >= 150
    assert max(sizes) == 64
    assert len(trace.requests) == len(sizes)
    assert held(docs) == []


def test_a_file_whose_embedding_fails_is_ready_and_found_by_its_words(engine: Collections) -> None:
    down = [True]

    def sometimes(texts: list[str]) -> list[list[float]]:
        if down[0]:
            raise OSError("down")
        return meant(texts)

    target = beside(engine, embedder=embedder(sometimes)).namespace("acme").create_collection("x")
    with pytest.warns(EmbedFallbackWarning):
        assert target.add("/a.txt", "The pump.").status == "ready"
    ready = next(event for event in target.events() if event.type == "file.ready")
    assert ready.payload["notes"] == {"not_embedded": "mock-embed"}
    with pytest.warns(EmbedFallbackWarning):
        assert paths(target.search({"query": "pump"})) == ["/a.txt"]
    assert held(target) == ["/a.txt"]
    with pytest.warns(EmbedFallbackWarning):
        assert target.embed_missing() == 0
    down[0] = False
    assert target.embed_missing() == 1
    assert held(target) == []
    assert paths(target.search({"query": "motor"})) == ["/a.txt"]


def test_slow_embedding_keeps_no_file_back(engine: Collections) -> None:
    never = threading.Event()
    slow = embedder(lambda texts: never.wait(5) or meant(texts))
    view = beside(engine, embedder=slow, limits=Limits(embedding_seconds=0.1))
    target = view.namespace("acme").create_collection("slow")
    assert view._engine.limits.lease_seconds == Limits().lease_seconds + 0.1
    try:
        with pytest.warns(EmbedFallbackWarning):
            assert target.add("/a.txt", "The pump.").status == "ready"
    finally:
        never.set()


def test_an_embedder_that_may_not_be_asked_keeps_no_file_back(engine: Collections) -> None:
    unknown = embedder(model="nobody-knows")
    target = beside(engine, embedder=unknown).namespace("acme").create_collection("x")
    with override(unknown_model_action="error"), pytest.warns(EmbedFallbackWarning):
        assert target.add("/a.txt", "The pump.").status == "ready"


def test_a_spending_limit_of_the_process_holds_while_files_are_embedded(
    engine: Collections,
) -> None:
    target = beside(engine, embedder=embedder()).namespace("acme").create_collection("x")
    with override(max_calls=0), pytest.warns(EmbedFallbackWarning):
        assert target.add("/a.txt", "The pump.").status == "ready"
    assert held(target) == ["/a.txt"]


def test_another_model_is_filled_in_beside_the_former(
    engine: Collections, docs: Collection
) -> None:
    with pytest.raises(BadSettingError, match="embedder"):
        docs.embed_missing()
    first = beside(engine, embedder=embedder()).namespace("acme").collection("docs")
    assert first.embed_missing(limit=2) == 2
    assert first.embed_missing() == 1
    assert first.embed_missing() == 0
    other = embedder(lambda texts: [[1.0, 0.0]] * len(texts), model="other")
    second = beside(engine, embedder=other).namespace("acme").collection("docs")
    assert held(docs, "other") == ["/a.txt", "/b.txt", "/c.txt"]
    assert second.embed_missing() == 3
    assert paths(first.search({"query": "gamma motor"}))[0] == "/c.txt"


def test_a_client_that_cannot_embed_is_no_embedder(tmp_path: Path) -> None:
    with pytest.raises(BadSettingError, match="cannot embed"):
        Collections(tmp_path / "s.db", embedder=ExtractiveClient())


def test_the_worker_embeds_what_was_added(tmp_path: Path) -> None:
    made_here = opened(tmp_path / "w.db", embedder=embedder())
    made_here.create_namespace("acme")
    target = made_here.namespace("acme").create_collection("docs")
    target.add("/a.txt", "The pump.", wait=False)
    assert made_here.process() == 1
    assert paths(target.search({"query": "motor"})) == ["/a.txt"]
    made_here.close()


# --- caches and recordings ------------------------------------------------------------------------


def test_vectors_of_questions_are_kept_by_text_and_model_alone(
    engine: Collections, known: Collection
) -> None:  # SEC62
    flush_caches()
    asked: list[str] = []

    def listening(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return meant(texts)

    one = beside(engine, embedder=embedder(listening, identity="one")).namespace("acme")
    secure = one.create_collection("secure-too", access_control="enforced")
    secure.add("/a.txt", "The pump.", principals=[ANN])
    asked.clear()
    for who in (ANN, "user:bob"):
        secure.search({"query": "motor", "principals": [who]})
    assert asked == ["motor"]
    two = beside(engine, embedder=embedder(listening, identity="two")).namespace("acme")
    two.collection("secure-too").search({"query": "motor", "principals": [ANN]})
    assert asked == ["motor", "motor"]


def test_a_recorded_answer_replays_with_its_vectors(
    engine: Collections, known: Collection
) -> None:  # AC81
    first = known.answer({**MOTOR, "effort": "high"}, trace=Trace(record_embeddings=True))
    again = beside(engine, client=ReplayClient(first.trace), embedder=embedder(model="gone"))
    replayed = again.namespace("acme").collection("known").answer({**MOTOR, "effort": "high"})
    assert replayed.wire() | {"request_id": ""} == first.wire() | {"request_id": ""}
    assert not replayed.partial


def test_a_recording_without_vectors_is_missed_not_guessed(
    engine: Collections, known: Collection
) -> None:
    first = known.answer(MOTOR)
    again = beside(engine, client=ReplayClient(first.trace)).namespace("acme").collection("known")
    with pytest.raises(ReplayMissError):
        again.answer({"query": "Which other motor?"})


# --- the figures ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path_factory.mktemp("vectors") / "store.db")
    store.database._writer.execute("PRAGMA synchronous = OFF")
    yield store
    store.close()


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=2).filter(any), min_size=1))
def test_the_nearest_are_those_a_plain_count_finds(
    shared: SqliteStore, rows: list[list[int]]
) -> None:
    docs = made(shared)
    added(shared, docs, "/a", "\n\n".join(f"piece {n}" for n in range(len(rows))), vectors=rows)
    matrix = np.asarray(rows, dtype=float)
    cosines = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)) @ (0.6, 0.8)
    expected = sorted(range(len(rows)), key=lambda n: (-round(cosines[n], 6), n))[:5]
    with shared.snapshot(docs.id) as snapshot:
        ranked = snapshot.nearest(snapshot.visible(EVERYTHING, None), embedded([3, 4]), 5)
        found = snapshot.passages([one.chunk for one in ranked])
    assert [one.text for one in found] == [f"piece {n}" for n in expected]
    assert [one.score for one in ranked] == pytest.approx([cosines[n] for n in expected], abs=1e-6)


class Elsewhere:
    """A ranker that leaves what it was given."""

    def rank(self, snapshot: Any, files: FileSet, query: str, limit: int) -> list[Ranked]:
        every = snapshot.pieces(snapshot.visible(compile_filter(None, {}), None))
        return [Ranked(chunk, 0, 1.0) for chunk in every]


def test_what_leaves_the_visible_files_is_stopped_with_vectors_too(
    engine: Collections, known: Collection, model: Model
) -> None:  # SEC40
    from harness_core.collections.faults import FenceError

    target = beside(engine, embedder=embedder(), ranker=Elsewhere()).namespace("acme")
    only = {"field": "path", "op": "eq", "value": "/pump.txt"}
    with pytest.raises(FenceError):
        target.collection("known").answer({**MOTOR, "filter": only})
    assert model.prompts == []
