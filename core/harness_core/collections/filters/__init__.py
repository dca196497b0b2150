"""Which files a request may read, by their properties: the filter grammar, evaluated or as SQL."""

from harness_core.collections.faults import FilterError
from harness_core.collections.filters.fields import FIELD_TYPES, FieldType
from harness_core.collections.filters.grammar import compile_filter
from harness_core.collections.filters.nodes import Node
from harness_core.collections.filters.shorthand import wire_filter
from harness_core.collections.filters.sql import as_sql

__all__ = [
    "FIELD_TYPES",
    "FieldType",
    "FilterError",
    "Node",
    "as_sql",
    "compile_filter",
    "wire_filter",
]
