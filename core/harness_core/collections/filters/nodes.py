"""A compiled filter. It is two-valued: what is missing is a null, which matches or does not."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from harness_core.collections.filters.fields import Field
from harness_core.collections.filters.values import Value

_ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
    "prefix": str.startswith,
}  # fmt: skip


class Node(Protocol):
    """A filter, or a part of one."""

    def matches(self, record: Mapping[str, Any], /) -> bool:
        """Whether a file matches: its built-in fields and ``metadata``, a mapping."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One field against one value."""

    field: Field
    op: str
    value: Value

    def matches(self, record: Mapping[str, Any], /) -> bool:
        """``neq`` is exactly not ``eq``; an ordering or ``prefix`` of a null is false."""
        mine = self.field.of(record)
        if self.op in ("eq", "neq"):
            return (mine == self.value) == (self.op == "eq")
        return mine is not None and _ORDERINGS[self.op](mine, self.value)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One field against a list of values."""

    field: Field
    values: tuple[Value, ...]

    def matches(self, record: Mapping[str, Any], /) -> bool:
        """Exactly the ``or`` of ``eq``."""
        return self.field.of(record) in self.values


@dataclass(frozen=True, slots=True)
class Every:
    """All of several; of none, true."""

    parts: tuple[Node, ...] = ()

    def matches(self, record: Mapping[str, Any], /) -> bool:
        """Whether all match."""
        return all(part.matches(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of several."""

    parts: tuple[Node, ...]

    def matches(self, record: Mapping[str, Any], /) -> bool:
        """Whether one matches."""
        return any(part.matches(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary."""

    part: Node

    def matches(self, record: Mapping[str, Any], /) -> bool:
        """Whether it does not match."""
        return not self.part.matches(record)
