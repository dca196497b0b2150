"""The core's clients in a test: one that records what it sends, ones that replay."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from harness_core.calls.prepare import Call
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient, Client, OnText
from harness_core.errors import RequestRefused
from harness_core.flows.types import inside
from harness_core.messages import Embeddings, Reply, Request, Texts
from harness_core.models.registry import model_info
from harness_integrations.pytest_plugin.recordings import TestRecording
from harness_integrations.pytest_plugin.scrubbing import Scrubber

_PICO = 1e12
_FACTS = (
    "model", "embedding_model", "api", "base_url", "identity", "extra_body", "unpriced_ok",
    "in_order", "provider", "can_embed", "embedder", "codec", "cache",
)  # fmt: skip


class Sent:
    """What a test sent in traces that are not its own: the traces, and the numbers of its steps.

    ``usd`` is what all of it may cost; the request that could pass it is not sent.
    """

    def __init__(self, own: Trace, usd: float | None, *, vectors: bool) -> None:
        self.own = own
        self.steps: dict[Trace, set[str]] = {}
        self._before: dict[Trace, int] = {own: 0}
        self._usd = usd
        self._vectors = vectors

    @property
    def spent_usd(self) -> float:
        """What it cost, in all traces."""
        return sum(one.ledger.spent - before for one, before in self._before.items()) / _PICO

    def sending(self, client: Client, request: Request | Texts) -> None:
        """Note a request that is about to be sent.

        Raises:
            RequestRefused: the budget of the test run does not hold what it could cost.
        """
        here = inside.get()
        if here is None or not isinstance(here.trace, Trace):
            return
        trace = here.trace
        self._before.setdefault(trace, trace.ledger.spent)
        if self._usd is not None:
            self._check(client, request)
        if self._vectors:
            trace.record_embeddings = True
        if trace is not self.own:
            self.steps.setdefault(trace, set()).add(here.number)

    def _check(self, client: Client, request: Request | Texts) -> None:
        most, model = self._usd or 0.0, request.model or client.model
        held = sum(one.ledger.held_pico for one in self._before) / _PICO
        unpriced = not client.unpriced_ok and model_info(model).input_usd is None
        if not unpriced and self.spent_usd + held <= most:
            return
        why = f"{model!r} has no price" if unpriced else f"it could take it past ${most:.4f}"
        raise RequestRefused(
            f"the budget of this test run: the {request.label!r} request was not sent, since {why} "
            "(--harness-max-cost, harness_budget)",
            "unpriced" if unpriced else "cost", request.label, model,
        )  # fmt: skip


class RecordingClient(BaseClient):
    """``real``, each request of it noted before it is sent, whichever trace it belongs to."""

    def __init__(self, real: Client, sent: Sent) -> None:
        self.real = real
        self._sent = sent
        for name in _FACTS:
            setattr(self, name, getattr(real, name))

    def send(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Send with the real client."""
        self._sent.sending(self.real, request)
        return self.real.send(request, on_text=on_text)

    async def asend(self, request: Request, /, *, on_text: OnText | None = None) -> Reply:
        """Send with the real client."""
        self._sent.sending(self.real, request)
        return await self.real.asend(request, on_text=on_text)

    def stream(self, request: Request, /) -> Iterator[Any]:
        """Stream with the real client, where it can."""
        self._sent.sending(self.real, request)
        streaming = getattr(self.real, "stream", None)
        yield from super().stream(request) if streaming is None else streaming(request)

    async def astream(self, request: Request, /) -> AsyncIterator[Any]:
        """The async twin of ``stream``."""
        self._sent.sending(self.real, request)
        streaming = getattr(self.real, "astream", None)
        source = super().astream(request) if streaming is None else streaming(request)
        async for piece in source:
            yield piece

    def embed(self, request: Texts, /) -> Embeddings:
        """Embed with the real client."""
        self._sent.sending(self.real, request)
        return self.real.embed(request)

    async def aembed(self, request: Texts, /) -> Embeddings:
        """Embed with the real client."""
        self._sent.sending(self.real, request)
        return await self.real.aembed(request)

    def adapted(self, request: Request) -> Request:
        """The request as the real client can send it."""
        return adapted_by(self.real, request)

    def check(self) -> None:
        """Whether the real client has a credential."""
        self.real.check()


class ReplayingClient(ReplayClient):
    """Answers from a test's recording alone."""

    def __init__(self, recording: TestRecording, scrubber: Scrubber) -> None:
        super().__init__(recording)
        self.scrubber = scrubber

    def adapted(self, request: Request) -> Request:
        """The request as it would stand in the recording."""
        return self.scrubber.request(request)


class ExtendingClient(ReplayClient):
    """Answers from a test's recording what it holds, and has the rest sent and recorded."""

    def __init__(self, recording: TestRecording, live: RecordingClient) -> None:
        super().__init__(recording)
        self._recording = recording
        self._live = live
        for name in _FACTS:
            setattr(self, name, getattr(live, name))
        self.send, self.asend = live.send, live.asend  # type: ignore[method-assign]  # sent by another
        self.embed, self.aembed = live.embed, live.aembed  # type: ignore[method-assign]
        self.stream, self.astream = live.stream, live.astream  # type: ignore[method-assign]
        self.adapted, self.check = live.adapted, live.check  # type: ignore[method-assign]

    def answers(self, call: Call) -> bool:
        """Whether the recording holds the next such request."""
        return self._recording.has(call)

    def vectors_may_be_used(self, source: str) -> bool:
        """Every embedder may: what it needs is recorded or sent."""
        return True


def adapted_by(client: Client, request: Request) -> Request:
    """The request as a client can send it."""
    adapted = getattr(client, "adapted", None)
    found: Request = request if adapted is None else adapted(request)
    return found
