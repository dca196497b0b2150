"""Who may read what: the rule on principals, the state of a collection, and the second fence."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from harness_core.collections.contract import EVERYONE
from harness_core.collections.faults import (
    CollectionEmptyError,
    CollectionNotReadyError,
    FenceError,
    InvalidRequestError,
)
from harness_core.collections.filters import Node
from harness_core.collections.store import Access, FileInfo, Passage, Snapshot

State = Literal["empty", "processing", "failed", "ready"]
_RETRY_SECONDS: Final = 30
_MOST_SECONDS: Final = 300
_POINTER: Final = "/principals"


def check_principals(access: Access, principals: Sequence[str] | None) -> None:
    """Principals are required where access control is enforced, and forbidden where it is off.

    Raises:
        InvalidRequestError: the rule is broken.
    """
    if access == "enforced" and principals is None:
        raise InvalidRequestError("access is enforced here: say who asks, in principals", _POINTER)
    if access == "off" and principals is not None:
        raise InvalidRequestError("access is not enforced here: principals have no place", _POINTER)


def state_of(counts: Mapping[str, int]) -> State:
    """The state of a collection, from its living files by status."""
    if counts.get("ready"):
        return "ready"
    if counts.get("pending") or counts.get("processing"):
        return "processing"
    return "failed" if counts.get("failed") else "empty"


def check_state(counts: Mapping[str, int]) -> None:
    """Whether the collection can be asked.

    Raises:
        CollectionEmptyError, CollectionNotReadyError: it cannot.
    """
    state = state_of(counts)
    if state == "empty":
        raise CollectionEmptyError
    if state == "failed":
        raise CollectionNotReadyError(None)
    if state == "processing":
        waiting = counts.get("pending", 0) + counts.get("processing", 0)
        raise CollectionNotReadyError(min(_MOST_SECONDS, max(_RETRY_SECONDS, 2 * waiting)))


def may_read(file: FileInfo | None, node: Node, principals: Sequence[str] | None) -> bool:
    """Whether a request may read a file: decided on the file alone, without the store's search."""
    if file is None or file.status != "ready" or not node.matches(file.record()):
        return False
    if principals is None:
        return True
    granted = {*file.principals}
    return not granted.isdisjoint(principals) or (bool(principals) and EVERYONE in granted)


def readable_text(
    snapshot: Snapshot, file_id: str, node: Node, principals: Sequence[str] | None
) -> str | None:
    """The text of a file that a request may read; None for one that is absent or may not."""
    seen = may_read(snapshot.file(file_id), node, principals)
    return snapshot.text(file_id) if seen else None


def with_everyone(principals: Sequence[str]) -> list[str]:
    """Whose files a request may read: what is for everyone is for whoever is somebody."""
    return [*principals, EVERYONE] if principals else []


def check_fence(
    snapshot: Snapshot, passages: Sequence[Passage], node: Node, principals: Sequence[str] | None
) -> None:
    """Look once more at every passage before a model sees it: it may be read, it is as stored.

    Raises:
        FenceError: one may not, or is not.
    """
    by_file: dict[str, list[Passage]] = defaultdict(list)
    for passage in passages:
        by_file[passage.file_id].append(passage)
    for file_id, ones in by_file.items():  # a file at a time: its text may be a large one
        text = readable_text(snapshot, file_id, node, principals)
        if text is None or any(text[p.piece.start : p.piece.stop] != p.text for p in ones):
            raise FenceError("the ranking left the files that the request may read")
