"""A trace on disk while it runs: JSON Lines, one ``write`` a line, appended as each step lands."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from harness_core.errors import TraceError

FORMAT = 1
OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


class Journal:
    """An append-only file of lines. Opening an existing one for append first drops a torn line."""

    def __init__(self, path: str | os.PathLike[str], *, resume: bool) -> None:
        self.path = Path(path)
        self._broken: str | None = None
        mode = os.O_RDWR | os.O_CREAT | os.O_APPEND | (0 if resume else os.O_EXCL)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, mode, 0o644)
        except FileExistsError:
            raise TraceError(
                f"{self.path} exists already; go on with that run (resume=True, --resume) or name "
                "another path"
            ) from None
        except OSError as error:
            raise TraceError(f"{self.path} cannot be written: {error.strerror}") from error
        if resume:
            self._drop_torn_line()

    def append(self, line: Mapping[str, Any]) -> None:
        """Add one line.

        Raises:
            TraceError: the file cannot be written; the run must stop, since it is not recorded.
        """
        data = dumped(line) + b"\n"
        try:
            if self._broken is None and os.write(self._file, data) < len(data):
                self._broken = "the disk took only a part of a line"
        except OSError as error:
            self._broken = error.strerror or str(error)
        if self._broken is not None:  # for good: nothing may follow a torn line
            raise TraceError(f"{self.path} cannot be written: {self._broken}")

    def close(self) -> None:
        """Close the file; further steps stay in memory."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            os.close(self._file)

    def _drop_torn_line(self) -> None:
        size = os.lseek(self._file, 0, os.SEEK_END)
        while size > 0:
            start = max(0, size - 65536)
            found = os.pread(self._file, size - start, start).rfind(b"\n")
            if found >= 0:
                os.ftruncate(self._file, start + found + 1)
                return
            size = start
        os.ftruncate(self._file, 0)


def dumped(value: Any) -> bytes:
    """JSON bytes; what has no JSON form (a client, a function) becomes null."""
    return orjson.dumps(value, default=_plain, option=OPTIONS)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return None


def lines_of(source: Any) -> Iterable[Mapping[str, Any]]:
    """The lines of a trace given as a path, as JSON text, or parsed.

    Raises:
        TraceError: it is none of these, or no trace.
    """
    if isinstance(source, Mapping):
        return document_lines(source)
    if isinstance(source, str) and source.lstrip().startswith("{") and not os.path.isfile(source):
        return parsed_document(source)
    if isinstance(source, (str, os.PathLike)):
        return read(source)
    raise TraceError(f"a trace is a path, JSON text or a mapping, not {type(source).__name__}")


def read(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The lines of a trace file: JSON Lines, or one JSON document as ``save`` writes it.

    A torn last line is skipped.

    Raises:
        TraceError: the file is missing, unreadable, or no trace.
    """
    file = Path(path)
    if not file.is_file():
        raise TraceError(f"there is no trace file {file}")
    with file.open("rb") as opened:
        first = opened.readline()
        head = _parsed(first)
        if isinstance(head, dict) and isinstance(head.get("trace"), int) and "steps" not in head:
            yield head
            yield from _lines(opened, file)
        elif head is not None:
            yield from document_lines(head, file)
        else:
            yield from parsed_document(first + opened.read(), file)


def _lines(rest: Iterable[bytes], file: Path) -> Iterator[dict[str, Any]]:
    for line in rest:
        try:
            value = orjson.loads(line)
        except ValueError:
            if line.endswith(b"\n"):
                raise TraceError(f"{file} holds a line that is no JSON: {line[:60]!r}") from None
            return  # torn: the run was killed while it wrote
        if isinstance(value, dict):
            yield value


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:
        return None


def parsed_document(data: bytes | str, source: object = "the given text") -> list[dict[str, Any]]:
    """A whole trace document (or an answer holding one) as lines.

    Raises:
        TraceError: it is no JSON, or no trace.
    """
    try:
        value = orjson.loads(data)
    except ValueError as error:
        raise TraceError(f"{source} is no trace: it is not JSON ({error})") from None
    return document_lines(value, source)


def document_lines(value: Any, source: object = "the given value") -> list[dict[str, Any]]:
    """The lines of a trace that has been parsed already."""
    if isinstance(value, Mapping) and isinstance(value.get("trace"), Mapping):
        value = value["trace"]  # an answer that carries its run
    if not isinstance(value, Mapping) or "steps" not in value:
        raise TraceError(f"{source} is no trace: it has no list of steps")
    steps = value["steps"]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise TraceError(
            f"{source} holds its steps as {type(steps).__name__}, not as a list of objects; parse "
            "the JSON without turning it into a table"
        )
    lists = ("steps", "refusals", "lost", "summary", "errors")
    head = {k: v for k, v in value.items() if k not in lists}
    refusals, lost = value.get("refusals", []), value.get("lost", [])
    for listed in (refusals, lost):
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise TraceError(f"{source} holds refusals or lost requests that are no objects")
    return [{"trace": FORMAT, **head}, *steps, *lost, *({"refusal": one} for one in refusals)]
