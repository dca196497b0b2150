"""The bodies of the endpoints that are ours; strict, as the contract's own are."""

from typing import Annotated, Any, Literal

from pydantic import Field

from harness_core.collections.contract import Asked

FieldType = Literal["text", "number", "time", "bool"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Ref = Annotated[str, Field(pattern=r"^([A-Za-z0-9_-]{1,64}|\*)$")]


class NewNamespace(Asked):
    """A namespace to create."""

    name: Name


class NewCollection(Asked):
    """A collection to create; ``access_control`` never changes afterwards."""

    name: Name
    access_control: Literal["off", "enforced"] = "off"
    metadata_fields: dict[str, FieldType] = Field(default_factory=dict)


class NewFields(Asked):
    """The metadata fields that filters may name: replaces the list."""

    fields: dict[str, FieldType]


class NewFile(Asked):
    """A file to add: its ``text``, its bytes as base64 in ``data``, or the ``uri`` to fetch."""

    path: Annotated[str, Field(max_length=1024)]
    content_type: Annotated[str, Field(max_length=200)] | None = None
    text: str | None = Field(default=None, repr=False)
    data: str | None = Field(default=None, repr=False)
    uri: Annotated[str, Field(max_length=4096)] | None = Field(default=None, repr=False)
    metadata: dict[str, Any] | None = None
    principals: list[str] = Field(default_factory=list)


class FileChange(Asked):
    """What to change of a file; ``metadata`` is merged, ``{"$unset": [keys]}`` removes."""

    metadata: dict[str, Any] | None = None
    principals: list[str] | None = None
    path: Annotated[str, Field(max_length=1024)] | None = None


class Grant(Asked):
    """What a scoped key may do, where. ``collection`` is a name, an id or ``*``."""

    namespace: Ref
    collection: Ref
    actions: Annotated[list[Literal["query", "read", "write"]], Field(min_length=1, max_length=3)]


class NewKey(Asked):
    """A key to make; its secret is told once."""

    kind: Literal["cluster", "scoped"]
    grants: list[Grant] = Field(default_factory=list, max_length=100)
    expires_at: str | None = None
