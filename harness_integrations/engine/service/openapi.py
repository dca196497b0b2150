"""The OpenAPI document of the service, made from its routes, its faults and the contract."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from anyio.to_thread import run_sync
from starlette.responses import Response

from harness_core.collections.contract import BODY_BYTES, CONTRACT
from harness_core.collections.faults import (
    AlreadyExistsError,
    CollectionEmptyError,
    CollectionFault,
    CollectionNotReadyError,
    FilterError,
    ForbiddenError,
    IdempotencyConflictError,
    InvalidRequestError,
    NotFoundError,
    TemporarilyUnavailableError,
    UnauthenticatedError,
)
from harness_integrations.engine.faults import MethodNotAllowedError, RequestTooLargeError
from harness_integrations.engine.service import once
from harness_integrations.engine.service.calls import Call, Operation, reply
from harness_integrations.engine.service.routes import API, PAGE, Operations
from harness_integrations.engine.service.schemas import (
    FILE_PATH,
    GRANTED,
    METADATA,
    REFERENCE,
    Json,
    schemas,
)

_HEADERS: Final = {
    "x-engine-request-id": "The engine's id of the request.",
    "x-request-id": "Your X-Request-Id when it is valid, else the engine's id.",
    "www-authenticate": "Bearer.",
    "allow": "The methods that the path takes.",
    "retry-after": "Seconds, where asking again can help.",
    once.REPLAYED: "true: this was told before, and nothing was done again.",
    "x-answer-partial": "Why the answer rests on less than it could; comma-separated words.",
}
_IDS: Final = ("x-engine-request-id", "x-request-id")
_REQUIRED: Final = (*_IDS, "www-authenticate", "allow")
_STATE: Final = "409-state"
_FAULTS: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[CollectionFault, ...]]]] = {
    "400": (
        "A field, header, parameter or rule of the request is broken.", (),
        (
            InvalidRequestError("/query is too long", "/query"),
            FilterError(
                "the key is not listed", field="metadata.team", reason="not_listed",
                pointer="/filter/field",
            ),
        ),
    ),
    "401": (
        "The key is missing or not valid.", ("www-authenticate",),
        (UnauthenticatedError("the key is missing or not valid"),),
    ),
    "403": (
        "The key sees the resource and does not permit this.", (),
        (ForbiddenError("the key does not permit this"),),
    ),
    "404": (
        "Absent, deleted, or outside what the key sees.", (),
        (NotFoundError("it is absent, deleted, or outside what this key sees"),),
    ),
    "405": ("The path takes other methods.", ("allow",), (MethodNotAllowedError("GET, POST"),)),
    "409": (
        "A name that is taken, or an idempotency key that stands for another request.",
        ("retry-after",),
        (AlreadyExistsError("the name is taken"), IdempotencyConflictError(running=False)),
    ),
    _STATE: (
        "No file, or none that is ready; retryable while one is being processed.",
        ("retry-after",), (CollectionEmptyError(), CollectionNotReadyError(30)),
    ),
    "413": ("The body is over its limit.", (), (RequestTooLargeError(BODY_BYTES),)),
    "500": ("An unexpected failure.", (), (CollectionFault("an unexpected failure"),)),
    "503": (
        "A dependency, a limit or the time prevented this; retryable says whether to try again.",
        ("retry-after",),
        (TemporarilyUnavailableError("capacity", retryable=True, retry_after=1),),
    ),
}  # fmt: skip
_PARAMETERS: Final[Mapping[str, Json]] = {
    "path": {"schema": FILE_PATH, "required": True},
    "principals": {"content": {"application/json": {"schema": {
        "type": "array", "items": GRANTED}}}},
    "metadata": {"content": {"application/json": {"schema": METADATA}}},
    "filter": {"content": {"application/json": {"schema": {"$ref": REFERENCE + "FilterClause"}}}},
    "cursor": {
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{0,64}$"},
        "description": "The next_cursor of the page before.",
    },
    "limit": {"schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
}  # fmt: skip
_ULID: Final = "01K6Q6N7D8E9F0G1H2J3K4M5N6"
_IN_PATH: Final[Mapping[str, tuple[str, Json]]] = {
    "namespace": ("acme", {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"}),
    "collection": ("incident-logs", {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"}),
    "file": (f"fil_{_ULID}", {"pattern": "^fil_[0-9A-HJKMNP-TV-Z]{26}$"}),
    "key": ("0123456789", {"pattern": "^[0-9a-z]{10}$"}),
    "token": ("c3Bhbg", {"pattern": "^[A-Za-z0-9_-]+$"}),
    "part": ("page.js", {"enum": ["index.html", "page.js", "page.css"]}),
}
_MEDIA: Final = {"Event": "text/event-stream", "Part": "*/*", "Text": "text/plain"}
_IDEMPOTENCY: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "pattern": f"^{once.PATTERN}$"},
    "description": "The same request with the same key again is told what it was told before.",
}


async def show(call: Call) -> Response:
    """The document."""
    return reply(await run_sync(document))


OWN_PATH: Final[Mapping[str, Operations]] = {
    "/openapi.json": {
        "GET": Operation(handler=show, permission="open", summary="This document", reply="Document")
    }
}


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
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"apiKey": []}],
        "paths": {
            path: {
                **_path_parameters(path),
                **{method.lower(): _operation(path, method, one) for method, one in ops.items()},
            }
            for path, ops in {**API, **OWN_PATH, **PAGE}.items()
        },
        "components": {
            "schemas": schemas(
                one.body for ops in API.values() for one in ops.values() if one.body is not None
            ),
            "headers": {name: _header(name, text) for name, text in _HEADERS.items()},
            "responses": {name: _fault(name) for name in _FAULTS},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _path_parameters(path: str) -> Json:
    names = re.findall(r"\{(\w+)\}", path)
    if not names:
        return {}
    return {
        "parameters": [
            {
                "name": name, "in": "path", "required": True, "example": _IN_PATH[name][0],
                "schema": {"type": "string", **_IN_PATH[name][1]},
            }
            for name in names
        ]
    }  # fmt: skip


def _operation(path: str, method: str, one: Operation) -> Json:
    named = re.sub(r"[^A-Za-z]+", "_", path).rstrip("_")
    made: Json = {
        "summary": one.summary,
        "operationId": f"{method.lower()}{named}",
        "responses": {str(one.status): _success(path, one), **_failures(path, one)},
    }
    if one.ours:
        made["x-stability"] = "ours"
    if one.permission == "open":
        made["security"] = []
    else:
        made["x-permission"] = one.permission
    parameters: list[Json] = [
        {"name": name, "in": "query", **_PARAMETERS[name]} for name in sorted(one.parameters)
    ]
    if one.once:
        parameters.append(_IDEMPOTENCY)
    if parameters:
        made["parameters"] = parameters
    if one.body is not None:
        made["requestBody"] = {"required": True, **_content(one.body.__name__)}
    elif _uploads(path):
        made["requestBody"] = {"content": {"application/octet-stream": {}}}
    return made


def _uploads(path: str) -> bool:
    return path.endswith(":upload")


def _failures(path: str, one: Operation) -> Json:
    """The faults an operation may end with: most follow from what it takes and asks for."""
    told = ["400", "405", "500", *one.faults]
    if one.permission != "open":
        told += ["401", "503"]
    if one.once:
        told.append("409")
    if one.permission not in ("open", "key"):
        told.append("403")
    if "{" in path:
        told.append("404")
    if one.body is not None or _uploads(path):
        told.append("413")
    state = one.permission == "query"
    return {
        status: {
            "$ref": f"#/components/responses/{_STATE if state and status == '409' else status}"
        }
        for status in sorted(set(told))
    }


def _success(path: str, one: Operation) -> Json:
    names = [*_IDS]
    if path.endswith((":answer", ":search")):
        names.append("x-answer-partial")
    if one.once:
        names.append(once.REPLAYED)
    success: Json = {"description": one.summary, "headers": _headers(names)}
    if one.reply is not None:
        success |= _content(one.reply, _MEDIA.get(one.reply, "application/json"))
    return success


def _content(schema: str, media: str = "application/json") -> Json:
    return {"content": {media: {"schema": {"$ref": REFERENCE + schema}}}}


def _fault(name: str) -> Json:
    text, headers, faults = _FAULTS[name]
    told = _content("Error")
    told["content"]["application/json"]["examples"] = {
        one.code: {"value": one.envelope(f"req_{_ULID}")} for one in faults
    }
    return {"description": text, "headers": _headers((*_IDS, *headers)), **told}


def _headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _header(name: str, text: str) -> Json:
    return {"description": text, "required": name in _REQUIRED, "schema": {"type": "string"}}
