"""The OpenAPI document says what the service does."""

import re
from typing import Any

import pytest

from harness_core.collections.contract import AnswerRequest
from harness_integrations.engine.service.openapi import document, visible_pattern
from harness_integrations.engine.service.routes import API
from tests.support.engine import World

ANSWER = "/namespaces/{namespace}/collections/{collection}:answer"


def test_the_document_is_served_without_a_key(served: World) -> None:
    told = served.request("GET", "/openapi.json", None)
    assert told.status_code == 200
    assert told.json()["openapi"] == "3.1.0"
    assert told.json()["paths"].keys() == document()["paths"].keys()


def test_only_answer_is_the_contracts_own() -> None:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            if method != "parameters":
                assert ("x-stability" in operation) == (path != ANSWER)


def test_answer_lists_all_its_statuses_and_headers() -> None:
    responses = document()["paths"][ANSWER]["post"]["responses"]
    assert set(responses) == {"200", "400", "401", "403", "404", "405", "409", "413", "500", "503"}
    for headers in (
        responses["200"]["headers"],
        document()["components"]["responses"]["400"]["headers"],
    ):
        assert set(headers) == {"x-engine-request-id", "x-request-id"}
    assert all(one["required"] for one in document()["components"]["headers"].values())


def test_requests_are_closed_and_responses_open() -> None:
    schemas = document()["components"]["schemas"]
    for operations in API.values():
        for operation in operations.values():
            if operation.body is not None:
                assert schemas[operation.body.__name__]["additionalProperties"] is False
    assert schemas["AnswerResult"].get("additionalProperties") is not False
    assert not {"trace", "notes", "found", "partial"} & set(schemas["AnswerResult"]["properties"])
    assert len(schemas["FilterClause"]["oneOf"]) == 4


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
