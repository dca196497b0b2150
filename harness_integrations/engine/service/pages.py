"""Lists a page at a time: where a page begins, how long it is, and what comes after it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from harness_core.collections.faults import InvalidRequestError
from harness_integrations.engine.service.calls import Call

T = TypeVar("T")
PAGE: Final = 100
PAGE_MOST: Final = 1000
BATCH: Final = 1000
PARAMETERS: Final = frozenset({"cursor", "limit"})

_CURSOR = re.compile(r"[A-Za-z0-9_-]{0,64}")
_LIMIT = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that is asked for: at most ``limit`` from after ``after`` on."""

    after: str
    limit: int

    def page(
        self, found: Sequence[T], name: Callable[[T], str], shown: Callable[[T], Any]
    ) -> dict[str, Any]:
        """The page of ``found``, which holds one more than the limit where there is more."""
        listed = found[: self.limit]
        cursor = name(listed[-1]) if len(found) > self.limit else None
        return {"items": [shown(one) for one in listed], "next_cursor": cursor}

    def filled(
        self,
        look: Callable[[str, int], Sequence[T]],
        name: Callable[[T], str],
        seen: Callable[[T], bool],
    ) -> list[T]:
        """What may be seen of a list, one more than the limit if there is so much."""
        found: list[T] = []
        after, more = self.after, True
        while more and len(found) <= self.limit:
            batch = look(after, BATCH)
            found += filter(seen, batch)
            more = len(batch) == BATCH
            after = name(batch[-1]) if batch else after
        return found


def window_of(call: Call) -> Window:
    """The part of a list that a request asks for.

    Raises:
        InvalidRequestError: a limit that is not 1 to 1,000, or what cannot be a cursor.
    """
    given = call.request.query_params
    after, limit = given.get("cursor", ""), given.get("limit", str(PAGE))
    if not _CURSOR.fullmatch(after):
        raise InvalidRequestError("cursor is what a page before gave as next_cursor", "/cursor")
    if not _LIMIT.fullmatch(limit) or not 1 <= int(limit) <= PAGE_MOST:
        raise InvalidRequestError(f"limit is 1 to {PAGE_MOST}", "/limit")
    return Window(after, int(limit))
