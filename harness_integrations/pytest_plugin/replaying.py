"""What the replays of both frameworks share."""

from harness_core.calls.replay import ReplayClient
from harness_core.messages import Request
from harness_integrations.pytest_plugin.scrubbing import Scrubber


def scrubbed(client: ReplayClient, scrubber: Scrubber) -> None:
    """Have a replay look for requests as they stand in a recording."""
    fill = client.adapted

    def adapted(request: Request) -> Request:
        return fill(scrubber.request(request))

    client.adapted = adapted  # type: ignore[method-assign]  # of this one object
