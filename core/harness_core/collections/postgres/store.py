"""The store on PostgreSQL: several processes, and machines, answer alike from one database."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness_core.collections.postgres.catalogue import Catalogue
from harness_core.collections.postgres.database import Database
from harness_core.collections.postgres.files import Files
from harness_core.collections.postgres.once import Once
from harness_core.collections.postgres.ranking import PostgresRanker
from harness_core.collections.postgres.snapshot import PostgresSnapshot


class PostgresStore(Catalogue, Files, Once):
    """A ``Store`` in a schema of the PostgreSQL database at ``dsn``, made at its first use.

    At most ``connections`` of them are open at once; who waits for one for over 5 seconds is told
    that the store is unavailable. A pooler between must keep sessions. Vectors need the extension
    pgvector; words do not.

    Raises:
        BadSettingError: the address, or the name of the schema, is none.
        CacheError: the schema is another program's, newer than this one, or may not be made.
        TemporarilyUnavailableError: nothing answers there.
    """

    def __init__(self, dsn: str, *, schema: str = "harness", connections: int = 16) -> None:
        self.database = Database(dsn, schema=schema, connections=connections)

    @property
    def ranker(self) -> PostgresRanker:
        """Word search inside the visible files."""
        return PostgresRanker()

    @contextmanager
    def snapshot(self, collection_id: str) -> Iterator[PostgresSnapshot]:
        """One moment of a collection."""
        with self.database.read() as connection:
            yield PostgresSnapshot(self.database, connection, collection_id)

    def require_vectors(self) -> None:
        """Raise where the database has no pgvector."""
        self.database.require_vectors()

    def check(self) -> None:
        """Raise where the store cannot be read and written."""
        with self.database.write() as connection:
            connection.execute("SELECT number FROM store_version FOR SHARE")

    def close(self) -> None:
        """Close the connections."""
        self.database.close()
