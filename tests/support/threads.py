"""Several threads at the same time."""

import threading
from collections.abc import Callable, Sequence


def at_once(works: Sequence[Callable[[], object]]) -> list[BaseException]:
    """Run all at the same time; what went wrong."""
    barrier, errors = threading.Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors
