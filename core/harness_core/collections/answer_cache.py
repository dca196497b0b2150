"""Answers kept for those who ask the same over the same files; off unless it is asked for."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from harness_core.calls.trace import Trace
from harness_core.collections.outcomes import Outcome
from harness_core.errors import BadSettingError
from harness_core.flows.ask import work
from harness_core.flows.types import Flow


class AnswerCache:
    """The last ``entries`` whole answers, in memory; safe for several threads.

    An answer is found again by the same caller alone, for the same request under the same plan and
    models, over the same files at the same state of the index. What was partial is not kept. An
    answer takes some 3 kB for each of its sources.

    Raises:
        BadSettingError: fewer than one entry.
    """

    def __init__(self, entries: int = 1_000) -> None:
        if entries < 1:
            raise BadSettingError(f"a cache of answers has 1 entry or more, not {entries}")
        self.entries = entries
        self._kept: OrderedDict[str, Outcome] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Outcome | None:
        """The answer of that key."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep an answer; the one that was asked for longest ago makes room."""
        with self._lock:
            self._kept[key] = outcome
            self._kept.move_to_end(key)
            if len(self._kept) > self.entries:
                self._kept.popitem(last=False)

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)


def remembered(
    flow: Flow[Outcome], cache: AnswerCache, key: Callable[[], str], trace: Trace
) -> Flow[Outcome]:
    """The answer that is kept, or that of ``flow``, kept when it is whole.

    ``key`` reads what may be seen now: an answer over files that changed meanwhile is not kept.
    """
    with closing(flow):
        asked: str = yield from work(key)
        kept = cache.get(asked)
        trace.note("answer.cache", hit=kept is not None)
        if kept is not None:
            return replace(kept, cached=True)
        outcome = yield from flow
        if not outcome.reasons and (yield from work(key)) == asked:
            cache.put(asked, outcome)
        return outcome
