"""The seams: a store knows the files and who may see them; a ranker orders what it is shown.

The catalogue decides what is visible. A ranker is handed the visible files and ranks inside them.
What a store must do is pinned by ``tests/collections/conformance.py``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness_core.collections.filters import Node

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Access = Literal["off", "enforced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceInfo:
    """A namespace."""

    id: str
    name: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionInfo:
    """A collection as its row says it."""

    id: str
    name: str
    namespace_id: str
    access_control: Access
    metadata_fields: Mapping[str, str]
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A living file. ``error`` (code, message) is set on a failed one; times are RFC 3339, UTC."""

    id: str
    path: str
    content_type: str
    bytes: int
    status: str
    created_at: str
    updated_at: str
    error: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    principals: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """The file as filters see it."""
        return {
            "path": self.path, "content_type": self.content_type, "bytes": self.bytes,
            "created_at": self.created_at, "updated_at": self.updated_at, "status": self.status,
            "metadata": self.metadata,
        }  # fmt: skip

    def wire(self) -> dict[str, Any]:
        """The file as JSON data."""
        more = {"error": dict(self.error)} if self.error else {}
        return {"id": self.id, **self.record(), "principals": list(self.principals), **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a collection; ``seq`` grows."""

    seq: int
    type: str
    payload: Mapping[str, Any]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a text form: code points from ``start`` to before ``stop``; pages from 1."""

    start: int
    stop: int
    first_page: int | None = None
    last_page: int | None = None
    section: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """What an embedding model made of texts: one row each, 32-bit floats of length 1."""

    model: str
    rows: "NDArray[np.float32]" = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextForm:
    """What became of a file: its frozen text, and the pieces it is ranked by.

    ``vectors`` has a row for each piece, or is None: the file is then found by its words alone.
    """

    text: str
    pieces: tuple[Piece, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)
    vectors: Vectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A file to be processed, until its lease runs out."""

    file_id: str
    token: str
    path: str
    content_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a visible file with its text."""

    chunk: int
    file_id: str
    path: str
    content_type: str
    text: str
    piece: Piece


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files a request may read, with their size in pieces and characters."""

    ids: frozenset[int]
    pieces: int
    characters: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A piece, its file, and how well it fits: higher is better."""

    chunk: int
    file: int
    score: float


class Snapshot(Protocol):
    """One moment of one collection: everything an answer reads comes from it."""

    @property
    def info(self) -> CollectionInfo: ...
    @property
    def generation(self) -> int: ...

    def counts(self) -> dict[str, int]:
        """Living files by status."""

    def visible(self, node: Node, principals: Sequence[str] | None) -> FileSet:
        """The ready files that match, and that one of ``principals`` is granted (None: all)."""

    def file(self, file_id: str) -> FileInfo | None:
        """A living file with its grants."""

    def files(self, node: Node, after: str | None, limit: int) -> list[FileInfo]:
        """Living files of any status, by id."""

    def pieces(self, files: FileSet) -> list[int]:
        """Every piece of the files, by path and place."""

    def passages(self, chunks: Sequence[int]) -> list[Passage]:
        """Pieces with their text, in the order asked for."""

    def text(self, file_id: str) -> str | None:
        """The whole text form of a ready file."""

    def places(self, file_id: str) -> list[Piece]:
        """The pieces of a file, in order."""

    def nearest(self, files: FileSet, query: Vectors, limit: int) -> list[Ranked]:
        """The pieces of the files nearest to the one row of ``query``, by cosine, best first.

        Pieces without a vector of that model are left out; ties go by path, then start, then file.
        """

    def vectors(self, chunks: Sequence[int], model: str) -> "dict[int, NDArray[np.float32]]":
        """The vectors of pieces, of those that have one of that model."""

    def unembedded(self, model: str, after: str, limit: int) -> list[str]:
        """Ready files without vectors of that model, by id, from after the id ``after`` on."""


class Ranker(Protocol):
    """Orders pieces for a question, inside the files it is given and nowhere else."""

    def rank(self, snapshot: Snapshot, files: FileSet, query: str, limit: int) -> list[Ranked]:
        """The best pieces, best first; ties by path, then start, then file."""


class Store(Protocol):
    """The catalogue. Every change is durable when the method returns."""

    @property
    def ranker(self) -> Ranker:
        """The word ranker that goes with this store."""

    def create_namespace(self, name: str) -> NamespaceInfo: ...
    def namespaces(self, after: str = "", limit: int | None = None) -> list[NamespaceInfo]:
        """Namespaces by name, from after the name ``after`` on."""

    def namespace(self, ref: str) -> NamespaceInfo: ...
    def delete_namespace(self, namespace_id: str) -> None: ...
    def create_collection(
        self, namespace_id: str, name: str, access: Access, fields: Mapping[str, str]
    ) -> CollectionInfo: ...
    def collections(
        self, namespace_id: str, after: str = "", limit: int | None = None
    ) -> list[CollectionInfo]:
        """The collections of a namespace by name, from after the name ``after`` on."""

    def collection(self, namespace_id: str, ref: str) -> CollectionInfo: ...
    def delete_collection(self, collection_id: str) -> None: ...
    def set_fields(self, collection_id: str, fields: Mapping[str, str]) -> dict[str, int]: ...

    def add_file(
        self,
        collection_id: str,
        *,
        path: str,
        content_type: str,
        data: bytes,
        metadata: Mapping[str, Any],
        principals: Sequence[str],
    ) -> FileInfo: ...
    def change_file(
        self,
        collection_id: str,
        file_id: str,
        *,
        path: str | None,
        metadata: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None,
        principals: Sequence[str] | None,
    ) -> FileInfo:
        """Change what is given; ``metadata`` makes the new of the stored one, in the same step.

        Raises:
            NotFoundError: there is no such file.
            AlreadyExistsError: another living file has that path.
        """

    def delete_file(self, collection_id: str, file_id: str) -> None: ...

    def claim(self, lease_seconds: float, file_id: str | None = None) -> Claim | None:
        """The next file to process: a pending one, or one whose lease ran out."""

    def finish(self, claim: Claim, form: TextForm) -> bool:
        """Make it ready, in one step with its index; False when it was deleted or taken over."""

    def fail(self, claim: Claim, error: Mapping[str, Any]) -> bool:
        """Make it failed."""

    def require_vectors(self) -> None:
        """Raise where vectors cannot be kept.

        Raises:
            MissingDepError: what is missing, and what to do.
        """

    def add_vectors(self, collection_id: str, file_id: str, vectors: Vectors) -> bool:
        """Give the pieces of a ready file vectors, one each; False when it lives no more."""

    def snapshot(self, collection_id: str) -> AbstractContextManager[Snapshot]: ...
    def events(self, collection_id: str, after: int, limit: int) -> list[Event]: ...
    def last_event(self, collection_id: str) -> int:
        """The number of the newest event; 0 before the first."""

    def secret(self, name: str) -> bytes:
        """A random secret of this store, made at its first use."""

    def add_key(self, row: Mapping[str, Any], *, first: bool = False) -> bool:
        """Keep a key: id, kind, mac, grants (JSON data), created_us, expires_us.

        With ``first`` it is kept only where there is no key at all, in one step. Whether it was.
        """

    def key(self, key_id: str) -> Mapping[str, Any] | None: ...
    def keys(self, after: str = "", limit: int | None = None) -> list[Mapping[str, Any]]:
        """Keys, oldest first, from after the key of the id ``after`` on."""

    def revoke_key(self, key_id: str) -> bool: ...
    def begin_once(
        self, owner: str, key: str, digest: str, lease_seconds: float
    ) -> Mapping[str, Any] | None:
        """Take up a request that must be done once: None, or the reply it was given before.

        ``key`` is the caller's name for it among those of ``owner``, ``digest`` says what is asked.
        A request that was taken up and never ended is free again when its lease runs out; replies
        are kept for a day.

        Raises:
            IdempotencyConflictError: the key stands for something else, or is being done now.
        """

    def end_once(self, owner: str, key: str, reply: Mapping[str, Any] | None) -> None:
        """Keep the reply of a request that was taken up; None: it failed and may be tried anew."""

    def check(self) -> None:
        """Raise where the store cannot be read and written."""

    def close(self) -> None: ...
