"""The vectors of the filter grammar, through the service."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.collections.test_filters import FIELDS, MATCHES, RECORDS, REFUSED
from tests.engine.conftest import QUICK
from tests.support.engine import World, path_of, world

# These two name a moment and a state that a file added now does not have.
ELSEWHERE = {"V15", "V19"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("filters"), settings=QUICK, names=("void",)) as made:
        target = made.collection("void")
        target.set_fields(FIELDS)
        for record in RECORDS:
            target.add(
                record["path"], b"x" * record["bytes"], content_type=record["content_type"],
                metadata=record["metadata"], wait=False,
            )  # fmt: skip
        yield made


@pytest.mark.parametrize("vector", sorted(set(MATCHES) - ELSEWHERE))
def test_a_filter_matches_over_http_what_it_matches(filled: World, vector: str) -> None:  # AC50
    given, wanted = MATCHES[vector]
    params = {"filter": json.dumps(given)}
    found = filled.request("GET", path_of("void", "/files"), params=params).json()["items"]
    names = {record["path"]: name for name, record in zip("ABC", RECORDS, strict=True)}
    assert "".join(sorted(names[one["path"]] for one in found)) == wanted


@pytest.mark.parametrize("vector", sorted(REFUSED))
def test_a_filter_is_refused_over_http_with_its_reason(filled: World, vector: str) -> None:  # AC50
    given, field, reason = REFUSED[vector]
    for response in (
        filled.ask("void", filter=given),
        filled.request("POST", path_of("void", ":search"), json={"query": "x", "filter": given}),
        filled.request("GET", path_of("void", "/files"), params={"filter": json.dumps(given)}),
    ):
        error = response.json()["error"]
        details: dict[str, Any] = error["details"]
        assert (response.status_code, error["code"]) == (400, "invalid_filter")
        assert (details.get("field"), details.get("reason")) == (field, reason)
