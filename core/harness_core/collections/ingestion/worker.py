"""The process in which one file is read: ``python -m ... worker FOLDER``.

The folder holds ``job.json`` (the file's name and the limits) and the file; the process writes
``form.json`` into it. It runs under limits of memory and time that it sets itself before it reads,
and no longer than the process that holds the other end of its standard input.
"""

import json
import os
import resource
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

from harness_core.collections.ingestion.limits import IngestFault, Limits
from harness_core.collections.store import Piece, TextForm

_PIECE = ("start", "stop", "first_page", "last_page", "section")


def main(folder: Path) -> None:
    """Read the job, do it, write what came of it."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    limits = Limits.from_json(job["limits"])
    _confine(limits)
    from harness_core.collections.ingestion.extraction import extracted

    try:
        said = _as_json(extracted(folder / job["file"], limits))
    except IngestFault as fault:
        said = {"error": fault.as_json()}
    except MemoryError:
        said = {"error": IngestFault("too_large", "the file takes too much memory").as_json()}
    (folder / "form.json").write_text(json.dumps(said, ensure_ascii=False), "utf-8", "replace")


def _confine(limits: Limits) -> None:
    seconds = int(limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _as_json(form: TextForm) -> dict[str, Any]:
    pieces = [[getattr(piece, name) for name in _PIECE] for piece in form.pieces]
    return {"text": form.text, "pieces": pieces, "notes": dict(form.notes)}


def as_form(said: dict[str, Any]) -> TextForm:
    """What the process wrote, as a text form.

    Raises:
        IngestFault: it wrote that the file failed.
    """
    if "error" in said:
        raise IngestFault(said["error"]["code"], said["error"]["message"])
    pieces = tuple(Piece(**dict(zip(_PIECE, one, strict=True))) for one in said["pieces"])
    return TextForm(text=said["text"], pieces=pieces, notes=said["notes"])


def _end_with_parent(folder: Path) -> None:
    os.read(0, 1)  # nothing is ever written: it returns when the other end is closed
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, args=(Path(sys.argv[1]),), daemon=True).start()
    main(Path(sys.argv[1]))
