"""Answers kept for those who ask the same over the same files, and for nobody else."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest

from harness_core import BadSettingError, BaseClient, MockClient, ReplayClient
from harness_core.collections import EFFORTS, AnswerCache, Collection, Collections
from harness_core.collections.faults import TemporarilyUnavailableError
from harness_core.collections.outcomes import Outcome
from harness_core.messages import Reply, Request
from tests.collections.conftest import ANN, BOB, Model
from tests.collections.meanings import beside, embedder

ASK = {"query": "Which pump was repaired?"}


@pytest.fixture
def cache() -> AnswerCache:
    return AnswerCache(8)


@pytest.fixture
def kept(engine: Collections, cache: AnswerCache) -> Collection:
    return beside(engine, answer_cache=cache).namespace("acme").collection("docs")


@pytest.fixture
def guarded(engine: Collections, cache: AnswerCache) -> Collection:
    return beside(engine, answer_cache=cache).namespace("acme").collection("secure")


def hit(result: Any) -> bool:
    (note,) = [step for step in result.trace.steps if step.label == "answer.cache"]
    return bool(note.detail["hit"])


def test_the_same_question_is_answered_once_at_no_credits(kept: Collection, model: Model) -> None:
    first, second = kept.answer(ASK), kept.answer(ASK)
    assert (hit(first), hit(second)) == (False, True)
    assert (first.usage.credits, second.usage.credits) == (1, 0)
    assert second.wire()["answer"] == first.wire()["answer"]
    assert second.sources == first.sources
    assert second.request_id != first.request_id
    assert len(model.prompts) == 1
    assert second.trace.calls == 0


def test_it_is_off_unless_given(docs: Collection, model: Model) -> None:  # SEC63
    docs.answer(ASK)
    again = docs.answer(ASK)
    assert len(model.prompts) == 2
    assert all(step.label != "answer.cache" for step in again.trace.steps)


def test_modes_are_shown_of_the_one_answer(kept: Collection, model: Model) -> None:
    kept.answer(ASK)
    none = kept.answer({**ASK, "sources": "none"})
    assert hit(none)
    assert (none.sources, "[[" in none.answer) == ([], False)


def test_others_see_no_answer_over_other_files(guarded: Collection) -> None:  # AC83 SEC60
    ann = guarded.answer({**ASK, "principals": [ANN]})
    bob = guarded.answer({**ASK, "principals": [BOB]})
    assert not hit(bob)
    assert {one.path for one in bob.sources} == {"/b.txt", "/c.txt"}
    assert bob.answer != ann.answer
    assert hit(guarded.answer({**ASK, "principals": ["group:eng"]}))
    assert hit(guarded.answer({**ASK, "principals": [ANN, "user:nobody"]}))


def test_a_grant_that_goes_takes_the_answer_along(guarded: Collection) -> None:  # AC84 SEC36
    assert "/a.txt" in {one.path for one in guarded.answer({**ASK, "principals": [ANN]}).sources}
    (file,) = [one for one in guarded.files() if one.path == "/a.txt"]
    guarded.update(file.id, principals=[])
    after = guarded.answer({**ASK, "principals": [ANN]})
    assert not hit(after)
    assert {one.path for one in after.sources} == {"/c.txt"}


CHANGES: dict[str, dict[str, Any]] = {
    "query": {"query": "Which pump was sold?"},
    "effort": {"effort": "high"},
    "history": {"history": [{"role": "user", "content": "Of pumps."}]},
    "instructions": {"instructions": "Be short."},
    "filter": {"filter": {"field": "path", "op": "prefix", "value": "/"}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_request_is_answered_anew(kept: Collection, change: str) -> None:  # SEC60
    kept.answer(ASK)
    assert not hit(kept.answer({**ASK, **CHANGES[change]}))
    assert hit(kept.answer({**ASK, **CHANGES[change]}))


def test_a_new_file_is_answered_from_anew(kept: Collection) -> None:
    kept.answer(ASK)
    kept.add("/d.txt", "The delta pump was repaired.")
    after = kept.answer(ASK)
    assert not hit(after)
    assert "/d.txt" in {one.path for one in after.sources}


def other(**changes: Any) -> Callable[[Collections, AnswerCache], Collections]:
    return lambda engine, cache: beside(engine, **{"answer_cache": cache, **changes})


def model_named(name: str) -> MockClient:
    client = MockClient(lambda _: "Repaired.")
    client.identity = name
    return client


OTHERS = {
    "model": other(client=model_named("other")),
    "plan": other(efforts={"medium": replace(EFFORTS["medium"], used=7)}),
    "embedder": other(embedder=embedder()),
    "vision": other(vision=model_named("seeing")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_recipe_or_model_answers_anew(
    engine: Collections, kept: Collection, cache: AnswerCache, name: str
) -> None:  # SEC60
    kept.answer(ASK)
    there = OTHERS[name](engine, cache).namespace("acme").collection("docs")
    assert not hit(there.answer(ASK))


def test_callers_are_kept_apart(kept: Collection) -> None:  # SEC63
    kept.answer(ASK, caller="key-1")
    assert not hit(kept.answer(ASK, caller="key-2"))
    assert hit(kept.answer(ASK, caller="key-1"))
    assert not hit(kept.answer(ASK, caller="key-1", matches=True))


def test_another_image_is_another_question(engine: Collections, cache: AnswerCache) -> None:
    import base64
    import struct

    def picture(width: int) -> dict[str, str]:
        head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", width, 1)
        return {"data": base64.b64encode(head).decode(), "media_type": "image/png"}

    seeing = MockClient(lambda _: "a pump")
    view = beside(engine, answer_cache=cache, vision=seeing).namespace("acme").collection("docs")
    assert not hit(view.answer({**ASK, "query_image": picture(1)}))
    assert not hit(view.answer({**ASK, "query_image": picture(2)}))
    again = view.answer({**ASK, "query_image": picture(1)})
    assert hit(again)
    assert (again.usage.credits, again.image_description) == (0, "a pump")


def test_what_was_partial_or_failed_is_not_kept(engine: Collections, cache: AnswerCache) -> None:
    cut = MockClient(lambda _: Reply(ok=True, text="Repaired.", finish_reason="length"))
    target = beside(engine, client=cut, answer_cache=cache).namespace("acme").collection("docs")
    assert target.answer(ASK).partial
    assert not hit(target.answer(ASK))
    down = MockClient(lambda _: Reply.failed("no", status=500))
    failing = beside(engine, client=down, answer_cache=cache).namespace("acme").collection("docs")
    with pytest.raises(TemporarilyUnavailableError):
        failing.answer(ASK)
    assert len(cache) == 0


class Patient(BaseClient):
    model = "mock-model"
    unpriced_ok = True

    async def asend(self, request: Request, /, *, on_text: Any = None) -> Reply:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")


@pytest.mark.anyio
async def test_a_cancelled_run_leaves_nothing(
    engine: Collections, cache: AnswerCache
) -> None:  # AC78
    target = beside(engine, client=Patient(), answer_cache=cache).namespace("acme")
    docs = target.collection("docs")
    with anyio.move_on_after(0.05) as scope:
        await docs.aanswer(ASK)
    assert scope.cancelled_caught
    assert len(cache) == 0


@pytest.mark.anyio
async def test_asking_awaited_finds_it_too(kept: Collection) -> None:
    assert not hit(await kept.aanswer(ASK))
    assert hit(await kept.aanswer(ASK))


def test_an_answer_over_files_that_changed_meanwhile_is_not_kept(
    engine: Collections, cache: AnswerCache, docs: Collection
) -> None:
    def meddling(_messages: list[dict[str, Any]]) -> str:
        docs.add("/late.txt", "The late pump.")
        return "Repaired."

    target = beside(engine, client=MockClient(meddling), answer_cache=cache).namespace("acme")
    target.collection("docs").answer(ASK)
    assert len(cache) == 0


def test_a_replay_is_never_answered_from_it(engine: Collections, kept: Collection) -> None:
    first = kept.answer(ASK)
    again = beside(engine, client=ReplayClient(first.trace), answer_cache=AnswerCache())
    replayed = again.namespace("acme").collection("docs")
    assert replayed.answer(ASK).usage.credits == 1
    assert len(again._engine.answer_cache or ()) == 0


def outcome(text: str) -> Outcome:
    return Outcome(text=text, sources=(), found=True, reasons=(), notes={}, described=None)


def test_the_oldest_answer_makes_room() -> None:
    with pytest.raises(BadSettingError, match="1 entry"):
        AnswerCache(0)
    small = AnswerCache(2)
    small.put("a", outcome("a"))
    small.put("b", outcome("b"))
    assert small.get("a") is not None
    small.put("c", outcome("c"))
    assert (small.get("b"), len(small)) == (None, 2)
    assert small.get("a") is not None


def test_threads_share_it() -> None:
    shared = AnswerCache(5)

    def use(name: str) -> None:
        for number in range(200):
            shared.put(f"{name}{number % 7}", outcome(name))
            shared.get(f"{name}{number % 5}")

    threads = [threading.Thread(target=use, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shared) == 5
