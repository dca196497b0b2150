"""Objects that belong to a budget: copies share it; a pickle would lose it and is refused."""

from typing import Any, Self


class BudgetBound:
    """Makes a pydantic object keep its budget through copies."""

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """A copy under the same budget."""
        twin: Self = self.model_copy()  # type: ignore[attr-defined]  # of the pydantic class it is mixed into
        return twin

    def __reduce__(self) -> Any:
        """Nothing: a budget is of one process.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"a {type(self).__name__} holds a budget of this process and cannot be pickled; pickle "
            "what it wraps and govern that where it is used"
        )
