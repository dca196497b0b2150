"""An LCEL chain with a vector store, recorded and replayed."""

import asyncio

from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.sample_apps import chain_app


def test_the_desk_answers(harness_recording: HarnessRecording, server: object) -> None:
    embeddings = harness_recording.embeddings(chain_app.make_embeddings)
    desk = harness_recording.runnable(
        lambda model: chain_app.desk(model, embeddings), model=chain_app.make_model
    )
    assert "120 passengers" in desk.invoke("How many does the Dunlin carry?")
    pieces = list(desk.stream("And the Heron?"))
    assert len(pieces) > 3
    assert "48 passengers" in "".join(pieces)
    assert harness_recording.trace.calls == 5


def test_the_desk_answers_many_at_once(harness_recording: HarnessRecording, server: object) -> None:
    embeddings = harness_recording.embeddings(chain_app.make_embeddings)
    desk = harness_recording.runnable(
        lambda model: chain_app.desk(model, embeddings), model=chain_app.make_model
    )
    questions = ["How many does the Dunlin carry?", "And the Heron?", "When was the Dunlin built?"]
    answers = asyncio.run(desk.abatch(questions))
    assert ["120" in answers[0], "48" in answers[1], "1962" in answers[2]] == [True] * 3
    if not harness_recording.sends:  # in another order, each still gets its own answer
        assert harness_recording.recording.stats()["misses"] == 0


def test_a_ship_is_extracted(harness_recording: HarnessRecording, server: object) -> None:
    ship = harness_recording.runnable(chain_app.ship, model=chain_app.make_model)
    found = ship.invoke("Extract the ship: the Dunlin carries 120 passengers.")
    assert found == chain_app.Ship(name="Dunlin", passengers=120)
