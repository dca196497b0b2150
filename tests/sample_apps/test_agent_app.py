"""A LangGraph agent with tools whose model the app makes itself."""

from harness_integrations.pytest_plugin.recorder import HarnessRecording
from tests.sample_apps import agent_app
from tests.support.openai_server import OpenAIServer


def test_the_dispatcher_uses_its_tools(
    harness_recording: HarnessRecording, server: OpenAIServer | None
) -> None:
    if server is not None:
        server.queue_tool_calls(("timetable", {"ship": "Dunlin"}))
        server.queue_tool_calls(("seats_left", {"ship": "Dunlin", "time": "17:40"}))
        server.queue(text="The Dunlin leaves at 17:40 and has 12 seats left.")
    harness_recording.patch("tests.sample_apps.agent_app.make_model")
    said = agent_app.ask("Is there room on the Dunlin tonight?")
    assert said == [
        "Is there room on the Dunlin tonight?",
        "", "08:15 and 17:40",
        "", "12",
        "The Dunlin leaves at 17:40 and has 12 seats left.",
    ]  # fmt: skip
