"""The core's pipeline, recorded with vectors, and a failure of the provider."""

import pytest

from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.sample_apps import core_app
from tests.support.openai_server import OpenAIServer


@pytest.mark.parametrize("recipe", ["fast", "needle"])
def test_the_report_is_read(
    harness_recording: HarnessRecording, server: object, recipe: str
) -> None:
    client = harness_recording.client(core_app.make_client)
    found = core_app.answer("How many passengers can the Dunlin carry?", client, recipe)
    assert "120 passengers" in found.answer


def test_a_provider_that_fails_is_said_to(
    harness_recording: HarnessRecording, server: OpenAIServer | None
) -> None:
    if server is not None:
        server.queue(status=400)
    client = harness_recording.client(core_app.make_client)
    assert core_app.check(client) == "no: 400"
