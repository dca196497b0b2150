"""Connections to one PostgreSQL database: a bounded pool, one moment or all-or-nothing each."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from harness_core.collections.faults import TemporarilyUnavailableError
from harness_core.collections.postgres.schema import migrate
from harness_core.errors import BadSettingError, MissingDepError

Connected: TypeAlias = psycopg.Connection[DictRow]

BUSY_SECONDS: Final = 5.0
READ_SECONDS: Final = 30
_DEFAULTS: Final = {
    "connect_timeout": 5, "tcp_user_timeout": 1000 * READ_SECONDS, "application_name": "harness",
    "client_encoding": "utf8",
}  # fmt: skip
_READ: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
    f"SET LOCAL statement_timeout = '{READ_SECONDS}s'"
)
_PASSING: Final = (psycopg.OperationalError, errors.ReadOnlySqlTransaction)
_CONFIGURE: Final = (
    "SELECT set_config('search_path', concat_ws(', ', %s::text, (SELECT "
    "extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'), 'public'), "
    "false), set_config('lock_timeout', %s, false)"
)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Database:
    """The database at ``dsn``. Its tables are in a schema of their own, made when absent.

    Raises:
        BadSettingError: the address is none, or the schema's name is none.
        CacheError: the schema is another program's, newer than this one, or may not be made.
        TemporarilyUnavailableError: nothing answers there.
    """

    def __init__(self, dsn: str, *, schema: str, connections: int) -> None:
        if not _SCHEMA.fullmatch(schema):
            raise BadSettingError("a schema is named by a-z, 0-9 and _, with no digit first")
        self._schema = schema
        settings: dict[str, Any] = {**_DEFAULTS, **_settings(dsn)}
        with (
            _faults(),
            psycopg.connect(autocommit=True, row_factory=dict_row, **settings) as connection,
        ):
            self._configure(connection)
            self._vectors = migrate(connection, schema)
        self._pool: ConnectionPool[Connected] = ConnectionPool(
            kwargs={**settings, "autocommit": True, "row_factory": dict_row},
            min_size=1, max_size=connections, timeout=BUSY_SECONDS, name="harness-collections",
            configure=self._configure, check=ConnectionPool.check_connection, open=True,
        )  # fmt: skip

    @contextmanager
    def read(self) -> Iterator[Connected]:
        """One moment of the database: what is written meanwhile is not seen.

        A statement of it may take 30 seconds.
        """
        with _faults(), self._pool.connection() as connection, connection.transaction():
            connection.execute(_READ)
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connected]:
        """All or nothing, and kept by the server when it is over."""
        with _faults(), self._pool.connection() as connection, connection.transaction():
            yield connection

    def require_vectors(self) -> None:
        """Raise where the database cannot hold vectors.

        Raises:
            MissingDepError: it has no pgvector.
        """
        if not self._vectors:
            raise MissingDepError(
                "the database has no pgvector: install it on the server, let its owner run "
                "CREATE EXTENSION vector, and open the store again"
            )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _configure(self, connection: Connected) -> None:
        connection.execute(_CONFIGURE, (self._schema, f"{BUSY_SECONDS}s"))


def _settings(dsn: str) -> dict[str, Any]:
    """The parts of an address. What is wrong with one is told without showing any of it."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise BadSettingError("this is no address of a PostgreSQL database") from None
    misread = "@" in f"{parts.get('host')}{parts.get('dbname')}"
    if misread or not re.fullmatch("[0-9,]*", str(parts.get("port", ""))):
        raise BadSettingError(
            "the address of the database is misread: write @, :, / and the like in its password "
            "as %40, %3A, %2F"
        )
    return dict(parts)


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except _PASSING as error:
        raise TemporarilyUnavailableError("store", retryable=True) from error
