"""A response cache: a repeat is free and identical. One SQLite file, safe for several processes."""

import atexit
import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from harness_core.client import Codec
from harness_core.config import setting
from harness_core.errors import BadSettingError, CacheError, CacheWarning, warn
from harness_core.messages import Reply, Usage, normalised_finish, parse_json

T = TypeVar("T")

APPLICATION_ID = 0x48524E53
SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, created REAL NOT NULL, reply BLOB NOT NULL
) WITHOUT ROWID
"""


@dataclass(slots=True)
class CacheStats:
    """Counters of one cache object, and what its file holds."""

    path: str
    entries: int
    bytes: int
    hits: int
    misses: int
    writes: int


class Flight:
    """A request on its way whose reply others wait for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: list[Callable[[], None]] = []
        self._landed = False
        self._until = time.monotonic() + float(setting("wait_seconds"))

    @property
    def seconds(self) -> float:
        """How much longer to wait."""
        return max(0.0, self._until - time.monotonic())

    def join(self, wake: Callable[[], None], /) -> bool:
        """Be woken when it lands; False when it has."""
        with self._lock:
            if not self._landed:
                self._wakes.append(wake)
            return not self._landed

    def leave(self) -> None:
        """Nothing to give up: a flight wakes whoever listens."""

    def land(self) -> None:
        """Wake everybody; once."""
        with self._lock:
            self._landed, wakes = True, self._wakes
            self._wakes = []
        for wake in wakes:
            wake()


class ResponseCache:
    """Replies by the exact request. ``path`` is one SQLite file; none is a temporary one.

    ``read=False`` refreshes entries, ``write=False`` uses a frozen cache. A failure, a refusal, an
    empty or cut-off reply, or a structured one that does not fit its schema is never kept; the
    prompt is never kept. A file that cannot be used is a warning and a run without it.

    Raises:
        BadSettingError: an empty path.
        CacheError: the path is a directory, or a file that is no cache of ours.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        read: bool = True,
        write: bool = True,
    ) -> None:
        if path is not None and not os.fspath(path).strip():
            raise BadSettingError("a cache path is not empty; leave it out for a temporary file")
        self.path = Path(path) if path is not None else _default_path()
        self.read = read
        self.write = write
        self.hits = self.misses = self.writes = 0
        self._lock = threading.Lock()
        self._flights: dict[str, Flight] = {}
        self._database: sqlite3.Connection | None = None
        self._process = 0
        self._broken = False
        self._check()

    def get(self, key: str, accept: Callable[[str], bool], codec: Codec | None) -> Reply | None:
        """The stored reply, or None. One that ``accept`` refuses is a miss."""
        if not self.read:
            return None
        found = self._fetch(key)
        reply = _unpacked(found, codec) if found is not None else None
        hit = reply is not None and accept(reply.text)
        with self._lock:
            self.hits += hit
            self.misses += not hit
        return reply if hit else None

    @property
    def shares_flights(self) -> bool:
        """Whether what one request brings home can answer another that waits for it."""
        return self.read and self.write

    def put(self, key: str, reply: Reply, codec: Codec | None) -> None:
        """Store a reply that is worth keeping."""
        if not self.write:
            return
        entry = (key, time.time(), orjson.dumps(_packed(reply, codec)))

        def insert(database: sqlite3.Connection) -> None:
            database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", entry)
            self.writes += 1

        self._using(insert, None)

    def flight(self, key: str) -> tuple[Flight, bool]:
        """The flight for a request, and whether it is the caller's own to land."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return flight, False
            self._flights[key] = flight = Flight()
            return flight, True

    def land(self, key: str) -> None:
        """A request has its reply, or will have none."""
        with self._lock:
            flight = self._flights.pop(key, None)
        if flight is not None:
            flight.land()

    def stats(self) -> CacheStats:
        """Entries and bytes of the file, hits, misses and writes of this object."""
        count = "SELECT count(*), coalesce(sum(length(reply)), 0) FROM replies"
        entries, size = self._using(lambda database: database.execute(count).fetchone(), (0, 0))
        return CacheStats(str(self.path), entries, size, self.hits, self.misses, self.writes)

    def clear(self) -> int:
        """Remove every entry; returns how many there were. Counters start again."""
        removed = self._using(lambda database: database.execute("DELETE FROM replies").rowcount, 0)
        self.hits = self.misses = self.writes = 0
        return removed

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_what: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_database", None) is not None:
            self.close()

    def __repr__(self) -> str:
        marks = f"{'' if self.read else ', read off'}{'' if self.write else ', write off'}"
        return f"<ResponseCache {self.path}{marks}>"

    def _check(self) -> None:
        if self.path.is_dir():
            raise CacheError(f"{self.path} is a directory; a cache is one file")
        if self.path.is_file() and self.path.stat().st_size > 0:
            with self.path.open("rb") as file:
                head = file.read(72)
            mine = head[68:72] == APPLICATION_ID.to_bytes(4, "big")
            if not head.startswith(b"SQLite format 3\x00") or not mine:
                raise CacheError(f"{self.path} is no response cache; name another file")

    def _open(self) -> sqlite3.Connection:
        """The connection of this process: one must not be carried over a fork."""
        if self._database is None or self._process != os.getpid():
            self._database, self._process = self._connected(), os.getpid()
        return self._database

    def _connected(self) -> sqlite3.Connection:
        if not self.write and self.path.is_file():
            frozen = f"{self.path.absolute().as_uri()}?mode=ro"
            return sqlite3.connect(frozen, uri=True, timeout=30, check_same_thread=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
        database.isolation_level = None
        if database.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            database.execute("BEGIN IMMEDIATE")  # before WAL: the mark must be in the file itself
            database.execute(f"PRAGMA application_id={APPLICATION_ID}")
            database.execute(SCHEMA)
            database.execute("COMMIT")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        return database

    def _fetch(self, key: str) -> bytes | None:
        query = "SELECT reply FROM replies WHERE key = ?"
        row = self._using(lambda database: database.execute(query, (key,)).fetchone(), None)
        return row[0] if row else None

    def _using(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Do something with the database; a fault of the file is said once and then ignored."""
        try:
            with self._lock:
                return action(self._open())
        except (sqlite3.Error, OSError) as error:
            if not self._broken:
                self._broken = True
                warn(CacheWarning(f"{self.path} cannot be used as a cache ({error})"))
            return otherwise


_temporary: Path | None = None


def _default_path() -> Path:
    named = setting("cache_path")
    if named is not None:
        return Path(named)
    global _temporary  # noqa: PLW0603 - one temporary cache per process
    if _temporary is None:
        folder = tempfile.mkdtemp(prefix="harness-cache-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _temporary = Path(folder, "replies.sqlite3")
    return _temporary


def worth_keeping(reply: Reply, accept: Callable[[str], bool]) -> bool:
    """Whether a repeat of the request may be answered with this reply."""
    return (
        reply.usable
        and not reply.refused
        and reply.finish_reason not in ("length", "content_filter", "refusal", "abandoned")
        and accept(reply.text)
    )


def fits_schema(schema: Any) -> Callable[[str], bool]:
    """Whether a reply's text is JSON that fits the whole ``schema``; anything does without one."""
    if schema is None:
        return lambda text: True

    def fits(text: str) -> bool:
        value = parse_json(text, schema=schema)
        if value is None:
            return False
        import jsonschema

        with contextlib.suppress(Exception):  # nothing fits a schema that cannot be applied
            return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
        return False

    return fits


_KEPT = ("text", "status", "model", "finish_reason", "served_model", "response_id", "fingerprint")


def _packed(reply: Reply, codec: Codec | None) -> dict[str, Any]:
    usage = reply.usage
    return {
        "format": 1,
        **{name: getattr(reply, name) for name in _KEPT},
        "usage": [usage.input, usage.output, usage.reasoning, usage.cached_input, usage.provenance],
        "raw": codec.pack(reply) if codec is not None else None,
    }


def _unpacked(stored: bytes, codec: Codec | None) -> Reply | None:
    """The reply an entry holds; anything that is not plain data of the expected shape is none."""
    try:
        entry = orjson.loads(stored)
        if entry["format"] != 1 or not isinstance(entry["text"], str) or not entry["text"].strip():
            return None
        *counts, provenance = entry["usage"]
        if not all(count is None or type(count) is int for count in counts):
            return None
        names = ("input", "output", "reasoning", "cached_input")
        usage = Usage(**dict(zip(names, counts, strict=True)), provenance=provenance)
        kept: dict[str, Any] = {name: entry[name] for name in _KEPT}
        raw = codec.unpack(entry["raw"]) if codec is not None and entry["raw"] is not None else None
    except (ValueError, KeyError, TypeError):
        return None
    kept["finish_reason"] = normalised_finish(kept["finish_reason"])
    return Reply(ok=True, usage=usage, cached=True, attempts=0, raw=raw, **kept)
