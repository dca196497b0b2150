"""The window that moves over a batch: what may be placed, what is on its way, what has landed."""

from harness_core.flows.types import Batch, Drive, Place, Wait
from harness_core.messages import Outcome


class Window:
    """At most ``width`` exchanges of a batch at once, pulled in order; drivers do the waiting.

    A failure stops the pulling, not what is on its way.
    """

    def __init__(self, batch: Batch, width: int) -> None:
        self.going: dict[int, Drive[Outcome]] = {}
        self._places = batch.places
        self._width = min(width, batch.width or width)
        self._outcomes: list[Outcome | None] = []
        self._errors: dict[int, BaseException] = {}
        self._more = True

    def pull(self, answer: bool | None) -> Place | Wait | None:
        """The next exchange to place, or what to wait for; None while neither may be done.

        A ``Wait`` beside what is on its way means: not now, look again when one has landed.
        """
        if not self._more or self._errors or len(self.going) >= self._width:
            return None
        try:
            item = self._places.send(answer)
        except StopIteration:
            self._more = False
            return None
        except BaseException as what:  # noqa: BLE001 - raised by ``result``, in request order
            self._errors[len(self._outcomes)] = what
            return None
        return None if isinstance(item, Wait) and self.going else item

    def place(self, item: Place) -> int:
        """Put an exchange on its way; its number."""
        number = len(self._outcomes)
        self._outcomes.append(None)
        self.going[number] = item.flow
        return number

    def land(self, number: int, outcome: Outcome | None, error: BaseException | None) -> None:
        """Take in what became of an exchange."""
        del self.going[number]
        self._outcomes[number] = outcome
        if error is not None:
            self._errors[number] = error

    def result(self) -> list[Outcome | None]:
        """The outcomes in order, or the first failure in request order, bare."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return self._outcomes

    def close(self) -> None:
        """Look at no further request."""
        self._places.close()
