"""The fields a filter may name, and the operators each understands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness_core.collections.filters.values import READERS, Value, stored

FieldType = Literal["text", "number", "time", "bool"]
FIELD_TYPES: Final = ("text", "number", "time", "bool")
METADATA: Final = "metadata."
NULLABLE: Final = frozenset({"eq", "neq", "in"})
_LONGEST_TEXT: Final = 4096

_EQUAL = frozenset({"eq", "neq"})
_ORDERED = frozenset({"gt", "gte", "lt", "lte"})
_OPERATORS: Final[Mapping[str, frozenset[str]]] = {
    "text": _EQUAL | _ORDERED | {"prefix", "in"},
    "number": _EQUAL | _ORDERED | {"in"},
    "time": _EQUAL | _ORDERED,
    "bool": _EQUAL | {"in"},
    "size": _EQUAL | _ORDERED | {"in"},
    "status": _EQUAL | {"in"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field: its name in filters, its kind, its metadata key (None for a built-in one)."""

    name: str
    kind: str
    key: str | None = None

    @property
    def operators(self) -> frozenset[str]:
        """The operators this field has; built-in names are not ordered."""
        every = _OPERATORS[self.kind]
        return every - _ORDERED if self.key is None and self.kind == "text" else every

    def asked(self, given: Any, op: str) -> Value:
        """A value of a filter.

        Raises:
            ValueError: it is none of this field, or null where that has no meaning.
        """
        if given is None:
            if self.key is None or op not in NULLABLE:
                raise ValueError("null has no meaning here")
            return None
        if self.kind == "text" and isinstance(given, str) and len(given) > _LONGEST_TEXT:
            raise ValueError("the text is too long")
        return READERS[self.kind](given)

    def of(self, record: Mapping[str, Any]) -> Value:
        """The value of a file; None where it has none that the type can read."""
        if self.key is None:
            return stored(self.kind, record.get(self.name))
        return stored(self.kind, (record.get("metadata") or {}).get(self.key))


_BUILT_IN: Final = {
    field.name: field
    for field in (
        Field(name="path", kind="text"),
        Field(name="content_type", kind="text"),
        Field(name="bytes", kind="size"),
        Field(name="created_at", kind="time"),
        Field(name="updated_at", kind="time"),
        Field(name="status", kind="status"),
    )
}


def field_named(name: str, fields: Mapping[str, str]) -> Field | None:
    """The field of that name; None for one that is neither built in nor listed."""
    if name.startswith(METADATA):
        key = name.removeprefix(METADATA)
        return Field(name=name, kind=fields[key], key=key) if key and key in fields else None
    return _BUILT_IN.get(name)
