"""What a schema cannot say, put right in what schemathesis makes up; see test_schemathesis."""

import os
from typing import Any

import schemathesis

ENFORCED = os.environ.get("COLLECTION_ACCESS") == "enforced"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501
SOUND = {"field": "path", "op": "prefix", "value": "/"}


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """A body whose parts fit the collection, where each is of its declared form."""
    if not isinstance(body, dict):
        return body
    if "query" in body or "spans" in body:
        _principals(body)
    if isinstance(body.get("filter"), dict):
        body["filter"] = _filter(body["filter"])
    image = body.get("query_image")
    if isinstance(image, dict) and _image(image):
        body["query_image"] = {"data": PNG, "media_type": "image/png"}
    return body


def _image(given: dict[str, Any]) -> bool:
    known = ("image/png", "image/jpeg", "image/webp")
    whole = set(given) == {"data", "media_type"} and isinstance(given["data"], str)
    return whole and given["media_type"] in known


def _principals(body: dict[str, Any]) -> None:
    given = body.get("principals")
    sound = given is None or (isinstance(given, list) and all(map(_principal, given)))
    if not sound:
        return
    if ENFORCED:
        body["principals"] = given if given is not None else ["user:ann"]
    else:
        body.pop("principals", None)


def _principal(one: Any) -> bool:
    return isinstance(one, str) and 0 < len(one.encode()) <= 256 and one != "*"


def _filter(given: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """Sound comparisons in place of made-up ones; a tree that is none stays what it is."""
    if set(given) == {"field", "op", "value"} and isinstance(given["field"], str):
        known = ("eq", "neq", "gt", "gte", "lt", "lte", "prefix", "in")
        return SOUND if given["op"] in known else given
    if depth > 4:
        return SOUND
    for join in ("and", "or"):
        if set(given) == {join} and isinstance(given[join], list) and given[join]:
            inner = given[join][:4]
            deeper = [_filter(one, depth + 1) if isinstance(one, dict) else one for one in inner]
            return {join: deeper}
    if set(given) == {"not"} and isinstance(given["not"], dict):
        return {"not": _filter(given["not"], depth + 1)}
    return given
