"""Rows of a store as the things they are; every store names its columns alike."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from harness_core.collections.faults import IdempotencyConflictError
from harness_core.collections.store import (
    CollectionInfo,
    Event,
    FileInfo,
    NamespaceInfo,
    Passage,
    Piece,
    TextForm,
)
from harness_core.collections.times import shown

ATTEMPTS: Final = 3
"""How often a file is taken up: one that ends each process that reads it is given up."""
GIVEN_UP: Final = {
    "code": "corrupt", "message": "processing it ended this process's predecessors",
}  # fmt: skip

REPLIES_KEPT_US: Final = 86_400_000_000
EVENTS_KEPT: Final = 100_000
"""An event is kept until its store has numbered so many more."""


class Row(Protocol):
    """A row, by column."""

    def __getitem__(self, column: str, /) -> Any: ...
    def keys(self) -> Iterable[str]: ...


def as_namespace(row: Row) -> NamespaceInfo:
    """A row of ``namespace``."""
    return NamespaceInfo(id=row["id"], name=row["name"], created_at=shown(row["created_us"]))


def as_collection(row: Row) -> CollectionInfo:
    """A row of ``collection``."""
    return CollectionInfo(
        id=row["id"],
        name=row["name"],
        namespace_id=row["namespace"],
        access_control=row["access"],
        metadata_fields=json.loads(row["fields"]),
        created_at=shown(row["created_us"]),
    )


def as_file(row: Row, principals: Iterable[str]) -> FileInfo:
    """A row of ``file`` and its grants."""
    return FileInfo(
        id=row["fid"],
        path=row["path"],
        content_type=row["content_type"],
        bytes=row["bytes"],
        status=row["status"],
        created_at=shown(row["created_us"]),
        updated_at=shown(row["updated_us"]),
        error=json.loads(row["error"]) if row["error"] else None,
        metadata=json.loads(row["metadata"]),
        principals=tuple(principals),
    )


def as_passage(row: Row) -> Passage:
    """A row of ``chunk`` with its text and its file's ``fid``, path and content type."""
    return Passage(
        chunk=row["id"],
        file_id=row["fid"],
        path=row["path"],
        content_type=row["content_type"],
        text=row["text"],
        piece=as_piece(row),
    )


def as_piece(row: Row) -> Piece:
    """A row of ``chunk``."""
    return Piece(
        start=row["start"],
        stop=row["stop"],
        first_page=row["first_page"],
        last_page=row["last_page"],
        section=row["section"],
    )


def about(row: Row | None) -> dict[str, Any]:
    """What an event says of the row of ``file`` that it is about."""
    return {} if row is None else {"file_id": row["fid"], "path": row["path"]}


def forgotten(seq: int) -> int:
    """The newest event that need not be kept once the event ``seq`` is."""
    return seq - EVENTS_KEPT


def noted(form: TextForm) -> dict[str, Any]:
    """What an event says of the text form of a file."""
    return {"notes": dict(form.notes)} if form.notes else {}


def as_event(row: Row) -> Event:
    """A row of ``outbox``."""
    return Event(
        seq=row["seq"],
        type=row["type"],
        payload=json.loads(row["payload"]),
        at=shown(row["at_us"]),
    )


def as_key(row: Row) -> Mapping[str, Any]:
    """A row of ``api_key``."""
    return {**row, "grants": json.loads(row["grants"])}


def replied(row: Row | None, digest: str) -> Mapping[str, Any]:
    """The reply of a row of ``once`` that is there already; None: it went while it was looked for.

    Raises:
        IdempotencyConflictError: it is of another request, or there is none yet.
    """
    if row is None or (row["digest"] == digest and row["reply"] is None):
        raise IdempotencyConflictError(running=True)
    if row["digest"] != digest:
        raise IdempotencyConflictError(running=False)
    kept: Mapping[str, Any] = json.loads(row["reply"])
    return kept
