"""Ctrl-C in a sync run: the first lets what is in flight land, the second is Python's own."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Whether the first Ctrl-C has come, and whom to wake when it does."""

    def __init__(self) -> None:
        self.pending = False
        self._wakes: list[Callable[[], None]] = []

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` when the first Ctrl-C has come."""
        if self.pending:
            raise KeyboardInterrupt

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        if self.pending:
            signal.default_int_handler(number, frame)
        self.pending = True
        for wake in self._wakes:
            wake()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Have ``wake`` called on the first Ctrl-C; it must be safe in a signal handler."""
        self._wakes.append(wake)
        try:
            yield
        finally:
            self._wakes.remove(wake)


_installed: Interrupts | None = None


@contextmanager
def interrupts(wake: Callable[[], None]) -> Iterator[Interrupts]:
    """Defer SIGINT while the block runs, as ``asyncio.Runner`` does.

    Only on the main thread and only over Python's own handler; a run inside a run shares the outer
    one's. A Ctrl-C that came too late to stop anything is raised at the end of the block.
    """
    global _installed  # noqa: PLW0603 - there is one SIGINT per process
    on_main = threading.current_thread() is threading.main_thread()
    if not on_main or (_installed is None and not _handler_is_pythons()):
        yield Interrupts()
    elif _installed is not None:
        with _installed.waking(wake):
            yield _installed
    else:
        _installed = mine = Interrupts()
        signal.signal(signal.SIGINT, mine.handle)
        try:
            with mine.waking(wake):
                yield mine
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _installed = None
        mine.check()


def _handler_is_pythons() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
