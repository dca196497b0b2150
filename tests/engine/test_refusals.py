"""What is refused, with which status, in which order; never with what was sent."""

import errno
import json
import sqlite3
from typing import Any

import pytest

from harness_core.collections.contract import BODY_BYTES
from harness_core.collections.faults import FenceError, TemporarilyUnavailableError
from tests.support.engine import World, error_of, path_of, refused
from tests.support.images import image


def test_an_unknown_query_parameter_is_refused(served: World) -> None:
    refused(served.request("POST", path_of("docs") + "?debug=1", json={"query": "x"}))


def test_checks_come_in_their_order(served: World) -> None:
    bad: dict[str, Any] = {"content": b"x" * (BODY_BYTES + 1), "headers": {"content-type": "x"}}
    post = path_of("docs")
    assert served.request("PUT", post, None, **bad).status_code == 405
    assert served.request("POST", post, None, **bad).status_code == 401
    assert served.request("POST", path_of("nope"), **bad).status_code == 404
    assert served.request("POST", post, "W", **bad).status_code == 403
    assert served.request("POST", post, **bad).status_code == 400
    huge = served.ask(raw=b"{" * (BODY_BYTES + 1))
    assert huge.status_code == 413
    picture = image("no base64")
    assert served.ask("secure", key="Q", query_image=picture, top_k=1).status_code == 400
    assert served.ask("secure", key="Q", query_image=picture).status_code == 403
    unlisted = {"field": "metadata.x", "op": "eq", "value": "y"}
    principals = served.ask("docs", principals=[], filter=unlisted)
    assert error_of(principals) == (400, "invalid_request")
    assert error_of(served.ask("void", filter=unlisted)) == (400, "invalid_filter")
    assert error_of(served.ask("void")) == (409, "collection_empty")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FenceError("it left what may be read"), "Traceback"),
        (OSError(errno.ENOSPC, "no room"), "Traceback"),
        (sqlite3.OperationalError("at /secret/place"), "store (OperationalError)"),
    ],
)
def test_what_keeps_a_request_from_its_answer_is_in_the_log(
    own: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    error: Exception, told: str,
) -> None:  # fmt: skip
    def fail(*_: object) -> None:
        if not isinstance(error, sqlite3.Error):
            raise error
        raise TemporarilyUnavailableError("store", retryable=True) from error

    monkeypatch.setattr(own.engine.store, "namespaces", fail)
    response = own.request("GET", "/namespaces")
    assert response.status_code == (500 if isinstance(error, FenceError) else 503)
    assert response.json()["error"]["request_id"] in caplog.text
    assert told in caplog.text
    assert "/secret/place" not in caplog.text


def test_no_error_repeats_what_was_sent(served: World) -> None:  # SEC67
    canary = "heliotrope-canary"
    bodies: list[Any] = [
        {"query": "x", canary: 1}, {"query": [canary]}, {"query": "x", "effort": canary},
        {"query": "x", "filter": {"field": "path", "op": canary, "value": canary}},
        {"query": "x", "filter": canary}, {"query": "x", "history": [canary]},
        {"query": "x", "principals": [canary]}, {"query": "x", "query_image": {"data": canary}},
    ]  # fmt: skip
    for body in bodies:
        response = served.ask(raw=body)
        assert response.status_code == 400
        error = response.json()["error"]
        assert canary not in error["message"].replace(f"/{canary}", "")
        assert not {"Traceback", "sqlite", "SELECT"} & set(json.dumps(error).split())
    broken = served.ask(raw=json.dumps({"query": canary})[:-1].encode())
    assert canary not in broken.text
