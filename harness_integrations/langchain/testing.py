"""Recorded runs as test doubles: no key, no network, no spend, and the limits still in force."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from harness_core.calls import keys
from harness_core.calls.governor import Governor
from harness_core.calls.recording import Recording
from harness_core.calls.replay import ReplayClient
from harness_core.calls.trace import Trace
from harness_core.config import setting
from harness_core.messages import Request
from harness_integrations.shared.extras import needs

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
        client = RecordedClient(trace_or_path, on_exhausted=on_exhausted, fill=like is None)
        bound = like if like is not None else UnsentChatModel(model=client.model)
        if trace is None and governor is None:
            recorded = client.recording.trace
            trace = Trace(
                Governor(**(recorded.recorded_limits or recorded.governor.limits().as_json()))
            )
        super().__init__(bound, trace=trace, governor=governor, **{"chunks": chunks, **fields})
        self._client = client

    @property
    def client(self) -> "RecordedClient":
        """What answers for this model."""
        if not isinstance(self._client, RecordedClient):
            raise TypeError("a replay model answers from its recording alone")
        return self._client

    @property
    def replay(self) -> "RecordedClient":
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
        unused = self.client.unused()
        if unused:
            shown = "; ".join(repr(text[:60]) for text in unused[:5])
            raise AssertionError(f"{len(unused)} recorded replies were never asked for: {shown}")

    def _should_stream(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        return BaseChatModel._should_stream(  # noqa: SLF001 - past the model it is like
            self, async_api=async_api, run_manager=run_manager, **kwargs
        )

    def _pieces(self, result: ChatResult) -> Iterator[ChatGenerationChunk]:
        return chunks_of(result, words=self.chunks == "words")


class RecordedClient(ReplayClient):
    """A replay that hands out LangChain's own results, one request at a time."""

    codec = CODEC

    def __init__(
        self,
        source: Source,
        *,
        on_exhausted: Literal["error", "flag"] = "error",
        fill: bool = False,
    ) -> None:
        super().__init__(source, on_exhausted=on_exhausted)
        self._settings = _settings_of(self) if fill else []

    def adapted(self, request: Request) -> Request:
        """The request with the recorded run's own settings, where it names none."""
        for settings in self._settings:
            mine = {k: v for k, v in settings.items() if getattr(request, k) in (None, ())}
            candidate = replace(request, **mine)
            temperature = candidate.temperature
            key = keys.replay_key(
                keys.message_bytes(candidate),
                candidate,
                model=candidate.model or self.model,
                temperature=setting("temperature") if temperature is None else temperature,
            )
            if self.recording.holds(key):
                return candidate
        return request

    def unused(self) -> list[str]:
        """The recorded replies that were never asked for, by the last line of their prompts."""
        found: list[str] = []
        for drawer in self.recording._drawers.values():  # noqa: SLF001 - there is no public way
            rest = drawer.ordered[drawer.taken :]
            found += [step.prompt[-1].content if step.prompt else "" for step in rest]
        return found


def _settings_of(client: ReplayClient) -> list[dict[str, Any]]:
    """The different settings of the recorded requests, in recorded order."""
    found: list[dict[str, Any]] = []
    for step in client.recording.steps:
        settings = {
            "model": step.model,
            "max_output": step.params.get("max_output_asked"),
            "temperature": step.params.get("temperature"),
            "effort": step.params.get("effort"),
            "stop": tuple(step.params.get("stop") or ()),
        }
        if settings not in found:
            found.append(settings)
    return found


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


__all__ = ["RecordedClient", "ReplayChatModel", "record"]
