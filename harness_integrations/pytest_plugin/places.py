"""Where a test's recording lies: ``recordings/<module>/<test>.jsonl`` beside the test."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

FIXTURE = MARKER = "harness_recording"
MOST_BYTES = 120
"""Of a file's name, its ending aside: what every file system and archive takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A recording's path, the test it belongs to, and how to run that test."""

    path: Path
    test: str
    root: Path | None = None

    def __str__(self) -> str:
        inside = self.root is not None and self.path.is_relative_to(self.root)
        return str(self.path.relative_to(self.root)) if inside and self.root else str(self.path)

    @property
    def again(self) -> str:
        """The command that runs the test, without its mode."""
        return f'pytest "{self.test}"'


class Places:
    """The recordings of the tests that were collected.

    ``whole`` says that modules were collected as a whole, so that what no test of a module uses is
    used by none.
    """

    def __init__(self, items: Iterable[pytest.Item], *, whole: bool) -> None:
        self._tests: dict[str, list[str]] = defaultdict(list)
        self._folders: set[Path] = set()
        self._whole = whole
        for item in items:
            self._folders.add(folder_of(item))
            if FIXTURE in getattr(item, "fixturenames", ()):
                self._tests[_same(path_of(item))].append(item.nodeid)

    def of(self, item: pytest.Item) -> Place:
        """Where the recording of a test lies.

        Raises:
            pytest.UsageError: two tests would share it.
        """
        path = path_of(item)
        others = [one for one in self._tests[_same(path)] if one != item.nodeid]
        if others:
            raise pytest.UsageError(
                f"two tests have one recording, {path}: {item.nodeid} and {others[0]}. Give one of "
                'them another with @pytest.mark.harness_recording("name")'
            )
        return Place(path=path, test=item.nodeid, root=item.config.rootpath)

    def orphans(self) -> list[str]:
        """Recordings beside the collected modules that belong to none of their tests."""
        if not self._whole:
            return []
        files = [file for folder in self._folders for file in sorted(folder.glob("*.jsonl"))]
        return [str(file) for file in files if _same(file) not in self._tests]


def folder_of(item: pytest.Item) -> Path:
    """The folder of a test module's recordings."""
    return item.path.parent / "recordings" / item.path.stem


def path_of(item: pytest.Item) -> Path:
    """The path of a test's recording: named by its marker, else by the test itself."""
    marker = item.get_closest_marker(MARKER)
    if marker is None or not marker.args:
        name = item.nodeid.partition("::")[2].replace("::", ".")
    else:
        case = getattr(item, "callspec", None)
        name = str(marker.args[0]) + (f"[{case.id}]" if case is not None else "")
    return folder_of(item) / f"{file_name(name)}.jsonl"


def file_name(name: str) -> str:
    """``name`` as a file may be called; with a hash where something had to be changed."""
    composed = unicodedata.normalize("NFC", name)
    kept = "".join(one if one.isalnum() or one in "-_.,=[]" else "_" for one in composed)
    kept = kept.encode("utf-8", "ignore")[:MOST_BYTES].decode("utf-8", "ignore").lstrip(".")
    if kept and kept == composed:
        return kept
    return f"{kept}-{hashlib.sha256(composed.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _same(path: Path) -> str:
    """What paths have in common that some file systems take for one."""
    return unicodedata.normalize("NFC", str(path)).casefold()
