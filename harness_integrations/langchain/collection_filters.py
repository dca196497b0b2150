"""LangChain's structured queries, and dicts in shorthand, as filters of a collection."""

import re
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    StructuredQuery,
    Visitor,
)

from harness_core.collections.filters.shorthand import compared, joined, wire_filter
from harness_core.errors import BadSettingError

_OPS: Final[Mapping[Comparator, str]] = {
    Comparator.EQ: "eq", Comparator.NE: "neq", Comparator.GT: "gt", Comparator.GTE: "gte",
    Comparator.LT: "lt", Comparator.LTE: "lte", Comparator.IN: "in", Comparator.NIN: "nin",
}  # fmt: skip


class CollectionTranslator(Visitor):
    """Structured queries as filters of the contract, with the question beside them.

    A bare attribute is a metadata key; ``file.path`` and its like are the built-in fields.

    Raises:
        BadSettingError: ``contain``, ``like`` with anything but one ``%`` at its end, or a day
            where the contract compares instants.
    """

    allowed_comparators = (*_OPS, Comparator.LIKE)

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """``and``, ``or``, ``not``."""
        return joined(operation.operator.value, [one.accept(self) for one in operation.arguments])

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """One comparison."""
        key, value = comparison.attribute, comparison.value
        if comparison.comparator is Comparator.LIKE:
            return compared(key, "prefix", _prefix(value))
        if comparison.comparator not in _OPS:
            raise BadSettingError(f"a collection cannot filter by {comparison.comparator.value!r}")
        return compared(key, _OPS[comparison.comparator], _plain(value))

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """The question, and the filter as a keyword of ``invoke``."""
        if structured_query.filter is None:
            return structured_query.query, {}
        return structured_query.query, {"filter": structured_query.filter.accept(self)}


def collection_filter(given: Any) -> Any:
    """A structured query's filter, or a dict in shorthand, as a clause; a clause as it is.

    Raises:
        BadSettingError: the contract cannot say it.
    """
    if isinstance(given, FilterDirective):
        return given.accept(CollectionTranslator())
    return wire_filter(given)


def _prefix(pattern: Any) -> str:
    if not isinstance(pattern, str) or not re.fullmatch(r"[^%_\\]*%", pattern):
        raise BadSettingError("a collection matches beginnings alone: like 'text%'")
    return pattern[:-1]


def _plain(value: Any) -> Any:
    """A value without the wrapping that the query constructor puts around dates."""
    if not isinstance(value, Mapping):
        return value
    if "datetime" in value:
        return value["datetime"]
    raise BadSettingError("a collection compares instants; give a date its time and zone")
