"""A recorded run that answers for a framework's model, in the framework's own reply objects."""

from dataclasses import replace
from typing import Any, Literal

from harness_core.calls import keys
from harness_core.calls.replay import ReplayClient
from harness_core.client import Codec
from harness_core.config import setting
from harness_core.messages import Request


class RecordedClient(ReplayClient):
    """A replay whose replies ``codec`` unpacks.

    With ``fill`` a request that leaves settings open is asked with those of the recording.
    """

    def __init__(
        self,
        source: Any,
        codec: Codec,
        *,
        on_exhausted: Literal["error", "flag"] = "error",
        fill: bool = False,
    ) -> None:
        super().__init__(source, on_exhausted=on_exhausted)
        self.codec = codec
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
        """The recorded replies that were never asked for, by the last message of their prompts."""
        found: list[str] = []
        for drawer in self.recording._drawers.values():  # noqa: SLF001 - there is no public way
            rest = drawer.ordered[drawer.taken :]
            found += [step.prompt[-1].content if step.prompt else "" for step in rest]
        return found

    def assert_all_used(self) -> None:
        """Every recorded reply was asked for.

        Raises:
            AssertionError: some were not; the message shows what they answer.
        """
        if unused := self.unused():
            shown = "; ".join(repr(text[:60]) for text in unused[:5])
            raise AssertionError(f"{len(unused)} recorded replies were never asked for: {shown}")


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
