"""An answer that stopped at its cap, and goes on where there is time."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from harness_core.collections.deadlines import Deadline
from harness_core.flows.ask import ask, relayed
from harness_core.flows.types import Flow
from harness_core.messages import Asked, Message, Outcome, Reply, Request

T = TypeVar("T")

LABEL: Final = "answer.continue"
_GO_ON: Final = (
    "Your answer stopped at its length limit. Go on from exactly where it stops: no preamble, "
    "nothing said again."
)
_LAST_WORD = re.compile(r"(\s{1,9})\S{0,40}\Z")


def continued(flow: Flow[T], times: int, deadline: Deadline) -> Flow[T]:
    """``flow``, its answering request asked to go on, at most so often, when its reply was cut.

    What is still cut then, or finds no time, is left as it is: the reader says so.
    """
    return relayed(flow, lambda asked, outcomes: _whole(asked, outcomes, times, deadline))


def _whole(
    asked: Sequence[Asked], outcomes: Sequence[Outcome], times: int, deadline: Deadline
) -> Flow[list[Outcome]]:
    replies = list(outcomes)
    for place, (request, outcome) in enumerate(zip(asked, outcomes, strict=True)):
        if isinstance(request, Request) and request.final and isinstance(outcome, Reply):
            replies[place] = yield from _gone_on(request, outcome, times, deadline)
    return replies


def _gone_on(request: Request, reply: Reply, times: int, deadline: Deadline) -> Flow[Reply]:
    for _ in range(times):
        if not reply.cut or not reply.usable or not deadline.seconds():
            break
        said, gap = _without_last_word(reply.text)
        more = (Message("assistant", said), Message("user", _GO_ON))
        rest = yield from ask(
            replace(request, messages=(*request.messages, *more), label=LABEL, final=False)
        )
        if not rest.usable:
            break
        text = said + gap + rest.text.lstrip()
        reply = replace(reply, text=text, finish_reason=rest.finish_reason)
    return reply


def _without_last_word(text: str) -> tuple[str, str]:
    """A text without the word it may have been cut in, and the space before that word."""
    found = _LAST_WORD.search(text)
    if found is None or not text[: found.start()].strip():
        return text, ""
    return text[: found.start()], found[1]
