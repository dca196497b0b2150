"""The store that goes with a place: an SQLite file, or a PostgreSQL database."""

import os

from harness_core.collections.sqlite.store import SqliteStore
from harness_core.collections.store import Store


def is_database(place: object) -> bool:
    """Whether it is the address of a PostgreSQL database."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def store_at(place: str | os.PathLike[str]) -> Store:
    """The store at that path or address.

    Raises:
        CacheError: it is no store, or a newer one.
        MissingDepError: this SQLite has no FTS5; the packages for PostgreSQL are not installed.
        BadSettingError, TemporarilyUnavailableError: the address is none, or nothing answers there.
    """
    if not is_database(place):
        return SqliteStore(place)
    from harness_core.collections.postgres.store import PostgresStore

    return PostgresStore(os.fspath(place))
