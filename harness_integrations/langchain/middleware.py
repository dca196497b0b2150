"""A governor as agent middleware: for agents whose models are made from strings.

Put it **last** in the list, which makes it innermost: it then wraps the model that is really
called, a fallback's too. It sees no requests that other middleware or tools make on their own
(a summariser, a classifier, a model inside a tool); govern those models themselves.
``ModelCallLimitMiddleware`` counts before the model node only: neither retries nor fallbacks nor
the summariser, no tokens, no money, and not across agents.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from harness_core.calls.ambient import trace_for
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_core.errors import BadSettingError, RequestRefused, warn
from harness_integrations.shared.extras import needs
from harness_integrations.shared.governing import UngovernedWarning

with needs("langchain-agents", "langchain", "langgraph", "langchain_core"):
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.globals import get_llm_cache
    from langchain_core.messages import AIMessage

    from harness_integrations.langchain.models import GovernedChatModel


class GovernorMiddleware(AgentMiddleware[Any, Any, Any]):
    """Every model call of an agent under a governor's limits.

    ``exit_behavior="error"`` raises ``GovernedRefusal`` out of the agent; ``"end"`` ends it with a
    message that says which limit was reached. The limits are those of the trace: a second run of
    the agent on the same budget starts where the first one stopped. With neither ``governor`` nor
    ``trace`` the budget is that of the ``governed_run`` around the run.
    """

    def __init__(
        self,
        governor: Governor | None = None,
        *,
        trace: Trace | None = None,
        exit_behavior: Literal["error", "end"] = "error",
    ) -> None:
        super().__init__()
        if exit_behavior not in ("error", "end"):
            raise BadSettingError(f"exit_behavior is error or end, not {exit_behavior!r}")
        trace_for(trace, governor)
        self.governor = governor
        self.own_trace = trace
        self.exit_behavior = exit_behavior

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Call the handler with a governed model."""
        governed = self._governed(request)
        made = _calls(governed)
        try:
            response = handler(governed)
        except RequestRefused as refusal:
            return self._ended(refusal)
        _told_when_not_asked(governed, made)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage:
        """The async twin of ``wrap_model_call``."""
        governed = self._governed(request)
        made = _calls(governed)
        try:
            response = await handler(governed)
        except RequestRefused as refusal:
            return self._ended(refusal)
        _told_when_not_asked(governed, made)
        return response

    def _governed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if isinstance(request.model, GovernedChatModel):
            return request
        governed = GovernedChatModel(request.model, trace=self.own_trace, governor=self.governor)
        return request.override(model=governed)

    def _ended(self, refusal: RequestRefused) -> AIMessage:
        if self.exit_behavior == "error":
            raise refusal
        return AIMessage(content=f"Stopped: {refusal}")


def _calls(request: ModelRequest[Any]) -> int:
    return request.model.trace.calls if isinstance(request.model, GovernedChatModel) else 0


def _told_when_not_asked(request: ModelRequest[Any], made: int) -> None:
    """Say that something further in answered in the governed model's place."""
    cached = request.model.cache or get_llm_cache() is not None
    if not cached and _calls(request) == made:
        warn(UngovernedWarning(
            "the governed model was not asked: put GovernorMiddleware last in the list, so that "
            "it wraps the model that is really called"
        ))  # fmt: skip


__all__ = ["GovernorMiddleware"]
