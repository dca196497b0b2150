"""Connections to one SQLite file: one writer at a time, a pool of readers, one moment each."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from harness_core.collections.faults import TemporarilyUnavailableError
from harness_core.collections.sqlite.schema import migrate

BUSY_SECONDS: Final = 5.0
_PASSING: Final = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
)  # fmt: skip


class Database:
    """The file at ``path``, made when absent. Several processes may have it open.

    Raises:
        CacheError: the file is another program's, or newer than this one.
        TemporarilyUnavailableError: it cannot be opened, or is locked for over 5 seconds.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        with _faults(), ExitStack() as stack:
            self._writer = self._opened()
            stack.callback(self._writer.close)
            _to_wal(self._writer)
            self._writer.execute("PRAGMA synchronous = FULL")
            migrate(self._writer)
            stack.pop_all()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One moment of the file: what is written meanwhile is not seen."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        with _faults():
            connection = connection or self._opened()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()
                self._keep(connection)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and on disk when it is over."""
        with self._turn(), _faults():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.commit()
            except BaseException:
                self._writer.rollback()
                raise

    def close(self) -> None:
        """Close the file: once the write at hand is done, and each read with its end."""
        with self._writing, self._lock:
            self._closed = True
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle.clear()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One writer at a time; threads wait for no longer than other processes do."""
        if not self._writing.acquire(timeout=BUSY_SECONDS):
            raise TemporarilyUnavailableError("store", retryable=True)
        try:
            yield
        finally:
            self._writing.release()

    def _keep(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        return connection


def _to_wal(connection: sqlite3.Connection) -> None:
    """Set the file to WAL; while others open it too, SQLite fails at once instead of waiting."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in _PASSING:
            raise TemporarilyUnavailableError("store", retryable=True) from error
        raise
