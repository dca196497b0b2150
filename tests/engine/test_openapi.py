"""The OpenAPI document says what the service does."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness_core.collections.contract import AnswerRequest
from harness_core.collections.faults import CollectionFault, InvalidRequestError
from harness_core.collections.names import PATH_BYTES, checked_path
from harness_integrations.engine.faults import ProtocolError, UnknownFaultError
from harness_integrations.engine.service.bodies import GoneError
from harness_integrations.engine.service.calls import Resource
from harness_integrations.engine.service.openapi import document
from harness_integrations.engine.service.routes import API
from harness_integrations.engine.service.schemas import FILE_PATH, visible_pattern
from tests.support.engine import World

ANSWER = "/namespaces/{namespace}/collections/{collection}:answer"
NEVER_TOLD = (ProtocolError, UnknownFaultError, GoneError)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of each operation."""
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            if method != "parameters":
                yield path, method, operation


def response(operation: dict[str, Any], status: str) -> Any:
    """A response of an operation, looked up where it is a reference."""
    told = operation["responses"][status]
    name = told.get("$ref", "").rpartition("/")[2]
    return document()["components"]["responses"][name] if name else told


def test_the_document_is_served_without_a_key(served: World) -> None:
    told = served.request("GET", "/openapi.json", None)
    assert told.status_code == 200
    assert told.json() == document()


def test_the_document_is_sound_openapi() -> None:
    validator = pytest.importorskip("openapi_spec_validator", reason="the validator is missing")
    assert document()["openapi"].startswith("3.1.")
    validator.validate(document())
    operation_ids = [one["operationId"] for _, _, one in operations()]
    assert len(operation_ids) == len(set(operation_ids))


def test_every_path_and_method_of_the_service_is_in_it(served: World) -> None:
    served_paths = {
        (route.path, method.lower())
        for route in served.app._app.app.routes  # type: ignore[attr-defined]  # a router, at runtime
        if isinstance(route.app, Resource)
        for method in route.app.operations
    }
    assert served_paths == {(path, method) for path, method, _ in operations()}


def test_only_answer_is_the_contracts_own() -> None:
    for path, _, operation in operations():
        assert (operation.get("x-stability") == "ours") == (path != ANSWER)


def test_both_ways_to_send_a_key_are_in_it() -> None:
    schemes = document()["components"]["securitySchemes"]
    assert [*schemes.values()] == [
        {"type": "http", "scheme": "bearer"},
        {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    ]
    assert document()["security"] == [{"bearer": []}, {"apiKey": []}]


def test_answer_lists_all_its_statuses_and_the_headers_that_each_has() -> None:
    answer = document()["paths"][ANSWER]["post"]
    statuses = {"200", "400", "401", "403", "404", "405", "409", "413", "500", "503"}
    assert set(answer["responses"]) == statuses
    for status in statuses:
        required = {
            name
            for name in response(answer, status)["headers"]
            if document()["components"]["headers"][name]["required"]
        }
        more = {"401": {"www-authenticate"}, "405": {"allow"}}.get(status, set())
        assert required == {"x-engine-request-id", "x-request-id"} | more
    assert "x-answer-partial" in response(answer, "200")["headers"]


def _faults(kind: type[CollectionFault] = CollectionFault) -> Iterator[type[CollectionFault]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _faults(narrower)


def test_every_fault_that_the_service_can_tell_is_in_it_as_it_is_told() -> None:
    told = set()
    for name, one in document()["components"]["responses"].items():
        schema = {"$ref": "#/components/schemas/Error", **document()}
        for code, example in one["content"]["application/json"]["examples"].items():
            Draft202012Validator(schema).validate(example["value"])
            assert example["value"]["error"]["code"] == code
            told.add((name.partition("-")[0], code))
    known = {
        (str(kind.status), kind.code)
        for kind in _faults()
        if kind.__module__.startswith("harness_")
        and kind.status  # those without one are of the client
        and not issubclass(kind, NEVER_TOLD)
    }
    assert told == known


def test_requests_are_closed_and_responses_open() -> None:
    schemas = document()["components"]["schemas"]
    bodies = {one.body.__name__ for ops in API.values() for one in ops.values() if one.body}
    for name in bodies:
        assert schemas[name]["additionalProperties"] is False
    for _, _, operation in operations():
        for told in response(operation, min(operation["responses"])).get("content", {}).values():
            name = told["schema"].get("$ref", "").rpartition("/")[2]
            assert schemas.get(name, {}).get("additionalProperties") is not False
    hidden = {"trace", "notes", "found", "partial", "partial_reasons", "warnings"}
    assert not hidden & set(schemas["AnswerResult"]["properties"])


def test_what_a_schema_cannot_say_is_said_beside_it() -> None:
    schemas = document()["components"]["schemas"]
    entry = schemas["AnswerRequest"]["properties"]["principals"]["anyOf"][0]["items"]
    assert entry["x-max-utf8-bytes"] == 256
    assert entry["not"] == {"const": "*"}
    assert schemas["QueryImage"]["properties"]["data"]["contentEncoding"] == "base64"
    assert schemas["AnswerRequest"]["properties"]["query"]["pattern"] == visible_pattern()


def test_each_part_of_a_path_comes_with_an_example() -> None:
    for path, methods in document()["paths"].items():
        told = {one["name"]: one for one in methods.get("parameters", [])}
        assert set(told) == set(re.findall(r"\{(\w+)\}", path))
        for one in told.values():
            Draft202012Validator(one["schema"]).validate(one["example"])


LEAF = {"field": "path", "op": "prefix", "value": "/a"}


@pytest.mark.parametrize(
    ("clause", "fits"),
    [
        (LEAF, True),
        ({"and": [{"or": [LEAF, {"not": LEAF}]}]}, True),
        ({"field": "bytes", "op": "in", "value": [1, 2]}, True),
        ({}, False),
        ({"and": []}, False),
        ({"and": {}}, False),
        ({**LEAF, "boost": 2}, False),
        ({**LEAF, "op": "like"}, False),
        ({"field": "bytes", "op": "in", "value": [[1]]}, False),
        ({"not": LEAF, "or": [LEAF]}, False),
        ({"or": [{"not": {"and": [7]}}]}, False),
    ],
)
def test_a_clause_is_one_of_four_forms_down_to_its_leaves(clause: Any, fits: bool) -> None:
    schema = {"$ref": "#/components/schemas/FilterClause", **document()}
    assert Draft202012Validator(schema).is_valid(clause) == fits


def test_every_reference_leads_somewhere() -> None:
    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [one for inner in value.values() for one in references(inner)]
        if isinstance(value, list):
            return [one for inner in value for one in references(inner)]
        return []

    for reference in references(document()):
        place: Any = document()
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        assert place


@pytest.mark.parametrize("text", ["x", " x ", "\u4e2d", "\U0001f600", "\u200bx"])
def test_the_pattern_takes_what_the_model_takes(text: str) -> None:
    assert re.search(visible_pattern(), text)
    AnswerRequest.parse({"query": text})


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\u2060\u00ad", "\x1c", "\ufeff", "\u3000"])
def test_the_pattern_refuses_what_the_model_refuses(text: str) -> None:
    assert not re.search(visible_pattern(), text)


PARTS = [
    "/",
    ".",
    "a",
    "%2f",
    "%2E",
    "%41",
    "\\",
    "\u00e9",
    "e\u0301",
    "\n",
    "\x00",
    "\x85",
    "x" * 400,
]


@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join))
@settings(max_examples=300, deadline=None)
def test_a_path_fits_its_schema_where_a_file_may_have_it(path: str) -> None:
    described = Draft202012Validator(FILE_PATH).is_valid(path) and len(path.encode()) <= PATH_BYTES
    try:
        checked_path(path)
        taken = True
    except InvalidRequestError:
        taken = False
    assert described == taken
