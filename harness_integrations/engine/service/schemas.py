"""The schemas of the OpenAPI document: the models of the contract, and what their code adds."""

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import regex
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from harness_core.collections.contract import (
    PRINCIPAL_BYTES,
    AnswerResult,
    ReadSpansResult,
    SearchResult,
)
from harness_core.collections.filters.fields import FIELD_TYPES
from harness_core.collections.filters.grammar import CLAUSES, DEPTH, LISTED
from harness_core.collections.ingestion.kinds import CONTENT_TYPE
from harness_core.collections.names import FIELD_CHARS, FIELDS, GRANTS, METADATA_NAMES, PATH_BYTES

Json = dict[str, Any]

REFERENCE: Final = "#/components/schemas/"
_LIBRARY_ONLY: Final = (
    "found", "partial", "partial_reasons", "notes", "warnings", "trace"
)  # fmt: skip
_NO_CONTROLS: Final = r"^[^\u0000-\u001f\u007f-\u009f]*$"
_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_WHEN: Final[Json] = {"type": "string", "format": "date-time"}
_NAME: Final[Json] = {"type": "string"}
_COUNTS: Final[Json] = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
_TYPES: Final[Json] = {"type": "object", "additionalProperties": {"type": "string"}}


def _reference(name: str) -> Json:
    return {"$ref": REFERENCE + name}


def _told(required: str, **properties: Json) -> Json:
    """A reply of ours: open, so that a newer service may say more."""
    return {"type": "object", "required": required.split(), "properties": properties}


def _page(name: str) -> Json:
    return _told(
        "items next_cursor",
        items={"type": "array", "items": _reference(name)},
        next_cursor={"type": ["string", "null"], "description": "null: there is no more."},
    )


def _tree(name: str, inner: Json) -> Json:
    return {
        "type": "object",
        "required": [name],
        "additionalProperties": False,
        "properties": {name: inner},
    }


_SCALAR: Final[Json] = {"type": ["string", "number", "boolean", "null"]}
_COMPARISON: Final[Json] = {
    "type": "object",
    "required": ["field", "op", "value"],
    "additionalProperties": False,
    "properties": {
        "field": {
            "type": "string",
            "description": "path, content_type, bytes, created_at, updated_at, status, or "
            "metadata.<key> with a key on the collection's list.",
        },
        "op": {"enum": ["eq", "neq", "gt", "gte", "lt", "lte", "prefix", "in"]},
        "value": {
            "description": "A scalar of the field's type; with in, a list of them.",
            "anyOf": [
                _SCALAR, {"type": "array", "minItems": 1, "maxItems": LISTED, "items": _SCALAR}
            ],
        },
    },
}  # fmt: skip
_CLAUSES: Final[Json] = {
    "type": "array", "minItems": 1, "maxItems": CLAUSES, "items": _reference("FilterClause")
}  # fmt: skip
_FIELDS: Final[Json] = {
    "type": "object",
    "maxProperties": FIELDS,
    "propertyNames": {"minLength": 1, "maxLength": FIELD_CHARS, "pattern": _NO_CONTROLS},
    "additionalProperties": {"enum": list(FIELD_TYPES)},
}
METADATA: Final[Json] = {
    "type": "object",
    "maxProperties": METADATA_NAMES,
    "description": "Values under a key on the collection's list can be filtered by; no U+0000.",
}
FILE_PATH: Final[Json] = {
    "type": "string",
    "minLength": 2,
    "maxLength": PATH_BYTES,
    # no empty, . or .. segment, no control character, backslash or percent-encoded separator
    "pattern": r"^(?!.*%(?:2[eEfF]|5[cC]|00))"
    r"(?:/(?!\.{1,2}(?:/|$))[^/\\\u0000-\u001f\u007f-\u009f]+)+$",
    "x-max-utf8-bytes": PATH_BYTES,
    "description": "A name like /reports/2031.pdf; kept in Unicode's form NFC.",
}
_OWN: Final[dict[str, Json]] = {
    "FilterClause": {
        "description": f"At most {DEPTH} deep and {CLAUSES} clauses in all.",
        "oneOf": [
            _COMPARISON, _tree("and", _CLAUSES), _tree("or", _CLAUSES),
            _tree("not", _reference("FilterClause")),
        ],
    },
    "Error": _told(
        "error",
        error=_told(
            "code message request_id retryable details",
            code={"type": "string"}, message={"type": "string"}, request_id={"type": "string"},
            retryable={"type": "boolean"}, details={"type": "object"},
        ),
    ),
    "Namespace": _told("id name created_at", id=_NAME, name=_NAME, created_at=_WHEN),
    "Collection": _told(
        "id name namespace_id access_control metadata_fields created_at state counts",
        id=_NAME, name=_NAME, namespace_id=_NAME, created_at=_WHEN, metadata_fields=_TYPES,
        access_control={"enum": ["off", "enforced"]},
        state={"enum": ["empty", "processing", "ready", "failed"]},
        counts=_COUNTS,
    ),
    "File": _told(
        "id path content_type bytes created_at updated_at status metadata principals",
        id=_NAME, path=_NAME, content_type=_NAME, bytes={"type": "integer", "minimum": 0},
        created_at=_WHEN, updated_at=_WHEN, metadata={"type": "object"},
        principals={"type": "array", "items": {"type": "string"}},
        status={"enum": ["pending", "processing", "ready", "failed"]},
        error={"description": "Why it failed.", **_told("code message", code=_NAME, message=_NAME)},
    ),
    "Key": _told(
        "id kind grants created_at expires_at revoked",
        id=_NAME, kind={"enum": ["cluster", "scoped"]},
        grants={"type": "array", "items": {"type": "object"}},
        created_at=_WHEN, expires_at={"anyOf": [_WHEN, {"type": "null"}]},
        revoked={"type": "boolean"},
    ),
    "MadeKey": _told("id kind secret", id=_NAME, kind=_NAME, secret=_NAME),
    "Fields": _told(
        "fields unreadable", fields=_TYPES,
        unreadable=_COUNTS | {"description": "By key: files whose value its type cannot read."},
    ),
    "Info": _told(
        "contract version efforts limits features", contract=_NAME, version=_NAME,
        efforts={"type": "array", "items": {"type": "string"}},
        limits={"type": "object"}, features={"type": "object"},
    ),
    "Health": _told("status", status=_NAME),
    "Ready": _told("status checks", status=_NAME, checks={"type": "object"}),
    "Event": _told(
        "id event data", id=_NAME, event=_NAME,
        data={"type": "string", "contentMediaType": "application/json"},
    ),
    "Document": {"type": "object"},
    "Part": {"type": "string"},
    "Text": {"type": "string"},
    **{f"{name}Page": _page(name) for name in ("Namespace", "Collection", "File", "Key")},
}  # fmt: skip


def schemas(asked: Iterable[type[BaseModel]]) -> dict[str, Json]:
    """Every schema of the document; ``asked`` are the models of the bodies."""
    told: list[type[BaseModel]] = [AnswerResult, SearchResult, ReadSpansResult]
    made = sorted(asked, key=lambda one: one.__name__)
    _, defined = models_json_schema(
        [(one, "validation") for one in [*made, *told]], ref_template=REFERENCE + "{model}"
    )
    found: dict[str, Json] = defined["$defs"]
    for name, schema in found.items():
        _refine(name, schema)
    return {**found, **_OWN}


def _refine(name: str, schema: Json) -> None:
    """What the models check in code, as far as a schema can say it."""
    members: dict[str, Json] = schema.get("properties", {})
    if name in _REFINED:
        _REFINED[name](schema, members)
    if name.endswith("Request") and "query" in members:
        members["query"]["pattern"] = visible_pattern()
        members["filter"] = {"anyOf": [_reference("FilterClause"), {"type": "null"}]}
    if name.endswith("Request"):
        _entries(members).update(_PRINCIPAL | {"not": {"const": "*"}})


_PRINCIPAL: Final[Json] = {
    "minLength": 1, "x-max-utf8-bytes": PRINCIPAL_BYTES, "pattern": r"^[^\u0000]*$"
}  # fmt: skip
GRANTED: Final[Json] = _PRINCIPAL | {"pattern": _NO_CONTROLS}


def _entries(members: dict[str, Json]) -> Json:
    """The schema of one principal, in a list that may be null."""
    given = members["principals"]
    entries: Json = given.get("anyOf", [given])[0]["items"]
    return entries


def _image(schema: Json, members: dict[str, Json]) -> None:
    members["data"] |= {
        "contentEncoding": "base64", "pattern": _BASE64, "minLength": 4, "maxLength": 5_592_408
    }  # fmt: skip


def _result(schema: Json, members: dict[str, Json]) -> None:
    for one in _LIBRARY_ONLY:
        members.pop(one, None)


def _file(schema: Json, members: dict[str, Json]) -> None:
    members["path"] = FILE_PATH
    members["content_type"]["anyOf"][0] |= {"pattern": CONTENT_TYPE}
    members["metadata"] = {"anyOf": [METADATA, {"type": "null"}]}
    members["principals"] |= {"maxItems": GRANTS}
    _entries(members).update(GRANTED)
    members["data"]["anyOf"][0] |= {"contentEncoding": "base64", "pattern": _BASE64}
    ways = ("text", "data", "uri")
    schema["oneOf"] = [
        {
            "required": [way],
            "properties": {
                way: {"type": "string"}, **{one: {"type": "null"} for one in ways if one != way}
            },
        }
        for way in ways
    ]  # fmt: skip


def _change(schema: Json, members: dict[str, Json]) -> None:
    unset: Json = {"$unset": {"type": "array", "items": {"type": "string"}}}
    members["path"] = {"anyOf": [FILE_PATH, {"type": "null"}]}
    merged = METADATA | {"properties": unset, "maxProperties": METADATA_NAMES + 1}
    members["metadata"] = {"anyOf": [merged, {"type": "null"}]}
    members["principals"]["anyOf"][0] |= {"maxItems": GRANTS}
    _entries(members).update(GRANTED)


def _collection(schema: Json, members: dict[str, Json]) -> None:
    members["metadata_fields"] = _FIELDS


def _fields(schema: Json, members: dict[str, Json]) -> None:
    members["fields"] = _FIELDS


def _key(schema: Json, members: dict[str, Json]) -> None:
    members["expires_at"] = {"anyOf": [_WHEN, {"type": "null"}]}
    scoped = {"required": ["kind"], "properties": {"kind": {"const": "scoped"}}}
    granted = {"required": ["grants"], "properties": {"grants": {"minItems": 1}}}
    schema |= {"if": scoped, "then": granted, "else": {"properties": {"grants": {"maxItems": 0}}}}


_REFINED: Final = {
    "QueryImage": _image, "AnswerResult": _result, "NewFile": _file, "FileChange": _change,
    "NewCollection": _collection, "NewFields": _fields, "NewKey": _key,
}  # fmt: skip


@lru_cache
def visible_pattern() -> str:
    """A pattern for texts that show something; escapes for blanks differ between dialects."""
    blank = regex.compile(r"[\p{White_Space}\p{Cc}\p{Cf}]")
    points = [n for n in range(sys.maxunicode + 1) if blank.match(chr(n))]
    return f"^[\\s\\S]*[^{''.join(_ranges(points))}][\\s\\S]*$"


def _ranges(points: Iterable[int]) -> Iterable[str]:
    first = last = -2
    for point in [*points, -1]:
        if point != last + 1:
            if first >= 0:
                yield chr(first) if first == last else f"{chr(first)}-{chr(last)}"
            first = point
        last = point
