"""What an outcome cost: usage made whole, and its price. Total arithmetic."""

from dataclasses import replace

from harness_core.calls.prepare import Call
from harness_core.client import Client
from harness_core.flows.streaming import ABANDONED
from harness_core.messages import Embeddings, Outcome, Reply, Usage
from harness_core.models.prices import price
from harness_core.models.tokenizers import count_tokens, provenance

NOTHING = Usage(input=0, output=0)


def settled(call: Call, outcome: Outcome, client: Client, step: str) -> Outcome:
    """The outcome with its usage complete, its model, label and step filled in.

    A figure the provider reported is kept, a true 0 included. What is missing is counted here for
    handlers, and taken at the held bound for a provider, who may have billed it. A failure the
    provider answered, and a request that never left, cost nothing.
    """
    usage = _usage(call, outcome, client)
    return replace(outcome, usage=usage, model=call.model, label=call.label, step=step)


def priced(call: Call, outcome: Outcome) -> int | None:
    """The price of a settled outcome in pico-dollars; None when the model has no price."""
    usage = outcome.usage
    if not usage.input and not usage.output:
        return 0
    return price(call.info, usage)


def size(outcome: Outcome) -> int:
    """Tokens of prompt and reply."""
    return (outcome.usage.input or 0) + (outcome.usage.output or 0)


def bound_usage(call: Call) -> Usage:
    """The usage of a request that was sent and of which nothing is known."""
    return Usage(
        input=call.demand.prompt_tokens, output=call.demand.output, provenance="bound"
    )  # fmt: skip


def _usage(call: Call, outcome: Outcome, client: Client) -> Usage:
    reported = outcome.usage
    read, written = _count(reported.input), _count(reported.output)
    if written is None and isinstance(outcome, Embeddings):
        written = 0
    if read is not None and written is not None:
        return replace(reported, input=read, output=written)
    if not outcome.sent or _answered_error(outcome):
        missing = NOTHING
    elif client.provider and not _abandoned(outcome):
        missing = bound_usage(call)
    else:
        missing = _counted(call, outcome)
    return Usage(
        input=missing.input if read is None else read,
        output=missing.output if written is None else written,
        reasoning=reported.reasoning,
        cached_input=reported.cached_input,
        provenance=missing.provenance,
    )


def _counted(call: Call, outcome: Outcome) -> Usage:
    text = outcome.text if isinstance(outcome, Reply) else ""
    return Usage(
        input=call.prompt_tokens,
        output=count_tokens(text, call.model),
        provenance="estimated" if _abandoned(outcome) else provenance(model=call.model),
    )


def _count(value: object) -> int | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if number and 0 <= value < 2**53 else None  # type: ignore[operator,call-overload]  # a number, by the line above


def _answered_error(outcome: Outcome) -> bool:
    return not outcome.ok and outcome.status is not None and outcome.status >= 300


def _abandoned(outcome: Outcome) -> bool:
    return isinstance(outcome, Reply) and outcome.finish_reason == ABANDONED
