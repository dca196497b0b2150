"""What every governed object of a framework agrees on: its trace, its fixed model, its loop."""

import asyncio
from dataclasses import replace

from harness_core.calls.ambient import trace_for
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.client import BaseClient
from harness_core.errors import (
    EffortUnsupportedWarning,
    HarnessError,
    HarnessWarning,
    ModelFixedWarning,
    TemperatureUnsupportedWarning,
    warn,
)
from harness_core.messages import Request


class UngovernedError(HarnessError):
    """Something in an app can send requests that no limit would see; ``found`` lists it."""

    def __init__(self, message: str, found: tuple[str, ...] = ()) -> None:
        super().__init__(message, found)
        self.found = found

    def __str__(self) -> str:
        return str(self.args[0])


class UngovernedWarning(HarnessWarning):
    """Something in an app can send requests that no limit will see."""


def governed_trace(what: str, trace: Trace | None, governor: Governor | None) -> Trace:
    """The trace a governed object's request belongs to.

    Raises:
        TypeError: none of the three ways to name one was used.
    """
    found = trace_for(trace, governor)
    if found is None:
        raise TypeError(
            f"{what} has no limits to keep: give it trace=Trace(...) or governor=Governor(...), "
            "or use it inside governed_run()"
        )
    return found


def need_asyncio(what: str) -> None:
    """Raise where another event loop than asyncio's is running.

    Raises:
        RuntimeError: the frameworks' own clients would fail there, less clearly.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            f"{what} runs on asyncio: the framework's clients know no other event loop. "
            "OpenAIClient runs on trio as well"
        ) from None


class AdaptedClient(BaseClient):
    """A client whose model is fixed: what it cannot take is said once, and not recorded as sent."""

    provider = True
    takes_temperature = True

    def __init__(self) -> None:
        self._said: set[str] = set()

    def takes_effort(self, effort: str) -> bool:
        """Whether a request may carry this effort."""
        return False

    def adapted(self, request: Request) -> Request:
        """The request as this client can send it."""
        changes: dict[str, object] = {}
        if request.model not in (None, self.model):
            changes["model"] = self.model
            self.say(ModelFixedWarning(
                f"the model is fixed: requests go to {self.model!r} and are priced and recorded "
                f"so, not as {request.model!r}"
            ))  # fmt: skip
        if request.temperature is not None and not self.takes_temperature:
            changes["temperature"] = None
            self.say(
                TemperatureUnsupportedWarning(f"{self.model!r} takes no temperature; none is sent")
            )
        if request.effort is not None and not self.takes_effort(request.effort):
            changes["effort"] = None
            self.say(EffortUnsupportedWarning(
                f"{self.model!r} takes no effort {request.effort!r} per request; none is sent"
            ))  # fmt: skip
        return replace(request, **changes) if changes else request  # type: ignore[arg-type]  # by field name

    def say(self, warning: HarnessWarning) -> None:
        """Warn once per class and client."""
        if warning.code not in self._said:
            self._said.add(warning.code)
            warn(warning)
