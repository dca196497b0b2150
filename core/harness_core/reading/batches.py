"""Per-chunk batches: sent side by side, or one by one with a pause when that is asked for."""

from collections.abc import Sequence

from harness_core.flows.ask import ask, ask_all
from harness_core.flows.types import Flow, Pause
from harness_core.messages import Reply, Request
from harness_core.reading.job import Job, limit_words


def ask_each(job: Job, requests: Sequence[Request]) -> Flow[list[Reply]]:
    """Ask side by side, or one at a time with ``delay_between_calls`` seconds in between."""
    delay = job.spec.delay_between_calls
    if delay <= 0:
        return (yield from ask_all(requests))
    replies: list[Reply] = []
    for request in requests:
        if replies:
            yield Pause(delay)
        replies.append((yield from ask(request)))
    return replies


def failures(replies: Sequence[Reply]) -> int:
    """How many were sent and brought nothing; one that a limit kept back is no failure."""
    return sum(not reply.usable and not reply.refused for reply in replies)


def why_nothing(replies: Sequence[Reply], when_answered: str) -> str:
    """Why a batch brought nothing, in words."""
    refused = [reply for reply in replies if reply.refused]
    if any(reply.usable for reply in replies):
        return when_answered
    if refused and len(refused) == len(replies):
        return f"the {limit_words(refused[0])} stopped every request"
    return "every request that was sent failed" if refused else "every request failed"
