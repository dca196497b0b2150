"""The embedded store: catalogue, files, index and keys in one SQLite file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from harness_core.collections.sqlite.catalogue import Catalogue
from harness_core.collections.sqlite.database import Database
from harness_core.collections.sqlite.files import Files
from harness_core.collections.sqlite.once import Once
from harness_core.collections.sqlite.ranking import SqliteRanker
from harness_core.collections.sqlite.snapshot import SqliteSnapshot


class SqliteStore(Catalogue, Files, Once):
    """A ``Store`` on one file (and its ``-wal`` beside it), shared by threads and processes.

    Raises:
        CacheError: the file is another program's, or newer than this one.
        MissingDepError: this SQLite has no FTS5.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.database = Database(path)

    @property
    def ranker(self) -> SqliteRanker:
        """Word search inside the visible files."""
        return SqliteRanker()

    @contextmanager
    def snapshot(self, collection_id: str) -> Iterator[SqliteSnapshot]:
        """One moment of a collection."""
        with self.database.read() as connection:
            yield SqliteSnapshot(connection, collection_id)

    def require_vectors(self) -> None:
        """Vectors can always be kept."""

    def check(self) -> None:
        """Raise where the store cannot be read and written."""
        with self.database.write() as connection:
            connection.execute("SELECT count(*) FROM namespace").fetchone()

    def close(self) -> None:
        """Close the file."""
        self.database.close()
