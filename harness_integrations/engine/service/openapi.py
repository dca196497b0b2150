"""The OpenAPI document of the service, made from its routes and the models of the contract."""

import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import regex
from anyio.to_thread import run_sync
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from harness_core.collections.contract import (
    CONTRACT,
    PRINCIPAL_BYTES,
    AnswerResult,
    ReadSpansResult,
    SearchResult,
)
from harness_integrations.engine.service.calls import Call, Operation, reply
from harness_integrations.engine.service.routes import API, Operations

Json = dict[str, Any]

_SCHEMAS: Final = "#/components/schemas/"
_RESPONSES: Final = "#/components/responses/"
_FAULTS: Final = {
    "400": "A field, header, parameter or rule of the request is broken.",
    "401": "The key is missing or not valid.",
    "403": "The key sees the resource and does not permit this.",
    "404": "Absent, deleted, or outside what the key sees.",
    "405": "The path takes other methods.",
    "409": "The state of the collection, or a name that is taken.",
    "413": "The body is over its limit.",
    "500": "An unexpected failure.",
    "503": "A dependency, a limit or the time prevented this; see retryable.",
}
_EVERYWHERE: Final = ("400", "401", "403", "404", "405", "500", "503")
_PARAMETERS: Final[dict[str, Json]] = {
    "path": {"schema": {"type": "string", "maxLength": 1024}, "required": True},
    "principals": {"schema": {"type": "string"}, "description": "A JSON array of principals."},
    "metadata": {"schema": {"type": "string"}, "description": "A JSON object."},
    "filter": {"schema": {"type": "string"}, "description": "A FilterClause as JSON."},
    "cursor": {"schema": {"type": "string", "maxLength": 64}},
    "limit": {"schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
}
_EXAMPLES: Final = {
    "namespace": "acme", "collection": "incident-logs",
    "file": "fil_01K6Q6N7D8E9F0G1H2J3K4M5N6", "key": "0123456789",
}  # fmt: skip
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
        "value": {"description": "A scalar of the field's type; for in, 1 to 100 of them."},
    },
}


def _tree(name: str, inner: Json) -> Json:
    return {
        "type": "object",
        "required": [name],
        "additionalProperties": False,
        "properties": {name: inner},
    }


async def show(call: Call) -> Response:
    """The document."""
    return reply(await run_sync(document))


OWN_PATH: Final[Mapping[str, Operations]] = {
    "/openapi.json": {
        "GET": Operation(handler=show, permission="open", summary="This document", reply="Open")
    }
}
_CLAUSE: Final[Json] = {"$ref": _SCHEMAS + "FilterClause"}
_CLAUSES: Final[Json] = {"type": "array", "minItems": 1, "maxItems": 100, "items": _CLAUSE}
_OWN: Final[dict[str, Json]] = {
    "FilterClause": {
        "description": "At most 8 deep and 100 clauses in all.",
        "oneOf": [
            _COMPARISON, _tree("and", _CLAUSES), _tree("or", _CLAUSES), _tree("not", _CLAUSE)
        ],
    },
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message", "request_id", "retryable", "details"],
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "request_id": {"type": "string"},
                    "retryable": {"type": "boolean"},
                    "details": {"type": "object"},
                },
            }
        },
    },
    "Open": {"type": "object"},
    "Page": {
        "type": "object",
        "required": ["items", "next_cursor"],
        "properties": {
            "items": {"type": "array", "items": {"type": "object"}},
            "next_cursor": {"type": ["string", "null"]},
        },
    },
    "Named": {
        "type": "object",
        "required": ["id", "name", "created_at"],
        "properties": {
            "id": {"type": "string"}, "name": {"type": "string"},
            "created_at": {"type": "string", "format": "date-time"},
        },
    },
    "File": {
        "type": "object",
        "required": ["id", "path", "content_type", "bytes", "status"],
        "properties": {
            "id": {"type": "string"}, "path": {"type": "string"},
            "content_type": {"type": "string"}, "bytes": {"type": "integer", "minimum": 0},
            "status": {"enum": ["pending", "processing", "ready", "failed"]},
        },
    },
}  # fmt: skip


@lru_cache
def document() -> Json:
    """The document: OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Answers over a collection",
            "version": CONTRACT,
            "description": "Operations marked x-stability: ours are not part of the contract.",
        },
        "security": [{"bearer": []}, {"apiKey": []}],
        "paths": {
            path: {
                **_path_parameters(path),
                **{method.lower(): _operation(path, method, one) for method, one in ops.items()},
            }
            for path, ops in {**API, **OWN_PATH}.items()
        },
        "components": {
            "schemas": _schemas(),
            "headers": {
                "EngineId": _header("The engine's id of the request."),
                "RequestId": _header("Your X-Request-Id when it is valid, else the engine's id."),
            },
            "responses": {status: _fault(text) for status, text in _FAULTS.items()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


@lru_cache
def visible_pattern() -> str:
    """A pattern for texts that show something; escapes for blanks differ between dialects."""
    blank = regex.compile(r"[\p{White_Space}\p{Cc}\p{Cf}]")
    points = [n for n in range(sys.maxunicode + 1) if blank.match(chr(n))]
    return f"[^{''.join(_ranges(points))}]"


def _ranges(points: Iterable[int]) -> Iterable[str]:
    first = last = -2
    for point in [*points, -1]:
        if point != last + 1:
            if first >= 0:
                yield chr(first) if first == last else f"{chr(first)}-{chr(last)}"
            first = point
        last = point


def _schemas() -> dict[str, Json]:
    asked = {one.body for ops in API.values() for one in ops.values() if one.body is not None}
    told: list[type[BaseModel]] = [AnswerResult, SearchResult, ReadSpansResult]
    made = sorted(asked, key=lambda one: one.__name__)
    _, defined = models_json_schema(
        [(one, "validation") for one in [*made, *told]], ref_template=_SCHEMAS + "{model}"
    )
    found: dict[str, Json] = defined["$defs"]
    for name, schema in found.items():
        _refine(name, schema.get("properties", {}))
    return {**found, **_OWN}


_LIBRARY_ONLY: Final = ("found", "partial", "partial_reasons", "notes", "trace")


def _refine(name: str, members: Json) -> None:
    """What the models check in code, as far as a schema can say it."""
    if name.endswith("Request") and "query" in members:
        members["query"]["pattern"] = visible_pattern()
    if "filter" in members:
        members["filter"] = {"anyOf": [_CLAUSE, {"type": "null"}], "default": None}
    if name.endswith("Request") and "principals" in members:
        entry = members["principals"]["anyOf"][0]["items"]
        entry |= {"minLength": 1, "x-max-utf8-bytes": PRINCIPAL_BYTES, "not": {"const": "*"}}
    if name == "QueryImage":
        members["data"] |= {"contentEncoding": "base64", "maxLength": 5_592_408}
    if name == "AnswerResult":
        for one in _LIBRARY_ONLY:
            members.pop(one, None)


def _path_parameters(path: str) -> Json:
    names = re.findall(r"\{(\w+)\}", path)
    if not names:
        return {}
    return {
        "parameters": [
            {
                "name": name, "in": "path", "required": True, "example": _EXAMPLES[name],
                "schema": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"},
            }
            for name in names
        ]
    }  # fmt: skip


def _operation(path: str, method: str, one: Operation) -> Json:
    made: Json = {
        "summary": one.summary,
        "operationId": f"{method.lower()}{re.sub(r'[^A-Za-z]+', '_', path).rstrip('_')}",
        "responses": {
            str(one.status): _success(one),
            **{status: {"$ref": _RESPONSES + status} for status in (*_EVERYWHERE, *one.faults)},
        },
    }
    if one.ours:
        made["x-stability"] = "ours"
    if one.permission == "open":
        made["security"] = []
    if one.parameters:
        made["parameters"] = [
            {"name": name, "in": "query", **_PARAMETERS[name]} for name in sorted(one.parameters)
        ]
    if one.body is not None:
        made["requestBody"] = _content("application/json", one.body.__name__, required=True)
    elif path.endswith(":upload"):
        made["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    return made


def _success(one: Operation) -> Json:
    success: Json = {"description": one.summary, "headers": _id_headers()}
    if one.reply == "Events":
        success["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    elif one.reply is not None:
        success |= _content("application/json", one.reply)
    return success


def _content(kind: str, schema: str, **more: Any) -> Json:
    return {**more, "content": {kind: {"schema": {"$ref": _SCHEMAS + schema}}}}


def _fault(text: str) -> Json:
    return {"description": text, "headers": _id_headers(), **_content("application/json", "Error")}


def _id_headers() -> Json:
    return {
        "x-engine-request-id": {"$ref": "#/components/headers/EngineId"},
        "x-request-id": {"$ref": "#/components/headers/RequestId"},
    }


def _header(text: str) -> Json:
    return {"description": text, "required": True, "schema": {"type": "string"}}
