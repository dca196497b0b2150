"""Recorded runs as test doubles: no key, no network, no spend, and the limits still in force."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from harness_core.calls.governor import Governor
from harness_core.calls.recording import Recording
from harness_core.calls.trace import Trace
from harness_integrations.shared.extras import needs
from harness_integrations.shared.recorded import RecordedClient

with needs("langchain", "langchain_core"):
    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import ChatGenerationChunk, ChatResult

    from harness_integrations.langchain.governing import govern
    from harness_integrations.langchain.models import GovernedChatModel
    from harness_integrations.langchain.replies import chunks_of
    from harness_integrations.langchain.sending import CODEC
    from harness_integrations.langchain.unsent import UnsentChatModel

R = TypeVar("R")
Source = Trace | Recording | str | Path


class ReplayChatModel(GovernedChatModel):
    """Answers from a recorded trace: tool calls, streams, structured output, sync and async.

    A request is found by what it asks (messages, tools, schema, model, cap, temperature, ...); run
    ids, message objects and generated tool-call ids do not count. What the recording does not hold
    raises ``GovernedReplayMiss``, one request too many ``GovernedReplayExhausted``. Equal requests
    are answered in recorded order. ``like`` is an un-called model whose settings and tool format
    were recorded; without it they are taken from the recording. ``chunks="whole"`` streams a text
    in one piece. The limits are the recording's, unless ``trace`` or ``governor`` names others.
    """

    chunks: Literal["words", "whole"] = "words"

    def __init__(
        self,
        trace_or_path: Source,
        *,
        like: BaseChatModel | None = None,
        on_exhausted: Literal["error", "flag"] = "error",
        chunks: Literal["words", "whole"] = "words",
        trace: Trace | None = None,
        governor: Governor | None = None,
        **fields: Any,
    ) -> None:
        client = RecordedClient(trace_or_path, CODEC, on_exhausted=on_exhausted, fill=like is None)
        bound = like if like is not None else UnsentChatModel(model=client.model)
        if trace is None and governor is None:
            recorded = client.recording.trace
            trace = Trace(
                Governor(**(recorded.recorded_limits or recorded.governor.limits().as_json()))
            )
        super().__init__(bound, trace=trace, governor=governor, **{"chunks": chunks, **fields})
        self._client = client

    @property
    def client(self) -> RecordedClient:
        """What answers for this model."""
        if not isinstance(self._client, RecordedClient):
            raise TypeError("a replay model answers from its recording alone")
        return self._client

    @property
    def replay(self) -> RecordedClient:
        """What answers a reader that is given this model."""
        return self.client

    def missed(self) -> list[dict[str, Any]]:
        """What was asked for and not recorded: label, model and message of each."""
        return self.client.missed()

    def stats(self) -> dict[str, int]:
        """recorded, distinct, hits, repeats, misses (counts of replies)."""
        return self.client.stats()

    def assert_all_used(self) -> None:
        """Every recorded reply was asked for.

        Raises:
            AssertionError: some were not; the message shows what they answer.
        """
        self.client.assert_all_used()

    def _should_stream(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        return BaseChatModel._should_stream(  # noqa: SLF001 - past the model it is like
            self, async_api=async_api, run_manager=run_manager, **kwargs
        )

    def _pieces(self, result: ChatResult) -> Iterator[ChatGenerationChunk]:
        return chunks_of(result, words=self.chunks == "words")


@contextmanager
def record(model_or_runnable: R, path: str | Path, **limits: Any) -> Iterator[R]:
    """The model or chain, its requests written to ``path``; ``limits`` are a ``Governor``'s.

    Raises:
        TraceError: the file exists: a recording is never overwritten, nor added to unasked.
        UngovernedError: the chain holds something that cannot be recorded.
    """
    trace = Trace(Governor(**limits), path=path)
    try:
        yield govern(model_or_runnable, trace=trace)
    finally:
        trace.close()


__all__ = ["ReplayChatModel", "record"]
