"""What governed LlamaIndex objects raise: no ValueError or TypeError, which ``Refine`` swallows."""

from llama_index_instrumentation import get_dispatcher

from harness_core.calls.trace import Trace
from harness_core.errors import HarnessError, RequestRefused
from harness_core.messages import Reply
from harness_integrations.llama_index.events import GovernorRefusalEvent

_dispatcher = get_dispatcher(__name__)


class OutputCapUnenforceable(RequestRefused, code="output_cap_unenforceable"):
    """An LLM takes no output cap that we know how to set, so what a request costs has no bound."""


class OutputInvalidError(HarnessError, RuntimeError):
    """A reply that was asked for as ``output_cls`` does not fit it."""


class QuoteError(HarnessError, RuntimeError):
    """A quotation that had to be in its source is not there."""


def raise_failed(reply: Reply, trace: Trace) -> None:
    """Raise what a failed reply stands for; nothing for one that succeeded.

    A refusal is told to LlamaIndex's handlers and stays on the trace: engines, tools and agents
    swallow it.

    Raises:
        RequestRefused: a limit refused the request.
        RequestFailed: only the record of the failure is left; else the provider's own exception.
    """
    if reply.ok:
        return
    if reply.refused:
        raise told(
            RequestRefused(reply.error or "", reply.reason or "", reply.label, reply.model), trace
        )
    if reply.cause is not None:
        raise reply.cause
    reply.unwrap()


def told(refusal: RequestRefused, trace: Trace) -> RequestRefused:
    """The refusal, kept on its trace and said to LlamaIndex's event handlers."""
    if refusal not in trace.raised:
        trace.raised.append(refusal)
    _dispatcher.event(GovernorRefusalEvent(
        reason=refusal.reason, label=refusal.label, model=refusal.model, message=str(refusal),
        run_id=trace.run_id,
    ))  # fmt: skip
    return refusal
