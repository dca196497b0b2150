"""What a schema cannot say, put right in what schemathesis makes up; see test_schemathesis.

Only what its schema accepts is changed: what is made up to be refused stays as it is.
"""

import json
import os
from contextlib import suppress
from functools import cache
from typing import Any

import schemathesis
from jsonschema import Draft202012Validator

from harness_integrations.engine.service.openapi import document

ENFORCED = os.environ.get("COLLECTION_ACCESS") == "enforced"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501
SOUND = {"field": "path", "op": "prefix", "value": "/"}


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Members that fit the collection and each other."""
    if isinstance(case.body, dict):
        case.body = _fitted(case.body)
    given = (case.query or {}).get("filter")
    if isinstance(given, str):
        with suppress(ValueError):
            clause = json.loads(given)
            if _fits("FilterClause", clause):
                case.query["filter"] = json.dumps(_sound(clause))
                case.path_parameters = dict(case.path_parameters)  # looked at again: it was set


def _fitted(body: dict[str, Any]) -> dict[str, Any]:
    made = dict(body)
    if "query" in made or "spans" in made:
        _ask_as(made)
    if _fits("FilterClause", made.get("filter")):
        made["filter"] = _sound(made["filter"])
    if isinstance(made.get("uri"), str) and _fits("NewFile", made):
        made |= {"uri": None, "text": "There is nowhere to fetch it from."}
    if _fits("QueryImage", made.get("query_image")):
        made["query_image"] = {"data": PNG, "media_type": "image/png"}
    return made


def _fits(schema: str, given: Any) -> bool:
    return _validator(schema).is_valid(given)


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/components/schemas/{schema}", **document()})


def _ask_as(body: dict[str, Any]) -> None:
    """Principals where the collection asks for them, none where it takes none."""
    given = body.get("principals")
    if not _fits("AnswerRequest", {"query": "x", "principals": given}):
        return
    if ENFORCED:
        body["principals"] = [one for one in given or () if len(one.encode()) <= 256]
    else:
        body.pop("principals", None)


def _sound(given: Any, depth: int = 0) -> Any:
    """A clause of the same form, within the limits, that any collection understands."""
    if "field" in given or depth == 5:
        return SOUND
    ((join, inner),) = given.items()
    if join == "not":
        return {"not": _sound(inner, depth + 1)}
    return {join: [_sound(one, depth + 1) for one in inner[:2]]}
