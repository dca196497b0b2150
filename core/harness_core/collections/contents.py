"""What a collection holds: its files, and what happens to them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness_core.collections.access import State, check_principals, state_of
from harness_core.collections.asking import Engine
from harness_core.collections.faults import InvalidRequestError, NotFoundError
from harness_core.collections.filters import compile_filter
from harness_core.collections.ingestion.embedding import embed_missing
from harness_core.collections.ingestion.kinds import content_type_of
from harness_core.collections.ingestion.limits import FILE_BYTES
from harness_core.collections.ingestion.processing import process_next
from harness_core.collections.names import (
    checked_fields,
    checked_grants,
    checked_metadata,
    checked_path,
)
from harness_core.collections.reading_back import visible_text
from harness_core.collections.store import CollectionInfo, Event, FileInfo
from harness_core.errors import BadSettingError

MetadataChange: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A collection now: its row, its state, its living files by status."""

    info: CollectionInfo
    state: State
    counts: Mapping[str, int]

    def wire(self) -> dict[str, Any]:
        """The collection as JSON data."""
        info = self.info
        return {
            "id": info.id, "name": info.name, "namespace_id": info.namespace_id,
            "access_control": info.access_control, "metadata_fields": dict(info.metadata_fields),
            "created_at": info.created_at, "state": self.state, "counts": dict(self.counts),
        }  # fmt: skip


class Contents:
    """The files of one collection."""

    def __init__(self, engine: Engine, info: CollectionInfo) -> None:
        self._engine = engine
        self.id = info.id
        self.name = info.name
        self.namespace_id = info.namespace_id
        self.access_control = info.access_control

    def info(self) -> Status:
        """The collection as it is now."""
        with self._engine.store.snapshot(self.id) as snapshot:
            counts = snapshot.counts()
            return Status(info=snapshot.info, state=state_of(counts), counts=counts)

    def set_fields(self, fields: Mapping[str, str]) -> dict[str, int]:
        """Replace the fields that filters may name; by key, how many files hold what is unreadable.

        Raises:
            InvalidRequestError: an unusable key or type.
        """
        return self._engine.store.set_fields(self.id, checked_fields(fields))

    def add(
        self,
        path: str,
        content: str | bytes | Path,
        *,
        content_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        principals: Sequence[str] = (),
        wait: bool = True,
    ) -> FileInfo:
        """Add a file: its text, its bytes, or the file at a ``Path``. It is kept when this returns.

        It is processed here unless ``wait`` is False. One of the same path lives until this one is
        ready. A file that cannot be read is ``failed``, for a reason in ``error``.

        Raises:
            InvalidRequestError: a path, content type, metadata or principal that is none; over
                100 MiB.
            NotFoundError: it was deleted, or a newer one of its path became ready, meanwhile.
        """
        data = _bytes(content)
        named = checked_path(path)
        added = self._engine.store.add_file(
            self.id,
            path=named,
            content_type=content_type_of(named, content_type, text=isinstance(content, str)),
            data=data,
            metadata=checked_metadata(metadata),
            principals=checked_grants(principals),
        )
        if not wait:
            return added
        engine = self._engine
        process_next(engine.store, engine.ingestion, engine.limits, added.id)
        return self.file(added.id)

    def files(
        self,
        filter: Any = None,  # noqa: A002 - the word of the contract
        *,
        after: str | None = None,
        limit: int = 1000,
    ) -> list[FileInfo]:
        """Living files, by id, from after the id ``after`` on; those that match ``filter``.

        Raises:
            FilterError: the filter is none.
        """
        with self._engine.store.snapshot(self.id) as snapshot:
            node = compile_filter(filter, snapshot.info.metadata_fields)
            return snapshot.files(node, after, limit)

    def file(self, file_id: str) -> FileInfo:
        """A living file.

        Raises:
            NotFoundError: there is none of that id.
        """
        with self._engine.store.snapshot(self.id) as snapshot:
            file = snapshot.file(file_id)
        if file is None:
            raise NotFoundError("there is no such file")
        return file

    def update(
        self,
        file_id: str,
        *,
        path: str | None = None,
        metadata: Mapping[str, Any] | MetadataChange | None = None,
        principals: Sequence[str] | None = None,
    ) -> FileInfo:
        """Change what is given (metadata and principals as a whole); in force at the next request.

        ``metadata`` may be a function that makes the new of the stored one: no change is lost when
        several are made at once.

        Raises:
            NotFoundError, InvalidRequestError: no such file, or a value that is none.
            AlreadyExistsError: another file has that path.
        """
        change = metadata if callable(metadata) or metadata is None else _always(metadata)
        return self._engine.store.change_file(
            self.id,
            file_id,
            path=None if path is None else checked_path(path),
            metadata=None if change is None else lambda stored: checked_metadata(change(stored)),
            principals=None if principals is None else checked_grants(principals),
        )

    def delete(self, file_id: str) -> None:
        """Delete a file; the next request does not see it.

        Raises:
            NotFoundError: there is none of that id.
        """
        self._engine.store.delete_file(self.id, file_id)

    def text(self, file_id: str, principals: Sequence[str] | None = None) -> str:
        """The text form of a file.

        Raises:
            NotFoundError: there is none that ``principals`` may read.
        """
        check_principals(self.access_control, principals)
        with self._engine.store.snapshot(self.id) as snapshot:
            text = visible_text(snapshot, file_id, principals)
        if text is None:
            raise NotFoundError("there is no such file")
        return text

    def embed_missing(self, limit: int | None = None) -> int:
        """Embed ready files that have no vectors of the embedder's model, at most ``limit``.

        They have none after an embedder that failed, was added later, or has another model than
        before. Returns how many were embedded.

        Raises:
            BadSettingError: there is no embedder.
        """
        engine = self._engine
        if engine.embedder is None:
            raise BadSettingError("nothing can be embedded: give Collections an embedder")
        return embed_missing(engine.store, self.id, engine.embedder, limit)

    def events(self, after: int = 0, limit: int = 100) -> list[Event]:
        """What happened after the event ``after``, oldest first."""
        return self._engine.store.events(self.id, after, limit)

    def last_event(self) -> int:
        """The number of the newest event; 0 before the first."""
        return self._engine.store.last_event(self.id)


def _always(metadata: Mapping[str, Any]) -> MetadataChange:
    return lambda _: metadata


def _bytes(content: str | bytes | Path) -> bytes:
    if isinstance(content, Path):
        if content.stat().st_size > FILE_BYTES:
            raise InvalidRequestError("a file has at most 100 MiB", "/content")
        content = content.read_bytes()
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    if len(data) > FILE_BYTES:
        raise InvalidRequestError("a file has at most 100 MiB", "/content")
    return data
