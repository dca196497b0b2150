"""Services in processes of their own, as ``harness serve`` starts them, to be ended in any way.

with serving(folder) as one:
    one.add("/a.txt", "The tide was high.")
    one.kill()
"""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from tests.support.engine import path_of

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 60
_CHILD: Final = b"harness_core.collections.ingestion.worker"


def until(is_so: Callable[[], Any]) -> Any:
    """Look again and again, for a minute; what was seen when it was so."""
    last = time.monotonic() + SECONDS
    while not (seen := is_so()):
        assert time.monotonic() < last, "it never came to be"
        time.sleep(0.002)
    return seen


@dataclass
class Served:
    """A service in a process of its own, over the collection ``default/documents``."""

    process: "subprocess.Popen[bytes]"
    url: str
    key: str

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.key}"}
        return httpx.request(method, self.url + path, headers=headers, timeout=SECONDS, **more)

    def add(self, path: str, text: str) -> httpx.Response:
        body = {"path": path, "text": text}
        return self.request("POST", place("/files"), json=body)

    def upload(self, path: str, data: bytes) -> httpx.Response:
        return self.request("PUT", place("/files:upload"), params={"path": path}, content=data)

    def ask(self, question: str) -> httpx.Response:
        return self.request("POST", place(":answer"), json={"query": question})

    def files(self) -> dict[str, dict[str, Any]]:
        """The living files by path."""
        found = self.request("GET", place("/files")).json()
        return {one["path"]: one for one in found["items"]}

    def statuses(self) -> set[str]:
        return {one["status"] for one in self.files().values()}

    def kill(self, how: int = signal.SIGKILL) -> int:
        """End it by a signal; the code it ended with."""
        self.process.send_signal(how)
        return self.process.wait(SECONDS)

    def child(self) -> int | None:
        """The process that reads a file for it now."""
        return next(iter(readers(self.process.pid)), None)


def place(verb: str) -> str:
    """The path of what a service is asked about its collection."""
    return path_of("documents", verb, "default")


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    key: str = "",
    environment: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """A service over the store in ``folder``; without a ``key`` it is the one it prints."""
    said = folder / f"said{len(list(folder.glob('said*')))}"
    given = {"PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}", **(environment or {})}
    command = [sys.executable, "-m", "harness_integrations.cli", "serve", "--port", "0"]
    with said.open("wb") as log, subprocess.Popen(
        [*command, "--path", str(folder / "store.db"), *arguments],
        env={**os.environ, **given}, stderr=log,
    ) as process:  # fmt: skip
        try:
            url = until(lambda: re.search(r"serving at (\S+)\n(?s:.*)\n", said.read_text()))[1]
            made = re.search(r"shown once: (\S+)", said.read_text())
            yield Served(process=process, url=url, key=key or (made[1] if made else ""))
        finally:
            process.kill()


def readers(parent: int) -> list[int]:
    """The processes that read files, children of ``parent``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ran_by = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if ran_by == parent and _CHILD in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def rows(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    """What a statement finds in the store, or does to it."""
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        return connection.execute(statement).fetchall()
