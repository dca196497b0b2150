"""Processing what waits: each file in a process of its own, and a thread that keeps at it."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeAlias

from harness_core.collections.faults import TemporarilyUnavailableError
from harness_core.collections.ingestion.kinds import disagrees, extension_of
from harness_core.collections.ingestion.limits import IngestFault, Limits
from harness_core.collections.store import Claim, Store, TextForm

Ingestion: TypeAlias = Callable[[Claim, Limits], TextForm]
"""Makes the text form of a claimed file, or raises ``IngestFault``."""

logger = logging.getLogger(__name__)
_BUSY_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 1.0
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TIKTOKEN_CACHE_DIR", "SYSTEMROOT")


def in_a_process(claim: Claim, limits: Limits) -> TextForm:
    """Read the file in a process that may be slow, large or die, without this one's secrets."""
    with tempfile.TemporaryDirectory(prefix="harness-ingest-") as name:
        folder = Path(name)
        source = _written(claim, folder)
        job = {"file": source.name, "limits": limits.as_json()}
        (folder / "job.json").write_text(json.dumps(job), "utf-8")
        _run(folder, limits)
        form = folder / "form.json"
        if not form.exists():
            raise IngestFault("corrupt", "the process that read the file ended without a result")
        from harness_core.collections.ingestion.worker import as_form

        return as_form(json.loads(form.read_text("utf-8")))


def in_this_process(claim: Claim, limits: Limits) -> TextForm:
    """Read the file here, with neither a memory nor a time limit: for files that are trusted."""
    from harness_core.collections.ingestion.extraction import extracted

    with tempfile.TemporaryDirectory(prefix="harness-ingest-") as name:
        return extracted(_written(claim, Path(name)), limits)


def _written(claim: Claim, folder: Path) -> Path:
    extension = extension_of(claim.content_type)
    if extension is None:
        raise IngestFault("unsupported_type", "no reader knows this content type")
    if disagrees(extension, claim.data):
        raise IngestFault("corrupt", "the file is not what its content type says")
    path = folder / f"source{extension}"
    path.write_bytes(claim.data)
    return path


def _run(folder: Path, limits: Limits) -> None:
    import harness_core

    home = str(Path(harness_core.__file__).parents[1])
    environment = {k: v for k, v in os.environ.items() if k in _PASSED_ON}
    environment |= {"PYTHONPATH": home, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(  # noqa: S603 - our own module, and a folder of our own making
        [sys.executable, "-P", "-m", "harness_core.collections.ingestion.worker", str(folder)],
        cwd=folder, env=environment, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise IngestFault("extract_timeout", "the file takes too long to read") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def process_next(
    store: Store, ingestion: Ingestion, limits: Limits, file_id: str | None = None
) -> bool:
    """Process one waiting file (that one, or the oldest); False when none waits.

    The text and the index appear in one step, so a process that dies meanwhile leaves the file to
    be claimed again once its lease has run out. A store that is busy is tried again for half
    a minute: what was read is not read anew.

    Raises:
        TemporarilyUnavailableError: the store was busy all that time.
    """
    claim = store.claim(limits.lease_seconds, file_id)
    if claim is None:
        return False
    try:
        form = ingestion(claim, limits)
    except IngestFault as fault:
        _keep(partial(store.fail, claim, fault.as_json()))
    else:
        _keep(partial(store.finish, claim, form))
    return True


def _keep(change: Callable[[], bool]) -> None:
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            change()
        except TemporarilyUnavailableError:
            if time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


class Worker:
    """A thread that processes what waits, until it is closed; what it is at is finished first."""

    def __init__(
        self, store: Store, ingestion: Ingestion, limits: Limits, *, every: float = 0.5
    ) -> None:
        self._work: Callable[[], bool] = lambda: process_next(store, ingestion, limits)
        self._every = every
        self._woken = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="harness-ingestion", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once: something was added."""
        self._woken.set()

    def close(self) -> None:
        """End after the file at hand."""
        self._closing = True
        self._woken.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_what: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._closing:
            try:
                while self._work() and not self._closing:
                    pass
            except Exception:  # the thread outlives one file; its lease brings the file back
                logger.exception("a file could not be processed; it is tried again later")
            self._woken.wait(self._every)
            self._woken.clear()
